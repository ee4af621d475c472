// Sends spans to an OpenTelemetry collector as OTLP/JSON over HTTP, in the background. If the queue is full, or the
// collector does not accept a batch, the exporter drops the spans. Requests never wait for the exporter. See
// https://opentelemetry.io/docs/specs/otlp/.

import type { TraceContext } from './trace-context.ts';

type Attributes = Readonly<Record<string, string | number>>;

export interface Span extends TraceContext {
  readonly parentSpanId: string | null;
  readonly name: string;
  readonly kind: 'internal' | 'server';
  /** `start` and `end` are milliseconds since 1970, with fractions. */
  readonly start: number;
  readonly end: number;
  readonly attributes: Attributes;
  readonly isError: boolean;
  readonly links: readonly TraceContext[];
}

export interface ExporterSettings {
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Attributes of this process, sent with every batch of spans. */
  readonly resource: Attributes;
}

/** The defaults of the batch span processor and the OTLP exporter in the OpenTelemetry specification. */
const QUEUE_SPANS_MAX = 2_048;
const BATCH_SPANS_MAX = 512;
const FLUSH_INTERVAL_MS = 5_000;
const TIMEOUT_MS = 10_000;
/** When Scrip stops, the queued spans are sent for at most this long, so that a slow collector does not delay the exit. */
const STOP_MS = 5_000;

const KINDS = { internal: 1, server: 2 } as const;
const STATUS_ERROR = 2;

export class SpanExporter {
  readonly #settings: ExporterSettings;
  readonly #onFailure: (reason: string) => void;
  readonly #timer: NodeJS.Timeout;
  #queue: Span[] = [];
  #sending: Promise<void> | null = null;
  #isFailing = false;
  readonly #stopping = new AbortController();

  /** @param onFailure called with the reason when a batch cannot be sent, unless the previous batch failed too */
  constructor(settings: ExporterSettings, onFailure: (reason: string) => void) {
    this.#settings = settings;
    this.#onFailure = onFailure;
    this.#timer = setInterval(() => void this.flush(), FLUSH_INTERVAL_MS).unref();
  }

  add(span: Span): void {
    if (this.#queue.length >= QUEUE_SPANS_MAX) return;
    this.#queue.push(span);
    if (this.#queue.length === BATCH_SPANS_MAX) void this.flush();
  }

  flush(): Promise<void> {
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = null;
    });
    return this.#sending;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    const late = new Error('the collector did not accept all spans before Scrip stopped');
    const deadline = setTimeout(() => this.#stopping.abort(late), STOP_MS);
    await this.flush();
    clearTimeout(deadline);
  }

  async #sendAll(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.slice(0, BATCH_SPANS_MAX);
      this.#queue = this.#queue.slice(BATCH_SPANS_MAX);
      const failure = await this.#send(batch);
      if (failure !== null && !this.#isFailing) this.#onFailure(failure);
      this.#isFailing = failure !== null;
    }
  }

  /** @returns why sending failed; null if it succeeded */
  async #send(batch: readonly Span[]): Promise<string | null> {
    const { endpoint, headers, resource } = this.#settings;
    try {
      const response = await fetch(endpoint, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(requestBody(batch, resource)),
        signal: AbortSignal.any([AbortSignal.timeout(TIMEOUT_MS), this.#stopping.signal]),
      });
      await response.arrayBuffer();
      return response.ok ? null : `the collector returned status ${response.status}`;
    } catch (error) {
      const { message, cause } = error as Error;
      return cause instanceof Error ? cause.message : message;
    }
  }
}

function requestBody(spans: readonly Span[], resource: Attributes): unknown {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf(resource) },
        scopeSpans: [{ scope: { name: 'scrip' }, spans: spans.map(otlpSpan) }],
      },
    ],
  };
}

function otlpSpan(span: Span): unknown {
  const { traceId, spanId, parentSpanId, name, kind, start, end, attributes, isError, links } = span;
  return {
    traceId,
    spanId,
    ...(parentSpanId === null ? {} : { parentSpanId }),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: nanosecondsOf(start),
    endTimeUnixNano: nanosecondsOf(end),
    attributes: attributesOf(attributes),
    ...(isError ? { status: { code: STATUS_ERROR } } : {}),
    ...(links.length > 0 ? { links } : {}),
  };
}

/**
 * Returns a string, because OTLP/JSON encodes 64-bit integers as strings. Rounds to microseconds, because a
 * floating-point time in milliseconds since 1970 is not precise to the nanosecond.
 */
function nanosecondsOf(milliseconds: number): string {
  return String(BigInt(Math.round(milliseconds * 1_000)) * 1_000n);
}

function attributesOf(attributes: Attributes): unknown[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }));
}
