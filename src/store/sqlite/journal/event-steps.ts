// Reads the data from which one step derives events and summaries: the next postings of the journal, the due end users,
// the progress of event derivation for each end user, and the settings of the accounts. An end user is due if the
// passage of time has caused an event without a posting, such as the expiry of credits.

import type { DatabaseSync } from 'node:sqlite';
import { type EndUserKey, endUserText } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
import type { Posting } from '../../../ledger/posting.ts';
import { EMPTY_STATE, type EndUserState, sizeOf } from '../../../ledger/state.ts';
import {
  type DeriveEvents,
  type EventSettings,
  type EventState,
  EXPIRING_DAYS_DEFAULT,
  type Threshold,
  thresholdOf,
} from '../../event-log.ts';
import { stateOfText } from '../../state-text.ts';
import { prepare, type Statement } from '../file/statements.ts';
import { UuidParameter, uuidOfHex } from '../file/uuid.ts';
import {
  EVENTS,
  type EventPart,
  type LatestPosting,
  type NewEvent,
  type NewSummary,
  newSummary,
  type StoredSummary,
} from './events.ts';
import { type Attempt, FeedPosition, FeedRows } from './feed.ts';

/**
 * The maximum number of postings in a step, unless a single transaction has more. A step takes about 1 ms in this
 * thread and 1 ms in the writer thread. With a limit of 256 postings, requests had to wait longer for the writer.
 */
const POSTINGS_MAX = 64;

/** The maximum number of due end users in a step. */
const DUE_MAX = 64;

/**
 * When a step has loaded this many cycles and holds, it accepts no further end users. Loading and storing this many
 * cycles and holds takes 3 ms.
 */
const LOADED_MAX = 2_048;

/**
 * Limits the work of applying the transactions of a step. For each transaction, the step counts all cycles and holds of
 * the end user. When the total reaches this limit, the step accepts no further transactions or end users. Applying the
 * transactions of such a step takes about 2 ms.
 */
const PASSED_MAX = 32_768;

type StoredColumns = [
  derivedTo: Instant,
  latestGrant: number,
  expiringDays: number,
  state: string,
  latestPosting: number,
  latestActivity: Instant,
  balance: number,
  expiresAt: Instant | null,
  dueAt: Instant | null,
];

interface StepEndUser {
  readonly user: EndUserKey;
  readonly from: EventState | null;
  readonly stored: StoredSummary | null;
  readonly settings: EventSettings;
  readonly postings: Posting[];
  /** Null if the end user is new and none of its postings has been added to the step yet. */
  latest: LatestPosting | null;
}

export class EventSteps {
  readonly #attempt: Attempt;
  readonly #rows: FeedRows;
  readonly #position: FeedPosition;
  readonly #due: Statement;
  readonly #stored: Statement;
  readonly #expiringDays: Statement;
  readonly #thresholds: Statement;
  readonly #endUser = new UuidParameter();

  /**
   * @param attempt runs the reads of the ledger and handles their errors. The derivation of events runs outside of
   * `attempt`, because an error in the derivation does not mean that the ledger is faulty
   */
  constructor(db: DatabaseSync, attempt: Attempt) {
    this.#attempt = attempt;
    this.#rows = new FeedRows(db, attempt);
    this.#position = new FeedPosition(db, EVENTS);
    this.#due = prepare(
      db,
      'SELECT account, hex(end_user) FROM end_user_summaries WHERE due_at <= ? ORDER BY due_at LIMIT ?',
    );
    this.#stored = prepare(
      db,
      `SELECT derived_to, latest_grant, expiring_days, state, latest_posting, latest_activity, balance, expires_at, due_at
       FROM end_user_summaries WHERE account = ? AND end_user = ?`,
    );
    this.#expiringDays = prepare(db, 'SELECT expiring_days FROM accounts WHERE account = ?');
    this.#thresholds = prepare(db, 'SELECT below FROM thresholds WHERE account = ? ORDER BY length(below), below');
  }

  /** Returns a step with the next transactions of the journal, each with all of its postings. */
  next(): EventStep {
    const after = this.#attempt(() => this.#position.read());
    // If the rows do not contain even one whole transaction, read more rows.
    for (let max = POSTINGS_MAX; ; max *= 2) {
      const step = this.#startAt(after);
      const read = { rows: 0 };
      for (const { user, postings, through } of this.#rows.transactions(after, max, read))
        if (!step.add(user, postings, through)) break;
      step.isMore ||= read.rows === max;
      if (!step.isEmpty || !step.isMore) return step;
    }
  }

  hasDue(now: Instant): boolean {
    return this.#attempt(() => this.#due.get(now, 1) !== undefined);
  }

  /** Adds end users who are due at `now`. */
  addDue(step: EventStep, now: Instant): void {
    const rows = this.#attempt(() => this.#due.all(now, DUE_MAX)) as readonly [number, string][];
    for (const [account, digits] of rows) if (!step.wait({ account, endUser: uuidOfHex(digits) }, now)) break;
  }

  #startAt(after: number): EventStep {
    const settings = new Map<number, EventSettings>();
    return new EventStep(after, (user) =>
      this.#attempt(() => {
        const ofAccount = settings.get(user.account) ?? this.#settingsOf(user.account);
        settings.set(user.account, ofAccount);
        return { user, settings: ofAccount, postings: [], ...this.#progressOf(user) };
      }),
    );
  }

  #progressOf({ account, endUser }: EndUserKey): Pick<StepEndUser, 'from' | 'stored' | 'latest'> {
    const row = this.#stored.get(account, this.#endUser.of(endUser));
    if (row === undefined) return { from: null, stored: null, latest: null };
    const [at, latestGrant, expiringDays, text, number, createdAt, balance, expiresAt, dueAt] = row as StoredColumns;
    return {
      from: { at, latestGrant, expiringDays, state: stateOfText(text) },
      stored: { derivedTo: at, balance, expiresAt, dueAt },
      latest: { number, createdAt },
    };
  }

  #settingsOf(account: number): EventSettings {
    const expiringDays = Number(this.#expiringDays.get(account)?.[0] ?? EXPIRING_DAYS_DEFAULT);
    const thresholds = this.#thresholds.all(account).map(([below]) => thresholdOf(below as string) as Threshold);
    return { expiringDays, thresholds };
  }
}

export class EventStep {
  readonly #after: number;
  readonly #load: (user: EndUserKey) => StepEndUser;
  readonly #users = new Map<string, StepEndUser>();
  #loaded = 0;
  #passed = 0;
  #through: number;
  /** Whether postings or due end users might be left for further steps. */
  isMore = false;

  constructor(after: number, load: (user: EndUserKey) => StepEndUser) {
    this.#after = after;
    this.#through = after;
    this.#load = load;
  }

  get isEmpty(): boolean {
    return this.#users.size === 0;
  }

  /**
   * @param postings the next transaction of the end user
   * @param through the last posting of the transaction
   * @returns false if the step has no room; `isMore` is then true
   */
  add(user: EndUserKey, postings: readonly Posting[], through: number): boolean {
    const endUser = this.#endUser(user);
    if (endUser === null) return false;
    this.#passed += sizeOf(stateOf(endUser));
    for (const posting of postings) endUser.postings.push(posting);
    endUser.latest = { number: through, createdAt: (postings.at(-1) as Posting).createdAt };
    this.#through = through;
    return true;
  }

  /** Adds an end user who is due at `now`. Returns false if the step has no room. */
  wait(user: EndUserKey, now: Instant): boolean {
    const endUser = this.#endUser(user);
    if (endUser === null) return false;
    const state = stateOf(endUser);
    const ended = state.cycles.filter(({ end }) => end <= now).length;
    this.#passed += sizeOf(state) * (1 + ended);
    return true;
  }

  /** Loads an end user unless it is already in the step. Returns null if the step has no room. */
  #endUser(user: EndUserKey): StepEndUser | null {
    const name = endUserText(user);
    const known = this.#users.get(name);
    if (this.#passed >= PASSED_MAX || (known === undefined && this.#loaded >= LOADED_MAX)) {
      this.isMore = true;
      return null;
    }
    const endUser = known ?? this.#load(user);
    if (known === undefined) {
      this.#users.set(name, endUser);
      this.#loaded += sizeOf(stateOf(endUser));
    }
    return endUser;
  }

  derive(derive: DeriveEvents, until: Instant | null): EventPart {
    const summaries: NewSummary[] = [];
    const events: NewEvent[] = [];
    for (const { user, from, stored, settings, postings, latest } of this.#users.values()) {
      const derived = derive({ user, from, postings, until, settings });
      summaries.push(newSummary(user, stored, derived, latest as LatestPosting));
      for (const { id, type, at, data } of derived.events)
        events.push({ account: user.account, id, type, at, data: JSON.stringify(data) });
    }
    return { after: this.#after, through: this.#through, summaries, events };
  }
}

function stateOf({ from }: StepEndUser): EndUserState {
  return from?.state ?? EMPTY_STATE;
}
