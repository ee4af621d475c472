// An end user's transactions: a filter and a table, one page at a time.

import { html } from 'ghtml';
import { INSTANT_MAX } from '../../../ledger/instant.ts';
import { isListed, type PostingKind } from '../../../ledger/posting.ts';
import { instantOf, type TransactionId } from '../../../ledger/transaction-id.ts';
import {
  type HistoryPage,
  type HistoryTransaction,
  heldChange,
  NAMED_CYCLES_MAX,
} from '../../../store/transaction-history.ts';
import { endTimeUtc, moment, numberText, rolloverLimitText, signedText, wrappable } from '../../figures.ts';
import { type FormState, field } from '../form-field.ts';
import {
  type Activity,
  amountLabel,
  byCell,
  KINDS,
  kindBadge,
  kindLabel,
  pager,
  STORING_DUE,
  table,
} from '../lists.ts';
import { creditsEveryText, cycleName } from './cycle-names.ts';
import { endUserPath, transactionPath } from './end-user-paths.ts';

/** The transaction filter, as the user entered it. An empty field matches all transactions. */
export interface HistoryFilter {
  readonly kind: string;
  /** Matches the transactions whose note begins with this text. */
  readonly note: string;
  /** Days in UTC, such as `2026-11-20`. */
  readonly from: string;
  readonly to: string;
}

export type HistoryEntry = Activity &
  Pick<HistoryTransaction, 'expiresAt' | 'postings' | 'reference' | 'refundable' | 'scheduled'>;

export interface HistoryView {
  readonly endUser: string;
  /** Whether the page begins with the latest transaction. */
  readonly isFirstPage: boolean;
  /** Newest first. */
  readonly history: readonly HistoryEntry[];
  readonly older: string | null;
  /** Whether due transactions that are not stored yet are missing from the page. */
  readonly isStoringDue: boolean;
  readonly terms: HistoryPage['terms'];
  readonly openHolds: ReadonlySet<TransactionId>;
  readonly filter: HistoryFilter;
  readonly filterErrors: FormState['errors'];
}

export function historySection(view: HistoryView): string {
  const { endUser, history, older, isStoringDue, isFirstPage, filter, filterErrors } = view;
  const path = endUserPath(endUser);
  const isFiltered = Object.values(filter).some((value) => value !== '');
  const none =
    older === null ? 'No transactions yet.' : 'No matching transactions on this page. Older transactions might match.';
  const nothing = isFiltered && older === null ? 'No matching transactions.' : none;
  const hasErrors = Object.values(filterErrors).some((error) => error !== null);
  return html`<section class="card" id="transactions">
<h2>${isFirstPage ? 'Transactions' : 'Older transactions'}</h2>
!${filterForm(path, view)}
!${history.length > 0 ? historyTable(view) : html`<p class="muted">${hasErrors ? 'Correct the dates to see transactions.' : nothing}</p>`}
!${isStoringDue ? html`<p class="muted small">${STORING_DUE}</p>` : ''}
!${pager([
    { label: 'Latest', path: isFirstPage ? null : pathOf(path, filter) },
    { label: 'Older', path: older === null ? null : pathOf(path, filter, older), isNext: true },
    { label: 'Download CSV', path: history.length === 0 ? null : pathOf(`${path}/transactions.csv`, filter) },
  ])}
</section>`;
}

function filterForm(path: string, { filter, filterErrors }: HistoryView): string {
  const kinds = KINDS.map(
    (kind) => html`<option value="${kind}"!${kind === filter.kind ? ' selected' : ''}>${kindLabel(kind)}</option>`,
  );
  const state = { values: { ...filter }, errors: filterErrors };
  const optional = { isOptional: true, showsOptional: false } as const;
  const date = { ...optional, type: 'date' } as const;
  return html`<form class="form filter four" method="get" action="${path}#transactions">
<div class="field"><label for="kind">Type</label>
<select class="input" id="kind" name="kind"><option value="">All</option>!${kinds}</select></div>
!${field({ ...optional, id: 'note', name: 'note', label: 'Note begins with' }, state)}
!${field({ ...date, id: 'from', name: 'from', label: 'From (UTC)' }, state)}
!${field({ ...date, id: 'to', name: 'to', label: 'To (UTC)' }, state)}
<button class="button secondary" type="submit">Filter</button>
</form>`;
}

function pathOf(path: string, filter: HistoryFilter, older: string | null = null): string {
  const given = Object.entries(filter).filter(([, value]) => value !== '');
  const query = new URLSearchParams(older === null ? given : [...given, ['page', older]]);
  const isPage = !path.endsWith('.csv') && query.size > 0;
  return `${path}${query.size === 0 ? '' : `?${query}`}${isPage ? '#transactions' : ''}`;
}

function historyTable({ endUser, history, terms, openHolds }: HistoryView): string {
  const rows = history.map(
    (entry) => html`<tr role="row">
<td role="cell" data-label="Time" class="when" id="t-${entry.id}">!${moment(entry.createdAt)}</td>
<td role="cell" data-label="Type">!${kindBadge(entry.kind)}!${actionLink(endUser, entry, openHolds)}</td>
<td role="cell" data-label="Amount" class="number">!${movedCredits(entry)}</td>
<td role="cell" data-label="Cycle" class="touched">!${touchedCycles(entry, terms)}!${expiry(entry)}!${scheduledPlan(entry)}!${referenceLink(endUser, entry)}</td>
!${byCell(entry)}
</tr>`,
  );
  const columns = [['Time (UTC)'], ['Type'], ['Amount', 'number'], ['Cycle'], ['By and note']] as const;
  return table({ label: 'Transactions', classes: 'history', columns, rows });
}

function expiry({ kind, expiresAt }: HistoryEntry): string {
  if (!isListed(kind)) return '';
  const text = expiresAt === INSTANT_MAX ? 'Never expires' : html`Expires !${endTimeUtc(expiresAt)}`;
  return html`<span class="expires muted small">!${text}</span>`;
}

/**
 * Returns the amount of a transaction, or the credits that it held or released. For a capture, also returns the credits
 * of the hold. For a refund, also returns how many of the refunded credits have expired.
 */
export function movedCredits(entry: Pick<HistoryEntry, 'id' | 'kind' | 'amount' | 'postings'>): string {
  const { id, kind, amount, postings } = entry;
  const held = wrappable(numberText(Math.abs(heldChange(entry))));
  switch (kind) {
    case 'hold':
      return html`!${held} held`;
    case 'release':
    case 'lapse':
      return html`!${held} released`;
    case 'capture':
      return html`!${amountLabel(entry)} <br><span class="muted small">hold of !${held}</span>`;
    case 'refund': {
      // Skip the posting that opens a new cycle: it grants the expired credits again, and the postings to the original
      // cycles already include these credits.
      const given = postings.reduce((sum, posting) => sum + (posting.cycleId === id ? 0 : posting.amount), 0);
      const expired = given - amount;
      if (expired === 0) return amountLabel(entry);
      return html`!${amountLabel(entry)} <br><span class="muted small">!${wrappable(numberText(expired))} expired</span>`;
    }
    default:
      return amountLabel(entry);
  }
}

/**
 * Returns the name of the cycle that a transaction changed. If the transaction has several postings, returns a list of
 * their amounts and cycles.
 */
export function touchedCycles(
  { kind, postings }: Pick<HistoryEntry, 'kind' | 'postings'>,
  terms: HistoryPage['terms'],
): string {
  const [only] = postings;
  const nameOf = ({ cycleId, period }: HistoryEntry['postings'][number]) =>
    cycleName(cycleId, period, terms.get(cycleId));
  if (only !== undefined && postings.length === 1) return nameOf(only);
  const items = postings.slice(0, NAMED_CYCLES_MAX).map((posting) => {
    const amount = isListed(kind) ? signedText(posting.amount) : numberText(Math.abs(posting.held));
    const isLong = wrappable(amount) !== amount;
    return html`<li!${isLong ? ' class="long"' : ''}><span class="number">${amount}</span> !${nameOf(posting)}</li>`;
  });
  const others = postings.length - items.length;
  const more = others === 0 ? '' : html`<li class="muted">and ${numberText(others)} more</li>`;
  return html`<ul class="draws">!${items}!${more}</ul>`;
}

const REFERENCE_TEXTS: Partial<Record<PostingKind, string>> = {
  capture: 'Hold of',
  release: 'Hold of',
  lapse: 'Hold of',
  refund: 'Refund of',
  'change-plan': 'Scheduled',
};

function scheduledPlan({ scheduled, expiresAt }: HistoryEntry): string {
  if (scheduled === null) return '';
  const rollover = scheduled.rolloverMax === 0 ? '' : `Rolls over ${rolloverLimitText(scheduled.rolloverMax)}`;
  return html`<span class="refers-to small">To ${creditsEveryText(scheduled)}</span><span class="refers-to muted small">${rollover}</span><span class="refers-to muted small">From !${endTimeUtc(expiresAt)}</span>`;
}

/** Returns a link to the closed hold, the refunded transaction, or the transaction that scheduled the plan. */
function referenceLink(endUser: string, { kind, reference }: HistoryEntry): string {
  if (reference === null) return '';
  return html`<span class="refers-to small">${REFERENCE_TEXTS[kind] ?? ''} <a href="${transactionPath(endUser, reference)}">!${moment(instantOf(reference))}</a></span>`;
}

/** Links in different rows have the same text, so screen readers also announce the time of the transaction. */
function actionLink(endUser: string, { id, refundable }: HistoryEntry, openHolds: ReadonlySet<TransactionId>): string {
  const label = openHolds.has(id) ? 'Release' : (refundable ?? 0) > 0 ? 'Refund' : null;
  if (label === null) return '';
  return html` <br><a class="button secondary small" href="${transactionPath(endUser, id)}" aria-describedby="t-${id}">${label}</a>`;
}
