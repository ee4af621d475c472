// Every bound of the HTTP server. docs/operating/limits.md has the table of these and of all other limits, and a test
// holds it to them.

export const BODY_BYTES_MAX = 64 * 1024;
export const HEADER_BYTES_MAX = 16 * 1024;
/** Node drops headers beyond its own bound without an error, an `Idempotency-Key` among them. */
export const HEADERS_MAX = 100;
/** In characters. */
export const IDEMPOTENCY_KEY_MAX = 255;
/** A problem names at most this many fields. */
export const FIELD_ERRORS_MAX = 20;
/** The most that the setting `MAX_CONNECTIONS` accepts. */
export const CONNECTIONS_MAX = 100_000;
/** Connections beyond `MAX_CONNECTIONS` that are accepted to be refused with an answer; those beyond these are closed. */
export const SURPLUS_CONNECTIONS_MAX = 1_000;
/**
 * Requests in the process that were pipelined and are not begun, some 2 kB each. From the first number on, connections that
 * have pipelined are not read: without it the garbage collector took 20 ms at a time. From the second on, no paused
 * connection is read.
 */
export const PIPELINED_READ_MAX = 5_000;
export const PIPELINED_MAX = 50_000;
/** An account has no more requests in flight than the store does in this time, or in one batch. */
export const WAIT_MS_MAX = 500;
/** Answers of fewer bytes are small: sent whole, and not counted. Larger ones are sent in pieces of about this size. */
export const LARGE_ANSWER_BYTES = 64 * 1024;
/** Pages of lists that are read at the same time. On PostgreSQL half of the connections that read stay free. */
export const PAGES_AT_ONCE = 4;

/** The bounds that a setting or a test changes. */
export const SERVER_LIMITS = {
  connectionsMax: 2_000,
  /** An account may have as many requests in flight as it leaves free: one for each connection if it is alone. */
  inFlightMax: 4_096,
  /** Of large answers. An account may have as much as it leaves free. */
  unsentBytesMax: 128 * 2 ** 20,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  /** How often requests that have not arrived in time are looked for. */
  connectionsCheckMs: 5_000,
  /** Longer than the idle time of common proxies (60 s): a proxy then closes first, and never with a request on its way. */
  keepAliveMs: 75_000,
  /** How long a client may take nothing of an answer that is ready for it. */
  unreadAnswerMs: 30_000,
  /** How long a stop waits for the requests in flight. */
  drainMs: 10_000,
};

export type ServerLimits = Readonly<typeof SERVER_LIMITS>;
