// The queue of events for one endpoint, in memory. An end user's events are delivered one at a time and in order,
// so only the first event of each end user can be sent.
//
//   read from the event log:    waiting → sending → done
//                                            ↓ failed
//                               waiting for a retry: this event and the later events of the end user can be stored in
//                               webhook_pending
//   read from webhook_pending:  waiting → sending → done: the row is deleted
//
// The position in the event log moves past an event only after the event is done or stored in webhook_pending.

import assert from 'node:assert/strict';
import type { Instant } from '../../ledger/instant.ts';
import type { EventPosition } from '../../store/event-log.ts';

export interface QueuedEvent {
  readonly id: string;
  readonly type: string;
  /** Empty for an event that does not belong to an end user, such as a test event. */
  readonly endUserId: string;
  /**
   * When the sender read the event from the event log. For events from webhook_pending: the time of the first attempt,
   * or null if there was none.
   */
  readonly queuedAt: Instant | null;
  /** Null if the event is stored in webhook_pending. The sender then reads the body from webhook_pending. */
  body: string | null;
  /** The `place` column of the event's row in webhook_pending; null if the event is not stored there. */
  place: number | null;
  /** The number of failed attempts. */
  attempts: number;
  firstAttemptAt: Instant | null;
  nextAttemptAt: Instant;
  isSending: boolean;
  isDone: boolean;
}

interface LogEntry {
  /**
   * Null for the entry that marks the end of a page of the event log. A page leaves out events of types that the
   * endpoint does not receive, so a page can end after the position of its last event.
   */
  readonly event: QueuedEvent | null;
  readonly position: EventPosition;
}

export class DeliveryQueue {
  /** The position in the event log up to which all events are done or stored in webhook_pending. */
  #position: EventPosition;
  readonly #log: LogEntry[] = [];
  readonly #users = new Map<string, QueuedEvent[]>();
  /** The end users whose first event might be due, in the order in which Scrip will send these events. */
  readonly #ready = new Set<string>();
  /** The end users whose first event waits for a retry. */
  readonly #later = new Set<string>();
  #stored = 0;

  constructor(position: EventPosition) {
    this.#position = position;
  }

  get position(): EventPosition {
    return this.#position;
  }

  /** The number of entries after `position` that were read from the event log. */
  get loggedSize(): number {
    return this.#log.length;
  }

  get storedSize(): number {
    return this.#stored;
  }

  addLogged(event: QueuedEvent, position: EventPosition): void {
    this.#log.push({ event, position });
    this.#append(event);
  }

  addPageEnd(position: EventPosition): void {
    this.#log.push({ event: null, position });
    this.#advance();
  }

  addStored(event: QueuedEvent): void {
    assert(event.place !== null, 'a stored event has a row in webhook_pending');
    this.#stored += 1;
    this.#append(event);
  }

  /** Moves the end users whose first event is due for a retry from `#later` to `#ready`. */
  promote(now: Instant): void {
    for (const user of this.#later) {
      if (this.#firstOf(user).nextAttemptAt > now) continue;
      this.#later.delete(user);
      this.#ready.add(user);
    }
  }

  /** Takes the next event that is due, and marks it as being sent. @returns null if no event is due */
  next(now: Instant): QueuedEvent | null {
    for (const user of this.#ready) {
      const first = this.#firstOf(user);
      if (first.nextAttemptAt <= now) return this.#send(first);
      this.#ready.delete(user);
      this.#later.add(user);
    }
    return null;
  }

  /**
   * Same as `next`, but considers only events with a failed attempt, and takes the one with the earliest
   * `nextAttemptAt`.
   */
  nextRetry(now: Instant): QueuedEvent | null {
    let retry: QueuedEvent | null = null;
    for (const [first] of this.#users.values()) {
      if (first === undefined || first.attempts === 0 || first.isSending || first.nextAttemptAt > now) continue;
      if (retry === null || first.nextAttemptAt < retry.nextAttemptAt) retry = first;
    }
    return retry && this.#send(retry);
  }

  /** Same as `next`, but considers only events without a failed attempt. */
  nextNew(): QueuedEvent | null {
    const event = this.#newEvent();
    return event && this.#send(event);
  }

  hasNew(): boolean {
    return this.#newEvent() !== null;
  }

  /** Whether any end user's first event has had a failed attempt. */
  hasFailed(): boolean {
    for (const [first] of this.#users.values()) if (first !== undefined && first.attempts > 0) return true;
    return false;
  }

  /** Removes an event that was delivered, or that Scrip no longer tries to deliver. */
  finish(event: QueuedEvent): void {
    const events = this.#users.get(ownerOf(event)) as QueuedEvent[];
    assert(event === events[0] && event.isSending, 'only the first queued event of an end user is sent');
    event.isSending = false;
    event.isDone = true;
    if (event.place !== null) this.#stored -= 1;
    events.shift();
    if (events.length === 0) this.#users.delete(ownerOf(event));
    else this.#ready.add(ownerOf(event));
    this.#advance();
  }

  /** Puts an undelivered event back into the queue. The event is due again at its `nextAttemptAt`. */
  putBack(event: QueuedEvent): void {
    assert(event.isSending, 'only an event that is being sent can return to the queue');
    event.isSending = false;
    this.#later.add(ownerOf(event));
  }

  /** Makes all events due now, including those that wait for a retry. */
  makeDue(now: Instant): void {
    for (const events of this.#users.values())
      for (const event of events) event.nextAttemptAt = Math.min(event.nextAttemptAt, now);
  }

  /**
   * Finds the position up to which every event is done or blocked; see `#isBlocked`.
   *
   * @param isEnding whether no more events will be sent from this queue. If so, the position is at least that of the
   * last event that is done, so that the next process does not deliver this event again
   * @returns the position, and the events before it that are not done, which must be stored in webhook_pending together
   * with the position
   */
  passed(isEnding: boolean): { position: EventPosition; events: QueuedEvent[] } {
    const events: QueuedEvent[] = [];
    let reached = this.#position;
    const lastDone = isEnding ? this.#log.findLastIndex(({ event }) => event?.isDone) : -1;
    for (const [index, { event, position }] of this.#log.entries()) {
      if (event !== null && !event.isDone) {
        if (index > lastDone && (event.isSending || !this.#isBlocked(event))) break;
        events.push(event);
      }
      reached = position;
    }
    return { position: reached, events };
  }

  /**
   * Records that events were stored in webhook_pending, with consecutive values of `place` that start at `firstPlace`.
   *
   * @returns the `place` of each event that was finished in the meantime; the caller must delete its row
   */
  stored(events: readonly QueuedEvent[], firstPlace: number): number[] {
    const finished: number[] = [];
    events.forEach((event, index) => {
      event.place = firstPlace + index;
      event.body = null;
      if (event.isDone) finished.push(event.place);
      else this.#stored += 1;
    });
    this.#advance();
    return finished;
  }

  /** The earliest `queuedAt` among the first events of all end users; null if there is none. */
  oldestAt(): Instant | null {
    let oldest: Instant | null = null;
    for (const [first] of this.#users.values())
      if (first?.queuedAt != null && (oldest === null || first.queuedAt < oldest)) oldest = first.queuedAt;
    return oldest;
  }

  #append(event: QueuedEvent): void {
    const events = this.#users.get(ownerOf(event));
    if (events !== undefined) {
      events.push(event);
      return;
    }
    this.#users.set(ownerOf(event), [event]);
    this.#ready.add(ownerOf(event));
  }

  #newEvent(): QueuedEvent | null {
    for (const user of this.#ready) if (this.#firstOf(user).attempts === 0) return this.#firstOf(user);
    return null;
  }

  #firstOf(user: string): QueuedEvent {
    return this.#users.get(user)?.[0] as QueuedEvent;
  }

  #send(event: QueuedEvent): QueuedEvent {
    this.#ready.delete(ownerOf(event));
    this.#later.delete(ownerOf(event));
    event.isSending = true;
    return event;
  }

  /**
   * Whether an event waits for a retry, or for an earlier event of the same end user that has failed or is stored in
   * webhook_pending.
   */
  #isBlocked(event: QueuedEvent): boolean {
    const first = this.#firstOf(ownerOf(event));
    return first.attempts > 0 || (first !== event && first.place !== null);
  }

  #advance(): void {
    let passed = 0;
    for (const { event, position } of this.#log) {
      if (event !== null && !event.isDone && event.place === null) break;
      this.#position = position;
      passed += 1;
    }
    if (passed > 0) this.#log.splice(0, passed);
  }
}

/** Events with the same owner are delivered one at a time. A test event waits for no other event. */
function ownerOf({ endUserId, id }: QueuedEvent): string {
  return endUserId || id;
}
