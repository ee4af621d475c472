// Has the renewals that are due entered, in the background: a bounded number of end users at a time, by a store that finds
// them by itself, else through group commit, behind whatever requests are waiting. Nothing depends on its being on time:
// whoever reads or writes settles first.

import type { EndUserKey } from '../ledger/command.ts';
import { type Store, StoreFault } from '../store/store.ts';
import type { GroupCommit } from './group-commit.ts';
import { IntervalJob } from './interval-job.ts';

/** End users renewed in one go, and as many while the next are looked for: the writer never waits for that. */
const END_USERS_MAX = 512;

/** Renewals that are being stored. */
interface UnderWay {
  readonly users: ReadonlySet<string>;
  readonly done: Promise<unknown>;
}

const NOTHING: UnderWay = { users: new Set(), done: Promise.resolve() };

export class RenewalJob {
  /** End users whose due renewals it has entered. */
  renewed = 0;
  /** End users that the latest look found due; the store gives no more than a bounded number. */
  due = 0;
  /** When nothing was due, by `performance.now`. */
  #caughtUpAt = performance.now();
  readonly #store: Store;
  readonly #commit: GroupCommit;
  /** Clocks are compared: a timer set for the next renewal would fire at once beyond 2^31 ms, and miss a clock that jumps. */
  readonly #rounds: IntervalJob;
  #isStopped = false;

  /** @param onTrouble told of a round that fails when the one before did not: a store that is away fails one a second */
  constructor(store: Store, commit: GroupCommit, onTrouble: (error: unknown) => void) {
    this.#store = store;
    this.#commit = commit;
    this.#rounds = new IntervalJob(() => this.#renewAll(), onTrouble);
  }

  /** How long ago it was that nothing was due. No renewal that is due now has been so for longer, but for a tick. */
  lateMs(): number {
    return performance.now() - this.#caughtUpAt;
  }

  start(): void {
    this.#rounds.start();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#rounds.stop();
  }

  /** Renews all that is due now. */
  tick(): Promise<void> {
    return this.#rounds.tick();
  }

  #renewAll(): Promise<void> {
    return this.#store.renewDue === undefined ? this.#submitAll() : this.#haveAllRenewed();
  }

  /** Where the store finds them by itself. One look here says whether there is anything, so that a quiet writer is left alone. */
  async #haveAllRenewed(): Promise<void> {
    if ((await this.#look()) === 0 || this.#isStopped) return;
    let isMore = true;
    const keepAsking = async () => {
      try {
        while (isMore && !this.#isStopped) {
          const some = await (this.#store as Required<Store>).renewDue();
          this.renewed += some.endUsers;
          isMore &&= some.isMore;
        }
      } finally {
        isMore = false;
      }
    };
    // Two: the store goes on with the one while this thread hears of the other.
    const asked = await Promise.allSettled([keepAsking(), keepAsking()]);
    for (const each of asked) if (each.status === 'rejected') throw each.reason;
    await this.#look();
  }

  /** How many are due. */
  async #look(): Promise<number> {
    this.due = (await this.#store.renewalsDue(END_USERS_MAX)).length;
    if (this.due === 0) this.#caughtUpAt = performance.now();
    return this.due;
  }

  /** Where each renewal is a command of its own. */
  async #submitAll(): Promise<void> {
    let before = NOTHING;
    while (!this.#isStopped) {
      // Those that are being stored may still be found due.
      const due = await this.#store.renewalsDue(END_USERS_MAX + before.users.size);
      this.due = due.length;
      if (due.length === 0) this.#caughtUpAt = performance.now();
      const found = this.#begin(due.filter((user) => !before.users.has(nameOf(user))));
      await before.done;
      if (due.length === 0) return;
      const isMore = found.users.size === END_USERS_MAX;
      if (!isMore) await found.done;
      before = isMore ? found : NOTHING;
    }
    await before.done;
  }

  #begin(users: readonly EndUserKey[]): UnderWay {
    const done = Promise.all(users.map((user) => this.#renew(user))).then(() => {
      this.renewed += users.length;
    });
    // Whoever waits for it is told; while the next are looked for, nobody does.
    done.catch(() => {});
    return { users: new Set(users.map(nameOf)), done };
  }

  #renew({ account, endUser }: EndUserKey): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#commit.submit({ kind: 'renew', account, endUser }, (result) =>
        result instanceof StoreFault ? reject(result) : resolve(),
      );
    });
  }
}

function nameOf({ account, endUser }: EndUserKey): string {
  return `${account}/${endUser}`;
}
