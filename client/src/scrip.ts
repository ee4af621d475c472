// The client: one method per API call, and iterators over all transactions and events. The client uses only APIs that
// all JavaScript runtimes have: fetch, AbortController, crypto, URL and timers. exchange.ts sends the calls.

import { UnexpectedAnswer } from './errors.ts';
import { type Call, type Connection, exchange } from './exchange.ts';
import type {
  Addition,
  AddRequest,
  Balance,
  BalanceHistory,
  Capture,
  CaptureRequest,
  Cycle,
  Event,
  EventList,
  Hold,
  HoldList,
  HoldRequest,
  Preview,
  PreviewChangeRequest,
  Refund,
  RefundRequest,
  Release,
  ReleaseRequest,
  StartCycleRequest,
  StopCycleRequest,
  Subtraction,
  SubtractRequest,
} from './generated.ts';
import {
  type BalanceHistoryQuery,
  type BalanceQuery,
  type EndUserQuery,
  type EventPageQuery,
  type EventsQuery,
  type ListedTransaction,
  queryOf,
  type TransactionPage,
  type TransactionPageQuery,
  type TransactionsQuery,
} from './queries.ts';
import { ScripTestClock } from './test-clock.ts';

export * from './errors.ts';
export type * from './generated.ts';
export type {
  BalanceHistoryQuery,
  BalanceQuery,
  DetailedTransaction,
  EndUserQuery,
  EventPageQuery,
  EventsQuery,
  EventType,
  Instant,
  ListedTransaction,
  TransactionKind,
  TransactionPage,
  TransactionPageQuery,
  TransactionsQuery,
} from './queries.ts';
export type { ScripTestClock, TestClockMove, TestClockOptions } from './test-clock.ts';
export {
  type VerifyOptions,
  verifyWebhook,
  type WebhookEvent,
  type WebhookHeaders,
  WebhookVerificationError,
} from './webhooks.ts';

export interface ScripOptions {
  /** The API key is a secret. Keep it in your backend, never in a browser or an app. */
  readonly apiKey: string;
  /** The URL of Scrip, such as `https://credits.example`. The URL can include a path. */
  readonly baseUrl: string;
  /**
   * The timeout of each attempt in milliseconds: 1 to 2,147,483,647. Default: 10,000. The timeout includes the time to
   * read the response body.
   */
  readonly timeoutMs?: number | undefined;
  /** Maximum number of retries per call: 0 to 10. Default: 3. */
  readonly retries?: number | undefined;
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

export interface ReadOptions {
  /** Aborts the call. The call's promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface WithHoldOptions extends ReadOptions {
  /** The time after which the hold lapses. Choose a time longer than the work can take. */
  readonly expires_in_seconds?: number | undefined;
  /** Recorded with the hold, and with its capture or release. */
  readonly note?: string | undefined;
}

export interface WriteOptions extends ReadOptions {
  /**
   * 1 to 255 printable ASCII characters that identify this write. Scrip applies a write only once, however often you
   * send it with this key. Derive the key from the cause of the write, such as a payment ID. Default: a random key for
   * each call.
   */
  readonly idempotencyKey?: string | undefined;
}

/** The response to a write, with the ID of the recorded transaction. */
export type Written<Response> = Response & {
  /** The `Transaction-Id` header; null if nothing was recorded, for example if the cycle was already stopped. */
  readonly transactionId: string | null;
};

export interface IterationOptions extends ReadOptions {
  /** Transactions or events per request: 1 to 1000. Default: 500. */
  readonly pageSize?: number | undefined;
}

const TIMEOUT_MS = 10_000;
/** JavaScript timers with a longer delay fire immediately. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;
const RETRIES = 3;
const RETRIES_MAX = 10;
const PAGE_SIZE = 500;

/** The API key and the idempotency key are sent in headers, and can contain only these characters. */
const API_KEY = /^[\x21-\x7e]+$/;
const IDEMPOTENCY_KEY = /^[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$/;

export class Scrip {
  // Private, so that logging or inspecting this object does not show the API key.
  readonly #connection: Connection;
  /** Reads and moves the test clock of a ledger that was created with `scrip serve --test-clock`. */
  readonly testClock: ScripTestClock;

  /** @throws {TypeError} if an option is invalid; the message never contains the API key */
  constructor({ apiKey, baseUrl, timeoutMs = TIMEOUT_MS, retries = RETRIES, fetch }: ScripOptions) {
    if (typeof apiKey !== 'string' || !API_KEY.test(apiKey))
      throw new TypeError('apiKey must be a Scrip API key, without spaces or line breaks.');
    assertInteger('timeoutMs', timeoutMs, 1, TIMEOUT_MS_MAX);
    assertInteger('retries', retries, 0, RETRIES_MAX);
    this.#connection = {
      baseUrl: baseOf(baseUrl),
      authorization: `Bearer ${apiKey}`,
      // Some runtimes do not allow calling `fetch` as a method of another object.
      fetch: fetch ? (input, init) => fetch(input, init) : (input, init) => globalThis.fetch(input, init),
      timeoutMs,
      retries,
    };
    this.testClock = new ScripTestClock(this.#connection);
  }

  /** Adds credits that expire at the end of their validity and are not renewed. */
  add(request: AddRequest, options: WriteOptions = {}): Promise<Written<Addition>> {
    return this.#write('/add', request, options);
  }

  /**
   * Subtracts credits, oldest first: either the whole `amount` or nothing.
   *
   * @throws {InsufficientFunds} if the balance does not cover `amount`
   */
  subtract(request: SubtractRequest, options: WriteOptions = {}): Promise<Written<Subtraction>> {
    return this.#write('/subtract', request, options);
  }

  /**
   * Refunds `amount` credits of a subtraction or a capture. Without `amount`, refunds all credits that have not been
   * refunded yet.
   *
   * @throws {RefundTooLarge} if fewer than `amount` credits, or none, can still be refunded
   * @throws {TransactionNotFound} if the transaction does not exist
   * @throws {NotRefundable} if the transaction did not spend credits
   */
  refund(request: RefundRequest, options: WriteOptions = {}): Promise<Written<Refund>> {
    return this.#write('/refund', request, options);
  }

  /**
   * Starts a recurring cycle, which renews at the end of each period until you stop it. If a cycle is active,
   * `on_active: 'replace'` replaces it now, and `on_active: 'at_period_end'` starts the new cycle when the current
   * period ends.
   *
   * @throws {CycleAlreadyActive} if a cycle is active and the request does not have `on_active`
   */
  startCycle(request: StartCycleRequest, options: WriteOptions = {}): Promise<Written<Cycle>> {
    return this.#write('/start-cycle', request, options);
  }

  /**
   * Previews `startCycle`: returns what the request would change, without changing anything. If `startCycle` would be
   * refused, the preview throws the same error.
   *
   * @throws {CycleAlreadyActive} if a cycle is active and the request does not have `on_active`
   */
  previewChange(request: PreviewChangeRequest, { signal }: ReadOptions = {}): Promise<Preview> {
    return exchange(this.#connection, { method: 'POST', path: '/preview-change', body: request, signal });
  }

  /**
   * Stops the active recurring cycle: the cycle is not renewed, and its credits stay usable until the period ends.
   *
   * @throws {CycleNotFound} if the end user has no recurring cycle to stop
   */
  stopCycle(request: StopCycleRequest, options: WriteOptions = {}): Promise<Written<Cycle>> {
    return this.#write('/stop-cycle', request, options);
  }

  /**
   * Sets credits aside for work whose cost is not known yet. See also `withHold`.
   *
   * @throws {InsufficientFunds} if the balance does not cover `amount`
   * @throws {TooManyHolds} if the end user has 1,000 open holds
   */
  hold(request: HoldRequest, options: WriteOptions = {}): Promise<Written<Hold>> {
    return this.#write('/hold', request, options);
  }

  /**
   * Spends `amount` credits and closes the hold. `amount` is the cost of the work. Without `amount`, spends all held
   * credits. Held credits that are not spent return to the cycles that they came from.
   *
   * @throws {HoldNotFound} if the hold was captured or released, has lapsed, or does not exist
   * @throws {InsufficientFunds} if the hold and the balance together do not cover `amount`; the hold stays open
   */
  capture(request: CaptureRequest, options: WriteOptions = {}): Promise<Written<Capture>> {
    return this.#write('/capture', request, options);
  }

  /**
   * Returns all held credits to the cycles that they came from, and closes the hold.
   *
   * @throws {HoldNotFound} if the hold was captured or released, has lapsed, or does not exist
   */
  release(request: ReleaseRequest, options: WriteOptions = {}): Promise<Written<Release>> {
    return this.#write('/release', request, options);
  }

  /**
   * Holds credits while `work` runs, then captures the cost that `work` returns, or releases the hold if the cost is 0.
   * If `work` throws, `withHold` releases the hold and throws the same error; if the release fails too, the hold lapses
   * at its `expires_at`. If the capture fails, `withHold` throws the error from the capture, with the `holdId` of the
   * hold. You can then retry the capture, or capture fewer credits, until the hold lapses.
   *
   * Each call creates a new hold. For a job that can be delivered twice, use `hold` and `capture` with idempotency keys
   * instead.
   *
   * @param amount how many credits to hold; `work` can cost more if the balance covers the difference
   * @param options the signal aborts only the call that holds the credits, not the capture or the release
   * @throws {TypeError} if the cost is not a whole number of credits, 0 or more; the error has the `holdId` of the hold,
   *   which stays open
   */
  async withHold(
    endUserId: string,
    amount: number,
    work: (hold: Written<Hold>) => number | Promise<number>,
    { signal, ...fields }: WithHoldOptions = {},
  ): Promise<Written<Capture> | Written<Release>> {
    const hold = await this.hold({ end_user_id: endUserId, amount, ...fields }, { signal });
    const closed = { end_user_id: endUserId, hold_id: hold.hold_id, note: fields.note };
    let cost: number;
    try {
      cost = await work(hold);
    } catch (error) {
      await this.release(closed).catch(() => {});
      throw error;
    }
    if (!Number.isSafeInteger(cost) || cost < 0) throw costError(hold.hold_id);
    return cost === 0 ? this.release(closed) : this.capture({ ...closed, amount: cost });
  }

  /** Returns the open holds, oldest first. */
  getHolds(request: EndUserQuery, options: ReadOptions = {}): Promise<HoldList> {
    return this.#read('/get-holds', request, options);
  }

  /** Returns the balance now or at another instant, in total and by cycle. An unknown end user has a balance of 0. */
  getActiveBalance(request: BalanceQuery, options: ReadOptions = {}): Promise<Balance> {
    return this.#read('/get-active-balance', request, options);
  }

  /** Returns the balance at regular intervals, in the past and in the future. */
  getBalanceHistory(request: BalanceHistoryQuery, options: ReadOptions = {}): Promise<BalanceHistory> {
    return this.#read('/get-balance-history', request, options);
  }

  /** Returns all transactions, or one page of them, newest first. For long histories, use `transactions`. */
  getAllUserTransactions<Query extends TransactionPageQuery>(
    request: Query,
    options: ReadOptions = {},
  ): Promise<TransactionPage<ListedTransaction<Query>>> {
    return this.#read('/get-all-user-transactions', request, options);
  }

  /** Iterates over all transactions, newest first, and requests each page when it is needed. */
  async *transactions<Query extends TransactionsQuery>(
    query: Query,
    { pageSize = PAGE_SIZE, signal }: IterationOptions = {},
  ): AsyncGenerator<ListedTransaction<Query>, void, undefined> {
    const options = { signal };
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const start = cursor === undefined ? {} : { cursor };
      const page = await this.getAllUserTransactions({ ...query, limit: pageSize, ...start }, options);
      const next = nextCursorOf(page, cursor);
      yield* page.transactions as readonly ListedTransaction<Query>[];
      cursor = next;
    }
  }

  /**
   * Returns the events of all end users, oldest first. To get the next events, pass the response's `next_cursor` as
   * `after`.
   */
  getEvents(query: EventPageQuery = {}, options: ReadOptions = {}): Promise<EventList> {
    return this.#read('/get-events', query, options);
  }

  /** Iterates over all events up to now, oldest first, and requests each page when it is needed. */
  async *events(
    query: EventsQuery = {},
    { pageSize = PAGE_SIZE, signal }: IterationOptions = {},
  ): AsyncGenerator<Event, void, undefined> {
    const options = { signal };
    for (let page: EventList | null = null; page?.has_more !== false; ) {
      const start: EventsQuery = page === null ? {} : { after: page.next_cursor };
      page = await this.getEvents({ ...query, ...start, limit: pageSize }, options);
      assertEventPage(page, start.after ?? undefined);
      yield* page.events;
    }
  }

  async #read<Result>(path: string, request: object, { signal }: ReadOptions): Promise<Result> {
    return exchange(this.#connection, { method: 'GET', path, query: queryOf(request), signal });
  }

  #write<Result>(path: string, body: object, { idempotencyKey, signal }: WriteOptions): Promise<Result> {
    const key = idempotencyKey ?? crypto.randomUUID();
    if (!IDEMPOTENCY_KEY.test(key))
      return Promise.reject(
        new TypeError(
          'idempotencyKey must be 1 to 255 printable ASCII characters, and must not begin or end with a space.',
        ),
      );
    const call: Call = { method: 'POST', path, body, idempotencyKey: key, signal };
    return exchange(this.#connection, call);
  }
}

function costError(holdId: string): TypeError {
  const error = new TypeError(
    `The cost must be a whole number of credits, 0 or more. Hold ${holdId} is still open: capture or release it, or let it lapse.`,
  );
  return Object.assign(error, { holdId });
}

/**
 * Returns the `created_at` of a cycle as a `Date`. `created_at` is in UTC but does not end in `Z`, so `new Date` would
 * read it as local time. All other timestamps end in `Z`.
 *
 * @param cycle from `startCycle`, `stopCycle` or a `CycleAlreadyActive` error
 */
export function createdAt({ created_at }: Pick<Cycle, 'created_at'>): Date {
  return new Date(`${created_at}Z`);
}

/** @throws {UnexpectedAnswer} if the page has no valid cursor, since the iteration would then end early or never end */
function nextCursorOf({ transactions, next_cursor: next }: TransactionPage, cursor: string | undefined): string | null {
  const isValid = next === null || (typeof next === 'string' && next !== cursor);
  if (isValid && Array.isArray(transactions)) return next;
  throw cursorError('transactions');
}

/** @throws {UnexpectedAnswer} if the page has no valid cursor, since the iteration would then end early or never end */
function assertEventPage({ events, next_cursor: next, has_more: hasMore }: EventList, after?: string): void {
  const isValid = typeof next === 'string' && typeof hasMore === 'boolean' && !(hasMore && next === after);
  if (isValid && Array.isArray(events)) return;
  throw cursorError('events');
}

function cursorError(listed: string): UnexpectedAnswer {
  const detail = `A page of ${listed} has no valid next_cursor.`;
  return new UnexpectedAnswer({ status: 200, error: 'UnexpectedAnswer', title: 'Unexpected response', detail });
}

function baseOf(baseUrl: string): string {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new TypeError('baseUrl must be the URL of Scrip, such as https://credits.example.');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new TypeError('baseUrl must not have a user name, a password, a query or a fragment.');
  return url.origin + url.pathname.replace(/\/+$/, '');
}

function assertInteger(name: string, value: number, least: number, most: number): void {
  if (!Number.isSafeInteger(value) || value < least || value > most)
    throw new TypeError(`${name} must be an integer from ${least} to ${most}.`);
}
