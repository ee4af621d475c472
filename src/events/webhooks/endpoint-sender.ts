// Delivers the events of one endpoint while this process has the endpoint's lease. Each second, webhook-job.ts stores
// the changes of all senders.
//
//   sending ⇄ down (5 failures in a row: tries one event at a time, and a new event only every 5 minutes)
//      ↓ drain(): the endpoint is changed or paused, or the process stops
//      ↓ abandon(): the lease is lost, the endpoint is removed, or the changes cannot be stored
//   draining → idle, when no request is in flight; then the sender is discarded
//
// The stored position moves past an event only after Scrip has delivered the event, has stopped retrying it, or has
// stored it as pending. A crash therefore loses no event, but Scrip might deliver some events more than once.

import { setImmediate } from 'node:timers/promises';
import type { Instant } from '../../ledger/instant.ts';
import { type EventLog, type EventPosition, eventBody } from '../../store/event-log.ts';
import { type Delivery, newDeliveryId } from './deliveries.ts';
import type { DeliveryQueue, QueuedEvent } from './delivery-queue.ts';
import type { DeliveryStore, EndpointChanges } from './delivery-store.ts';
import type { Endpoint } from './endpoints.ts';
import type { RequestResult, SendRequest } from './request.ts';
import type { SendingGate } from './sending-gate.ts';
import { signatureHeaders } from './signature.ts';

/** The fields of an endpoint that a sender uses. After a change to the endpoint, a new sender replaces the old one. */
export interface LeasedEndpoint extends Pick<Endpoint, 'id' | 'account' | 'url' | 'types'> {
  readonly secret: string;
  readonly previousSecrets: readonly { readonly secret: string; readonly expiresAt: Instant }[];
  readonly revision: number;
}

export interface SenderOptions {
  readonly events: Pick<EventLog, 'page'>;
  readonly store: DeliveryStore;
  readonly gate: SendingGate;
  readonly send: SendRequest;
  readonly now: () => number;
  /**
   * The delay after `failures` failed attempts, the first of which was `elapsedMs` ago, in milliseconds; null after the
   * last attempt.
   */
  readonly retryDelay: (failures: number, elapsedMs: number) => number | null;
  readonly onAttempt: (kind: RequestResult['kind']) => void;
  /** Called when something other than a delivery fails, such as reading the event log. */
  readonly onTrouble: (error: unknown) => void;
}

const BUFFERED_MAX = 1_000;
/** While this many events are pending, the sender reads no more events from the event log. */
export const PENDING_MAX = 10_000;
/** The maximum number of events in one read from the event log, so that each read is short. */
const READ_MAX = 200;
export const CONCURRENT_MAX = 10;
const DOWN_FAILURES = 5;
/**
 * While the endpoint is down, Scrip tries a new event this often. Otherwise, five events that the receiver cannot
 * process would stop all others.
 */
const NEW_EVENT_MS = 5 * 60_000;
/**
 * After a recovery, all retries become due, but for this long not again. Otherwise, a receiver that cannot process some
 * events would get them again and again without delay.
 */
const RELEASE_MS = 30 * 60_000;
/** Maximum number of attempts that are not stored yet, including attempts in flight. */
const UNSTORED_MAX = 2_000;
/** How long requests in flight can continue after `drain`. */
const DRAIN_MS = 2_000;
const GONE = 410;

export class EndpointSender {
  readonly endpoint: LeasedEndpoint;
  readonly #options: SenderOptions;
  readonly #queue: DeliveryQueue;
  readonly #abort = new AbortController();
  readonly #mayUse: () => boolean;
  /** The position in the event log after the last event that was read. */
  #readTo: EventPosition;
  #storedPosition: EventPosition | null;
  #storedChanges: number;
  /** The value of `latest` in the previous call of `tick`. */
  #latest: EventPosition | null = null;
  #mayHaveMore = true;
  #isReading = false;
  #isDraining = false;
  #inFlight = 0;
  #onIdle: (() => void) | null = null;
  #failuresInARow = 0;
  /** While the endpoint is down: when a new event can be tried. */
  #newEventAt = 0;
  #releasedAt = Number.NEGATIVE_INFINITY;
  /** A new sender does not know whether the endpoint was down before: only that events have failed. */
  #mayHaveBeenDown: boolean;
  #lastDeliveredAt: Instant | null;
  #pausedBecause: string | null = null;
  #isDue = false;
  #deliveries: Delivery[] = [];
  #finished: number[] = [];
  #failed = new Set<QueuedEvent>();

  /**
   * @param queue the pending events
   * @param start the stored position and number of changes, and the time of the latest successful delivery
   * @param mayUse returns false if another process might have the lease
   */
  constructor(
    endpoint: LeasedEndpoint,
    queue: DeliveryQueue,
    start: {
      readonly storedPosition: EventPosition | null;
      readonly storedChanges: number;
      readonly lastDeliveredAt: Instant | null;
    },
    mayUse: () => boolean,
    options: SenderOptions,
  ) {
    this.endpoint = endpoint;
    this.#queue = queue;
    this.#mayHaveBeenDown = queue.hasFailed();
    this.#readTo = queue.position;
    this.#storedPosition = start.storedPosition;
    this.#storedChanges = start.storedChanges;
    this.#lastDeliveredAt = start.lastDeliveredAt;
    this.#mayUse = mayUse;
    this.#options = options;
  }

  get isIdle(): boolean {
    return this.#isDraining && this.#inFlight === 0 && !this.#isReading;
  }

  oldestAt(): Instant | null {
    return this.#queue.oldestAt();
  }

  /** The number of changes that the database has, unless it has lost some. */
  get storedChanges(): number {
    return this.#storedChanges;
  }

  /**
   * Looks for retries that are due and, if the event log has new events, for new events.
   *
   * @param latest the position at the end of the event log; null if unknown
   */
  tick(latest: EventPosition | null): void {
    if (!this.#mayUse()) this.abandon();
    this.#queue.promote(this.#options.now());
    if (latest !== this.#latest) this.#mayHaveMore = true;
    this.#latest = latest;
    void this.#read();
    this.#pump();
  }

  /** Reads new events. Call this when there might be new events. */
  nudge(): void {
    this.#mayHaveMore = true;
    void this.#read();
  }

  /** Stops sending. Requests that are still in flight after `DRAIN_MS` are aborted. */
  drain(): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    setTimeout(() => this.#abort.abort(), DRAIN_MS).unref();
  }

  /** Stops sending, and aborts requests in flight. */
  abandon(): void {
    this.#isDraining = true;
    this.#abort.abort();
  }

  /** Resolves when the sender is idle. Call `drain` or `abandon` first. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      this.#checkIdle();
    });
  }

  /**
   * Returns the changes to store; null if there are none. After they have been stored, call `stored`. If they cannot be
   * stored, call `abandon`.
   */
  takeChanges(isReleased: boolean): EndpointChanges | null {
    const { position, events } = this.#queue.passed(this.isIdle);
    const pausedBecause = this.isIdle ? this.#pausedBecause : null;
    const changes: EndpointChanges = {
      endpointId: this.endpoint.id,
      revision: this.endpoint.revision,
      storedChanges: this.#storedChanges,
      position: position === this.#storedPosition ? null : position,
      passed: events,
      retries: [...this.#failed].flatMap((event) =>
        event.place === null || event.isDone ? [] : [{ ...event, place: event.place }],
      ),
      finished: this.#finished,
      deliveries: this.#deliveries,
      isDue: this.#isDue,
      pausedBecause,
      isReleased: isReleased || pausedBecause !== null,
    };
    const { retries, finished, deliveries } = changes;
    const hasRows = events.length + retries.length + finished.length + deliveries.length > 0;
    if (changes.position === null && !hasRows && !this.#isDue && !changes.isReleased) return null;
    this.#failed = new Set();
    this.#finished = [];
    this.#deliveries = [];
    this.#isDue = false;
    return changes;
  }

  /** @param firstPlace the value of the `place` column in `webhook_pending` for the first event in `passed` */
  stored({ position, passed }: EndpointChanges, firstPlace: number): void {
    this.#storedPosition = position ?? this.#storedPosition;
    this.#storedChanges += 1;
    this.#finished.push(...this.#queue.stored(passed, firstPlace));
    void this.#read();
    this.#pump();
  }

  get #isDown(): boolean {
    return this.#failuresInARow >= DOWN_FAILURES && this.#queue.hasFailed();
  }

  get #isRunning(): boolean {
    return !this.#isDraining && this.#pausedBecause === null;
  }

  /** The maximum number of events that can be read from the event log now. */
  get #room(): number {
    if (this.#queue.storedSize >= PENDING_MAX) return 0;
    return Math.min(BUFFERED_MAX - this.#queue.loggedSize, READ_MAX);
  }

  get #needsEvents(): boolean {
    return !this.#isDown || (this.#options.now() >= this.#newEventAt && !this.#queue.hasNew());
  }

  async #read(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      while (this.#mayHaveMore && this.#isRunning && this.#mayUse() && this.#room > 0 && this.#needsEvents) {
        this.#mayHaveMore = false;
        await this.#readPage();
        this.#pump();
        await setImmediate();
      }
    } catch (error) {
      this.#mayHaveMore = true;
      this.#options.onTrouble(error);
    } finally {
      this.#isReading = false;
      this.#checkIdle();
    }
  }

  async #readPage(): Promise<void> {
    const { account, types } = this.endpoint;
    const request = { after: this.#readTo, types: types.length > 0 ? types : undefined, limit: this.#room };
    const page = await this.#options.events.page(account, request);
    if (page.hasMore) this.#mayHaveMore = true;
    const queuedAt = this.#options.now();
    for (const { id, type, at, data, position } of page.events) {
      const { end_user_id: endUserId } = JSON.parse(data) as { end_user_id: string };
      const body = eventBody({ id, type, at, data });
      const untried = { attempts: 0, firstAttemptAt: null, nextAttemptAt: 0, isSending: false, isDone: false };
      this.#queue.addLogged({ id, type, endUserId, body, queuedAt, place: null, ...untried }, position);
    }
    this.#queue.addPageEnd(page.position);
    this.#readTo = page.position;
  }

  /** Starts attempts until no event is due, or until `UNSTORED_MAX` or the concurrency limit is reached. */
  #pump(): void {
    while (this.#isRunning && this.#mayUse() && this.#deliveries.length + this.#inFlight < UNSTORED_MAX) {
      const isDown = this.#isDown;
      if (this.#inFlight >= (isDown ? 1 : CONCURRENT_MAX)) return;
      const now = this.#options.now();
      const event = isDown ? this.#nextWhileDown(now) : this.#queue.next(now);
      if (event === null) return;
      this.#inFlight += 1;
      void this.#deliver(event);
    }
  }

  #nextWhileDown(now: Instant): QueuedEvent | null {
    const retry = this.#queue.nextRetry(now);
    if (retry !== null || now < this.#newEventAt) return retry;
    const event = this.#queue.nextNew();
    if (event !== null) this.#newEventAt = now + NEW_EVENT_MS;
    return event;
  }

  async #deliver(event: QueuedEvent): Promise<void> {
    const { gate, onTrouble } = this.#options;
    await gate.enter(this.endpoint.account);
    try {
      const body = event.body ?? (await this.#options.store.bodyOf(this.endpoint.id, event));
      if (body === null) this.#finish(event);
      else if (!this.#isRunning || !this.#mayUse()) this.#queue.putBack(event);
      else await this.#attempt(event, body);
    } catch (error) {
      this.#queue.putBack(event);
      onTrouble(error);
    } finally {
      gate.leave();
      this.#inFlight -= 1;
      this.#pump();
      void this.#read();
      this.#checkIdle();
    }
  }

  async #attempt(event: QueuedEvent, body: string): Promise<void> {
    const { send, now, onAttempt } = this.#options;
    const at = now();
    const { url, secret, previousSecrets } = this.endpoint;
    const previous = previousSecrets.filter(({ expiresAt }) => expiresAt > at).map((each) => each.secret);
    const secrets = [secret, ...previous];
    const headers = signatureHeaders({ id: event.id, timestamp: Math.floor(at / 1_000), body }, secrets);
    const result = await send({ url, headers, body, signal: this.#abort.signal });
    if (this.#abort.signal.aborted && result.kind === 'failed') {
      this.#queue.putBack(event);
      return;
    }
    const { kind, ...response } = result;
    onAttempt(kind);
    const sent = { eventId: event.id, type: event.type, body, attempt: event.attempts + 1, at };
    this.#deliveries.push({ id: newDeliveryId(at), ...sent, ...response });
    if (kind === 'delivered') this.#delivered(event);
    else this.#failedAt(event, at, response);
  }

  #delivered(event: QueuedEvent): void {
    const now = this.#options.now();
    this.#lastDeliveredAt = now;
    const wasDown = this.#failuresInARow >= DOWN_FAILURES || this.#mayHaveBeenDown;
    if (wasDown && now >= this.#releasedAt + RELEASE_MS) {
      this.#releasedAt = now;
      this.#isDue = true;
      this.#queue.makeDue(now);
      this.#queue.promote(now);
    }
    this.#failuresInARow = 0;
    this.#mayHaveBeenDown = false;
    this.#finish(event);
  }

  #failedAt(event: QueuedEvent, at: Instant, { status, error }: Pick<RequestResult, 'status' | 'error'>): void {
    this.#failuresInARow += 1;
    event.attempts += 1;
    event.firstAttemptAt ??= at;
    const now = this.#options.now();
    if (this.#failuresInARow === DOWN_FAILURES) this.#newEventAt = now + NEW_EVENT_MS;
    const delay = this.#options.retryDelay(event.attempts, now - event.firstAttemptAt);
    event.nextAttemptAt = now + (delay ?? 0);
    const isLast = delay === null;
    if (isLast && status !== GONE && this.#deliveredSince(event.firstAttemptAt)) {
      this.#finish(event);
      return;
    }
    if (status === GONE) this.#pause('The endpoint responded with status 410 (Gone).');
    else if (isLast) this.#pause(`All deliveries failed for about three days. The last error: ${error}`);
    this.#failed.add(event);
    this.#queue.putBack(event);
  }

  #deliveredSince(at: Instant): boolean {
    return this.#lastDeliveredAt !== null && this.#lastDeliveredAt >= at;
  }

  #finish(event: QueuedEvent): void {
    if (event.place !== null) this.#finished.push(event.place);
    this.#queue.finish(event);
  }

  #pause(because: string): void {
    this.#pausedBecause ??= because;
    this.drain();
  }

  #checkIdle(): void {
    if (this.isIdle) this.#onIdle?.();
  }
}
