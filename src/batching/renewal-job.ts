// Stores due renewals and lapses of holds in the background: finds the due end users and submits a `settle` command for
// each of them. Group commit writes a few of these commands with each batch of requests, and more while there are no
// requests. Nothing depends on when this job runs, since every read and write first settles its end user.

import { type EndUserKey, endUserText } from '../ledger/command.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import { BATCH_COMMANDS_MAX, type GroupCommit } from './group-commit.ts';
import { IntervalJob } from './interval-job.ts';

/**
 * Maximum number of end users that are submitted together. While they are written, the job looks up the next end users,
 * so that the store is never idle.
 */
const END_USERS_MAX = BATCH_COMMANDS_MAX;

interface Submitted {
  readonly endUsers: ReadonlySet<string>;
  readonly written: Promise<unknown>;
}

const NONE: Submitted = { endUsers: new Set(), written: Promise.resolve() };

export class RenewalJob {
  /** How many end users this job has settled. */
  settled = 0;
  /** How many due end users the latest look-up found; at most `2 * END_USERS_MAX`. */
  due = 0;
  /**
   * The latest time at which a look-up found nothing due, from `performance.now`; at first, the creation of the job.
   */
  #caughtUpAtMs = performance.now();
  readonly #store: LedgerStore;
  readonly #commit: GroupCommit;
  /**
   * Looks for due end users every second. A timer for the next renewal would fire at once if the renewal is more than
   * 2^31 ms away, and would not notice when the clock jumps.
   */
  readonly #rounds: IntervalJob;

  /** @param onTrouble called when a round fails, unless the previous round failed too */
  constructor(store: LedgerStore, commit: GroupCommit, onTrouble: (error: unknown) => void) {
    this.#store = store;
    this.#commit = commit;
    this.#rounds = new IntervalJob((stopping) => this.#settleAll(stopping), onTrouble);
  }

  /**
   * Milliseconds since a look-up last found nothing due. No event has been due for longer, apart from the duration of
   * that look-up.
   */
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
      // The look-up may still return end users that are being written.
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
    // A later `await` throws the error. Until then, Node.js must not treat the rejection as unhandled.
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
