// Forgets the answers to idempotency keys that are past their time, in the background and in small steps.

import type { Store } from '../store/store.ts';

const TICK_MS = 1_000;

/** Taken at one tick, so that where many expire at once, writers have the store to themselves for most of the time. */
const STEPS_MAX = 10;

export class AnswerSweep {
  readonly #store: Store;
  readonly #keptMs: number;
  readonly #onTrouble: (error: unknown) => void;
  #timer: NodeJS.Timeout | null = null;
  #round: Promise<void> | null = null;
  #isTroubled = false;

  /** @param onTrouble told of a round that fails when the one before did not */
  constructor(store: Store, keptMs: number, onTrouble: (error: unknown) => void) {
    this.#store = store;
    this.#keptMs = keptMs;
    this.#onTrouble = onTrouble;
  }

  start(): void {
    this.#timer = setInterval(() => void this.tick(), TICK_MS);
  }

  async stop(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    await this.#round;
  }

  /** A tick during a round joins it. */
  tick(): Promise<void> {
    this.#round ??= this.#forget()
      .then(
        () => {
          this.#isTroubled = false;
        },
        (error) => {
          if (!this.#isTroubled) this.#onTrouble(error);
          this.#isTroubled = true;
        },
      )
      .finally(() => {
        this.#round = null;
      });
    return this.#round;
  }

  async #forget(): Promise<void> {
    for (let step = 0; step < STEPS_MAX; step++) {
      if ((await this.#store.forgetAnswers(this.#keptMs)) === 0) return;
    }
  }
}
