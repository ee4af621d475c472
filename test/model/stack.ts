// The real ledger for the model test, in one process: a store, group commit, the renewal job and the feed, with a clock
// that the test sets. Outcomes are converted to the types of the reference model.

import assert from 'node:assert/strict';
import { GroupCommit } from '../../src/batching/group-commit.ts';
import { RenewalJob } from '../../src/batching/renewal-job.ts';
import { activeBalance, cyclesAt } from '../../src/ledger/balance.ts';
import type { Idempotency, Outcome } from '../../src/ledger/command.ts';
import type { Cycle } from '../../src/ledger/cycle.ts';
import type { Instant } from '../../src/ledger/instant.ts';
import { isSettled } from '../../src/ledger/next-event.ts';
import type { Transaction } from '../../src/ledger/posting.ts';
import { dueTransactions } from '../../src/ledger/settle.ts';
import { StoreFault } from '../../src/store/store-fault.ts';
import { type NewLedger, TestLedger } from '../store/test-ledger.ts';
import type { ModelBalance, ModelCommand, ModelCycle, ModelOutcome, ModelUser } from './reference-model.ts';

/** A command with an optional idempotency key. */
export type ModelRequest = ModelCommand & { readonly idempotency?: Idempotency | null };

/** @property replayOf the id of the first request with the same key, if its outcome is replayed */
export type ModelResponse = (ModelOutcome | { readonly refused: 'IdempotencyKeyReused' }) & {
  readonly replayOf?: string;
};

export class Stack {
  readonly ledger: TestLedger;
  commit!: GroupCommit;
  renewals!: RenewalJob;
  /** The errors of failed rounds of the renewal job. */
  readonly troubles: unknown[] = [];

  static async open(make: NewLedger, wall: Instant): Promise<Stack> {
    return new Stack(await TestLedger.open(make, wall));
  }

  private constructor(ledger: TestLedger) {
    this.ledger = ledger;
    this.#begin();
  }

  async restart(): Promise<void> {
    await this.#end();
    await this.ledger.reopen();
    this.#begin();
  }

  /** Simulates a crash: anything that the old process still writes to its ledger is discarded. */
  async crash(): Promise<void> {
    await this.ledger.crash(() => this.#end());
    this.#begin();
  }

  async close(): Promise<void> {
    await this.#end();
    await this.ledger.close();
    await this.ledger.remove();
  }

  /** Submits all commands at once: they form one batch unless an end user has more due renewals than fit it. */
  async run(commands: readonly ModelRequest[]): Promise<ModelResponse[]> {
    return (await Promise.all(commands.map((command) => this.#submit(command)))).map(responseOf);
  }

  /** Like `run`, but every COMMIT fails and has no effect. */
  async runFailing(commands: readonly ModelRequest[]): Promise<void> {
    const results = await this.ledger.whileCommitsFail(() =>
      Promise.allSettled(commands.map((command) => this.#submit(command))),
    );
    for (const [index, result] of results.entries()) {
      // A refusal and a second stop store nothing and need no COMMIT.
      if (result.status === 'fulfilled')
        assert(result.value.refused !== null || commands[index]?.kind === 'stop-cycle', 'nothing was committed');
      else assert(result.reason instanceof StoreFault, `a failed COMMIT is a fault of the store, not ${result.reason}`);
    }
    // The next write reopens the store.
    await this.ledger.write([{ kind: 'settle', account: 404, endUser: '00000000-0000-4000-8000-000000000404' }]);
  }

  /** `isAhead`: whether the balance includes a renewal that is not stored yet. */
  async balance(user: ModelUser): Promise<ModelBalance & { isAhead: boolean }> {
    const { now, state } = await this.ledger.load(user);
    const current = cyclesAt(state, now);
    return { balance: activeBalance(current, now), entries: current.map(cycleOf), isAhead: !isSettled(state, now) };
  }

  /** All transactions, read in pages of `limit` as in `http/api/transaction-list.ts`. */
  async transactions(user: ModelUser, limit: number): Promise<{ all: Transaction[]; isAhead: boolean }> {
    let page = await this.ledger.transactions(user, { limit });
    const due = [...dueTransactions(page.state, page.now)];
    const all = [...due, ...page.transactions];
    while (page.next !== null) {
      assert.equal(page.transactions.length, limit, 'a page is full if another page follows');
      page = await this.ledger.transactions(user, { from: page.next, limit });
      assert(
        page.transactions.length > 0 && page.transactions.length <= limit,
        'a page has at least one transaction and at most `limit`',
      );
      for (const transaction of page.transactions) all.push(transaction);
    }
    return { all, isAhead: due.length > 0 };
  }

  #submit(command: ModelRequest): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.commit.submit(command, (result) => (result instanceof Error ? reject(result) : resolve(result)));
    });
  }

  #begin(): void {
    this.commit = new GroupCommit(this.ledger.store);
    this.renewals = new RenewalJob(this.ledger.store, this.commit, (error) => this.troubles.push(error));
  }

  async #end(): Promise<void> {
    await this.renewals.stop();
    await this.commit.drained();
  }
}

/** The instant in the leading 48 bits of an id. */
export function instantIn(id: string): number {
  return Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
}

function responseOf(outcome: Outcome): ModelResponse {
  if (outcome.refused === null) return { ...outcome, cycle: outcome.cycle && cycleOf(outcome.cycle) };
  return outcome.refused === 'CycleAlreadyActive' ? { ...outcome, cycle: cycleOf(outcome.cycle) } : outcome;
}

function cycleOf({ id, type, status, amount, remaining, start, end }: Cycle): ModelCycle {
  // A superseded cycle is shown as canceled.
  const shown = status === 'superseded' ? 'canceled' : status;
  return { type, status: shown, amount, remaining, createdAt: instantIn(id), start, end };
}
