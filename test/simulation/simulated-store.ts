// A store that keeps its word as the real ones do, and meets all that befalls them: it fails before, in and after its
// commits, loses replies, stalls, and stops at any await when its process crashes. It implements the port by calling
// the real `fold`; what it holds is staged until the disk commits it.
//
//   begin ──▶ lock ──▶ load and fold ──▶ COMMIT sent ──▶ committed ──▶ reply
//     └─────────┴─ nothing happened ────────┘  └─ the disk's own event: a crash of the process no longer stops it

import type { ApiKey } from '../../src/accounts/api-key.ts';
import type { Command, EndUserKey, Outcome } from '../../src/ledger/command.ts';
import type { Moment } from '../../src/ledger/decide.ts';
import { type Batch, batchOf, type Folded, fold, type LoadedBatch } from '../../src/ledger/fold.ts';
import type { Instant } from '../../src/ledger/instant.ts';
import { type Posting, transactionOf } from '../../src/ledger/posting.ts';
import { renewalsDueCount } from '../../src/ledger/settle.ts';
import { wholeTransactions } from '../../src/store/account-reads.ts';
import type { Loaded } from '../../src/store/loaded.ts';
import {
  type ApiKeys,
  type Lanes,
  type PageRequest,
  type Store,
  StoreFault,
  type TransactionPage,
} from '../../src/store/store.ts';
import type { Chance } from './chance.ts';
import { type Disk, type Lock, userName } from './disk.ts';
import type { Fault, Faults } from './faults.ts';
import type { Owner, VirtualTime } from './virtual-time.ts';

type Outcomes = readonly (Outcome | null)[];

/** Told of what becomes durable and of what is read, at the moment it happens. */
export interface Witness {
  committed(commands: readonly Command[], outcomes: Outcomes, loaded: Staged): void;
  read(kind: 'balance' | 'transactions', user: EndUserKey, now: Instant): void;
  forgotten(names: readonly string[], now: Instant, at: number): void;
}

export interface StoreOptions {
  readonly time: VirtualTime;
  readonly chance: Chance;
  readonly faults: Faults;
  readonly witness: Witness;
  readonly lanes: Lanes;
  /** Missed periods that a batch enters. */
  readonly periodsMax: number;
  readonly pageMax: number;
  /** Moves the clock on until a cycle of one of these end users renews. */
  readonly renewACycleOf: (names: readonly string[]) => void;
  /** Ends the process that the store is in. */
  readonly crash: () => void;
}

export interface Staged {
  readonly batch: Batch;
  readonly folded: Folded;
  readonly now: Instant;
  /** When it was loaded, in the time that passes. */
  readonly loadedAt: number;
}

const STALL_MS = 1_500;
const FORGOTTEN_MAX = 50;
const LATER_PAGE_SHARE = 0.1;

export class SimulatedStore implements Store {
  readonly lanes: Lanes;
  readonly apiKeys: ApiKeys;
  protected readonly disk: Disk;
  protected readonly owner: Owner;
  protected readonly options: StoreOptions;
  #awayUntil = 0;

  constructor(disk: Disk, owner: Owner, options: StoreOptions) {
    this.disk = disk;
    this.owner = owner;
    this.options = options;
    this.lanes = options.lanes;
    this.apiKeys = {
      find: (hash: string) => this.#find(hash),
      noteUses: () => this.pause(1),
    } as unknown as ApiKeys;
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

  /** @returns null when the batch has to be run again */
  async #attempt(commands: readonly Command[], lock: Lock): Promise<Outcomes | null> {
    try {
      await this.pause(0.5);
      const staged = this.stage(commands);
      if (this.#strikes('a batch is decided twice')) return null;
      if (staged.folded.changes.length + staged.folded.answers.length === 0) {
        this.options.witness.committed(commands, staged.folded.outcomes, staged);
        return staged.folded.outcomes;
      }
      await this.pause(1);
      if (this.#strikes('a write stalls')) await this.pause(STALL_MS);
      this.#mayFail('a write fails before its commit', 'StoreUnavailable');
      return await this.commit(staged, lock);
    } finally {
      this.disk.unlock(lock);
    }
  }

  /** Decides what to write, on what is committed. */
  protected stage(commands: readonly Command[]): Staged {
    const now = this.tick();
    const batch = batchOf(commands);
    const folded = this.fold(batch, this.load(batch, now), { now, nextId: this.idsAt(now) });
    return { batch, now, loadedAt: this.options.time.now, folded };
  }

  protected tick(): Instant {
    return this.disk.tick();
  }

  protected load({ users }: Batch, now: Instant): LoadedBatch {
    return { cycles: users.map((user) => this.disk.loadForBatch(user, now)), answers: this.disk.answers };
  }

  protected idsAt(now: Instant): Moment['nextId'] {
    this.disk.ids.moveTo(now);
    return () => this.disk.ids.next();
  }

  protected fold(batch: Batch, loaded: LoadedBatch, moment: Moment): Folded {
    return fold(batch, loaded, moment, this.options.periodsMax);
  }

  /** @returns null when it was not done, and the batch has to be run again */
  protected async commit(staged: Staged, lock: Lock): Promise<Outcomes | null> {
    const { outcomes } = staged.folded;
    if (this.#strikes('a commit fails, and is not there')) {
      await this.pause(2);
      throw new StoreFault('OutcomeUnknown', 'simulated');
    }
    if (this.#strikes('a reply to a commit is lost, and the batch runs again')) {
      await this.pause(20);
      return null;
    }
    await this.committed(staged, lock);
    if (this.#strikes('a commit fails, and is there')) throw new StoreFault('OutcomeUnknown', 'simulated');
    if (this.#strikes('a reply to a commit is lost, and the batch is found')) await this.pause(200);
    return outcomes;
  }

  /** Resolves when it is on the disk and the process has heard of it; the first happens even if the process does not live to see it. */
  protected async committed(staged: Staged, lock: Lock): Promise<void> {
    const { time, chance } = this.options;
    const isOvertaken = this.#strikes('a cycle renews during a commit');
    const stall = this.#strikes('a commit stalls') || isOvertaken ? chance.delay(STALL_MS) : 0;
    const mayCrash = this.#strikes('a process crashes during a write');
    const crashAfter = mayCrash ? chance.delay(1) : null;
    lock.isCommitting = true;
    if (isOvertaken) this.options.renewACycleOf(lock.names);
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
    this.disk.commit(staged.folded);
    this.options.witness.committed(staged.batch.commands, staged.folded.outcomes, staged);
  }

  protected lock(names: readonly string[]): Promise<Lock> {
    return this.disk.lock(names, this.owner);
  }

  async cycles(user: EndUserKey): Promise<Loaded> {
    await this.#beginRead();
    const loaded = await this.readSettled(user, 'balance', () => this.#loadForReader(user));
    await this.pause(0.3);
    return loaded;
  }

  async transactions(user: EndUserKey, { from, limit }: PageRequest): Promise<TransactionPage> {
    // A long list has many pages, and has to come through now and then.
    if (from === null || this.options.chance.happens(LATER_PAGE_SHARE)) await this.#beginRead();
    else await this.pause(0.3);
    const page = await this.readSettled(user, from === null ? 'transactions' : null, () => {
      const loaded = this.#loadForReader(user);
      const size = Math.min(limit, this.options.pageMax);
      const found = latestTransactions(this.disk.users.get(userName(user))?.postings ?? [], from, size + 1);
      const transactions = found.slice(0, size);
      return { ...loaded, transactions, next: found.length > size ? (transactions.at(-1)?.id ?? null) : null };
    });
    await this.pause(0.3);
    return page;
  }

  #loadForReader(user: EndUserKey): Loaded {
    const now = this.tick();
    return { now, cycles: this.disk.loadForReader(user, now) };
  }

  /** A renewal that is not stored yet is shown only while no write of that end user is under way, which could come before it. */
  protected async readSettled<Result extends Loaded>(
    user: EndUserKey,
    kind: Parameters<Witness['read']>[0] | null,
    read: () => Result,
  ): Promise<Result> {
    const show = (result: Result) => {
      if (kind !== null) this.options.witness.read(kind, user, result.now);
      return result;
    };
    const first = read();
    if (renewalsDueCount(first.cycles, first.now) === 0) return show(first);
    const lock = await this.disk.lock([userName(user)], this.owner);
    try {
      return show(read());
    } finally {
      this.disk.unlock(lock);
    }
  }

  async renewalsDue(limit: number): Promise<readonly EndUserKey[]> {
    await this.pause(0.3);
    this.#mayFail('renewals cannot be listed', 'StoreUnavailable');
    const due = this.disk.due(limit);
    await this.pause(0.3);
    return due;
  }

  async deleteExpiredRecords(ageMs: number): Promise<number> {
    await this.pause(0.3);
    this.#mayFail('answers cannot be forgotten', 'StoreUnavailable');
    const now = this.disk.tick();
    const before = now - ageMs;
    const old = this.disk.deleteExpiredRecords(before, FORGOTTEN_MAX);
    this.options.witness.forgotten(old, now, this.options.time.now);
    await this.pause(0.3);
    return old.length;
  }

  trouble(): string | null {
    return null;
  }

  async close(): Promise<void> {}

  get accountReads(): never {
    throw new Error('no request of the simulation reads an account');
  }

  audit(): never {
    throw new Error('the auditor reads the disk itself');
  }

  prove(): never {
    throw new Error('no request of the simulation proves anything');
  }

  addChains(): never {
    throw new Error('no request of the simulation adds a chain');
  }

  addUpTotals(): never {
    throw new Error('no request of the simulation adds anything up');
  }

  protected pause(meanMs: number): Promise<void> {
    const { time, chance } = this.options;
    return new Promise((resolve) => time.after(chance.delay(meanMs), resolve, this.owner));
  }

  async #find(hash: string): Promise<ApiKey | null> {
    await this.pause(0.3);
    this.#mayFail('a look at an API key fails', 'StoreUnavailable');
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
    if (this.#strikes('the store is away for a while')) this.#awayUntil = time.now + chance.delay(500);
    if (time.now < this.#awayUntil) throw new StoreFault('StoreUnavailable', 'simulated');
  }

  #strikes(fault: Fault): boolean {
    return this.options.faults.strikes(fault);
  }

  #mayFail(fault: Fault, code: StoreFault['code']): void {
    if (this.#strikes(fault)) throw new StoreFault(code, 'simulated');
  }
}

/** Whom a batch concerns, each once, in one order. */
function namesOf(commands: readonly Command[]): readonly string[] {
  const names = commands.map(userName);
  return names.length === 1 ? names : [...new Set(names)].sort();
}

/** Those before the transaction `from`, latest first; a stop is none. */
function latestTransactions(postings: readonly Posting[], from: string | null, limit: number) {
  const found = [];
  for (const whole of wholeTransactions(backwards(postings, from), ({ transactionId }) => transactionId)) {
    if (found.push(transactionOf(whole)) === limit) break;
  }
  return found;
}

function* backwards(postings: readonly Posting[], from: string | null): Generator<Posting> {
  for (let index = postings.length - 1; index >= 0; index--) {
    const posting = postings[index] as Posting;
    if (posting.kind !== 'stop-cycle' && (from === null || posting.transactionId < from)) yield posting;
  }
}
