// Limits of the HTTP server. docs/operating/limits.md lists all limits of Scrip.

export const BODY_BYTES_MAX = 64 * 1024;
export const HEADER_BYTES_MAX = 16 * 1024;
/**
 * Scrip refuses requests with more headers than this. If Node.js enforced the limit, it would silently drop further
 * headers, such as an `Idempotency-Key`.
 */
export const HEADERS_MAX = 100;
/** In characters. */
export const IDEMPOTENCY_KEY_MAX = 255;
export const FIELD_ERRORS_MAX = 20;
/** The largest value of the `MAX_CONNECTIONS` setting. */
export const CONNECTIONS_MAX = 100_000;
/**
 * Maximum number of connections beyond `MAX_CONNECTIONS` that get an error response. Node.js closes further connections
 * without a response.
 */
export const SURPLUS_CONNECTIONS_MAX = 1_000;
/**
 * Limits on the pipelined requests that are queued in one process. Each queued request takes about 2 kB of memory.
 *
 * A connection that sends pipelined requests is paused until Scrip has begun to process all of them. While
 * `PIPELINED_READ_MAX` or more requests are queued, Scrip does not resume such connections. Without this limit, garbage
 * collection stopped the process for 20 ms at a time. While `PIPELINED_MAX` or more requests are queued, Scrip also
 * does not resume connections that were paused for another reason.
 */
export const PIPELINED_READ_MAX = 5_000;
export const PIPELINED_MAX = 50_000;
/**
 * An account's requests in flight are limited to the number of commands that the store completes in this time, or to two
 * full batches of commands if that is more.
 */
export const WAIT_MS_MAX = 500;
/**
 * Responses of at least this size are streamed, and count toward `unsentBytesMax` until they are sent. Smaller
 * responses are sent whole and do not count.
 */
export const LARGE_ANSWER_BYTES = 64 * 1024;
/**
 * The maximum number of list pages that are read at the same time. On PostgreSQL, this limit leaves half of the read
 * connections free.
 */
export const PAGES_AT_ONCE = 4;

/** Limits that settings or tests can change. */
export const SERVER_LIMITS = {
  connectionsMax: 2_000,
  /** The maximum number of requests in flight, for all accounts together. */
  inFlightMax: 4_096,
  /** The maximum number of bytes in large responses that are not sent yet. */
  unsentBytesMax: 128 * 2 ** 20,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  /** How often Node.js checks for requests that have not arrived in time. */
  connectionsCheckMs: 5_000,
  /**
   * Longer than the idle timeout of common proxies (60 s), so that the proxy closes an idle connection first. If Scrip
   * closed the connection just as the proxy sent a request, the request would fail.
   */
  keepAliveMs: 75_000,
  /** Scrip disconnects a client that accepts no bytes of its response for this long. */
  unreadAnswerMs: 30_000,
  drainMs: 10_000,
};

export type ServerLimits = Readonly<typeof SERVER_LIMITS>;
