// The real ledger in one process, as the model test drives it: a store, group commit and the renewal clock, on a
// machine's clock that is moved by hand. Its answers come in the shapes of the reference model, to be compared.

import assert from 'node:assert/strict';
import { GroupCommit } from '../../src/batching/group-commit.ts';
import { RenewalJob } from '../../src/batching/renewal-job.ts';
import { activeBalance } from '../../src/ledger/balance.ts';
import type { Idempotency, Outcome } from '../../src/ledger/command.ts';
import type { Cycle } from '../../src/ledger/cycle.ts';
import type { Transaction } from '../../src/ledger/posting.ts';
import { cyclesAt, renewalsDue } from '../../src/ledger/settle.ts';
import { type Store, StoreFault } from '../../src/store/store.ts';
import type { ModelBalance, ModelCommand, ModelCycle, ModelOutcome, ModelUser } from './reference-model.ts';

export interface NewLedger {
  /** Opens it, the first time and again after it was closed. */
  open(wall: () => number): Promise<Store>;
  /** From now on, it is what would be left of it if the process had died at this moment. Absent where that changes nothing. */
  crash?(): void;
}

/** A request that may be sent again, as the first request with its key or another one. */
export type ModelRequest = ModelCommand & { readonly idempotency?: Idempotency | null };

/** @property replayOf the first request with the same key, when it is its outcome */
export type ModelAnswer = (ModelOutcome | { readonly refused: 'IdempotencyKeyReused' }) & {
  readonly replayOf?: string;
};

export class Stack {
  /** What the machine's clock says. */
  wall: number;
  store!: Store;
  commit!: GroupCommit;
  renewals!: RenewalJob;
  /** What the renewal clock complained about. */
  readonly troubles: unknown[] = [];
  readonly #ledger: NewLedger;

  static async open(ledger: NewLedger, wall: number): Promise<Stack> {
    const stack = new Stack(ledger, wall);
    await stack.#open();
    return stack;
  }

  private constructor(ledger: NewLedger, wall: number) {
    this.#ledger = ledger;
    this.wall = wall;
  }

  async restart(): Promise<void> {
    await this.close();
    await this.#open();
  }

  /** What the process still does to the ledger that it had, nobody sees. */
  async crash(): Promise<void> {
    this.#ledger.crash?.();
    await this.restart();
  }

  async close(): Promise<void> {
    await this.renewals.stop();
    await this.commit.drained();
    await this.store.close();
  }

  /** All in one group commit, unless an end user among them has more periods to catch up with than fit. */
  async run(commands: readonly ModelRequest[]): Promise<ModelAnswer[]> {
    const outcomes = commands.map(
      (command) =>
        new Promise<Outcome>((resolve, reject) => {
          this.commit.submit(command, (result) => (result instanceof StoreFault ? reject(result) : resolve(result)));
        }),
    );
    return (await Promise.all(outcomes)).map(answerOf);
  }

  /** `isAhead` tells that it shows a renewal which is not stored yet. */
  async balance(user: ModelUser): Promise<ModelBalance & { isAhead: boolean }> {
    const { now, cycles } = await this.store.cycles(user);
    const current = cyclesAt(cycles, now);
    const isAhead = current.some((cycle) => !cycles.includes(cycle));
    return { balance: activeBalance(current, now), entries: current.map(cycleOf), isAhead };
  }

  /** All of them, read by pages of `limit`, as `http/transaction-list.ts` does it. */
  async transactions(user: ModelUser, limit: number): Promise<{ all: Transaction[]; isAhead: boolean }> {
    let page = await this.store.transactions(user, { from: null, limit });
    const due = [...renewalsDue(page.cycles, page.now)];
    const all = [...due, ...page.transactions];
    while (page.next !== null) {
      assert.equal(page.transactions.length, limit, 'a page is full when another follows');
      page = await this.store.transactions(user, { from: page.next, limit });
      assert(page.transactions.length > 0 && page.transactions.length <= limit, 'a page keeps its limit');
      for (const transaction of page.transactions) all.push(transaction);
    }
    return { all, isAhead: due.length > 0 };
  }

  async #open(): Promise<void> {
    this.store = await this.#ledger.open(() => this.wall);
    this.commit = new GroupCommit(this.store);
    this.renewals = new RenewalJob(this.store, this.commit, (error) => this.troubles.push(error));
  }
}

/** The instant in the leading 48 bits of an id. */
export function instantIn(id: string): number {
  return Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
}

function answerOf(outcome: Outcome): ModelAnswer {
  if (outcome.refused === null) return { ...outcome, cycle: outcome.cycle && cycleOf(outcome.cycle) };
  return outcome.refused === 'CycleAlreadyActive' ? { ...outcome, cycle: cycleOf(outcome.cycle) } : outcome;
}

function cycleOf({ id, type, status, amount, remaining, start, end }: Cycle): ModelCycle {
  return { type, status: status as ModelCycle['status'], amount, remaining, createdAt: instantIn(id), start, end };
}
