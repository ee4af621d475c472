// W3C Trace Context: the `traceparent` header, and the IDs of traces and spans. https://www.w3.org/TR/trace-context/

import { randomBytes } from 'node:crypto';

export interface TraceContext {
  /** 32 lowercase hexadecimal digits. */
  readonly traceId: string;
  /** 16 lowercase hexadecimal digits. */
  readonly spanId: string;
}

export interface ParentContext extends TraceContext {
  readonly isSampled: boolean;
}

const TRACE_BYTES = 16;
const SPAN_BYTES = 8;
const SAMPLED_FLAG = 1;
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/**
 * Returns null if the `traceparent` header is missing, duplicated or malformed; the request then starts a new trace.
 */
export function parentOf(header: string | string[] | undefined): ParentContext | null {
  const match = typeof header === 'string' ? TRACEPARENT.exec(header) : null;
  const [, version, traceId = '', spanId = '', flags = '', extra] = match ?? [];
  // Only versions after 00 can have fields after the flags. Version ff is invalid.
  if (version === undefined || version === 'ff' || (version === '00' && extra !== undefined)) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED_FLAG) === SAMPLED_FLAG };
}

/** Returns the context of a new span in the given trace, or by default in a new trace. */
export function newContext(traceId = randomBytes(TRACE_BYTES).toString('hex')): TraceContext {
  return { traceId, spanId: randomBytes(SPAN_BYTES).toString('hex') };
}
