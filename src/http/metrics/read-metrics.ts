// Metrics that store no values: each scrape calls functions that return the current values.

import { Counter, Gauge, type Registry } from 'prom-client';

interface Labeled {
  readonly name: string;
  readonly help: string;
  readonly label: string;
}

export class ReadMetrics {
  readonly #registers: Registry[];

  constructor(registry: Registry) {
    this.#registers = [registry];
  }

  gauge(name: string, help: string, read: () => number): void {
    const metric: Gauge = new Gauge({ name, help, registers: this.#registers, collect: () => metric.set(read()) });
  }

  /** @param read returns the count since the process started */
  counter(name: string, help: string, read: () => number): void {
    new Counter({
      name,
      help,
      registers: this.#registers,
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  }

  /** @param read returns the counts since the process started, by label value */
  counters({ name, help, label }: Labeled, read: () => Readonly<Record<string, number>>): void {
    new Counter({
      name,
      help,
      labelNames: [label],
      registers: this.#registers,
      collect() {
        this.reset();
        for (const [value, count] of Object.entries(read())) this.inc({ [label]: value }, count);
      },
    });
  }
}
