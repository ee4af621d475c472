// Runs seeds one after another, all with the same routes.

import type { Control } from './controls.ts';
import { Routes } from './process.ts';
import { type SeedOptions, type SeedResult, World } from './world.ts';

export const CONTROL_SEEDS_MAX = 100;
export const CONTROL_OPERATIONS = 300;

export interface Caught {
  readonly control: Control;
  readonly result: SeedResult | null;
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
    // Collecting stack traces would be slow, because the simulation creates thousands of errors a second.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = options.onTrace === null ? 0 : stackTraceLimit;
    try {
      return await new World(this.#routes, options).run();
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
  }

  async catch(control: Control, from: number): Promise<Caught> {
    for (let seeds = 1; seeds <= CONTROL_SEEDS_MAX; seeds++) {
      const seed = from + seeds - 1;
      const result = await this.run({ seed, operations: CONTROL_OPERATIONS, control, onTrace: null });
      // An exception in the simulation or in the broken store does not show that the checks work.
      if (result.violation !== null && !/^(?:the simulation failed|unhandled rejection)/.test(result.violation))
        return { control, result, seeds };
    }
    return { control, result: null, seeds: CONTROL_SEEDS_MAX };
  }

  requestsInFlight(): Promise<number> {
    return this.#routes.requestsInFlight();
  }

  async close(): Promise<void> {
    await this.#routes.close();
  }
}
