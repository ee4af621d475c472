// Makes ledgers of any size within seconds, on either store, by the way by which a copy takes a ledger in: record after
// record, in the order of end users. They are ledgers like any other, which `scrip verify` finds whole.

import { randomBytes } from 'node:crypto';
import { apiKeySecret, hashOf, hintOf, SECRET_BYTES } from '../src/accounts/api-key.ts';
import type { Database } from '../src/config.ts';
import type { EndUserKey } from '../src/ledger/command.ts';
import type { Cycle } from '../src/ledger/cycle.ts';
import { DAY_MS, endOf, type Instant } from '../src/ledger/instant.ts';
import type { Posting, PostingKind } from '../src/ledger/posting.ts';
import { type TransactionId, transactionId } from '../src/ledger/transaction-id.ts';
import { inBatches, type LedgerRecord } from '../src/store/ledger-copy.ts';
import { openPostgresDestination } from '../src/store/postgres/copying.ts';
import { openSqliteDestination } from '../src/store/sqlite/copying.ts';
import { CREDITS, endUserId, type Group } from './workload.ts';

const ACCOUNT = 1;
const KEY = 1;
const ACTOR = `key:${KEY}`;
/** Time enough for the longest history, a millisecond each. */
const HISTORY_MS = 2 * 3_600_000;
const VALIDITY_DAYS = 31;
const RENEWING_VALIDITY_DAYS = 1;
const RECORDS_PER_COMMIT = 50_000;

export interface Seeded {
  /** An API key of the only account, with the scope `write`. */
  readonly secret: string;
  readonly seconds: number;
}

/** @param dueAt when the recurring cycles, if there are any, are due to renew */
export async function seedLedger(
  database: Database,
  groups: readonly Group[],
  dueAt: Instant = Date.now() + DAY_MS / 2,
): Promise<Seeded> {
  const started = performance.now();
  const now = Date.now();
  const secret = apiKeySecret('write', randomBytes(SECRET_BYTES));
  const destination =
    database.kind === 'file' ? openSqliteDestination(database.path) : await openPostgresDestination(database);
  const key = {
    id: KEY,
    account: ACCOUNT,
    scope: 'write',
    secretSha256: hashOf(secret),
    hint: hintOf(secret),
  } as const;
  await destination.begin('a benchmark', {
    accounts: [{ account: ACCOUNT, name: 'bench', createdAt: now }],
    keys: [{ ...key, createdAt: now, revokedAt: null, name: '', lastUsedAt: null }],
    clock: { at: now, sequence: 0 },
  });
  let uncommitted = 0;
  let last: EndUserKey | null = null;
  for (const records of inBatches(recordsOf(groups, now, dueAt))) {
    // A commit stands behind an end user that is complete: those of the next one are loaded after it.
    const complete = records.findLastIndex(({ kind }) => kind === 'end-user') + 1;
    await destination.load(records.slice(0, complete));
    last = records[complete - 1]?.user ?? last;
    uncommitted += records.length;
    if (last !== null && complete > 0 && uncommitted >= RECORDS_PER_COMMIT) {
      await destination.commit(last);
      uncommitted = 0;
      last = null;
    }
    await destination.load(records.slice(complete));
  }
  if (last !== null) await destination.commit(last);
  await destination.moveClock({ at: now, sequence: 0 });
  await destination.addUpTotals();
  await destination.finish();
  await destination.close();
  return { secret, seconds: (performance.now() - started) / 1_000 };
}

function* recordsOf(groups: readonly Group[], now: Instant, dueAt: Instant): Generator<LedgerRecord> {
  const users = groups.flatMap((group) =>
    Array.from({ length: group.users }, (_, index) => ({ number: group.first + index, group })),
  );
  const named = users.map(({ number, group }) => ({ endUser: endUserId(number), group }));
  named.sort((a, b) => (a.endUser < b.endUser ? -1 : 1));
  const begun = now - HISTORY_MS;
  const ids = new Ids();
  for (const { endUser, group } of named) {
    const user = { account: ACCOUNT, endUser };
    if (group.cycles === 'renewing') yield* withItsRecord(user, renewing(user, dueAt, ids));
    else
      yield* withItsRecord(user, oneTime(user, { cycles: group.cycles, transactions: group.transactions, begun }, ids));
  }
}

/** With the end user's own record behind them, without a chain, as a server keeps it that is told nothing of chains. */
function* withItsRecord(user: EndUserKey, records: Iterable<LedgerRecord>): Generator<LedgerRecord> {
  let latest: TransactionId | null = null;
  for (const record of records) {
    if (record.kind === 'posting') latest = record.posting.transactionId;
    yield record;
  }
  yield { kind: 'end-user', user, latest, chain: null };
}

/** Cycles that were added one behind the other, then subtractions of one credit each from the first of them. */
function* oneTime(
  user: EndUserKey,
  { cycles: count, transactions, begun }: { cycles: number; transactions: number; begun: Instant },
  ids: Ids,
): Generator<LedgerRecord> {
  const cycles = Array.from({ length: count }, (_, index) =>
    cycleOf(ids.at(begun + index), 'one-time', begun + index, VALIDITY_DAYS),
  );
  const spent = transactions - count;
  const first = cycles[0] as Cycle;
  for (const cycle of cycles)
    yield { kind: 'cycle', user, cycle: cycle === first ? { ...cycle, remaining: cycle.amount - spent } : cycle };
  for (const cycle of cycles)
    yield postingOf(user, cycle, { id: cycle.id, kind: 'add', amount: cycle.amount, at: cycle.start });
  for (let index = 0; index < spent; index++) {
    const at = begun + count + index;
    yield postingOf(user, first, { id: ids.at(at), kind: 'subtract', amount: -1, at });
  }
}

function* renewing(user: EndUserKey, dueAt: Instant, ids: Ids): Generator<LedgerRecord> {
  const start = dueAt - RENEWING_VALIDITY_DAYS * DAY_MS;
  const cycle = cycleOf(ids.at(start), 'recurring', start, RENEWING_VALIDITY_DAYS);
  yield { kind: 'cycle', user, cycle };
  yield postingOf(user, cycle, { id: cycle.id, kind: 'start-cycle', amount: cycle.amount, at: start });
}

function cycleOf(id: TransactionId, type: Cycle['type'], start: Instant, validityDays: number): Cycle {
  const end = endOf(start, validityDays);
  return {
    id,
    period: 0,
    type,
    status: 'active',
    amount: CREDITS,
    remaining: CREDITS,
    start,
    end,
    validityDays,
  };
}

function postingOf(
  user: EndUserKey,
  cycle: Cycle,
  { id, kind, amount, at }: { id: TransactionId; kind: PostingKind; amount: number; at: Instant },
): LedgerRecord {
  const posting: Posting = {
    transactionId: id,
    cycleId: cycle.id,
    period: cycle.period,
    kind,
    amount,
    createdAt: at,
    expiresAt: cycle.end,
    actor: ACTOR,
    note: null,
  };
  return { kind: 'posting', user, posting };
}

/** Ids as the store gives them out, but for their tails, which are counted. */
class Ids {
  #count = 0;

  at(instant: Instant): TransactionId {
    this.#count += 1;
    const tail = this.#count.toString(16).padStart(12, '0');
    return transactionId({ at: instant, sequence: 1 + (this.#count % 2 ** 25), tail });
  }
}
