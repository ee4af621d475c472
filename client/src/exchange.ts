// One call, from the request to its answer: sent, timed, understood, and sent again where that may help and can do no
// harm. A write goes with the same idempotency key each time, so that the service does it once however often it is sent.

import { ConnectionFailed, type ErrorFacts, errorOf, ScripError, TimedOut, UnexpectedAnswer } from './errors.ts';
import type { Problem } from './generated.ts';

/** How to reach the service. */
export interface Connection {
  /** Without a slash at the end. */
  readonly baseUrl: string;
  /** The header. */
  readonly authorization: string;
  readonly fetch: typeof globalThis.fetch;
  /** For each attempt, until the answer is there as a whole. */
  readonly timeoutMs: number;
  /** How often a call is sent again, at most. */
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

/** The first wait is half of this to all of it, and each further one twice as long. */
const BACKOFF_MS = 200;
const BACKOFF_MS_MAX = 5_000;
/** A service that asks for a longer pause is not called again: whoever waits for the answer is told so instead. */
const RETRY_AFTER_MS_MAX = 30_000;
/** Spread over clients that were all told to come back at the same time. */
const RETRY_AFTER_SPREAD_MS = 250;

/** Turned away, or no answer of the service: what a proxy says when it could not reach the service is 502, 503 or 504. */
const STATUSES_TO_RETRY: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** @throws {ScripError} of the last attempt, which is the first one when another would not help */
export async function exchange<Answer>(connection: Connection, call: Call): Promise<Answer> {
  for (let attempt = 0; ; attempt += 1) {
    call.signal?.throwIfAborted();
    try {
      return (await sendOnce(connection, call)) as Answer;
    } catch (error) {
      const waitMs = error instanceof ScripError ? waitBeforeNext(error, attempt) : null;
      if (waitMs === null || attempt >= connection.retries) throw error;
      await sleep(waitMs, call.signal);
    }
  }
}

/** @returns null when another attempt would not help, or only later than a caller would want to wait */
function waitBeforeNext(error: ScripError, attempt: number): number | null {
  const hasNoAnswer = error instanceof ConnectionFailed || error instanceof TimedOut;
  if (!hasNoAnswer && !STATUSES_TO_RETRY.has(error.status)) return null;
  const { retryAfterMs } = error;
  if (retryAfterMs !== undefined) {
    return retryAfterMs > RETRY_AFTER_MS_MAX ? null : retryAfterMs + Math.random() * RETRY_AFTER_SPREAD_MS;
  }
  const longest = Math.min(BACKOFF_MS * 2 ** attempt, BACKOFF_MS_MAX);
  return longest * (0.5 + Math.random() / 2);
}

async function sendOnce(connection: Connection, call: Call): Promise<object> {
  const { signal } = call;
  const controller = new AbortController();
  const address = addressOf(connection, call);
  const request = requestOf(connection, call, controller.signal);
  const stop = () => controller.abort(signal?.reason);
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    controller.abort();
  }, connection.timeoutMs);
  signal?.addEventListener('abort', stop, { once: true });
  // A `fetch` that does not heed the signal holds nobody up either.
  const stopped = new Promise<never>((_, reject) => {
    controller.signal.addEventListener('abort', () => reject(controller.signal.reason), { once: true });
  });
  let received: Received;
  try {
    received = await Promise.race([receive(connection.fetch(address, request)), stopped]);
  } catch (cause) {
    signal?.throwIfAborted();
    throw isLate ? late(connection, call) : unreached(call, cause);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
  return understood(call, received);
}

interface Received {
  readonly answer: Response;
  readonly text: string;
}

async function receive(answering: Promise<Response>): Promise<Received> {
  const answer = await answering;
  return { answer, text: await answer.text() };
}

function addressOf({ baseUrl }: Connection, { path, query }: Call): string {
  return query === undefined ? baseUrl + path : `${baseUrl}${path}?${new URLSearchParams(query)}`;
}

function requestOf({ authorization }: Connection, call: Call, signal: AbortSignal): RequestInit {
  const { method, body, idempotencyKey } = call;
  const headers: Record<string, string> = { authorization, accept: 'application/json' };
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey;
  // A redirect is not followed: the API key is for this address and no other.
  const request: RequestInit = { method, headers, signal, redirect: 'manual' };
  if (body === undefined) return request;
  headers['content-type'] = 'application/json';
  return { ...request, body: JSON.stringify(body) };
}

function understood(call: Call, { answer: { status, headers }, text }: Received): object {
  const fields = parsed(text);
  if (status === 200 && typeof fields?.end_user_id === 'string') return fields;
  const retryAfterMs = retryAfterOf(headers);
  const wait = retryAfterMs === undefined ? {} : { retryAfterMs };
  if (status >= 400 && typeof fields?.error === 'string') {
    const problem = fields as Problem;
    const { error, title = '', detail = '' } = problem;
    throw errorOf({ status, error, title, detail, problem, ...wait, ...keyOf(call) });
  }
  throw new UnexpectedAnswer({
    status,
    error: 'UnexpectedAnswer',
    title: 'The answer is none of Scrip',
    detail: `${call.method} ${call.path} was answered ${status} with ${text.length} characters that Scrip would not have sent.`,
    ...wait,
    ...keyOf(call),
  });
}

function parsed(text: string): (Partial<Problem> & { end_user_id?: unknown }) | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}

/** Seconds, or a date (RFC 9110, section 10.2.3). What is neither says nothing. */
function retryAfterOf(headers: Headers): number | undefined {
  const header = headers.get('retry-after')?.trim() ?? '';
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const at = header === '' ? Number.NaN : Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now());
}

function late({ timeoutMs }: Connection, call: Call): TimedOut {
  const detail = `${call.method} ${call.path} had no whole answer within ${timeoutMs} ms.`;
  return new TimedOut({ status: 0, error: 'TimedOut', title: 'No answer came in time', detail, ...keyOf(call) });
}

function unreached(call: Call, cause: unknown): ConnectionFailed {
  const detail = `${call.method} ${call.path} had no answer, or one that broke off.`;
  const title = 'The connection failed';
  return new ConnectionFailed({ status: 0, error: 'ConnectionFailed', title, detail, cause, ...keyOf(call) });
}

function keyOf({ idempotencyKey }: Call): Pick<ErrorFacts, 'idempotencyKey'> {
  return idempotencyKey === undefined ? {} : { idempotencyKey };
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
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
