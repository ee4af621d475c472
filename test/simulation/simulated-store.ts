// A store with the guarantees of the real stores and all their faults: it fails before, during and after commits, loses
// replies, stalls, and stops at any await when its process crashes. It uses the real rules of the ledger; changes are
// staged until the disk commits them.
//
//   begin ──▶ lock ──▶ load and decide ──▶ COMMIT sent ──▶ committed ──▶ reply
//     └─────────┴─ nothing happened ──────────┘  └─ the disk commits, even if the process crashes

import type { ApiKey } from '../../src/accounts/api-key.ts';
import {
  type Batch,
  batchOf,
  type DecidedBatch,
  decideBatch,
  type LoadedBatch,
  referenceName,
} from '../../src/ledger/batch.ts';
import { type Command, type EndUserKey, endUserText, needs, type Outcome } from '../../src/ledger/command.ts';
import type { Referenced } from '../../src/ledger/decide-refund.ts';
import type { Moment } from '../../src/ledger/decision.ts';
import type { Instant } from '../../src/ledger/instant.ts';
import { isSettled } from '../../src/ledger/next-event.ts';
import type { TransactionId } from '../../src/ledger/transaction-id.ts';
import type { KeyStore } from '../../src/store/key-store.ts';
import type {
  IdempotencyRetention,
  Lanes,
  LedgerStore,
  PageRequest,
  StatesAt,
  TransactionPage,
} from '../../src/store/ledger-store.ts';
import type { LoadedEndUser } from '../../src/store/loaded-end-user.ts';
import { StoreFault } from '../../src/store/store-fault.ts';
import { type Totals, totalsOfPostings } from '../../src/store/totals.ts';
import type { HistoryPage, HistoryRequest } from '../../src/store/transaction-history.ts';
import type { Chance } from './chance.ts';
import type { Disk, Lock } from './disk.ts';
import type { Fault, Faults } from './faults.ts';
import { SimulatedEvents } from './simulated-events.ts';
import { historyPageOf, referencedOf, statesOf, transactionPageOf } from './stored-reads.ts';
import type { Owner, VirtualTime } from './virtual-time.ts';

type Outcomes = readonly (Outcome | null)[];

export interface Witness {
  committed(commands: readonly Command[], outcomes: Outcomes, loaded: Staged): void;
  read(read: WitnessedRead, user: EndUserKey, now: Instant): void;
  expired(names: readonly string[], now: Instant, at: number): void;
}

/** For a list, only the read of the first page is reported to the auditor. */
export type WitnessedRead =
  | { readonly kind: 'balance' | 'transactions' }
  | { readonly kind: 'history'; readonly request: HistoryRequest }
  | { readonly kind: 'balances'; readonly instants: readonly Instant[] };

export interface StoreOptions {
  readonly time: VirtualTime;
  readonly chance: Chance;
  readonly faults: Faults;
  readonly witness: Witness;
  readonly lanes: Lanes;
  /** The maximum number of due events that one batch stores. */
  readonly eventsMax: number;
  readonly pageMax: number;
  readonly loadsAllHolds: boolean;
  readonly passTimeOf: (names: readonly string[]) => void;
  readonly crash: () => void;
}

export interface Staged {
  readonly batch: Batch;
  readonly decided: DecidedBatch;
  readonly now: Instant;
  readonly loadedAt: number;
}

const STALL_MS = 1_500;
const EXPIRED_MAX = 50;
const FEED_PART_MAX = 20;
const LATER_PAGE_SHARE = 0.1;

export class SimulatedStore implements LedgerStore {
  /** True if every seed must derive events. If false, only one seed in `EVENTS_EVERY_SEEDS` derives events. */
  static readonly needsEvents: boolean = false;
  readonly lanes: Lanes;
  readonly quietPauseMs = 0;
  readonly unreachable = () => [];
  readonly keys: Pick<KeyStore, 'find' | 'recordUses'> = {
    find: (hash) => this.#find(hash),
    recordUses: () => this.pause(1),
  };
  readonly events: SimulatedEvents | null;
  protected readonly disk: Disk;
  protected readonly owner: Owner;
  protected readonly options: StoreOptions;
  #awayUntil = 0;

  constructor(disk: Disk, owner: Owner, options: StoreOptions) {
    this.disk = disk;
    this.owner = owner;
    this.options = options;
    this.lanes = options.lanes;
    this.events = disk.events.areDerived ? this.eventLog() : null;
  }

  protected eventLog(): SimulatedEvents {
    return new SimulatedEvents(this.disk, this.owner, this.options);
  }

  async write(commands: readonly Command[]): Promise<Outcomes> {
    for (;;) {
      await this.pause(0.3);
      this.#mayBeAway();
      this.#mayFail('a write fails before it begins', 'StoreUnavailable');
      const names = namesOf(commands);
      const lock = await this.lock(names);
      const outcomes = await this.#attempt(commands, lock);
      if (outcomes !== null) return outcomes;
      await this.pause(5);
    }
  }

  async #attempt(commands: readonly Command[], lock: Lock): Promise<Outcomes | null> {
    try {
      await this.pause(0.5);
      const staged = this.stage(commands);
      if (this.#strikes('a batch is decided twice')) return null;
      if (staged.decided.changes.length + staged.decided.records.length === 0) {
        this.options.witness.committed(commands, staged.decided.outcomes, staged);
        return staged.decided.outcomes;
      }
      await this.pause(1);
      if (this.#strikes('a write stalls')) await this.pause(STALL_MS);
      this.#mayFail('a write fails before its commit', 'StoreUnavailable');
      return await this.commit(staged, lock);
    } finally {
      this.disk.unlock(lock);
    }
  }

  protected stage(commands: readonly Command[]): Staged {
    const now = this.tick();
    const batch = batchOf(commands);
    const decided = this.decide(batch, this.loadBatch(batch, now), { now, nextId: this.idsAt(now) });
    return { batch, now, loadedAt: this.options.time.now, decided };
  }

  protected tick(): Instant {
    return this.disk.tick();
  }

  protected loadBatch({ commands, users, userOf, references }: Batch, now: Instant): LoadedBatch {
    const referenced = new Map<string, Referenced>();
    for (const reference of references) {
      const found = referencedOf(this.disk.postingsOf(users[reference.user] as EndUserKey), reference.transaction);
      if (found !== null) referenced.set(referenceName(reference), found);
    }
    const states = users.map((user, index) => {
      const needsAll = commands.some((command, place) => userOf[place] === index && needs(command).allHolds);
      return this.disk.load(user, now, { allHolds: needsAll || this.options.loadsAllHolds });
    });
    return { states, records: this.disk.records, referenced };
  }

  protected idsAt(now: Instant): Moment['nextId'] {
    this.disk.ids.moveTo(now);
    return () => this.disk.ids.next();
  }

  protected decide(batch: Batch, loaded: LoadedBatch, moment: Moment): DecidedBatch {
    return decideBatch(batch, loaded, moment, this.options.eventsMax);
  }

  protected async commit(staged: Staged, lock: Lock): Promise<Outcomes | null> {
    const { outcomes } = staged.decided;
    if (this.#strikes('a commit fails and is not stored')) {
      await this.pause(2);
      throw new StoreFault('OutcomeUnknown', 'simulated');
    }
    if (this.#strikes('a reply to a commit is lost, and the batch runs again')) {
      await this.pause(20);
      return null;
    }
    await this.committed(staged, lock);
    if (this.#strikes('a commit fails but is stored')) throw new StoreFault('OutcomeUnknown', 'simulated');
    if (this.#strikes('a reply to a commit is lost, and the batch is found')) await this.pause(200);
    return outcomes;
  }

  protected async committed(staged: Staged, lock: Lock): Promise<void> {
    const { time, chance } = this.options;
    const isOvertaken = this.#strikes('a cycle renews or a hold lapses during a commit');
    const stall = this.#strikes('a commit stalls') || isOvertaken ? chance.delay(STALL_MS) : 0;
    const mayCrash = this.#strikes('a process crashes during a write');
    const crashAfter = mayCrash ? chance.delay(1) : null;
    lock.isCommitting = true;
    if (isOvertaken) this.options.passTimeOf(lock.names);
    await new Promise<void>((resolve) => {
      time.after(
        chance.delay(1) + stall,
        () => {
          this.apply(staged);
          this.disk.unlock(lock);
          time.after(chance.delay(0.5), resolve, this.owner);
        },
        null,
      );
      if (crashAfter !== null) time.after(crashAfter, this.options.crash, null);
    });
  }

  protected apply(staged: Staged): void {
    this.disk.commit(staged.decided);
    this.options.witness.committed(staged.batch.commands, staged.decided.outcomes, staged);
  }

  protected lock(names: readonly string[]): Promise<Lock> {
    return this.disk.lock(names, this.owner);
  }

  async load(user: EndUserKey): Promise<LoadedEndUser> {
    await this.#beginRead();
    const loaded = await this.readSettled(user, { kind: 'balance' }, () => this.#loadForReader(user));
    await this.pause(0.3);
    return loaded;
  }

  async transactions(user: EndUserKey, request: PageRequest): Promise<TransactionPage> {
    await this.#beginPage(request);
    const read = request.from === null ? ({ kind: 'transactions' } as const) : null;
    const page = await this.readSettled(user, read, () => {
      const limit = Math.min(request.limit, this.options.pageMax);
      return transactionPageOf(this.disk.postingsOf(user), this.#loadForReader(user), { ...request, limit });
    });
    await this.pause(0.3);
    return page;
  }

  async history(user: EndUserKey, request: HistoryRequest): Promise<HistoryPage> {
    await this.#beginPage(request);
    const read = request.from === null ? ({ kind: 'history', request } as const) : null;
    const page = await this.readSettled(user, read, () =>
      historyPageOf(this.disk.postingsOf(user), this.#loadForReader(user), request),
    );
    await this.pause(0.3);
    return page;
  }

  async statesAt(user: EndUserKey, instants: readonly Instant[]): Promise<StatesAt> {
    await this.#beginRead();
    const read = await this.readSettled(user, { kind: 'balances', instants }, () => {
      const loaded = this.#loadForReader(user);
      const past = instants.filter((at) => at < loaded.now);
      const states = statesOf(this.disk.postingsOf(user), past);
      return { ...loaded, states: [...states, ...instants.slice(past.length).map(() => loaded.state)] };
    });
    await this.pause(0.3);
    return read;
  }

  async find(user: EndUserKey, id: TransactionId): Promise<Referenced | null> {
    await this.#beginRead();
    const found = referencedOf(this.disk.postingsOf(user), id);
    await this.pause(0.3);
    return found;
  }

  /** Reads of later pages rarely fail, so that clients can read a long list to its end. */
  async #beginPage({ from }: Pick<PageRequest, 'from'>): Promise<void> {
    if (from === null || this.options.chance.happens(LATER_PAGE_SHARE)) await this.#beginRead();
    else await this.pause(0.3);
  }

  #loadForReader(user: EndUserKey): LoadedEndUser {
    const now = this.tick();
    return { now, state: this.disk.load(user, now) };
  }

  /**
   * If an automatic event of the end user (see `next-event.ts`) is due, first waits for the writes in flight for this
   * end user: they may be stored with an earlier instant than the event.
   */
  protected async readSettled<Result extends LoadedEndUser>(
    user: EndUserKey,
    witnessed: WitnessedRead | null,
    read: () => Result,
  ): Promise<Result> {
    const show = (result: Result) => {
      if (witnessed !== null) this.options.witness.read(witnessed, user, result.now);
      return result;
    };
    const first = read();
    if (isSettled(first.state, first.now)) return show(first);
    const lock = await this.disk.lock([endUserText(user)], this.owner);
    try {
      return show(read());
    } finally {
      this.disk.unlock(lock);
    }
  }

  async due(limit: number): Promise<readonly EndUserKey[]> {
    await this.pause(0.3);
    this.#mayFail('due end users cannot be listed', 'StoreUnavailable');
    const due = this.disk.due(limit);
    await this.pause(0.3);
    return due;
  }

  async deleteExpiredRecords(retention: IdempotencyRetention): Promise<boolean> {
    await this.pause(0.3);
    this.#mayFail('expired records cannot be deleted', 'StoreUnavailable');
    const now = this.disk.tick();
    const names = this.disk.deleteExpiredRecords(now, retention, EXPIRED_MAX);
    this.options.witness.expired(names, now, this.options.time.now);
    await this.pause(0.3);
    return names.length === EXPIRED_MAX;
  }

  /** Like the real stores, locks the feed's consumer, so that only one process at a time updates the totals. */
  async updateTotals(): Promise<boolean> {
    await this.pause(0.3);
    this.#mayFail('the feed cannot be read', 'StoreUnavailable');
    const lock = await this.disk.lock(['consumer totals'], this.owner);
    try {
      const part = this.disk.nextPart(FEED_PART_MAX, this.disk.consumed);
      const totals = totalsOfPostings(part);
      await this.pause(0.5);
      this.#mayFail('the position in the feed cannot be saved', 'StoreUnavailable');
      this.saveTotals(totals, part.length);
      return part.length >= FEED_PART_MAX;
    } finally {
      this.disk.unlock(lock);
    }
  }

  protected saveTotals(totals: Totals, count: number): void {
    this.disk.saveTotals(totals, count);
  }

  trouble(): string | null {
    return null;
  }

  async close(): Promise<void> {}

  protected pause(meanMs: number): Promise<void> {
    const { time, chance } = this.options;
    return new Promise((resolve) => time.after(chance.delay(meanMs), resolve, this.owner));
  }

  async #find(hash: string): Promise<ApiKey | null> {
    await this.pause(0.3);
    this.#mayFail('the lookup of an API key fails', 'StoreUnavailable');
    const key = this.disk.apiKeys.get(hash) ?? null;
    await this.pause(0.3);
    return key;
  }

  async #beginRead(): Promise<void> {
    await this.pause(0.3);
    this.#mayFail('a read fails', 'StoreUnavailable');
    if (this.#strikes('a read stalls')) await this.pause(STALL_MS);
  }

  #mayBeAway(): void {
    const { time, chance } = this.options;
    if (this.#strikes('the store is unavailable for a while')) this.#awayUntil = time.now + chance.delay(500);
    if (time.now < this.#awayUntil) throw new StoreFault('StoreUnavailable', 'simulated');
  }

  #strikes(fault: Fault): boolean {
    return this.options.faults.strikes(fault);
  }

  #mayFail(fault: Fault, code: StoreFault['code']): void {
    if (this.#strikes(fault)) throw new StoreFault(code, 'simulated');
  }
}

/** Sorted, so that all batches lock their end users in the same order. */
function namesOf(commands: readonly Command[]): readonly string[] {
  const names = commands.map(endUserText);
  return names.length === 1 ? names : [...new Set(names)].sort();
}
