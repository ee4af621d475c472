// The interface for the events that the API returns and that webhooks deliver. Scrip derives events from the postings
// in the feed, never as part of a write. Time-driven events, such as `credits.expiring`, follow from the passage of
// time alone. `src/events/derive.ts` determines which events happen. A store saves new events together with its
// position in the feed, in one database transaction. A store keeps events for a limited time.

import type { Amount } from '../ledger/amount.ts';
import type { EndUserKey } from '../ledger/command.ts';
import type { Instant } from '../ledger/instant.ts';
import type { Posting } from '../ledger/posting.ts';
import type { EndUserState } from '../ledger/state.ts';

export const EVENT_TYPES = [
  'credits.added',
  'credits.subtracted',
  'credits.refunded',
  'credits.expired',
  'credits.expiring',
  'cycle.started',
  'cycle.renewed',
  'cycle.stopped',
  'hold.lapsed',
  'balance.low',
  'balance.exhausted',
  'balance.recovered',
] as const;

export type EventType = (typeof EVENT_TYPES)[number];

export interface LedgerEvent {
  /**
   * `evt_` and 32 hexadecimal digits. The digits are a hash of the event's cause, so deriving the event again gives the
   * same ID.
   */
  readonly id: string;
  readonly type: EventType;
  /** The instant at which the event happened. The event is stored later. */
  readonly at: Instant;
  /** The `data` field of the event in the API. */
  readonly data: EventData;
}

export interface EventData {
  readonly end_user_id: string;
  /** The credits that can be spent after the event. */
  readonly balance: Amount;
  readonly [field: string]: string | number | readonly string[];
}

/** A threshold for `balance.low`: an amount of credits, or a percentage of the latest grant. */
export type Threshold = { readonly credits: Amount } | { readonly percent: number };

/** An account's settings for its events. */
export interface EventSettings {
  /** `credits.expiring` happens this many days before credits expire. */
  readonly expiringDays: number;
  readonly thresholds: readonly Threshold[];
}

/** The progress of event derivation for an end user. */
export interface EventState {
  /** The instant up to which time-driven events have been derived. */
  readonly at: Instant;
  /** The credits of the latest addition, cycle start or renewal; 0 if there was none. */
  readonly latestGrant: Amount;
  /** The setting with which the time-driven events up to `at` were derived. */
  readonly expiringDays: number;
  /** The end user's state at `at`. */
  readonly state: EndUserState;
}

export interface DerivationInput {
  readonly user: EndUserKey;
  /** Null if no postings of the end user have been processed yet. */
  readonly from: EventState | null;
  /** Oldest first. All postings of a transaction are in the same input. */
  readonly postings: readonly Posting[];
  /**
   * Time-driven events after the last posting are derived only up to this instant. If `until` is null, no such events
   * are derived. All postings of requests up to this instant are in this input or in earlier inputs. Only postings of
   * renewals, changes of plan and lapses up to this instant can still be in later inputs.
   */
  readonly until: Instant | null;
  readonly settings: EventSettings;
}

export interface Derivation {
  /** In the order in which they happened. */
  readonly events: readonly LedgerEvent[];
  readonly next: EventState;
  /**
   * The next instant at which a time-driven event can happen; null if there is none. Also null if a renewal, a change
   * of plan or a lapse happens earlier or at the same instant, because its posting must be processed before the event.
   */
  readonly dueAt: Instant | null;
}

/** Must be a pure function, because a store calls it again with the same input after a failure. */
export type DeriveEvents = (input: DerivationInput) => Derivation;

/**
 * A position in the event log, as text without spaces. A new event always comes after every position that was returned
 * earlier. The text comes from clients, so the store checks it.
 */
export type EventPosition = string;

export interface LoggedEvent {
  readonly id: string;
  readonly type: EventType;
  readonly at: Instant;
  /** `EventData` as JSON. */
  readonly data: string;
  /** The position after this event. */
  readonly position: EventPosition;
}

export interface EventPageRequest {
  /** If null, the page starts with the oldest stored event. */
  readonly after: EventPosition | null;
  /** If absent, the page contains events of all types. */
  readonly types?: readonly EventType[] | undefined;
  /** 1 to `EVENTS_PER_PAGE_MAX`. */
  readonly limit: number;
}

export interface EventPage {
  /** In the order in which they were stored. For each end user, this is the order in which they happened. */
  readonly events: readonly LoggedEvent[];
  /**
   * The position after which the next page begins. Between `after` and this position, the page omits only events of
   * types that were not requested.
   */
  readonly position: EventPosition;
  readonly hasMore: boolean;
}

export const EVENTS_PER_PAGE_MAX = 1_000;

/** The maximum number of thresholds of an account. */
export const THRESHOLDS_MAX = 10;
export const EXPIRING_DAYS_DEFAULT = 7;
export const EXPIRING_DAYS_MAX = 365;

export interface EventLog {
  /**
   * A random text that identifies this event log. A copy or a restored backup of the ledger has another one, because its
   * next events get the numbers that the original gives to other events.
   */
  readonly epoch: string;
  /**
   * Derives and stores the events of the next postings in the feed, and some of the time-driven events that are due.
   *
   * @returns whether there might be more events to derive; null if another process is deriving them
   * @throws StoreFault; a later call derives the events that were not stored
   */
  deriveNext(derive: DeriveEvents): Promise<boolean | null>;
  /** @throws InvalidCursor (rejects) if `after` is not a position of this ledger; StoreFault if the read fails */
  page(account: number, request: EventPageRequest): Promise<EventPage>;
  /** The position after the last stored event of all accounts. */
  latest(): Promise<EventPosition>;
  /**
   * The position after the last event that was stored before `instant`. Considers the events of all accounts.
   *
   * @param instant real time, even if the ledger has a test clock
   */
  positionBefore(instant: Instant): Promise<EventPosition>;
  /**
   * Deletes a limited number of the events that were stored more than `retentionMs` ago.
   *
   * @returns whether there might be more such events
   */
  deleteExpired(retentionMs: number): Promise<boolean>;
}

/**
 * Returns an event as JSON. The response of `GET /get-events` and the body of a webhook contain exactly these bytes.
 */
export function eventBody({ id, type, at, data }: Pick<LoggedEvent, 'id' | 'type' | 'at' | 'data'>): string {
  return `{"id":"${id}","type":"${type}","timestamp":"${new Date(at).toISOString()}","data":${data}}`;
}

/** Parses an amount such as `20` or a percentage such as `20%`. Returns null if the text is neither. */
export function thresholdOf(text: string): Threshold | null {
  const match = /^([1-9]\d{0,15})(%?)$/.exec(text);
  const value = Number(match?.[1]);
  if (match === null || !Number.isSafeInteger(value)) return null;
  if (match[2] === '') return { credits: value };
  return value <= 100 ? { percent: value } : null;
}

/** The inverse of `thresholdOf`. */
export function thresholdText(threshold: Threshold): string {
  return 'percent' in threshold ? `${threshold.percent}%` : String(threshold.credits);
}
