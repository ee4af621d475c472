// The events that are to be delivered to one endpoint, in memory. Events of one end user are delivered one at a time and
// in order, so only the first event of each end user, its head, can be sent.
//
//   logged:  waiting → sending → done
//                         ↓ failed: it waits for a retry; it and the later events of the end user are stored in
//                           webhook_pending, as soon as the position is about to pass them
//   stored:  waiting → sending → done: the row is deleted

import assert from 'node:assert/strict';
import type { Instant } from '../../ledger/instant.ts';
import type { EventPosition } from '../../store/event-log.ts';

export interface QueuedEvent {
  readonly id: string;
  readonly type: string;
  readonly endUserId: string;
  /** When the event happened; for stored events, when it was tried first, if it was. */
  readonly at: Instant | null;
  /** Null if the event is stored: then the body is read from webhook_pending when it is needed. */
  body: string | null;
  /** The place in webhook_pending; null if it is not stored. */
  place: number | null;
  /** The failed attempts. */
  attempts: number;
  firstAttemptAt: Instant | null;
  nextAttemptAt: Instant;
  isSending: boolean;
  isDone: boolean;
}

interface LogEntry {
  /** Null for the end of a page, whose last events may be of other types. */
  readonly event: QueuedEvent | null;
  readonly position: EventPosition;
}

export class DeliveryQueue {
  /** The position that may be stored: all events up to it are delivered or stored. */
  #position: EventPosition;
  readonly #log: LogEntry[] = [];
  readonly #users = new Map<string, QueuedEvent[]>();
  /** The end users whose head may be due, in the order in which they are tried. */
  readonly #ready = new Set<string>();
  /** The end users whose head waits for a retry. */
  readonly #later = new Set<string>();
  #stored = 0;

  constructor(position: EventPosition) {
    this.#position = position;
  }

  get position(): EventPosition {
    return this.#position;
  }

  /** The number of events from the log that are neither delivered nor stored, and of those after them. */
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
    assert(event.place !== null, 'a stored event has a place');
    this.#stored += 1;
    this.#append(event);
  }

  /** Looks for heads whose retry is due now. */
  promote(now: Instant): void {
    for (const user of this.#later) {
      if (this.#headOf(user).nextAttemptAt > now) continue;
      this.#later.delete(user);
      this.#ready.add(user);
    }
  }

  /** @returns the next head that is due, which is then being sent; null if there is none */
  next(now: Instant): QueuedEvent | null {
    for (const user of this.#ready) {
      const head = this.#headOf(user);
      if (head.nextAttemptAt <= now) return this.#send(head);
      this.#ready.delete(user);
      this.#later.add(user);
    }
    return null;
  }

  /** @returns the head that has failed before and is due first; null if none is due */
  nextProbe(now: Instant): QueuedEvent | null {
    let probe: QueuedEvent | null = null;
    for (const [head] of this.#users.values()) {
      if (head === undefined || head.attempts === 0 || head.isSending || head.nextAttemptAt > now) continue;
      if (probe === null || head.nextAttemptAt < probe.nextAttemptAt) probe = head;
    }
    return probe && this.#send(probe);
  }

  /** Whether a head waits for a retry. */
  hasFailed(): boolean {
    for (const [head] of this.#users.values()) if (head !== undefined && head.attempts > 0) return true;
    return false;
  }

  /** Takes out an event that is delivered or given up. */
  finish(event: QueuedEvent): void {
    const events = this.#users.get(event.endUserId) as QueuedEvent[];
    assert(event === events[0] && event.isSending, 'only heads are sent');
    event.isSending = false;
    event.isDone = true;
    if (event.place !== null) this.#stored -= 1;
    events.shift();
    if (events.length === 0) this.#users.delete(event.endUserId);
    else this.#ready.add(event.endUserId);
    this.#advance();
  }

  /** Puts an event back that was not delivered. The caller has set when it is due. */
  putBack(event: QueuedEvent): void {
    assert(event.isSending, 'the event was being sent');
    event.isSending = false;
    this.#later.add(event.endUserId);
  }

  /** Makes all events due that wait for a retry. */
  makeDue(now: Instant): void {
    for (const events of this.#users.values())
      for (const event of events) event.nextAttemptAt = Math.min(event.nextAttemptAt, now);
  }

  /**
   * Finds the position up to which no event can be sent now, because it is delivered or waits for a retry.
   *
   * @returns the position, and the events that must be stored in webhook_pending together with it
   */
  passed(): { position: EventPosition; events: QueuedEvent[] } {
    const events: QueuedEvent[] = [];
    let reached = this.#position;
    for (const { event, position } of this.#log) {
      if (event !== null && !event.isDone) {
        if (event.isSending || !this.#isBlocked(event)) break;
        events.push(event);
      }
      reached = position;
    }
    return { position: reached, events };
  }

  /**
   * Records that events are stored, at consecutive places.
   *
   * @returns the places of events that were delivered meanwhile, whose rows must be deleted
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

  /** The instant of the oldest event; null if there is none. */
  oldestAt(): Instant | null {
    let oldest: Instant | null = null;
    for (const [head] of this.#users.values())
      if (head !== undefined && head.at !== null && (oldest === null || head.at < oldest)) oldest = head.at;
    return oldest;
  }

  #append(event: QueuedEvent): void {
    const events = this.#users.get(event.endUserId);
    if (events !== undefined) {
      events.push(event);
      return;
    }
    this.#users.set(event.endUserId, [event]);
    this.#ready.add(event.endUserId);
  }

  #headOf(user: string): QueuedEvent {
    return this.#users.get(user)?.[0] as QueuedEvent;
  }

  #send(event: QueuedEvent): QueuedEvent {
    this.#ready.delete(event.endUserId);
    this.#later.delete(event.endUserId);
    event.isSending = true;
    return event;
  }

  /** Whether an event waits for a retry, its own or that of an earlier event of the end user. */
  #isBlocked(event: QueuedEvent): boolean {
    const head = this.#headOf(event.endUserId);
    return head.attempts > 0 || (head !== event && head.place !== null);
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
