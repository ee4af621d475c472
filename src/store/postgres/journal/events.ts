// Derives events and summaries from the feed, and stores them in PostgreSQL. A single database transaction takes
// batches from the feed, and stores the events of their postings, the new summaries of the end users, and the number of
// the latest event. Until it commits, the transaction holds the lock on the row of the consumer `events`. The event
// numbers within a part (the database, or a shard of Citus) therefore ascend in commit order.
//
// Time-driven events, such as `credits.expiring`, can be derived up to an instant only if no batch with an earlier
// instant can still commit. To find such an instant, a short transaction locks the rows of the end users whose
// time-driven events are due, reads the clock, and stores the instant in these rows. Every batch locks the rows of its
// end users before it reads the clock, and keeps the locks until it commits. A batch that gets the locks after the short
// transaction therefore has the same or a later instant, even if the database's clock is set back. The short transaction
// skips rows that a running batch has locked, so it never waits for a batch.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { type EndUserKey, endUserText } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { NEVER } from '../../../ledger/next-event.ts';
import type { Posting } from '../../../ledger/posting.ts';
import { type AccountCounts, CountChanges, summaryOf } from '../../end-user-summaries.ts';
import {
  type DeriveEvents,
  type EventSettings,
  EXPIRING_DAYS_DEFAULT,
  type LedgerEvent,
  thresholdOf,
} from '../../event-log.ts';
import type { FeedPosting } from '../../feed.ts';
import { throughPosition } from '../../transaction-ids.ts';
import type { Part, Placement } from '../citus/placement.ts';
import type { Reachable } from '../citus/reach.ts';
import { type Connection, exactInteger, type Query, sql, type TextRow } from '../pool/connection.ts';
import type { DatabaseClock } from '../pool/database-clock.ts';
import { COMMIT, COMMIT_BATCH, ROLLBACK, setLocal } from '../pool/transactions.ts';
import { KEY, KEY_TYPES, keyOf, sameKey } from '../rows/key.ts';
import { columnsOf } from '../rows/ledger-rows.ts';
import { RowArrays, unnest } from '../rows/row-arrays.ts';
import { isFull, lockConsumer, postingsNamed, type TakeLimits, take } from './feed.ts';
import { KEYS, moveIdsSql } from './state-rows.ts';
import { type StoredSummary, SUMMARY_COLUMNS, SUMMARY_TYPES, storedSummaryOf, summaryValues } from './summary-rows.ts';
import { upsert } from './totals.ts';

/**
 * A step takes 10 to 20 ms. The main thread works for 5 ms of this time. With a limit of 500 postings, Scrip would
 * derive the events of 14,000 instead of 10,000 end users per second on two cores, but each step would occupy the main
 * thread for longer.
 */
const LIMITS: TakeLimits = { batchesMax: 64, postingsMax: 200 };

/** One step derives time-driven events for at most this many due end users. */
const DUE_MAX = 64;

/** After working for this long, the derivation yields to other work on the main thread. */
const SLICE_MS = 3;

interface EndUserInput {
  readonly user: EndUserKey;
  readonly postings: Posting[];
  until: Instant | null;
}

export interface EventStep {
  readonly derive: DeriveEvents;
  readonly clock: DatabaseClock;
  readonly begin: Placement['begin'];
}

/** Selects the buckets of end users whose time-driven events are due. */
export function dueBuckets(now: Instant, reachable: Reachable): Query {
  return sql(
    `SELECT DISTINCT bucket FROM (
       SELECT bucket FROM scrip.end_user_summaries WHERE due_at <= $1${reachable('end_user_summaries')}
       ORDER BY due_at LIMIT $2
     ) AS due`,
    [now, DUE_MAX],
  );
}

/**
 * Runs one step of event derivation for a part: derives and stores a limited number of events.
 *
 * @param now a past instant; the step includes the end users whose time-driven events are due by then
 * @returns whether there might be more events to derive; null if another process is deriving events of this part
 */
export async function deriveSome(
  connection: Connection,
  part: Part,
  now: Instant,
  { derive, clock, begin }: EventStep,
): Promise<boolean | null> {
  const passed = await passTime(connection, part, now, { clock, begin });
  const locked = await connection.send([...passed.ending, ...begin, lockConsumer('events', part, 'SKIP LOCKED')]);
  const consumer = locked.at(-1)?.rows[0];
  if (consumer === undefined) {
    await connection.send([ROLLBACK]);
    return null;
  }
  const taken = await connection.rows(take('events', part, LIMITS));
  const isMore = isFull(taken, LIMITS);
  // Of the postings left in the feed, only those of renewals, changes of plan and lapses can be at `latest` or earlier.
  const latest = isMore ? Math.max(...taken.map(([, , at]) => exactInteger(at))) - 1 : passed.until;
  const postings = await postingsNamed(connection, taken, part);
  const inputs = inputsOf(postings, passed.users, Math.min(latest, passed.until));
  if (inputs.length === 0) {
    await connection.send([ROLLBACK]);
    return false;
  }
  const { writes, nextDueAt } = await derived(connection, part, {
    inputs,
    clock,
    derive,
    latestEvent: exactInteger(consumer[0]),
  }).catch(async (error) => {
    // Unlock the consumer's row now: PostgreSQL might not notice immediately that the connection has been closed.
    await connection.send([ROLLBACK]).catch(() => {});
    throw error;
  });
  // If there is a standby, wait until it confirms the COMMIT. Without this wait, the numbers of events that a client
  // has already read could be reused for other events after a failover.
  await connection.commit([...writes, ...COMMIT_BATCH]);
  // Further time-driven events of the end users in `inputs` might already be due.
  return isMore || passed.users.length === DUE_MAX || nextDueAt <= passed.until;
}

/**
 * Begins a transaction that locks the rows of end users with due time-driven events. Returns these end users and an
 * instant. In batches after this transaction, all postings of these end users are at or after this instant, except those
 * of renewals, changes of plan and lapses. `ending` are the statements that end the transaction.
 */
async function passTime(connection: Connection, part: Part, now: Instant, { clock, begin }: Omit<EventStep, 'derive'>) {
  const lock = sql(
    `SELECT e.account, e.end_user FROM (
       SELECT ${KEY} FROM scrip.end_user_summaries s WHERE due_at <= $1${part.within('s')} ORDER BY due_at LIMIT $2
     ) AS k JOIN scrip.end_users e ON ${sameKey('e')}${part.within('e')}
     ORDER BY e.bucket, e.account, e.end_user FOR NO KEY UPDATE OF e SKIP LOCKED`,
    [now, DUE_MAX],
  );
  const [locked, clocked] = (await connection.send([...begin, lock, clock.query])).slice(-2);
  const until = clock.read(clocked?.rows ?? []);
  // From now on, this process must not issue an earlier instant.
  clock.notBefore(until);
  const users = (locked?.rows ?? []).map(([account, endUser]) => ({
    account: Number(account),
    endUser: endUser as string,
  }));
  if (users.length === 0) return { users, until, ending: [ROLLBACK] };
  const keys = new RowArrays(KEY_TYPES);
  for (const user of users) keys.add(...keyOf(user));
  const moveIds = sql(moveIdsSql(part), [...keys.literals(), throughPosition({ at: until, sequence: 0 })]);
  // The derived events are committed later, and their COMMIT makes this one durable too.
  return { users, until, ending: [...setLocal({ synchronous_commit: 'off' }), moveIds, COMMIT] };
}

/** Groups postings by end user, and adds the end users of `due`, even those without postings. */
function inputsOf(postings: readonly FeedPosting[], due: readonly EndUserKey[], until: Instant): EndUserInput[] {
  const inputs = new Map<string, EndUserInput>();
  const inputOf = (user: EndUserKey) => {
    const name = endUserText(user);
    const input = inputs.get(name) ?? { user, postings: [], until: null };
    inputs.set(name, input);
    return input;
  };
  for (const { user, posting } of postings) inputOf(user).postings.push(posting);
  for (const user of due) inputOf(user).until = until;
  return [...inputs.values()];
}

interface Deriving {
  readonly inputs: readonly EndUserInput[];
  readonly clock: DatabaseClock;
  readonly derive: DeriveEvents;
  readonly latestEvent: number;
}

async function derived(connection: Connection, part: Part, { inputs, clock, derive, latestEvent }: Deriving) {
  const loaded = await loadedFor(connection, part, { inputs, clock, latestEvent });
  const summaries = new RowArrays([...KEY_TYPES, ...SUMMARY_TYPES]);
  const counts = new CountChanges();
  const events: (LedgerEvent & { account: number })[] = [];
  /** The earliest `dueAt` of the end users. */
  let nextDueAt = NEVER;
  let began = performance.now();
  for (const [index, { user, postings, until }] of inputs.entries()) {
    const settings = loaded.settings.get(user.account) ?? DEFAULT_SETTINGS;
    const stored = loaded.summaries[index] ?? null;
    const found = derive({ user, from: stored?.from ?? null, postings, until, settings });
    const latestActivity = postings.at(-1)?.createdAt ?? (stored as StoredSummary).latestActivity;
    const summary = summaryOf(found.next.state, found.next.at);
    summaries.add(...keyOf(user), ...summaryValues(found, summary, latestActivity));
    counts.add(user.account, stored?.balance ?? null, summary.balance);
    nextDueAt = Math.min(nextDueAt, found.dueAt ?? NEVER);
    for (const event of found.events) events.push({ ...event, account: user.account });
    if (performance.now() - began < SLICE_MS) continue;
    await nextTurn();
    began = performance.now();
  }
  return {
    writes: [
      storeSummaries(part, summaries),
      ...countUpserts(counts.all(), part),
      ...eventWrites(part, events, latestEvent, loaded.recordedAt),
    ],
    nextDueAt,
  };
}

function storeSummaries(part: Part, rows: RowArrays): Query {
  const changes = SUMMARY_COLUMNS.replaceAll(/\w+/g, '$& = excluded.$&');
  const insertion = part.insert('end_user_summaries', SUMMARY_COLUMNS, SUMMARY_TYPES);
  return sql(`${insertion} ON CONFLICT (${KEY}) DO UPDATE SET ${changes}`, rows.literals());
}

/** Statements that add the differences in `counts` to the stored counts of the accounts. */
export function countUpserts(counts: Iterable<AccountCounts>, part: Part): Query[] {
  const rows = new RowArrays(['integer', 'bigint', 'bigint']);
  for (const { account, endUsers, withCredits } of counts) rows.add(account, endUsers, withCredits);
  return upsert('end_user_counts', 'account', ['end_users', 'with_credits'], rows, part);
}

const EVENT_COLUMNS = 'event, account, id, type, at, data, recorded_at';
const EVENT_TYPES = ['bigint', 'integer', 'text', 'text', 'bigint', 'text', 'bigint'];

/**
 * Statements that store events. Citus accepts the INSERT only if its SELECT reads a table of the same shard.
 *
 * @param latestEvent the number of the part's latest event
 */
function eventWrites(
  { bucket }: Part,
  events: readonly (LedgerEvent & { readonly account: number })[],
  latestEvent: number,
  recordedAt: Instant,
): Query[] {
  if (events.length === 0) return [];
  const rows = new RowArrays(EVENT_TYPES);
  for (const [index, { account, id, type, at, data }] of events.entries())
    rows.add(latestEvent + index + 1, account, id, type, at, JSON.stringify(data), recordedAt);
  const consumer = `c.bucket = ${bucket} AND c.consumer = 'events'`;
  return [
    sql(
      `INSERT INTO scrip.events (bucket, ${EVENT_COLUMNS})
       SELECT c.bucket, ${columnsOf('k', EVENT_COLUMNS)} FROM ${unnest(EVENT_TYPES)} AS k (${EVENT_COLUMNS})
       JOIN scrip.feed_consumers c ON ${consumer}`,
      rows.literals(),
    ),
    sql(`UPDATE scrip.feed_consumers c SET latest_event = $1 WHERE ${consumer}`, [latestEvent + events.length]),
  ];
}

async function loadedFor(connection: Connection, part: Part, { inputs, clock, latestEvent }: Omit<Deriving, 'derive'>) {
  const keys = new RowArrays(KEY_TYPES);
  for (const { user } of inputs) keys.add(...keyOf(user));
  const accounts = new Set(inputs.map(({ user }) => user.account));
  const [stored, settings, latest, clocked] = await connection.send([
    sql(
      `SELECT k.place, ${columnsOf('s', SUMMARY_COLUMNS)} FROM ${KEYS}
       JOIN scrip.end_user_summaries s ON ${sameKey('s')}${part.within('s')}`,
      keys.literals(),
    ),
    sql(
      `SELECT a.account, a.expiring_days, t.below FROM scrip.accounts a
       LEFT JOIN scrip.thresholds t ON t.account = a.account
       WHERE a.account = ANY ($1::integer[]) ORDER BY a.account, length(t.below), t.below`,
      [`{${[...accounts]}}`],
    ),
    sql(`SELECT recorded_at FROM scrip.events WHERE bucket = ${part.bucket} AND event = $1`, [latestEvent]),
    clock.query,
  ]);
  /** In the order of the inputs; an element is missing if no summary is stored. */
  const summaries: StoredSummary[] = [];
  for (const [place, ...columns] of stored?.rows ?? []) summaries[Number(place) - 1] = storedSummaryOf(columns);
  const recordedAt = clock.machineTime(clocked?.rows ?? [], clock.read(clocked?.rows ?? []));
  const [previous] = latest?.rows ?? [];
  return {
    summaries,
    settings: settingsOf(settings?.rows ?? []),
    recordedAt: previous === undefined ? recordedAt : Math.max(recordedAt, exactInteger(previous[0])),
  };
}

const DEFAULT_SETTINGS: EventSettings = { expiringDays: EXPIRING_DAYS_DEFAULT, thresholds: [] };

/** @param rows rows with an account, the account's `expiring_days`, and one of the account's thresholds or null */
function settingsOf(rows: readonly TextRow[]): ReadonlyMap<number, EventSettings> {
  const settings = new Map<number, EventSettings>();
  for (const [account, expiringDays, below] of rows) {
    const threshold = below ? thresholdOf(below) : null;
    const thresholds = settings.get(Number(account))?.thresholds ?? [];
    settings.set(Number(account), {
      expiringDays: Number(expiringDays),
      thresholds: threshold === null ? thresholds : [...thresholds, threshold],
    });
  }
  return settings;
}
