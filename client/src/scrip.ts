// The client: one method a call of the interface, and an iterator over all transactions. It uses what every runtime of
// JavaScript has (fetch, AbortController, crypto, URL) and nothing else. How a call is sent is in exchange.ts.

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
  /** A secret: it belongs in a backend, never in a browser or an app. */
  readonly apiKey: string;
  /** Where Scrip is, with a path if it is below one: `https://credits.example`. */
  readonly baseUrl: string;
  /** For each attempt, until the answer is there as a whole: 1 to 2147483647, 10,000 when absent. */
  readonly timeoutMs?: number;
  /** How often a call is sent again, at most: 0 to 10, 3 when absent. */
  readonly retries?: number;
  /** Instead of the `fetch` of the runtime. */
  readonly fetch?: typeof globalThis.fetch;
}

export interface ReadOptions {
  /** Ends the call with the reason of the signal. */
  readonly signal?: AbortSignal;
}

export interface WriteOptions extends ReadOptions {
  /**
   * 1 to 255 characters that name this write: the same write with the same key is done once, however often it is sent.
   * Best taken from what caused it, like the id of a payment. When absent, each call has a key of its own.
   */
  readonly idempotencyKey?: string;
}

export interface EndUserQuery {
  readonly end_user_id: string;
}

export interface TransactionsQuery extends EndUserQuery {
  /** The first instant of the transactions. */
  readonly from?: Date | string;
  /** The instant before which the transactions were made. */
  readonly to?: Date | string;
}

export interface TransactionPageQuery extends TransactionsQuery {
  /** 1 to 1000 transactions; all of them when neither this nor `cursor` is given. */
  readonly limit?: number;
  /** The `next_cursor` of the page before. */
  readonly cursor?: string;
}

/** `next_cursor` is there when `limit` or `cursor` was given, and null on the last page. */
export type TransactionPage = TransactionList & { readonly next_cursor?: string | null };

export interface IterationOptions extends ReadOptions {
  /** How many transactions are asked for at once: 1 to 1000, 500 when absent. */
  readonly pageSize?: number;
}

const TIMEOUT_MS = 10_000;
/** What a timer can hold: beyond it, one fires at once. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;
const RETRIES = 3;
const RETRIES_MAX = 10;
const PAGE_TRANSACTIONS = 500;

/** Of what a header can carry. */
const API_KEY = /^[\x21-\x7e]+$/;
const IDEMPOTENCY_KEY = /^[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$/;

export class Scrip {
  // Private, so that no log and no inspection of this object shows the API key.
  readonly #connection: Connection;

  /** @throws {TypeError} when an option cannot be right; the message never has the API key in it */
  constructor({ apiKey, baseUrl, timeoutMs = TIMEOUT_MS, retries = RETRIES, fetch }: ScripOptions) {
    if (typeof apiKey !== 'string' || !API_KEY.test(apiKey))
      throw new TypeError('apiKey must be an API key of Scrip: text without spaces or line ends.');
    assertWhole('timeoutMs', timeoutMs, 1, TIMEOUT_MS_MAX);
    assertWhole('retries', retries, 0, RETRIES_MAX);
    this.#connection = {
      baseUrl: baseOf(baseUrl),
      authorization: `Bearer ${apiKey}`,
      // Some runtimes refuse a `fetch` that is called as the method of another object.
      fetch: fetch ? (input, init) => fetch(input, init) : (input, init) => globalThis.fetch(input, init),
      timeoutMs,
      retries,
    };
  }

  /** Adds credits that expire after their validity and are not renewed. */
  add(request: AddRequest, options: WriteOptions = {}): Promise<Addition> {
    return this.#write('/add', request, options);
  }

  /**
   * Subtracts credits, the oldest first, all or nothing.
   *
   * @throws {InsufficientFunds} when the balance does not cover them
   */
  subtract(request: SubtractRequest, options: WriteOptions = {}): Promise<Subtraction> {
    return this.#write('/subtract', request, options);
  }

  /**
   * Starts a recurring cycle, which renews at the end of its validity until it is stopped.
   *
   * @throws {CycleAlreadyActive} when there is one, and the request does not say `on_active: 'replace'`
   */
  startCycle(request: StartCycleRequest, options: WriteOptions = {}): Promise<Cycle> {
    return this.#write('/start-cycle', request, options);
  }

  /**
   * Stops the current cycle: its credits stay usable until its end, and it is not renewed.
   *
   * @throws {CycleNotFound} when there is none
   */
  stopCycle(request: StopCycleRequest, options: WriteOptions = {}): Promise<Cycle> {
    return this.#write('/stop-cycle', request, options);
  }

  /** What the end user can spend now, in all and by cycle; zero for one never heard of. */
  getActiveBalance({ end_user_id }: EndUserQuery, { signal }: ReadOptions = {}): Promise<Balance> {
    return exchange(this.#connection, { method: 'GET', path: '/get-active-balance', query: { end_user_id }, signal });
  }

  /** All transactions, most recent first, or a page of them. Use `transactions` when there may be many. */
  async getAllUserTransactions(request: TransactionPageQuery, { signal }: ReadOptions = {}): Promise<TransactionPage> {
    const query = queryOf(request);
    return exchange(this.#connection, { method: 'GET', path: '/get-all-user-transactions', query, signal });
  }

  /** Each transaction, most recent first, asked for a page at a time as they are taken: `for await (const one of …)`. */
  async *transactions(
    query: TransactionsQuery,
    { pageSize = PAGE_TRANSACTIONS, signal }: IterationOptions = {},
  ): AsyncGenerator<Transaction, void, undefined> {
    const options = signal ? { signal } : {};
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const at = cursor === undefined ? {} : { cursor };
      const page = await this.getAllUserTransactions({ ...query, limit: pageSize, ...at }, options);
      const next = nextOf(page, cursor);
      yield* page.transactions;
      cursor = next;
    }
  }

  #write<Answer>(path: string, body: object, { idempotencyKey, signal }: WriteOptions): Promise<Answer> {
    const key = idempotencyKey ?? crypto.randomUUID();
    if (!IDEMPOTENCY_KEY.test(key))
      return Promise.reject(new TypeError('idempotencyKey must be 1 to 255 characters of ASCII.'));
    const call: Call = { method: 'POST', path, body, idempotencyKey: key, signal };
    return exchange(this.#connection, call);
  }
}

/** Every page leads on or is the last: a list that would end early or never is an error, not a shorter list. */
function nextOf({ transactions, next_cursor: next }: TransactionPage, cursor: string | undefined): string | null {
  const leadsOn = next === null || (typeof next === 'string' && next !== cursor);
  if (leadsOn && Array.isArray(transactions)) return next;
  throw new UnexpectedAnswer({
    status: 200,
    error: 'UnexpectedAnswer',
    title: 'The answer is none of Scrip',
    detail: 'A page of transactions does not say where the next one begins.',
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
    throw new TypeError('baseUrl must be the address of Scrip, like https://credits.example.');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new TypeError('baseUrl must have no user, no query and no fragment.');
  return url.origin + url.pathname.replace(/\/+$/, '');
}

function assertWhole(name: string, value: number, least: number, most: number): void {
  if (!Number.isSafeInteger(value) || value < least || value > most)
    throw new TypeError(`${name} must be a whole number from ${least} to ${most}.`);
}
