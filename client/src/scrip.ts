// The client: one method per API call, and an iterator over all transactions. It needs only what every JavaScript runtime
// has: fetch, AbortController, crypto, URL and timers. exchange.ts sends the calls.

import { UnexpectedAnswer } from './errors.ts';
import { type Call, type Connection, exchange } from './exchange.ts';
import type {
  Addition,
  AddRequest,
  Balance,
  Cycle,
  StartCycleRequest,
  StopCycleRequest,
  Subtraction,
  SubtractRequest,
  Transaction,
  TransactionList,
} from './generated.ts';

export * from './errors.ts';
export type * from './generated.ts';

export interface ScripOptions {
  /** A secret: keep it in your backend, never in a browser or an app. */
  readonly apiKey: string;
  /** The address of Scrip, with its path if it has one, such as `https://credits.example`. */
  readonly baseUrl: string;
  /** Per attempt, for the complete response: 1 to 2147483647. Default: 10,000. */
  readonly timeoutMs?: number;
  /** Maximum number of retries per call: 0 to 10. Default: 3. */
  readonly retries?: number;
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
}

export interface ReadOptions {
  /** Aborting it rejects the call with the reason of the signal. */
  readonly signal?: AbortSignal;
}

export interface WriteOptions extends ReadOptions {
  /**
   * 1 to 255 characters that identify this write: it is applied once, however often it is sent with this key. Best taken
   * from its cause, such as the id of a payment. By default, each call has a random key.
   */
  readonly idempotencyKey?: string;
}

export interface EndUserQuery {
  readonly end_user_id: string;
}

export interface TransactionsQuery extends EndUserQuery {
  /** Only transactions at or after this instant. */
  readonly from?: Date | string;
  /** Only transactions before this instant. */
  readonly to?: Date | string;
}

export interface TransactionPageQuery extends TransactionsQuery {
  /** 1 to 1000. Without this and `cursor`, all transactions are returned. */
  readonly limit?: number;
  /** The `next_cursor` of the previous page. */
  readonly cursor?: string;
}

/** `next_cursor` is present if `limit` or `cursor` was given, and null on the last page. */
export type TransactionPage = TransactionList & { readonly next_cursor?: string | null };

export interface IterationOptions extends ReadOptions {
  /** Transactions per request: 1 to 1000. Default: 500. */
  readonly pageSize?: number;
}

const TIMEOUT_MS = 10_000;
/** With a longer delay, timers fire at once. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;
const RETRIES = 3;
const RETRIES_MAX = 10;
const PAGE_TRANSACTIONS = 500;

/** Both are sent as headers. */
const API_KEY = /^[\x21-\x7e]+$/;
const IDEMPOTENCY_KEY = /^[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$/;

export class Scrip {
  // Private, so that logging or inspecting this object does not show the API key.
  readonly #connection: Connection;

  /** @throws {TypeError} if an option is invalid; the message never contains the API key */
  constructor({ apiKey, baseUrl, timeoutMs = TIMEOUT_MS, retries = RETRIES, fetch }: ScripOptions) {
    if (typeof apiKey !== 'string' || !API_KEY.test(apiKey))
      throw new TypeError('apiKey must be an API key of Scrip, without spaces or line breaks.');
    assertInteger('timeoutMs', timeoutMs, 1, TIMEOUT_MS_MAX);
    assertInteger('retries', retries, 0, RETRIES_MAX);
    this.#connection = {
      baseUrl: baseOf(baseUrl),
      authorization: `Bearer ${apiKey}`,
      // Some runtimes refuse to call `fetch` as a method of another object.
      fetch: fetch ? (input, init) => fetch(input, init) : (input, init) => globalThis.fetch(input, init),
      timeoutMs,
      retries,
    };
  }

  /** Adds credits that expire at the end of their validity and do not renew. */
  add(request: AddRequest, options: WriteOptions = {}): Promise<Addition> {
    return this.#write('/add', request, options);
  }

  /**
   * Subtracts credits, oldest first, all or nothing.
   *
   * @throws {InsufficientFunds} if the balance does not cover them
   */
  subtract(request: SubtractRequest, options: WriteOptions = {}): Promise<Subtraction> {
    return this.#write('/subtract', request, options);
  }

  /**
   * Starts a recurring cycle, which renews at the end of each period until it is stopped.
   *
   * @throws {CycleAlreadyActive} if a cycle is active and the request does not have `on_active: 'replace'`
   */
  startCycle(request: StartCycleRequest, options: WriteOptions = {}): Promise<Cycle> {
    return this.#write('/start-cycle', request, options);
  }

  /**
   * Stops the current cycle: it does not renew, and its credits stay usable until it ends.
   *
   * @throws {CycleNotFound} if there is none
   */
  stopCycle(request: StopCycleRequest, options: WriteOptions = {}): Promise<Cycle> {
    return this.#write('/stop-cycle', request, options);
  }

  /** The current balance, in total and by cycle. An unknown end user has a balance of zero. */
  getActiveBalance({ end_user_id }: EndUserQuery, { signal }: ReadOptions = {}): Promise<Balance> {
    return exchange(this.#connection, { method: 'GET', path: '/get-active-balance', query: { end_user_id }, signal });
  }

  /** All transactions, newest first, or a page of them. Use `transactions` if there may be many. */
  async getAllUserTransactions(request: TransactionPageQuery, { signal }: ReadOptions = {}): Promise<TransactionPage> {
    const query = queryOf(request);
    return exchange(this.#connection, { method: 'GET', path: '/get-all-user-transactions', query, signal });
  }

  /** Iterates over all transactions, newest first. Pages are requested as they are needed. */
  async *transactions(
    query: TransactionsQuery,
    { pageSize = PAGE_TRANSACTIONS, signal }: IterationOptions = {},
  ): AsyncGenerator<Transaction, void, undefined> {
    const options = signal ? { signal } : {};
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const start = cursor === undefined ? {} : { cursor };
      const page = await this.getAllUserTransactions({ ...query, limit: pageSize, ...start }, options);
      const next = nextCursorOf(page, cursor);
      yield* page.transactions;
      cursor = next;
    }
  }

  #write<Result>(path: string, body: object, { idempotencyKey, signal }: WriteOptions): Promise<Result> {
    const key = idempotencyKey ?? crypto.randomUUID();
    if (!IDEMPOTENCY_KEY.test(key))
      return Promise.reject(new TypeError('idempotencyKey must be 1 to 255 characters of ASCII.'));
    const call: Call = { method: 'POST', path, body, idempotencyKey: key, signal };
    return exchange(this.#connection, call);
  }
}

/** @throws {UnexpectedAnswer} if the list would end early or never end */
function nextCursorOf({ transactions, next_cursor: next }: TransactionPage, cursor: string | undefined): string | null {
  const isValid = next === null || (typeof next === 'string' && next !== cursor);
  if (isValid && Array.isArray(transactions)) return next;
  throw new UnexpectedAnswer({
    status: 200,
    error: 'UnexpectedAnswer',
    title: 'Unexpected response',
    detail: 'A page of transactions has no valid next_cursor.',
  });
}

function queryOf(request: TransactionPageQuery): Record<string, string> {
  const query: Record<string, string> = {};
  for (const [name, value] of Object.entries(request)) {
    if (value !== undefined) query[name] = value instanceof Date ? value.toISOString() : String(value);
  }
  return query;
}

function baseOf(baseUrl: string): string {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new TypeError('baseUrl must be the address of Scrip, such as https://credits.example.');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new TypeError('baseUrl must not have a user, a query or a fragment.');
  return url.origin + url.pathname.replace(/\/+$/, '');
}

function assertInteger(name: string, value: number, least: number, most: number): void {
  if (!Number.isSafeInteger(value) || value < least || value > most)
    throw new TypeError(`${name} must be an integer from ${least} to ${most}.`);
}
