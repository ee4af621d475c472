// One ledger in a test: all of its ports in one place, on a clock that the test moves. A store plugs itself in by saying
// how a ledger of its kind is made, opened and removed.

import assert from 'node:assert/strict';
import { TOTALS } from '../../src/events/totals.ts';
import type { Command, EndUserKey, Outcome } from '../../src/ledger/command.ts';
import type { Instant } from '../../src/ledger/instant.ts';
import type { ConsoleStore } from '../../src/store/console-store.ts';
import type { FeedConsumer } from '../../src/store/feed.ts';
import type { KeyStore } from '../../src/store/key-store.ts';
import type {
  IdempotencyRetention,
  LedgerStore,
  LoadedEndUser,
  PageRequest,
  TransactionPage,
} from '../../src/store/ledger-store.ts';
import type { Stores } from '../../src/store/stores.ts';
import type { PostingsDigest } from '../../src/store/tools/ledger-digest.ts';
import type { LedgerTools } from '../../src/store/tools/ledger-tools.ts';
import { type Audited, auditOf, EVERYTHING, NOON } from './temporary-ledger.ts';

export interface PluggedLedger {
  /** Opens it for serving: the first time, and again after that was closed. */
  open(): Promise<Stores>;
  /** Opens it for operating, beside the stores. */
  openTools(): Promise<LedgerTools>;
  /** From now on the ledger is what a crash at this moment leaves. Absent where that is what it is anyway. */
  crash?(): void;
  /** Makes every COMMIT of credits fail, without effect, or lets them succeed again. Absent where a test cannot. */
  failCommits?(isFailing: boolean): Promise<void>;
  remove(): Promise<void>;
}

/** Makes a new ledger. A store whose clock cannot be moved ignores `wall`. */
export type NewLedger = (wall: () => Instant) => Promise<PluggedLedger>;

/** No test has more of them: a loop that does not end fails its test. */
const STEPS_MAX = 10_000;

export class TestLedger {
  readonly #clock: { wall: Instant };
  readonly #plugged: PluggedLedger;
  #stores: Stores;

  static async open(make: NewLedger, wall = NOON): Promise<TestLedger> {
    const clock = { wall };
    const plugged = await make(() => clock.wall);
    return new TestLedger(clock, plugged, await plugged.open());
  }

  private constructor(clock: { wall: Instant }, plugged: PluggedLedger, stores: Stores) {
    this.#clock = clock;
    this.#plugged = plugged;
    this.#stores = stores;
  }

  /** What the machine's clock says. */
  get wall(): Instant {
    return this.#clock.wall;
  }

  set wall(instant: Instant) {
    this.#clock.wall = instant;
  }

  get store(): LedgerStore {
    return this.#stores.ledger;
  }

  get keys(): KeyStore {
    return this.#stores.keys;
  }

  get console(): ConsoleStore {
    return this.#stores.console;
  }

  /** All as one batch. */
  write(commands: readonly Command[]): Promise<readonly (Outcome | null)[]> {
    return this.store.write(commands, () => {});
  }

  load(user: EndUserKey): Promise<LoadedEndUser> {
    return this.store.load(user);
  }

  transactions(
    user: EndUserKey,
    { from = null, limit = 1_000, within = EVERYTHING }: Partial<PageRequest> = {},
  ): Promise<TransactionPage> {
    return this.store.transactions(user, { from, limit, within });
  }

  due(limit = 1_000): Promise<readonly EndUserKey[]> {
    return this.store.due(limit);
  }

  trouble(): string | null {
    return this.store.trouble();
  }

  /** Everything that is new to the consumer. */
  async consumeFeed(consumer: FeedConsumer = TOTALS): Promise<void> {
    await repeat(() => this.store.feed.consume(consumer));
  }

  async deleteExpiredRecords(retention: IdempotencyRetention): Promise<void> {
    await repeat(() => this.store.deleteExpiredRecords(retention));
  }

  async withTools<Result>(work: (tools: LedgerTools) => Promise<Result>): Promise<Result> {
    const tools = await this.#plugged.openTools();
    try {
      return await work(tools);
    } finally {
      await tools.close();
    }
  }

  audit(): Promise<Audited> {
    return this.withTools(auditOf);
  }

  /** @param through as of `LedgerTools.digest` */
  digest(through: readonly string[] | null = null): Promise<readonly PostingsDigest[]> {
    return this.withTools((tools) => tools.digest(through));
  }

  async reopen(): Promise<void> {
    await this.#stores.ledger.close();
    this.#stores = await this.#plugged.open();
  }

  /** @param end what the process still does is lost */
  async crash(end: () => Promise<void> = async () => {}): Promise<void> {
    this.#plugged.crash?.();
    await end();
    await this.reopen();
  }

  get canFail(): boolean {
    return this.#plugged.failCommits !== undefined;
  }

  async whileCommitsFail<Result>(work: () => Promise<Result>): Promise<Result> {
    const { failCommits } = this.#plugged;
    assert(failCommits, 'the store has a way to fail');
    await failCommits(true);
    try {
      return await work();
    } finally {
      await failCommits(false);
    }
  }

  async close(): Promise<void> {
    await this.#stores.ledger.close();
  }

  async remove(): Promise<void> {
    await this.#plugged.remove();
  }
}

async function repeat(step: () => Promise<boolean>): Promise<void> {
  for (let steps = 0; await step(); steps++) if (steps === STEPS_MAX) throw new Error('there is always more');
}
