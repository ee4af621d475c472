// What the server bounds of a request and of a connection, whoever sends it. docs/operating/limits.md has the table of
// these and of all other limits, and a test holds it to them.

export const BODY_BYTES_MAX = 64 * 1024;
export const HEADER_BYTES_MAX = 16 * 1024;
/** Node would drop those beyond its own bound without a word, an `Idempotency-Key` among them. */
export const HEADERS_MAX = 100;
/** A problem names at most this many fields. */
export const FIELD_ERRORS_MAX = 20;
export const CONNECTIONS_MAX = 20_000;

export const HEADERS_TIMEOUT_MS = 10_000;
export const REQUEST_TIMEOUT_MS = 30_000;
/** How often it is looked at which requests have not arrived in time. */
export const CONNECTIONS_CHECK_MS = 5_000;
/** Longer than the idle time of common proxies (60 s), so that it is they who close a connection, never with a request on its way. */
export const KEEP_ALIVE_MS = 75_000;
/** How long a client may take nothing of an answer that is ready for it. */
export const UNREAD_ANSWER_MS = 30_000;
export const DRAIN_MS = 10_000;

/** Those that a test would not wait for. */
export interface ServerLimits {
  readonly connectionsMax: number;
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly connectionsCheckMs: number;
  readonly keepAliveMs: number;
  readonly unreadAnswerMs: number;
  readonly drainMs: number;
}

export const SERVER_LIMITS: ServerLimits = {
  connectionsMax: CONNECTIONS_MAX,
  headersTimeoutMs: HEADERS_TIMEOUT_MS,
  requestTimeoutMs: REQUEST_TIMEOUT_MS,
  connectionsCheckMs: CONNECTIONS_CHECK_MS,
  keepAliveMs: KEEP_ALIVE_MS,
  unreadAnswerMs: UNREAD_ANSWER_MS,
  drainMs: DRAIN_MS,
};
