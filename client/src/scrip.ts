// The client: one method per API call, and an iterator over all transactions. It uses only features of every JavaScript
// runtime: fetch, AbortController, crypto, URL and timers. exchange.ts sends the calls.

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
  /** The URL of Scrip, such as `https://credits.example`. It may include a path. */
  readonly baseUrl: string;
  /** The timeout of each attempt, until the response is complete: 1 to 2147483647. Default: 10,000. */
  readonly timeoutMs?: number;
  /** Maximum number of retries per call: 0 to 10. Default: 3. */
  readonly retries?: number;
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
}

export interface ReadOptions {
  /** Aborts the call, which then rejects with the reason of the signal. */
  readonly signal?: AbortSignal;
}

export interface WriteOptions extends ReadOptions {
  /**
   * 1 to 255 characters that identify this write. The service applies a write only once, however often it is sent with
   * this key. Derive the key from the cause of the write, such as a payment ID. By default, each call has a random key.
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
  /** 1 to 1000. Without `limit` and `cursor`, all transactions are returned. */
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
/** Timers with a longer delay fire immediately. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;
const RETRIES = 3;
const RETRIES_MAX = 10;
const PAGE_TRANSACTIONS = 500;

/** The API key and the idempotency key are sent as headers, which allow only these characters. */
const API_KEY = /^[\x21-\x7e]+$/;
const IDEMPOTENCY_KEY = /^[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$/;

export class Scrip {
  // Private, so that logging or inspecting this object does not show the API key.
  readonly #connection: Connection;

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
  }

  /** Adds credits that expire at the end of their validity and do not renew. */
  add(request: AddRequest, options: WriteOptions = {}): Promise<Addition> {
    return this.#write('/add', request, options);
  }

  /**
   * Subtracts credits, oldest first, all or nothing.
   *
   * @throws {InsufficientFunds} if the balance does not cover the amount
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
   * @throws {CycleNotFound} if there is no cycle to stop
   */
  stopCycle(request: StopCycleRequest, options: WriteOptions = {}): Promise<Cycle> {
    return this.#write('/stop-cycle', request, options);
  }

  /** Returns the current balance, in total and by cycle. An unknown end user has a balance of zero. */
  getActiveBalance({ end_user_id }: EndUserQuery, { signal }: ReadOptions = {}): Promise<Balance> {
    return exchange(this.#connection, { method: 'GET', path: '/get-active-balance', query: { end_user_id }, signal });
  }

  /** Returns all transactions, newest first, or one page. If there may be many, use `transactions` instead. */
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
      return Promise.reject(
        new TypeError(
          'idempotencyKey must be 1 to 255 printable ASCII characters, not beginning or ending with a space.',
        ),
      );
    const call: Call = { method: 'POST', path, body, idempotencyKey: key, signal };
    return exchange(this.#connection, call);
  }
}

/**
 * Returns the time at which a cycle was started. A cycle's `created_at` is UTC without a suffix, which `new Date`
 * interprets as local time; all other timestamps end in `Z`.
 *
 * @param cycle from `startCycle`, `stopCycle` or a `CycleAlreadyActive` error
 */
export function createdAt({ created_at }: Pick<Cycle, 'created_at'>): Date {
  return new Date(`${created_at}Z`);
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
    throw new TypeError('baseUrl must be the URL of Scrip, such as https://credits.example.');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new TypeError('baseUrl must not have a user, a query or a fragment.');
  return url.origin + url.pathname.replace(/\/+$/, '');
}

function assertInteger(name: string, value: number, least: number, most: number): void {
  if (!Number.isSafeInteger(value) || value < least || value > most)
    throw new TypeError(`${name} must be an integer from ${least} to ${most}.`);
}
