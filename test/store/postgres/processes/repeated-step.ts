// Repeats a step of a background job, such as counting totals, until `stop` is called. The database may fail at any
// time.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { StoreFault } from '../../../../src/store/store-fault.ts';

export class RepeatedStep {
  #failed = 0;
  #isStopped = false;
  readonly #repeating: Promise<void>;

  /** @param step returns whether it has more to do */
  constructor(step: () => Promise<boolean>) {
    this.#repeating = this.#repeat(step);
  }

  /** The number of steps that failed. */
  get failed(): number {
    return this.#failed;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#repeating;
  }

  async #repeat(step: () => Promise<boolean>): Promise<void> {
    while (!this.#isStopped) {
      const isMore = await step().catch((error) => {
        assert(error instanceof StoreFault && error.code === 'StoreUnavailable', String(error));
        this.#failed += 1;
        return false;
      });
      if (!isMore) await sleep(1);
    }
  }
}
