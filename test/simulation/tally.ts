// Adds up the simulation results of many seeds.

import { createHash } from 'node:crypto';
import type { SeedResult } from './world.ts';

export class Tally {
  seeds = 0;
  operations = 0;
  requests = 0;
  days = 0;
  readonly faults = new Map<string, number>();
  readonly outcomes = new Map<string, number>();
  readonly failures: SeedResult[] = [];
  readonly #hashes: [seed: number, hash: string][] = [];

  add(result: SeedResult): void {
    this.seeds += 1;
    this.operations += result.operations;
    this.requests += result.requests;
    this.days += result.days;
    for (const [fault, count] of result.faults) increase(this.faults, fault, count);
    for (const [outcome, count] of result.outcomes) increase(this.outcomes, outcome, count);
    this.#hashes.push([result.seed, result.traceHash]);
    if (result.violation !== null) this.failures.push(result);
  }

  get faultCount(): number {
    return [...this.faults.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Combines the hashes in the order of the seeds, because threads finish the seeds in any order. */
  get traceHash(): string {
    const hash = createHash('sha256');
    for (const [, one] of this.#hashes.toSorted(([a], [b]) => a - b)) hash.update(one);
    return hash.digest('hex').slice(0, 16);
  }
}

function increase(counts: Map<string, number>, name: string, by: number): void {
  counts.set(name, (counts.get(name) ?? 0) + by);
}

export function commandFor({
  seed,
  operations,
  control,
}: {
  seed: number;
  operations: number;
  control: string | null;
}) {
  return `npm run simulate -- --seed ${seed} --operations ${operations}${control === null ? '' : ` --control '${control}'`}`;
}

export function failureText(failure: SeedResult, repeat: string): string {
  const tail = failure.traceTail.slice(-TAIL_SHOWN).map((line) => `    ${line}`);
  return [`seed ${failure.seed}: ${failure.violation}`, `  repeat it with: ${repeat}`, ...tail].join('\n');
}

const TAIL_SHOWN = 25;
