// Which trace a request belongs to: the header `traceparent` of W3C Trace Context, and the ids of spans.
// https://www.w3.org/TR/trace-context/

import { randomBytes } from 'node:crypto';

export interface TraceContext {
  /** 32 lower-case hexadecimal digits. */
  readonly traceId: string;
  /** 16 of them. */
  readonly spanId: string;
}

export interface ParentContext extends TraceContext {
  readonly isSampled: boolean;
}

const TRACE_BYTES = 16;
const SPAN_BYTES = 8;
const SAMPLED = 1;
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Null for a header that is missing, there twice, or not as the standard has it: then a new trace begins. */
export function parentOf(header: string | string[] | undefined): ParentContext | null {
  const match = typeof header === 'string' ? TRACEPARENT.exec(header) : null;
  if (match === null) return null;
  const [, version, traceId, spanId, flags, more] = match as unknown as [
    string,
    string,
    string,
    string,
    string,
    string?,
  ];
  // A later version may say more behind the flags; this one says nothing there, and ff is none.
  if (version === 'ff' || (version === '00' && more !== undefined)) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED };
}

export function newTraceId(): string {
  return randomBytes(TRACE_BYTES).toString('hex');
}

export function newSpanId(): string {
  return randomBytes(SPAN_BYTES).toString('hex');
}
