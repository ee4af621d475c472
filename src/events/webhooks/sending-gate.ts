// Limits how many webhooks this process sends at the same time. While the process is busy, also limits how many it
// sends per second, so that webhooks do not delay client requests. Accounts are admitted in turn, so that an account
// with many slow endpoints does not delay the others. The senders of one account are admitted in the order in which they
// call `enter`.

import { FairQueue } from '../../batching/fair-queue.ts';
import { LOAD } from '../../batching/load.ts';

export const REQUESTS_MAX = 500;
export const BUSY_REQUESTS_PER_SECOND = 100;
const STEPS_PER_SECOND = 10;

export class SendingGate {
  #inside = 0;
  readonly #waiting = new FairQueue<() => void>();
  #isBusy = false;
  /** How many more senders can enter in the current tenth of a second while the process is busy. */
  #left = 0;
  #timer: NodeJS.Timeout | undefined;
  readonly #load: Pick<typeof LOAD, 'isBusy'>;

  /** @param load replaced in tests */
  constructor(load: Pick<typeof LOAD, 'isBusy'> = LOAD) {
    this.#load = load;
  }

  start(): void {
    this.#timer = setInterval(() => this.#step(), 1_000 / STEPS_PER_SECOND).unref();
  }

  /** Admits all waiting senders. They then find that the process is stopping, and send nothing. */
  stop(): void {
    clearInterval(this.#timer);
    while (this.#waiting.length > 0) this.#admitNext();
  }

  enter(account: number): Promise<void> {
    return new Promise((admit) => {
      this.#waiting.push(account, admit);
      this.#admit();
    });
  }

  leave(): void {
    this.#inside -= 1;
    this.#admit();
  }

  #admit(): void {
    while (this.#waiting.length > 0 && this.#inside < REQUESTS_MAX && (!this.#isBusy || this.#left > 0))
      this.#admitNext();
  }

  #admitNext(): void {
    this.#inside += 1;
    this.#left -= 1;
    this.#waiting.take()?.();
  }

  #step(): void {
    this.#isBusy = this.#load.isBusy();
    this.#left = BUSY_REQUESTS_PER_SECOND / STEPS_PER_SECOND;
    this.#admit();
  }
}
