// Repeats a step of a background job until `stop` is called, and counts the steps that fail because of the database.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { StoreFault } from '../../../../src/store/store-fault.ts';

export class RepeatedStep {
  #failed = 0;
  #isStopped = false;
  readonly #repeating: Promise<void>;

  /** @param step returns whether more work is left */
  constructor(step: () => Promise<boolean | null>) {
    this.#repeating = this.#repeat(step);
  }

  get failed(): number {
    return this.#failed;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#repeating;
  }

  async #repeat(step: () => Promise<boolean | null>): Promise<void> {
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
