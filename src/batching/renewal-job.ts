// Stores due renewals and lapses of holds in the background, with a `settle` command for each due end user. Balances
// and decisions do not depend on when this job runs, because every read and write first settles its end user.

import { type EndUserKey, endUserText } from '../ledger/command.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import { BATCH_COMMANDS_MAX, CANCELED, type CommitResult, type GroupCommit, type Requester } from './group-commit.ts';
import { IntervalJob } from './interval-job.ts';

/** Maximum number of end users whose `settle` commands are submitted together. */
const END_USERS_MAX = BATCH_COMMANDS_MAX;

interface Submitted {
  readonly endUsers: ReadonlySet<string>;
  readonly written: Promise<unknown>;
}

const NONE: Submitted = { endUsers: new Set(), written: Promise.resolve() };

/**
 * Runs at an interval. A timer for the next renewal would not notice when the clock jumps, and would fire immediately
 * if the renewal were more than 2^31 ms away.
 */
export class RenewalJob extends IntervalJob {
  settled = 0;
  /** How many due end users the latest search found. */
  due = 0;
  #caughtUpAtMs = performance.now();
  readonly #store: LedgerStore;
  readonly #commit: GroupCommit;

  constructor(store: LedgerStore, commit: GroupCommit, onTrouble: (error: unknown) => void) {
    super((stopping) => this.#settleAll(stopping), onTrouble);
    this.#store = store;
    this.#commit = commit;
  }

  /** Milliseconds since the latest search that found no due end users, or since the job was created. */
  lateMs(): number {
    return performance.now() - this.#caughtUpAtMs;
  }

  async #settleAll(stopping: AbortSignal): Promise<void> {
    const requester = {
      get isDisconnected() {
        return stopping.aborted;
      },
    };
    let before = NONE;
    while (!stopping.aborted) {
      // The search can also return end users of the previous batch, which is still being written.
      const due = await this.#store.due(END_USERS_MAX + before.endUsers.size);
      this.due = due.length;
      if (due.length === 0) this.#caughtUpAtMs = performance.now();
      const others = due.filter((user) => !before.endUsers.has(endUserText(user)));
      const next = this.#submit(others.slice(0, END_USERS_MAX), requester);
      await before.written;
      if (due.length === 0) return;
      const isMore = next.endUsers.size === END_USERS_MAX;
      if (!isMore) await next.written;
      before = isMore ? next : NONE;
    }
    await before.written;
  }

  #submit(users: readonly EndUserKey[], requester: Requester): Submitted {
    const written = Promise.all(users.map((user) => this.#settle(user, requester))).then(() => {
      this.settled += users.length;
    });
    // A later `await` throws the error; this handler prevents an unhandled rejection until then.
    written.catch(() => {});
    return { endUsers: new Set(users.map(endUserText)), written };
  }

  /** An end user with years of due renewals needs many batches. When the job stops, the remaining batches are canceled. */
  #settle({ account, endUser }: EndUserKey, requester: Requester): Promise<void> {
    return new Promise((resolve, reject) => {
      const answer = (result: CommitResult) =>
        result instanceof Error && result !== CANCELED ? reject(result) : resolve();
      this.#commit.submit({ kind: 'settle', account, endUser }, answer, requester);
    });
  }
}
