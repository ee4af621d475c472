// Creates spans for a sample of the requests and batches. Spans contain no text from clients, except the IDs in the
// `traceparent` header.

import { type ExporterSettings, SpanExporter } from './span-exporter.ts';
import { newContext, parentOf, type TraceContext } from './trace-context.ts';

export interface TracingSettings extends ExporterSettings {
  /** The fraction of traces to record, from 0 to 1. */
  readonly ratio: number;
  /**
   * If true, the `traceparent` header of a request decides whether the request is recorded. Without the header, `ratio`
   * applies.
   */
  readonly followsParent: boolean;
}

export interface RequestTrace extends TraceContext {
  readonly parentSpanId: string | null;
  /** When the request arrived, as a time from `performance.now`. */
  readonly startedMs: number;
}

/** A finished batch, with times from `performance.now`. */
export interface TracedBatch {
  readonly startedMs: number;
  readonly endedMs: number;
  readonly commands: number;
  /** The code of the store fault; null if the batch succeeded. */
  readonly fault: string | null;
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']);
const SERVER_ERROR = 500;
/** The digits of a trace ID that are random in every W3C trace context, and the number of their values. */
const RANDOM_DIGITS = 14;
const IDS = 16 ** RANDOM_DIGITS;

export class Tracer {
  readonly #exporter: SpanExporter;
  readonly #settings: TracingSettings;
  /** The span of the batch whose commands Scrip is answering. Requests that end in the meantime link to this span. */
  #batch: TraceContext | null = null;

  /**
   * @param onFailure called with the reason when a batch of spans cannot be sent, unless the previous one failed too
   */
  constructor(settings: TracingSettings, onFailure: (reason: string) => void) {
    this.#settings = settings;
    this.#exporter = new SpanExporter(settings, onFailure);
  }

  /** @returns null if the request is not sampled */
  beginRequest(traceparent: string | string[] | undefined): RequestTrace | null {
    const parent = parentOf(traceparent);
    const isRecorded =
      parent !== null && this.#settings.followsParent ? parent.isSampled : this.#isSampled(parent?.traceId);
    if (!isRecorded) return null;
    return { ...newContext(parent?.traceId), parentSpanId: parent?.spanId ?? null, startedMs: performance.now() };
  }

  /** @param route the path pattern of the route; null if no route matched */
  endRequest(
    { startedMs, ...context }: RequestTrace,
    { method, route, status, requestId }: { method: string; route: string | null; status: number; requestId: string },
  ): void {
    const known = METHODS.has(method) ? method : '_OTHER';
    this.#exporter.add({
      ...context,
      name: route === null ? known : `${known} ${route}`,
      kind: 'server',
      start: performance.timeOrigin + startedMs,
      end: performance.timeOrigin + performance.now(),
      attributes: {
        'http.request.method': known,
        ...(route === null ? {} : { 'http.route': route }),
        'http.response.status_code': status,
        'scrip.request_id': requestId,
      },
      isError: status >= SERVER_ERROR,
      links: this.#batch === null ? [] : [this.#batch],
    });
  }

  /**
   * Call this with a batch before Scrip answers the commands of the batch, and with null afterwards. If the batch is
   * sampled, the spans of requests that end between the two calls link to the span of the batch.
   */
  answering(batch: TracedBatch | null): void {
    this.#batch = null;
    if (batch === null || !this.#isSampled()) return;
    const context = newContext();
    const { startedMs, endedMs, commands, fault } = batch;
    this.#exporter.add({
      ...context,
      parentSpanId: null,
      name: 'batch',
      kind: 'internal',
      start: performance.timeOrigin + startedMs,
      end: performance.timeOrigin + endedMs,
      attributes: { 'scrip.batch.commands': commands, ...(fault === null ? {} : { 'error.type': fault }) },
      isError: fault !== null,
      links: [],
    });
    this.#batch = context;
  }

  stop(): Promise<void> {
    return this.#exporter.stop();
  }

  /** Decides by the random digits of the trace ID, so that all services with the same ratio record the same traces. */
  #isSampled(traceId?: string): boolean {
    const share = traceId === undefined ? Math.random() : Number.parseInt(traceId.slice(-RANDOM_DIGITS), 16) / IDS;
    return share < this.#settings.ratio;
  }
}
