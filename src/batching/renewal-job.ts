// Stores the renewals that are due, in the background: finds end users and submits a `settle` command for each, which group
// commit writes beside requests and in larger batches while there are none. Nothing depends on when it runs: reads and
// writes settle an end user first.

import { type EndUserKey, endUserText } from '../ledger/command.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import { BATCH_COMMANDS_MAX, type GroupCommit } from './group-commit.ts';
import { IntervalJob } from './interval-job.ts';

/** End users that are submitted together. The next ones are looked up meanwhile, so the store never waits for that. */
const END_USERS_MAX = BATCH_COMMANDS_MAX;

interface Submitted {
  readonly endUsers: ReadonlySet<string>;
  readonly written: Promise<unknown>;
}

const NONE: Submitted = { endUsers: new Set(), written: Promise.resolve() };

export class RenewalJob {
  /** How many end users this job has settled. */
  settled = 0;
  /** How many due end users the latest look-up found, up to a bound. */
  due = 0;
  /** By `performance.now`. */
  #caughtUpAtMs = performance.now();
  readonly #store: LedgerStore;
  readonly #commit: GroupCommit;
  /** Compares clocks: a timer set for the next renewal would fire at once beyond 2^31 ms, and miss a clock that jumps. */
  readonly #rounds: IntervalJob;

  /** @param onTrouble called for a round that fails if the one before did not */
  constructor(store: LedgerStore, commit: GroupCommit, onTrouble: (error: unknown) => void) {
    this.#store = store;
    this.#commit = commit;
    this.#rounds = new IntervalJob((stopping) => this.#settleAll(stopping), onTrouble);
  }

  /** Milliseconds since nothing was due. Nothing has been due for longer, but for a tick. */
  lateMs(): number {
    return performance.now() - this.#caughtUpAtMs;
  }

  start(): void {
    this.#rounds.start();
  }

  stop(): Promise<void> {
    return this.#rounds.stop();
  }

  /** Settles everything that is due now. */
  tick(): Promise<void> {
    return this.#rounds.tick();
  }

  async #settleAll(stopping: AbortSignal): Promise<void> {
    let before = NONE;
    while (!stopping.aborted) {
      // Those that are being written may still be found due.
      const due = await this.#store.due(END_USERS_MAX + before.endUsers.size);
      this.due = due.length;
      if (due.length === 0) this.#caughtUpAtMs = performance.now();
      const next = this.#submit(due.filter((user) => !before.endUsers.has(endUserText(user))));
      await before.written;
      if (due.length === 0) return;
      const isMore = next.endUsers.size === END_USERS_MAX;
      if (!isMore) await next.written;
      before = isMore ? next : NONE;
    }
    await before.written;
  }

  #submit(users: readonly EndUserKey[]): Submitted {
    const written = Promise.all(users.map((user) => this.#settle(user))).then(() => {
      this.settled += users.length;
    });
    // `await` throws the error; until then it must not count as unhandled.
    written.catch(() => {});
    return { endUsers: new Set(users.map(endUserText)), written };
  }

  #settle({ account, endUser }: EndUserKey): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#commit.submit({ kind: 'settle', account, endUser }, (result) =>
        result instanceof Error ? reject(result) : resolve(),
      );
    });
  }
}
