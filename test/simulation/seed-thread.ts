// Runs seeds in a worker thread, where they are faster: in the main thread, the test runner tracks every promise.

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Control } from './controls.ts';
import type { Caught } from './seed-runner.ts';
import type { Report, Task } from './seed-worker.ts';

type Ran = Extract<Report, { kind: 'seeds' }>;

export class SeedThread {
  readonly #worker = new Worker(new URL('./seed-worker.ts', import.meta.url));

  async run(seeds: readonly number[], operations: number): Promise<Ran> {
    return (await this.#report({ kind: 'seeds', seeds, operations })) as Ran;
  }

  async catch(control: Control, from: number): Promise<Caught> {
    const report = await this.#report({ kind: 'control', control, from });
    return (report as Exclude<Report, Ran>).caught;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  async #report(task: Task): Promise<Report> {
    this.#worker.postMessage(task);
    const [report] = (await once(this.#worker, 'message')) as [Report];
    return report;
  }
}
