// A ledger for tests: one object with all interfaces of a store, and a clock that the test sets.

import assert from 'node:assert/strict';
import { deriveEvents } from '../../src/events/derive.ts';
import type { Command, EndUserKey, Outcome } from '../../src/ledger/command.ts';
import type { Instant } from '../../src/ledger/instant.ts';
import type { AccountDatabase, AccountQueries } from '../../src/store/account-database.ts';
import type { ConsoleStore } from '../../src/store/console-store.ts';
import type { DeriveEvents, EventLog } from '../../src/store/event-log.ts';
import type { KeyStore } from '../../src/store/key-store.ts';
import type { IdempotencyRetention, LedgerStore, PageRequest, TransactionPage } from '../../src/store/ledger-store.ts';
import type { LoadedEndUser } from '../../src/store/loaded-end-user.ts';
import type { Stores } from '../../src/store/stores.ts';
import type { PostingsDigest } from '../../src/store/tools/ledger-digest.ts';
import type { LedgerTools } from '../../src/store/tools/ledger-tools.ts';
import { type HistoryPage, type HistoryRequest, PAGE_ROWS_MAX } from '../../src/store/transaction-history.ts';
import { type Audited, auditOf, EVERYTHING, NOON, type Result, resultOf } from './temporary-ledger.ts';

export interface PluggedLedger {
  /** May be called again after the ledger has been closed. */
  open(): Promise<Stores>;
  /** A server may have the ledger open at the same time. */
  openTools(): Promise<LedgerTools>;
  /** Absent if the ledger has no tables of accounts. */
  openAccounts?(): AccountDatabase;
  /** Reduces the ledger to the data that would survive a crash now. Absent if a crash loses no data. */
  crash?(): void;
  /** Absent if the store cannot make COMMITs fail. */
  failCommits?(isFailing: boolean): Promise<void>;
  remove(): Promise<void>;
}

/** A store with a real clock ignores `wall`. */
export type NewLedger = (wall: () => Instant) => Promise<PluggedLedger>;

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

  write(commands: readonly Command[]): Promise<readonly (Outcome | null)[]> {
    return this.store.write(commands, () => {});
  }

  async results(commands: readonly Command[]): Promise<readonly (Result | null)[]> {
    return (await this.write(commands)).map(resultOf);
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

  history(user: EndUserKey, request: Partial<HistoryRequest> = {}): Promise<HistoryPage> {
    return this.store.history(user, { from: null, limit: PAGE_ROWS_MAX, ...request });
  }

  due(limit = 1_000): Promise<readonly EndUserKey[]> {
    return this.store.due(limit);
  }

  trouble(): string | null {
    return this.store.trouble();
  }

  get events(): EventLog {
    return this.#stores.events;
  }

  async deriveEvents(derive: DeriveEvents = deriveEvents): Promise<void> {
    await repeat(() => this.events.deriveNext(derive));
  }

  async consumeFeed(): Promise<void> {
    await repeat(() => this.store.updateTotals());
    await this.deriveEvents();
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

  async withAccounts(work: (queries: AccountQueries) => Promise<unknown>): Promise<void> {
    const { openAccounts } = this.#plugged;
    assert(openAccounts, 'the ledger has tables of accounts');
    await using accounts = openAccounts();
    await work(accounts.queries);
  }

  audit(): Promise<Audited> {
    return this.withTools(auditOf);
  }

  digest(through: readonly string[] | null = null): Promise<readonly PostingsDigest[]> {
    return this.withTools((tools) => tools.digest(through));
  }

  async reopen(): Promise<void> {
    await this.#stores.ledger.close();
    this.#stores = await this.#plugged.open();
  }

  /**
   * @param end stops everything that uses the ledger; it is called after the simulated crash, so all writes between the
   * crash and the return of `end` can be lost
   */
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
    assert(failCommits, 'the store can make COMMITs fail');
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

async function repeat(step: () => Promise<boolean | null>): Promise<void> {
  for (let steps = 0; await step(); steps++) if (steps === STEPS_MAX) throw new Error('the steps do not end');
}
