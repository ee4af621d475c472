// Stores events in a ledger file, in parts. Stores each part together with the states of its end users and a position
// in the journal. The events of all postings up to this position have been derived.

import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
import type { Derivation, EventState } from '../../event-log.ts';
import { stateText } from '../../state-text.ts';
import { ManyRows } from '../file/many-rows.ts';
import { prepare, type Statement } from '../file/statements.ts';
import { UuidParameter } from '../file/uuid.ts';
import { FeedPosition } from './feed.ts';

/** The name under which the position is stored in `feed_positions`. */
export const EVENTS = 'events';

/** The maximum number of events that one step deletes. */
const DELETED_MAX = 1_000;

/** The progress of event derivation for an end user. */
export interface NewEventState extends EndUserKey {
  /** The stored `derivedTo` that this row replaces; null for a new end user. */
  readonly derivedFrom: Instant | null;
  readonly derivedTo: Instant;
  readonly latestGrant: number;
  /** The state of the end user at `derivedTo`, in the text format of snapshots. */
  readonly state: string;
  readonly dueAt: Instant | null;
}

/** @param from the progress before `next`; null for a new end user */
export function newEventState(
  { account, endUser }: EndUserKey,
  from: EventState | null,
  { next, dueAt }: Pick<Derivation, 'next' | 'dueAt'>,
): NewEventState {
  const { at, latestGrant, state } = next;
  return {
    account,
    endUser,
    derivedFrom: from?.at ?? null,
    derivedTo: at,
    latestGrant,
    state: stateText(state, at),
    dueAt,
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
  /** At most one state for each end user. */
  readonly states: readonly NewEventState[];
  readonly events: readonly NewEvent[];
}

/** Runs in the writer's transactions. */
export class EventWriter {
  readonly #position: FeedPosition;
  readonly #stored: Statement;
  readonly #saveState: Statement;
  readonly #changeState: Statement;
  readonly #events: ManyRows;
  readonly #delete: Statement;
  readonly #endUser = new UuidParameter();
  #latestRecordedAt: Instant;

  constructor(db: DatabaseSync) {
    this.#position = new FeedPosition(db, EVENTS);
    this.#stored = prepare(db, 'SELECT derived_to, due_at FROM event_states WHERE account = ? AND end_user = ?');
    this.#saveState = prepare(
      db,
      `INSERT INTO event_states (account, end_user, derived_to, latest_grant, state, due_at) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (account, end_user) DO UPDATE SET derived_to = excluded.derived_to,
         latest_grant = excluded.latest_grant, state = excluded.state, due_at = excluded.due_at`,
    );
    // Setting `due_at` rewrites the index of this column even if the value stays the same, so leave it out.
    this.#changeState = prepare(
      db,
      'UPDATE event_states SET derived_to = ?, latest_grant = ?, state = ? WHERE account = ? AND end_user = ?',
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
   * @returns false if the position or the state of an end user has changed, because the part has already been stored;
   * the caller then rolls back
   */
  save({ after, through, states, events }: EventPart, now: Instant): boolean {
    if (this.#position.read() !== after) return false;
    for (const state of states) if (!this.#changeFrom(state)) return false;
    // The machine's time may go back, but `recorded_at` must ascend: retention and positions depend on this order.
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

  saveState({ account, endUser, derivedTo, latestGrant, state, dueAt }: NewEventState): void {
    this.#saveState.run(account, this.#endUser.of(endUser), derivedTo, latestGrant, state, dueAt);
  }

  /** Deletes up to `DELETED_MAX` events that were recorded before `instant`, oldest first. */
  deleteBefore(instant: Instant): { readonly deleted: number; readonly isMore: boolean } {
    const deleted = Number(this.#delete.run(instant).changes);
    return { deleted, isMore: deleted === DELETED_MAX };
  }

  /**
   * Stores the state of an end user, unless the stored state has changed. Checking the position is not enough: it does
   * not change if only time has caused events.
   */
  #changeFrom(state: NewEventState): boolean {
    const { account, derivedFrom, derivedTo, latestGrant, dueAt } = state;
    const endUser = this.#endUser.of(state.endUser);
    const [storedTo, storedDue] = this.#stored.get(account, endUser) ?? [null, null];
    if (storedTo !== derivedFrom) return false;
    if (storedTo !== null && storedDue === dueAt)
      this.#changeState.run(derivedTo, latestGrant, state.state, account, endUser);
    else this.saveState(state);
    return true;
  }
}
