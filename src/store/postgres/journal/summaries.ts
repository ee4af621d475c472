// The summaries of end users in PostgreSQL. The consumer of the feed marks end users that have new postings. A step
// computes the summaries of some marked end users, and of some end users whose credits have expired. The consumer and
// the steps take the same lock first, so neither waits for a row lock of the other.

import type { EndUserKey } from '../../../ledger/command.ts';
import { endUserText } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { CountChanges, summaryOf } from '../../end-user-summaries.ts';
import type { FeedPosting } from '../../feed.ts';
import type { Part } from '../citus/placement.ts';
import { type Connection, exactInteger, type Query, sql, type TextRow } from '../pool/connection.ts';
import type { DatabaseClock } from '../pool/database-clock.ts';
import { compareEndUsers, KEY, KEY_TYPES, keyOf, sameKey } from '../rows/key.ts';
import { RowArrays } from '../rows/row-arrays.ts';
import { KEYS, StateRows, statesSql } from './state-rows.ts';
import { upsert } from './totals-rows.ts';

/**
 * A step summarizes at most this many end users with new postings, and at most this many with expired credits. A step
 * takes about 10 ms.
 */
const STEP_MAX = 256;

/** A step loads the holds that lapse within this time after its start. A step takes far less time. */
const LAPSES_WITHIN_MS = 60_000;

interface Activity extends EndUserKey {
  readonly latestActivity: Instant;
}

/** Returns statements that mark the end users of `postings` as stale, with one row for each end user. */
export function markStale(postings: readonly FeedPosting[], part: Part): Query[] {
  const marks = new Map<string, { user: EndUserKey; since: Instant; latest: Instant }>();
  for (const { user, posting } of postings) {
    const name = endUserText(user);
    const { since, latest } = marks.get(name) ?? { since: posting.createdAt, latest: posting.createdAt };
    const { createdAt } = posting;
    marks.set(name, { user, since: Math.min(since, createdAt), latest: Math.max(latest, createdAt) });
  }
  if (marks.size === 0) return [];
  const rows = new RowArrays([...KEY_TYPES, 'bigint', 'bigint']);
  for (const { user, since, latest } of marks.values()) rows.add(...keyOf(user), since, latest);
  const insertion = part.insert('stale_end_users', 'since, latest_activity', ['bigint', 'bigint']);
  return [
    sql(
      `${insertion} ON CONFLICT (${KEY}) DO UPDATE SET since = least(stale_end_users.since, excluded.since),
         latest_activity = greatest(stale_end_users.latest_activity, excluded.latest_activity)`,
      rows.literals(),
    ),
  ];
}

/**
 * Runs one step. The caller's transaction must hold the lock of the consumer.
 *
 * @param from the lowest bucket from which the step takes marked end users
 * @returns whether further end users may need a new summary
 */
export async function summarizeSome(
  connection: Connection,
  part: Part,
  { clock, from }: { readonly clock: DatabaseClock; readonly from: number },
): Promise<boolean> {
  const began = clock.read(await connection.rows(clock.query));
  const taken = (await connection.rows(takeStale(part, from))).map(activityOf);
  const ended = (await connection.rows(endedBy(part, began))).map(activityOf);
  const users = [...new Map([...ended, ...taken].map((user) => [endUserText(user), user])).values()].sort(
    compareEndUsers,
  );
  if (users.length > 0) await connection.send(await summariesOf(connection, part, { users, clock, began }));
  return taken.length === STEP_MAX || ended.length === STEP_MAX;
}

function takeStale(part: Part, from: number): Query {
  return sql(
    `DELETE FROM scrip.stale_end_users s WHERE (${KEY}) IN (
       SELECT ${KEY} FROM scrip.stale_end_users o WHERE o.bucket >= $1${part.within('o')} ORDER BY ${KEY} LIMIT $2
     )${part.within('s')} RETURNING account, end_user, latest_activity`,
    [from, STEP_MAX],
  );
}

function endedBy(part: Part, now: Instant): Query {
  return sql(
    `SELECT account, end_user, latest_activity FROM scrip.end_user_summaries e
     WHERE expires_at <= $1${part.within('e')} ORDER BY expires_at LIMIT $2`,
    [now, STEP_MAX],
  );
}

function activityOf([account, endUser, latestActivity]: TextRow): Activity {
  return { account: Number(account), endUser: endUser as string, latestActivity: exactInteger(latestActivity) };
}

/** Returns statements that store the summaries of `users` and update the counts of their accounts. */
async function summariesOf(
  connection: Connection,
  part: Part,
  { users, clock, began }: { users: readonly Activity[]; clock: DatabaseClock; began: Instant },
): Promise<Query[]> {
  const [found, balances, clocked] = await connection.send([
    sql(statesSql(part), [...keysOf(users), began, began + LAPSES_WITHIN_MS]),
    sql(balancesSql(part), keysOf(users)),
    clock.query,
  ]);
  const now = clock.read(clocked?.rows ?? []);
  const stored = users.map(() => new StateRows());
  for (const [place, , ...columns] of found?.rows ?? []) stored[Number(place) - 1]?.add(columns);
  const before = new Map(balances?.rows.map(([place, balance]) => [Number(place) - 1, exactInteger(balance)]));
  const counts = new CountChanges();
  const rows = new RowArrays([...KEY_TYPES, 'bigint', 'bigint', 'bigint']);
  for (const [index, user] of users.entries()) {
    const state = (stored[index] as StateRows).state();
    // If the database's clock was set back, the latest activity and the starts of cycles may be after the current time.
    const at = Math.max(now, user.latestActivity, ...state.cycles.map(({ start }) => start));
    const { balance, expiresAt } = summaryOf(state, at);
    counts.add(user.account, before.get(index) ?? null, balance);
    rows.add(...keyOf(user), balance, expiresAt, user.latestActivity);
  }
  const changes = new RowArrays(['integer', 'bigint', 'bigint']);
  for (const { account, endUsers, withCredits } of counts.all()) changes.add(account, endUsers, withCredits);
  return [
    sql(storeSql(part), rows.literals()),
    ...upsert('end_user_counts', 'account', ['end_users', 'with_credits'], changes, part),
  ];
}

function keysOf(users: readonly EndUserKey[]): string[] {
  const keys = new RowArrays(KEY_TYPES);
  for (const user of users) keys.add(...keyOf(user));
  return keys.literals();
}

function balancesSql(part: Part): string {
  return `SELECT k.place, s.balance FROM ${KEYS} JOIN scrip.end_user_summaries s ON ${sameKey('s')}${part.within('s')}`;
}

function storeSql(part: Part): string {
  const insertion = part.insert('end_user_summaries', 'balance, expires_at, latest_activity', [
    'bigint',
    'bigint',
    'bigint',
  ]);
  return `${insertion} ON CONFLICT (${KEY}) DO UPDATE SET balance = excluded.balance, expires_at = excluded.expires_at,
    latest_activity = greatest(end_user_summaries.latest_activity, excluded.latest_activity)`;
}
