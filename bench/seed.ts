// Quickly creates large ledgers that pass `scrip verify`, on SQLite or PostgreSQL.

import { randomBytes } from 'node:crypto';
import { apiKeySecret, hashOf, hintOf, SECRET_BYTES } from '../src/accounts/api-key.ts';
import type { Database } from '../src/config.ts';
import { deriveEvents } from '../src/events/derive.ts';
import type { EndUserKey } from '../src/ledger/command.ts';
import { type Cycle, newCycle } from '../src/ledger/cycle.ts';
import { DAY_MS, type Instant } from '../src/ledger/instant.ts';
import { openingOf, type Posting, type PostingKind, postingTo } from '../src/ledger/posting.ts';
import { type TransactionId, transactionId } from '../src/ledger/transaction-id.ts';
import { EXPIRING_DAYS_DEFAULT } from '../src/store/event-log.ts';
import { OPERATOR } from '../src/store/key-store.ts';
import { openPostgresDestination } from '../src/store/postgres/tools/copying.ts';
import { openSqliteDestination } from '../src/store/sqlite/tools/copying.ts';
import { CopiedEvents } from '../src/store/tools/copied-events.ts';
import { inBatches, type LedgerRow } from '../src/store/tools/ledger-row.ts';
import { CREDITS, endUserId, type Group } from './workload.ts';

const ACCOUNT = 1;
const KEY = 1;
const ACTOR = `key:${KEY}`;
/** Enough time for the longest history: a million transactions, one per millisecond, take 1,000 s. */
const HISTORY_MS = 2 * 3_600_000;
const VALIDITY_DAYS = 31;
const RENEWING_VALIDITY_DAYS = 1;
const ROWS_PER_COMMIT = 50_000;

export interface Seeded {
  readonly secret: string;
  readonly seconds: number;
}

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
  await destination.begin('a benchmark');
  const tables = [
    { table: 'accounts', values: [ACCOUNT, 'bench', now, EXPIRING_DAYS_DEFAULT, 0] },
    {
      table: 'api_keys',
      values: [KEY, ACCOUNT, 'write', hashOf(secret), hintOf(secret), '', now, OPERATOR, null, null, null],
    },
  ] as const;
  await destination.loadTables(tables);
  const events = new CopiedEvents(deriveEvents, tables, now);
  await destination.moveClock({ at: now, sequence: 0 });
  let uncommitted = 0;
  let last: EndUserKey | null = null;
  for (const created of inBatches(rowsOf(groups, now, dueAt))) {
    const rows = events.follow(created);
    // A commit must contain either all rows of an end user or none.
    const complete = rows.findLastIndex(({ kind }) => kind === 'end-user') + 1;
    await destination.load(rows.slice(0, complete));
    last = rows[complete - 1]?.user ?? last;
    uncommitted += rows.length;
    if (last !== null && complete > 0 && uncommitted >= ROWS_PER_COMMIT) {
      await destination.commit(last);
      uncommitted = 0;
      last = null;
    }
    await destination.load(rows.slice(complete));
  }
  if (last !== null) await destination.commit(last);
  await destination.moveClock({ at: now, sequence: 0 });
  await destination.rebuildTotals();
  await destination.finish();
  await destination.close();
  return { secret, seconds: (performance.now() - started) / 1_000 };
}

function* rowsOf(groups: readonly Group[], now: Instant, dueAt: Instant): Generator<LedgerRow> {
  const users = groups.flatMap((group) =>
    Array.from({ length: group.users }, (_, index) => ({ endUser: endUserId(group.first + index), group })),
  );
  users.sort((a, b) => (a.endUser < b.endUser ? -1 : 1));
  const begun = now - HISTORY_MS;
  const ids = new Ids();
  for (const { endUser, group } of users) {
    const user = { account: ACCOUNT, endUser };
    const postings = group.cycles === 'renewing' ? renewing(dueAt, ids) : oneTime(group.cycles, group, begun, ids);
    for (const posting of postings) yield { kind: 'transaction', user, postings: [posting] };
    yield { kind: 'end-user', user };
  }
}

function* oneTime(cycles: number, { transactions }: Group, begun: Instant, ids: Ids): Generator<Posting> {
  const first = cycleOf(ids.at(begun), 'one-time', VALIDITY_DAYS);
  yield opened(first, 'add');
  for (let at = begun + 1; at < begun + cycles; at++)
    yield opened(cycleOf(ids.at(at), 'one-time', VALIDITY_DAYS), 'add');
  for (let at = begun + cycles; at < begun + transactions; at++) {
    const entry = { transactionId: ids.at(at), kind: 'subtract', createdAt: at, actor: ACTOR, note: null } as const;
    yield postingTo(first, -1, entry);
  }
}

function* renewing(dueAt: Instant, ids: Ids): Generator<Posting> {
  const start = dueAt - RENEWING_VALIDITY_DAYS * DAY_MS;
  yield opened(cycleOf(ids.at(start), 'recurring', RENEWING_VALIDITY_DAYS), 'start-cycle');
}

function opened(cycle: Cycle, kind: PostingKind): Posting {
  return openingOf(cycle, { transactionId: cycle.id, kind, actor: ACTOR, note: null });
}

function cycleOf(id: TransactionId, type: Cycle['type'], validityDays: number): Cycle {
  return newCycle(id, type, { amount: CREDITS, validityDays, validityMonths: null, rolloverMax: 0 });
}

/** Transaction IDs that end with a counter instead of random digits. */
class Ids {
  #count = 0;

  at(instant: Instant): TransactionId {
    this.#count += 1;
    const tail = this.#count.toString(16).padStart(12, '0');
    return transactionId({ at: instant, sequence: 1 + (this.#count % 2 ** 25), tail });
  }
}
