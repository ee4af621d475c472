// Sends spans to an OpenTelemetry collector, as OTLP in JSON over HTTP, a bounded number at a time. Nobody waits for it:
// what does not fit is dropped and counted, and a collector that is away costs its spans and nothing else.
// https://opentelemetry.io/docs/specs/otlp/

import type { TraceContext } from './trace-context.ts';

export type Attributes = Readonly<Record<string, string | number>>;

export interface Span extends TraceContext {
  readonly parentSpanId: string | null;
  readonly name: string;
  readonly kind: 'internal' | 'server';
  /** Milliseconds since 1970, with fractions. */
  readonly start: number;
  readonly end: number;
  readonly attributes: Attributes;
  readonly isError: boolean;
  readonly links: readonly TraceContext[];
}

export interface ExporterSettings {
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  /** What is said of this process with all spans. */
  readonly resource: Attributes;
}

/** As the specification has them. */
const QUEUE_SPANS_MAX = 2_048;
const BATCH_SPANS_MAX = 512;
const DELAY_MS = 5_000;
const TIMEOUT_MS = 10_000;

const KINDS = { internal: 1, server: 2 } as const;
const ERROR = 2;

export class SpanExporter {
  dropped = 0;
  readonly #settings: ExporterSettings;
  readonly #onTrouble: (reason: string) => void;
  readonly #timer: NodeJS.Timeout;
  #waiting: Span[] = [];
  #sending: Promise<void> | null = null;
  #isTroubled = false;

  /** @param onTrouble told when spans cannot be sent and could before */
  constructor(settings: ExporterSettings, onTrouble: (reason: string) => void) {
    this.#settings = settings;
    this.#onTrouble = onTrouble;
    this.#timer = setInterval(() => void this.flush(), DELAY_MS).unref();
  }

  add(span: Span): void {
    if (this.#waiting.length >= QUEUE_SPANS_MAX) {
      this.dropped += 1;
      return;
    }
    this.#waiting.push(span);
    if (this.#waiting.length === BATCH_SPANS_MAX) void this.flush();
  }

  /** Sends all that waits, one batch after another. */
  flush(): Promise<void> {
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = null;
    });
    return this.#sending;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.flush();
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, BATCH_SPANS_MAX);
      this.#waiting = this.#waiting.slice(BATCH_SPANS_MAX);
      const trouble = await this.#send(batch);
      if (trouble !== null) this.dropped += batch.length;
      if (trouble !== null && !this.#isTroubled) this.#onTrouble(trouble);
      this.#isTroubled = trouble !== null;
    }
  }

  /** @returns why it could not be sent, else null */
  async #send(batch: readonly Span[]): Promise<string | null> {
    const { endpoint, headers, resource } = this.#settings;
    try {
      const response = await fetch(endpoint, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(documentOf(batch, resource)),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await response.arrayBuffer();
      return response.ok ? null : `the collector answered ${response.status}`;
    } catch (error) {
      const { message, cause } = error as Error;
      return cause instanceof Error ? cause.message : message;
    }
  }
}

function documentOf(spans: readonly Span[], resource: Attributes): unknown {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf(resource) },
        scopeSpans: [{ scope: { name: 'scrip' }, spans: spans.map(spanOf) }],
      },
    ],
  };
}

function spanOf(span: Span): unknown {
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
    ...(isError ? { status: { code: ERROR } } : {}),
    ...(links.length > 0 ? { links } : {}),
  };
}

/** 64-bit integers are text in JSON. Microseconds are as exact as the clock is. */
function nanosecondsOf(milliseconds: number): string {
  return String(BigInt(Math.round(milliseconds * 1_000)) * 1_000n);
}

function attributesOf(attributes: Attributes): unknown[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }));
}
