// Spans of requests and batches: which of them are recorded, to which trace they belong, and what they say. A span says
// nothing that a client sent but the id of its trace.

import { type ExporterSettings, SpanExporter } from './span-exporter.ts';
import { newSpanId, newTraceId, parentOf, type TraceContext } from './trace-context.ts';

export interface TracingSettings extends ExporterSettings {
  /** Of the traces that begin here, which share is recorded: 0 to 1. */
  readonly ratio: number;
  /** Whether a caller that has begun a trace decides whether it is recorded. */
  readonly followsParent: boolean;
}

/** A request whose span is recorded. */
export interface RequestTrace extends TraceContext {
  readonly parentSpanId: string | null;
  /** By `performance.now`. */
  readonly startedMs: number;
}

export interface TracedBatch {
  readonly startedMs: number;
  readonly endedMs: number;
  readonly commands: number;
  /** The code of the fault that befell it. */
  readonly fault: string | null;
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']);
const SERVER_ERROR = 500;

export class Tracer {
  readonly #exporter: SpanExporter;
  readonly #settings: TracingSettings;
  /** The batch that is being answered. */
  #batch: TraceContext | null = null;

  /** @param onTrouble told when spans cannot be sent and could before */
  constructor(settings: TracingSettings, onTrouble: (reason: string) => void) {
    this.#settings = settings;
    this.#exporter = new SpanExporter(settings, onTrouble);
  }

  /** @returns null when it is not to be recorded */
  beginRequest(traceparent: string | string[] | undefined): RequestTrace | null {
    const parent = parentOf(traceparent);
    const isRecorded = parent !== null && this.#settings.followsParent ? parent.isSampled : this.#draw();
    if (!isRecorded) return null;
    const traceId = parent?.traceId ?? newTraceId();
    return { traceId, spanId: newSpanId(), parentSpanId: parent?.spanId ?? null, startedMs: performance.now() };
  }

  /** @param route its pattern; null for what no route takes */
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

  /** Until the next call, what ends was in this batch; null when all of it is answered. */
  answering(batch: TracedBatch | null): void {
    this.#batch = null;
    if (batch === null || !this.#draw()) return;
    const context = { traceId: newTraceId(), spanId: newSpanId() };
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

  /** Sends what is waiting. */
  stop(): Promise<void> {
    return this.#exporter.stop();
  }

  #draw(): boolean {
    return Math.random() < this.#settings.ratio;
  }
}
