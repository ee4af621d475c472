// All limits of the HTTP server. docs/operating/limits.md lists these and all other limits; a test compares it with the
// code.

export const BODY_BYTES_MAX = 64 * 1024;
export const HEADER_BYTES_MAX = 16 * 1024;
/**
 * Scrip checks this limit: Node would silently drop the headers beyond the limit, which could include an
 * `Idempotency-Key`.
 */
export const HEADERS_MAX = 100;
/** In characters. */
export const IDEMPOTENCY_KEY_MAX = 255;
/** A problem names at most this many fields. */
export const FIELD_ERRORS_MAX = 20;
/** The largest value of the setting `MAX_CONNECTIONS`. */
export const CONNECTIONS_MAX = 100_000;
/**
 * Connections beyond `MAX_CONNECTIONS` that get an error response. Further connections are closed without a response.
 */
export const SURPLUS_CONNECTIONS_MAX = 1_000;
/**
 * Two limits on the pipelined requests of a process that have not begun; each request takes about 2 kB of memory. From
 * `PIPELINED_READ_MAX` on, connections that pipelined stay paused; without this limit, garbage collection stopped the
 * process for 20 ms at a time. From `PIPELINED_MAX` on, all paused connections stay paused.
 */
export const PIPELINED_READ_MAX = 5_000;
export const PIPELINED_MAX = 50_000;
/**
 * An account may have as many requests in flight as the store completes in this time, and always enough to fill one
 * batch.
 */
export const WAIT_MS_MAX = 500;
/**
 * Smaller responses are sent whole and are not counted as unsent. Larger ones are sent in pieces of about this size.
 */
export const LARGE_ANSWER_BYTES = 64 * 1024;
/** Pages of lists that are read at the same time. On PostgreSQL, this leaves half of the read connections free. */
export const PAGES_AT_ONCE = 4;

/** The limits that a setting or a test can change. */
export const SERVER_LIMITS = {
  connectionsMax: 2_000,
  /**
   * Requests in flight of all accounts. A single active account may have half of them, which allows one request on each
   * connection.
   */
  inFlightMax: 4_096,
  /** Bytes of large responses that are not sent yet. A single active account may have half of them. */
  unsentBytesMax: 128 * 2 ** 20,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  /** Interval at which Node looks for requests that have not arrived in time. */
  connectionsCheckMs: 5_000,
  /**
   * Longer than the idle timeout of common proxies (60 s), so that the proxy closes an idle connection first. If Scrip
   * closed it first, a request that the proxy sends at this moment would fail.
   */
  keepAliveMs: 75_000,
  /** How long a client may stop reading while bytes of a response are waiting for it. */
  unreadAnswerMs: 30_000,
  /** How long a shutdown waits for the requests in flight. */
  drainMs: 10_000,
};

export type ServerLimits = Readonly<typeof SERVER_LIMITS>;
