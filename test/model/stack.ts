// The real ledger in one process, as the model test drives it: a store, group commit and the renewal clock, on a
// machine's clock that is moved by hand. Its answers come in the shapes of the reference model, to be compared.

import assert from 'node:assert/strict';
import { GroupCommit } from '../../src/commit/group-commit.ts';
import { RenewalClock } from '../../src/commit/renewal-clock.ts';
import { activeBalance } from '../../src/ledger/balance.ts';
import type { Outcome } from '../../src/ledger/command.ts';
import type { Cycle } from '../../src/ledger/cycle.ts';
import type { Transaction } from '../../src/ledger/posting.ts';
import { cyclesAt, renewalsDue } from '../../src/ledger/settle.ts';
import { type Store, StoreFault } from '../../src/store/store.ts';
import type { ModelBalance, ModelCommand, ModelCycle, ModelOutcome, ModelUser } from './reference-model.ts';

/** Opens the ledger, the first time and again after it was closed. */
export type OpenStore = (wall: () => number) => Promise<Store>;

export class Stack {
  /** What the machine's clock says. */
  wall: number;
  store!: Store;
  commit!: GroupCommit;
  renewals!: RenewalClock;
  /** What the renewal clock complained about. */
  readonly troubles: unknown[] = [];
  readonly #openStore: OpenStore;

  static async open(openStore: OpenStore, wall: number): Promise<Stack> {
    const stack = new Stack(openStore, wall);
    await stack.#open();
    return stack;
  }

  private constructor(openStore: OpenStore, wall: number) {
    this.#openStore = openStore;
    this.wall = wall;
  }

  async restart(): Promise<void> {
    await this.close();
    await this.#open();
  }

  async close(): Promise<void> {
    await this.renewals.stop();
    await this.commit.drained();
    await this.store.close();
  }

  /** All in one group commit, unless an end user among them has more periods to catch up with than fit. */
  async run(commands: readonly ModelCommand[]): Promise<ModelOutcome[]> {
    const outcomes = commands.map(
      (command) =>
        new Promise<Outcome>((resolve, reject) => {
          this.commit.submit(command, (result) => (result instanceof StoreFault ? reject(result) : resolve(result)));
        }),
    );
    return (await Promise.all(outcomes)).map(outcomeOf);
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
    this.store = await this.#openStore(() => this.wall);
    this.commit = new GroupCommit(this.store);
    this.renewals = new RenewalClock(this.store, this.commit, (error) => this.troubles.push(error));
  }
}

/** The instant in the leading 48 bits of an id. */
export function instantIn(id: string): number {
  return Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
}

function outcomeOf(outcome: Outcome): ModelOutcome {
  if (outcome.refused === null) return { refused: null, cycle: outcome.cycle && cycleOf(outcome.cycle) };
  if (outcome.refused === 'CycleAlreadyActive') return { ...outcome, cycle: cycleOf(outcome.cycle) };
  assert(outcome.refused !== 'IdempotencyKeyReused', 'no command of the model has a key');
  return outcome;
}

function cycleOf({ id, type, status, amount, remaining, start, end }: Cycle): ModelCycle {
  return { type, status: status as ModelCycle['status'], amount, remaining, createdAt: instantIn(id), start, end };
}
