// Stores events in a ledger file. Each step of event derivation produces a part: events, the summaries of their end
// users, and a position in the journal. The writer stores a part in one transaction. The stored events and summaries
// therefore always reflect all postings up to the stored position.

import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { CountChanges, type Summary, summaryOf } from '../../end-user-summaries.ts';
import type { Derivation } from '../../event-log.ts';
import { stateText } from '../../state-text.ts';
import { ManyRows } from '../file/many-rows.ts';
import { prepare, type Statement } from '../file/statements.ts';
import { UuidParameter } from '../file/uuid.ts';
import { FeedPosition } from './feed.ts';

/** The name under which the position is stored in `feed_positions`. */
export const EVENTS = 'events';

/** The maximum number of events that one step deletes. */
const DELETED_MAX = 1_000;

/** An end user's latest posting in the journal. */
export interface LatestPosting {
  readonly number: number;
  readonly createdAt: Instant;
}

/** Columns of a stored summary. */
export interface StoredSummary extends Summary {
  readonly derivedTo: Instant;
  readonly dueAt: Instant | null;
}

/** The summary of an end user, with the progress of event derivation. */
export interface NewSummary extends EndUserKey, Summary {
  /** The summary that this row replaces, as the step read it; null for a new end user. */
  readonly stored: StoredSummary | null;
  readonly derivedTo: Instant;
  readonly latestGrant: number;
  readonly expiringDays: number;
  /** The end user's state at `derivedTo`, in the text format of snapshots. */
  readonly state: string;
  readonly dueAt: Instant | null;
  /** The latest posting that the summary includes, and its instant. */
  readonly latestPosting: number;
  readonly latestActivity: Instant;
}

/**
 * @param stored the summary that the step read; null for a new end user
 * @param latest the latest posting whose events have been derived
 */
export function newSummary(
  { account, endUser }: EndUserKey,
  stored: StoredSummary | null,
  { next, dueAt }: Pick<Derivation, 'next' | 'dueAt'>,
  latest: LatestPosting,
): NewSummary {
  const { at, latestGrant, expiringDays, state } = next;
  return {
    account,
    endUser,
    ...summaryOf(state, at),
    stored,
    derivedTo: at,
    latestGrant,
    expiringDays,
    state: stateText(state, at),
    dueAt,
    latestPosting: latest.number,
    latestActivity: latest.createdAt,
  };
}

export interface NewEvent {
  readonly account: number;
  readonly id: string;
  readonly type: string;
  readonly at: Instant;
  /** JSON. */
  readonly data: string;
}

export interface EventPart {
  /** The position in the journal before this part. */
  readonly after: number;
  /** The position in the journal after this part. */
  readonly through: number;
  /** At most one summary for each end user. */
  readonly summaries: readonly NewSummary[];
  readonly events: readonly NewEvent[];
}

/** Runs in the writer's transactions. */
export class EventWriter {
  readonly #position: FeedPosition;
  readonly #save: Statement;
  readonly #change: Statement;
  readonly #count: Statement;
  readonly #events: ManyRows;
  readonly #delete: Statement;
  readonly #endUser = new UuidParameter();
  #latestRecordedAt: Instant;

  constructor(db: DatabaseSync) {
    this.#position = new FeedPosition(db, EVENTS);
    const columns = [...CHANGING, ...STEADY];
    this.#save = prepare(
      db,
      `INSERT INTO end_user_summaries (${columns}, account, end_user) VALUES (${columns.map(() => '?')}, ?, ?)
       ON CONFLICT (account, end_user) DO UPDATE SET ${columns.map((column) => `${column} = excluded.${column}`)}
       WHERE derived_to = ?`,
    );
    // An UPDATE rewrites the index of each column that it sets, even if the value stays the same. This UPDATE therefore
    // leaves out columns that rarely change.
    this.#change = prepare(
      db,
      `UPDATE end_user_summaries SET ${CHANGING.map((column) => `${column} = ?`)}
       WHERE account = ? AND end_user = ? AND derived_to = ?`,
    );
    this.#count = prepare(
      db,
      `INSERT INTO end_user_counts (account, end_users, with_credits) VALUES (?, ?, ?) ON CONFLICT (account)
       DO UPDATE SET end_users = end_users + excluded.end_users, with_credits = with_credits + excluded.with_credits`,
    );
    this.#events = new ManyRows(
      db,
      6,
      (rows) => `INSERT INTO events (account, id, type, at, data, recorded_at) VALUES ${rows}`,
    );
    this.#delete = prepare(
      db,
      `DELETE FROM events WHERE event IN (SELECT event FROM events ORDER BY event LIMIT ${DELETED_MAX})
         AND recorded_at < ?`,
    );
    const latest = prepare(db, 'SELECT recorded_at FROM events ORDER BY event DESC LIMIT 1').get();
    this.#latestRecordedAt = Number(latest?.[0] ?? 0);
  }

  /**
   * @param now the machine's time
   * @returns false if the position or a stored summary has changed since the part was derived. In that case, the part
   * has already been stored, and the caller must roll back
   */
  save({ after, through, summaries, events }: EventPart, now: Instant): boolean {
    if (this.#position.read() !== after) return false;
    const counts = new CountChanges();
    for (const summary of summaries) if (!this.#replace(summary, counts)) return false;
    for (const { account, endUsers, withCredits } of counts.all()) this.#count.run(account, endUsers, withCredits);
    // The machine's time can go backwards, but `recorded_at` must never decrease: the deletion of old events and the
    // search for the first position of a webhook endpoint rely on this order.
    this.#latestRecordedAt = Math.max(this.#latestRecordedAt, now);
    for (const { account, id, type, at, data } of events)
      this.#events.add(account, id, type, at, data, this.#latestRecordedAt);
    this.#events.flush();
    if (through > after) this.savePosition(through);
    return true;
  }

  savePosition(posting: number): void {
    this.#position.save(posting);
  }

  /**
   * Stores a summary, but does not change the counts of its account.
   *
   * @returns false if the stored summary has changed since the step read it
   */
  saveSummary(summary: NewSummary): boolean {
    const { account, stored, dueAt, expiresAt } = summary;
    const endUser = this.#endUser.of(summary.endUser);
    const derivedFrom = stored?.derivedTo ?? null;
    const { changes } = this.#save.run(...changingValues(summary), dueAt, expiresAt, account, endUser, derivedFrom);
    return changes === 1;
  }

  /** Deletes up to `DELETED_MAX` events that were recorded before `instant`, oldest first. */
  deleteBefore(instant: Instant): { readonly deleted: number; readonly isMore: boolean } {
    const deleted = Number(this.#delete.run(instant).changes);
    return { deleted, isMore: deleted === DELETED_MAX };
  }

  /**
   * Stores an end user's summary, unless the stored summary has changed since the step read it. Checking the position
   * in the journal is not enough: a part without postings does not change the position.
   */
  #replace(summary: NewSummary, counts: CountChanges): boolean {
    const { account, stored, dueAt, expiresAt, balance } = summary;
    counts.add(account, stored?.balance ?? null, balance);
    if (stored === null || stored.dueAt !== dueAt || stored.expiresAt !== expiresAt) return this.saveSummary(summary);
    const endUser = this.#endUser.of(summary.endUser);
    return this.#change.run(...changingValues(summary), account, endUser, stored.derivedTo).changes === 1;
  }
}

const CHANGING = [
  'derived_to',
  'latest_grant',
  'expiring_days',
  'state',
  'balance',
  'latest_activity',
  'latest_posting',
] as const;
const STEADY = ['due_at', 'expires_at'] as const;

/** The values of the `CHANGING` columns. */
function changingValues(summary: NewSummary) {
  const { derivedTo, latestGrant, expiringDays, state, balance, latestActivity, latestPosting } = summary;
  return [derivedTo, latestGrant, expiringDays, state, balance, latestActivity, latestPosting] as const;
}
