// Sends a call, parses the response, and retries after a failure that might be temporary. All attempts of a write have
// the same idempotency key, so that Scrip applies the write only once.

import {
  ConnectionFailed,
  type ErrorFacts,
  errorOf,
  Internal,
  OutcomeUnknown,
  ScripError,
  TimedOut,
  UnexpectedAnswer,
} from './errors.ts';
import type { Problem } from './generated.ts';

export interface Connection {
  /** Without a trailing slash. */
  readonly baseUrl: string;
  /** The value of the `Authorization` header. */
  readonly authorization: string;
  readonly fetch: typeof globalThis.fetch;
  /** The timeout of each attempt, including the time to read the response body. */
  readonly timeoutMs: number;
  /** Maximum number of retries. */
  readonly retries: number;
}

export interface Call {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Maximum delay before the first retry. The maximum doubles for each further retry. Each delay is a random value
 * between 50% and 100% of the maximum.
 */
const BACKOFF_MS = 200;
const BACKOFF_MS_MAX = 5_000;
/** If `Retry-After` is longer than this, the client does not retry, and throws the error immediately. */
const RETRY_AFTER_MS_MAX = 30_000;
/** Spreads the retries of clients that received the same `Retry-After`. */
const RETRY_AFTER_JITTER_MS = 250;

/** Scrip sends 408, 429 and 503 for temporary failures. A proxy sends 502, 503 or 504 if it cannot reach Scrip. */
const STATUSES_TO_RETRY: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);
/** The statuses of errors that Scrip sends without looking for an earlier attempt with the same idempotency key. */
const UNDECIDED: ReadonlySet<number> = new Set([401, 403, 408, 429, 503]);
/** The errors after which a write might have been applied. */
const AMBIGUOUS = [ConnectionFailed, TimedOut, UnexpectedAnswer, OutcomeUnknown, Internal];

/**
 * @throws {ScripError} the error of the last attempt. If an earlier attempt of a write might have been applied, and the
 * last error does not say whether it was, throws the error of the earlier attempt.
 */
export async function exchange<Result>(connection: Connection, call: Call): Promise<Result> {
  const body = call.body === undefined ? null : textOf(call.body);
  let ambiguous: ScripError | null = null;
  for (let attempt = 0; ; attempt += 1) {
    call.signal?.throwIfAborted();
    try {
      return (await sendOnce(connection, call, body)) as Result;
    } catch (error) {
      if (!(error instanceof ScripError)) throw error;
      if (call.idempotencyKey !== undefined && AMBIGUOUS.some((kind) => error instanceof kind)) ambiguous = error;
      const delayMs = retryDelayMs(error, attempt);
      if (delayMs === null || attempt >= connection.retries)
        throw ambiguous !== null && UNDECIDED.has(error.status) ? ambiguous : error;
      await sleep(delayMs, call.signal);
    }
  }
}

/** @throws {TypeError} if the body contains `NaN` or `Infinity`, which JSON would turn into null */
function textOf(body: unknown): string {
  return JSON.stringify(body, (name, value) => {
    if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`${name} must be a finite number.`);
    return value;
  });
}

/** @returns milliseconds; null if a retry would not help, or if `Retry-After` is too long */
function retryDelayMs(error: ScripError, attempt: number): number | null {
  const hasNoResponse = error instanceof ConnectionFailed || error instanceof TimedOut;
  if (!hasNoResponse && !STATUSES_TO_RETRY.has(error.status)) return null;
  const longest = Math.min(BACKOFF_MS * 2 ** attempt, BACKOFF_MS_MAX);
  const backoffMs = longest * (0.5 + Math.random() / 2);
  const { retryAfterMs } = error;
  if (retryAfterMs === undefined) return backoffMs;
  if (retryAfterMs > RETRY_AFTER_MS_MAX) return null;
  return Math.max(retryAfterMs + Math.random() * RETRY_AFTER_JITTER_MS, backoffMs);
}

async function sendOnce(connection: Connection, call: Call, body: string | null): Promise<object> {
  const { signal } = call;
  const controller = new AbortController();
  const url = urlOf(connection, call);
  const request = requestOf(connection, call, body, controller.signal);
  const stop = () => controller.abort(signal?.reason);
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    controller.abort();
  }, connection.timeoutMs);
  signal?.addEventListener('abort', stop, { once: true });
  // Rejects on abort even if a custom `fetch` ignores the signal.
  const stopped = new Promise<never>((_, reject) => {
    controller.signal.addEventListener('abort', () => reject(controller.signal.reason), { once: true });
  });
  let received: ReceivedResponse;
  try {
    received = await Promise.race([receive(connection.fetch(url, request)), stopped]);
  } catch (cause) {
    signal?.throwIfAborted();
    throw isLate ? timedOut(connection, call) : connectionFailed(call, cause);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
  return parseResponse(call, received);
}

interface ReceivedResponse {
  readonly response: Response;
  readonly text: string;
}

async function receive(pending: Promise<Response>): Promise<ReceivedResponse> {
  const response = await pending;
  return { response, text: await response.text() };
}

function urlOf({ baseUrl }: Connection, { path, query }: Call): string {
  return query === undefined ? baseUrl + path : `${baseUrl}${path}?${new URLSearchParams(query)}`;
}

function requestOf(
  { authorization }: Connection,
  { method, idempotencyKey }: Call,
  body: string | null,
  signal: AbortSignal,
): RequestInit {
  const headers: Record<string, string> = { authorization, accept: 'application/json' };
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey;
  // Do not follow redirects, because the API key must not be sent to another address.
  const request: RequestInit = { method, headers, signal, redirect: 'manual' };
  if (body === null) return request;
  headers['content-type'] = 'application/json';
  return { ...request, body };
}

function parseResponse(call: Call, { response: { status, headers }, text }: ReceivedResponse): object {
  const fields = parseJson(text);
  if (status === 200 && fields !== null && isFromScrip(fields))
    return call.idempotencyKey === undefined ? fields : { ...fields, transactionId: headers.get('transaction-id') };
  const retryAfterMs = retryAfterOf(headers);
  const retryAfter = retryAfterMs === undefined ? {} : { retryAfterMs };
  if (status >= 400 && typeof fields?.error === 'string' && String(fields.type).startsWith('/problems/')) {
    const problem = fields as Problem;
    const { error, title = '', detail = '' } = problem;
    throw errorOf({ status, error, title, detail, problem, ...retryAfter, ...writeFactsOf(call) });
  }
  throw new UnexpectedAnswer({
    status,
    error: 'UnexpectedAnswer',
    title: 'Unexpected response',
    detail: `The response to ${call.method} ${call.path} is not from Scrip: status ${status}, body length ${text.length}. Check baseUrl, and any proxy in front of Scrip.`,
    ...retryAfter,
    ...writeFactsOf(call),
  });
}

interface Answer extends Partial<Problem> {
  readonly end_user_id?: unknown;
  readonly now?: unknown;
  readonly next_cursor?: unknown;
}

/**
 * Every successful response has `end_user_id`, with two exceptions: responses of `/test-clock` have `now`, and
 * responses of `/get-events` have `next_cursor`.
 */
function isFromScrip({ end_user_id, now, next_cursor }: Answer): boolean {
  return typeof (end_user_id ?? now ?? next_cursor) === 'string';
}

function parseJson(text: string): Answer | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}

/** Parses `Retry-After`: seconds or a date (RFC 9110, section 10.2.3). @returns milliseconds; undefined if invalid */
function retryAfterOf(headers: Headers): number | undefined {
  const header = headers.get('retry-after')?.trim() ?? '';
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const at = header === '' ? Number.NaN : Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now());
}

function timedOut({ timeoutMs }: Connection, call: Call): TimedOut {
  const detail = `${call.method} ${call.path} got no complete response within ${timeoutMs} ms.`;
  return new TimedOut({ status: 0, error: 'TimedOut', title: 'Request timed out', detail, ...writeFactsOf(call) });
}

function connectionFailed(call: Call, cause: unknown): ConnectionFailed {
  const detail = `${call.method} ${call.path} got no response or an incomplete response.`;
  const title = 'Connection failed';
  return new ConnectionFailed({ status: 0, error: 'ConnectionFailed', title, detail, cause, ...writeFactsOf(call) });
}

function writeFactsOf({ idempotencyKey, body }: Call): Pick<ErrorFacts, 'idempotencyKey' | 'holdId'> {
  if (idempotencyKey === undefined) return {};
  const { hold_id: holdId } = body as { readonly hold_id?: string };
  return holdId === undefined ? { idempotencyKey } : { idempotencyKey, holdId };
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}
