// Runs seeds one after the other, on routes that are built once.

import type { Control } from './controls.ts';
import { Routes } from './process.ts';
import { type SeedOptions, type SeedResult, World } from './world.ts';

/** Within how many seeds a broken store must be caught, and how long they are. */
export const CONTROL_SEEDS_MAX = 100;
export const CONTROL_OPERATIONS = 300;

export interface Caught {
  readonly control: Control;
  /** Null if it was not caught. */
  readonly result: SeedResult | null;
  /** How many seeds it took. */
  readonly seeds: number;
}

export class SeedRunner {
  readonly #routes: Routes;

  static async build(): Promise<SeedRunner> {
    return new SeedRunner(await Routes.build());
  }

  private constructor(routes: Routes) {
    this.#routes = routes;
  }

  async run(options: SeedOptions): Promise<SeedResult> {
    // Thousands of errors a second are created, and their stacks are not needed.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = options.onTrace === null ? 0 : stackTraceLimit;
    try {
      return await new World(this.#routes, options).run();
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
  }

  /** Runs seeds from `from` on until one fails. */
  async catch(control: Control, from: number): Promise<Caught> {
    for (let seeds = 1; seeds <= CONTROL_SEEDS_MAX; seeds++) {
      const seed = from + seeds - 1;
      const result = await this.run({ seed, operations: CONTROL_OPERATIONS, control, onTrace: null });
      if (result.violation !== null) return { control, result, seeds };
    }
    return { control, result: null, seeds: CONTROL_SEEDS_MAX };
  }

  /** Requests that the server has not finished: none after a seed. */
  requestsInFlight(): Promise<number> {
    return this.#routes.requestsInFlight();
  }

  async close(): Promise<void> {
    await this.#routes.close();
  }
}
