// Runs seeds one after the other, in places for processes that are built once.

import type { Control } from './controls.ts';
import { Slot } from './process.ts';
import { type SeedOptions, type SeedResult, SLOTS_MAX, World } from './world.ts';

/** Within how many seeds a store that is broken on purpose has to be caught, and how long they are. */
export const CONTROL_SEEDS_MAX = 100;
export const CONTROL_OPERATIONS = 300;

export interface Caught {
  readonly control: Control;
  /** Null when it got through. */
  readonly result: SeedResult | null;
  /** How many seeds it took. */
  readonly seeds: number;
}

export class SeedRunner {
  readonly #slots: readonly Slot[];

  static async build(): Promise<SeedRunner> {
    const slots: Slot[] = [];
    for (let index = 0; index < SLOTS_MAX; index++) slots.push(await Slot.build());
    return new SeedRunner(slots);
  }

  private constructor(slots: readonly Slot[]) {
    this.#slots = slots;
  }

  async run(options: SeedOptions): Promise<SeedResult> {
    // Thousands of faults a second are made, and nobody reads where.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = options.onTrace === null ? 0 : stackTraceLimit;
    try {
      return await new World(this.#slots, options).run();
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

  /** Requests that no server has done with: none, once a seed is over. */
  async requestsInFlight(): Promise<number> {
    let sum = 0;
    for (const slot of this.#slots) sum += await slot.requestsInFlight();
    return sum;
  }

  async close(): Promise<void> {
    for (const slot of this.#slots) await slot.close();
  }
}
