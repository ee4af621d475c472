// A worker thread that runs seeds for `simulate.ts` and for `SeedThread`.

import { parentPort } from 'node:worker_threads';
import type { Control } from './controls.ts';
import { type Caught, SeedRunner } from './seed-runner.ts';
import type { SeedResult } from './world.ts';

export type Task =
  | { readonly kind: 'seeds'; readonly seeds: readonly number[]; readonly operations: number }
  | { readonly kind: 'control'; readonly control: Control; readonly from: number };

export type Report =
  | { readonly kind: 'seeds'; readonly results: readonly SeedResult[]; readonly inFlight: number }
  | { readonly kind: 'control'; readonly caught: Caught };

const runner = await SeedRunner.build();
parentPort?.on('message', async (task: Task) => {
  parentPort?.postMessage(await reportOn(task));
});

async function reportOn(task: Task): Promise<Report> {
  if (task.kind === 'control') return { kind: 'control', caught: await runner.catch(task.control, task.from) };
  const results: SeedResult[] = [];
  for (const seed of task.seeds) {
    results.push(await runner.run({ seed, operations: task.operations, control: null, onTrace: null }));
  }
  return { kind: 'seeds', results, inFlight: await runner.requestsInFlight() };
}
