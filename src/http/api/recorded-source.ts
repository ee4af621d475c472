// The `ListSource` for lists of transactions with details or filters.

import type { EndUserKey } from '../../ledger/command.ts';
import type { Instant } from '../../ledger/instant.ts';
import { endOf } from '../../ledger/plan.ts';
import { isListed, POSTING_KINDS, type Posting, type PostingKind } from '../../ledger/posting.ts';
import { dueLapses, dueRenewals } from '../../ledger/settle.ts';
import type { EndUserState } from '../../ledger/state.ts';
import { instantOf } from '../../ledger/transaction-id.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import {
  type HistoryPage,
  type HistoryTransaction,
  heldChange,
  historyTransactionOf,
  NAMED_CYCLES_MAX,
  PAGE_ROWS_MAX,
} from '../../store/transaction-history.ts';
import type { Recorded } from './list-request.ts';
import type { ListSource } from './list-source.ts';
import { timestamp, transactionText } from './replies.ts';

interface RecordedEntry extends HistoryTransaction {
  readonly terms: HistoryPage['terms'];
}

const LISTED_KINDS: readonly PostingKind[] = POSTING_KINDS.filter(isListed);

export function recordedSource(
  store: Pick<LedgerStore, 'history'>,
  user: EndUserKey,
  { isDetailed, kind, notePrefix }: Recorded,
): ListSource<RecordedEntry> {
  const kinds = kind === undefined ? LISTED_KINDS : [kind];
  return {
    readMax: PAGE_ROWS_MAX,
    async read(page) {
      const { transactions, terms, ...rest } = await store.history(user, { ...page, kinds, notePrefix });
      // If no kind is requested, omit transactions that neither added nor spent credits, as the plain list does.
      const shown = kind === undefined ? transactions.filter(({ amount }) => amount !== 0) : transactions;
      return { ...rest, transactions: shown.map((transaction) => ({ ...transaction, terms })) };
    },
    due: (state, now) => (notePrefix === undefined ? dueEntries(state, now, kinds) : []),
    text: isDetailed ? detailedText : transactionText,
  };
}

/**
 * Lapses need not be merged with renewals and changes of plan, because a list that contains lapses contains nothing
 * else. `kinds` is either one requested kind, or `LISTED_KINDS`, which does not contain `lapse`.
 */
function* dueEntries(state: EndUserState, now: Instant, kinds: readonly PostingKind[]): Generator<RecordedEntry> {
  const terms = new Map(state.cycles.map(({ id, type, plan }) => [id, { type, plan }]));
  const entryOf = (postings: readonly [Posting, ...Posting[]]) => ({ ...historyTransactionOf(postings), terms });
  if (kinds.includes('renew') || kinds.includes('change-plan')) {
    for (const posting of dueRenewals(state, now)) {
      // A change of plan opens a cycle that the state does not contain: take the terms of this cycle from the posting.
      if (posting.terms !== null) terms.set(posting.cycleId, posting.terms);
      if (kinds.includes(posting.kind)) yield entryOf([posting]);
    }
  }
  if (kinds.includes('lapse')) for (const postings of dueLapses(state, now)) yield entryOf(postings);
}

function detailedText(entry: RecordedEntry): string {
  const { kind, note, actor, reference, refundable, postings, terms } = entry;
  const cycles = postings.map((posting, index) => cycleText(posting, index < NAMED_CYCLES_MAX ? terms : null));
  return (
    `${transactionText(entry).slice(0, -1)},"kind":"${kind}","note":${JSON.stringify(note)},"actor":${JSON.stringify(actor)}` +
    (reference === null ? '' : `,"reference":"${reference}"`) +
    (refundable === null ? '' : `,"refundable":${refundable}`) +
    `${heldMember(heldChange(entry))},"cycles":[${cycles.join(',')}]}`
  );
}

function heldMember(held: number): string {
  return held === 0 ? '' : `,"held":${held}`;
}

/** @param terms null to omit the type, the starting amount, the start and the end of the cycle */
function cycleText(
  { cycleId, period, amount, held }: RecordedEntry['postings'][number],
  terms: RecordedEntry['terms'] | null,
): string {
  const touched = `{"cycle_id":"${cycleId}","period":${period},"amount":${amount}${heldMember(held)}`;
  const opening = terms?.get(cycleId);
  if (opening === undefined) return `${touched}}`;
  const { type, plan } = opening;
  const start = endOf(instantOf(cycleId), plan, period);
  const end = endOf(instantOf(cycleId), plan, period + 1);
  return `${touched},"cycle_type":"${type}","starting_amount":${plan.amount},"cycle_start":"${timestamp(start)}","cycle_end":"${timestamp(end)}"}`;
}
