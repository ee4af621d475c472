// Measures whether this process or its machine is busy. Background work then slows down in favor of requests.

import { cpus } from 'node:os';
import { performance } from 'node:perf_hooks';

/** At higher loads, requests already wait for each other. */
const BUSY = 0.65;
const SAMPLE_MS = 1_000;

/** In milliseconds, summed over all processors. */
interface ProcessorTimes {
  readonly idle: number;
  readonly total: number;
}

/** Measures the load: in the last second, the utilization of the event loop or of the processors, if that is higher. */
export class LoadMeter {
  #sampledAtMs = performance.now();
  #loop = performance.eventLoopUtilization();
  #processors = processorTimes();
  #load = 0;

  isBusy(): boolean {
    if (performance.now() - this.#sampledAtMs >= SAMPLE_MS) this.#sample();
    return this.#load > BUSY;
  }

  #sample(): void {
    const { utilization } = performance.eventLoopUtilization(this.#loop);
    const now = processorTimes();
    const total = now.total - this.#processors.total;
    const busy = total === 0 ? 0 : 1 - (now.idle - this.#processors.idle) / total;
    this.#load = Math.max(utilization, busy);
    this.#loop = performance.eventLoopUtilization();
    this.#processors = now;
    this.#sampledAtMs = performance.now();
  }
}

/** The load of this process. */
export const LOAD = new LoadMeter();

function processorTimes(): ProcessorTimes {
  let idle = 0;
  let total = 0;
  for (const { times } of cpus()) {
    idle += times.idle;
    total += times.user + times.nice + times.sys + times.irq + times.idle;
  }
  return { idle, total };
}
