// The real ledger for the model tests, in one process, with a clock that the test sets.

import assert from 'node:assert/strict';
import { GroupCommit } from '../../src/batching/group-commit.ts';
import { RenewalJob } from '../../src/batching/renewal-job.ts';
import { activeBalance, cyclesAt } from '../../src/ledger/balance.ts';
import type { Idempotency, Outcome } from '../../src/ledger/command.ts';
import { type Cycle, spendable } from '../../src/ledger/cycle.ts';
import { refundableOf } from '../../src/ledger/decide-refund.ts';
import { balanceAt } from '../../src/ledger/history.ts';
import { heldBy } from '../../src/ledger/hold.ts';
import type { Instant } from '../../src/ledger/instant.ts';
import type { Transaction } from '../../src/ledger/posting.ts';
import { previewOf } from '../../src/ledger/preview.ts';
import { dueCount, dueTransactions, settle } from '../../src/ledger/settle.ts';
import type { EndUserState } from '../../src/ledger/state.ts';
import { StoreFault } from '../../src/store/store-fault.ts';
import {
  type HistoryFilter,
  type HistoryTransaction,
  historyTransactionOf,
  passes,
  wholeTransactions,
} from '../../src/store/transaction-history.ts';
import { type NewLedger, TestLedger } from '../store/test-ledger.ts';
import type {
  ModelBalance,
  ModelCommand,
  ModelCycle,
  ModelHistoryEntry,
  ModelOutcome,
  ModelPreview,
  ModelRefused,
  ModelUser,
} from './model-types.ts';

type ModelStart = Extract<ModelCommand, { kind: 'start-cycle' }>;

export type ModelRequest = ModelCommand & { readonly idempotency?: Idempotency | null };

export type ModelResponse = (ModelOutcome | { readonly refused: 'IdempotencyKeyReused' }) & {
  readonly replayOf?: string;
};

const EVENTS_MAX = 1_000_000;

export class Stack {
  readonly ledger: TestLedger;
  commit!: GroupCommit;
  renewals!: RenewalJob;
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

  /** The old process is stopped only after the simulated crash, so anything that it still writes can be lost. */
  async crash(): Promise<void> {
    await this.ledger.crash(() => this.#end());
    this.#begin();
  }

  async close(): Promise<void> {
    await this.#end();
    await this.ledger.close();
    await this.ledger.remove();
  }

  /** The commands form one batch, unless an end user has too many due events for one batch. */
  async run(commands: readonly ModelRequest[]): Promise<ModelResponse[]> {
    return (await Promise.all(commands.map((command) => this.#submit(command)))).map(responseOf);
  }

  async runFailing(commands: readonly ModelRequest[]): Promise<void> {
    const results = await this.ledger.whileCommitsFail(() =>
      Promise.allSettled(commands.map((command) => this.#submit(command))),
    );
    for (const [index, result] of results.entries()) {
      // A refused command or a repeated `stop-cycle` stores nothing, so it gets an outcome even while COMMITs fail.
      if (result.status === 'fulfilled')
        assert(result.value.refused !== null || commands[index]?.kind === 'stop-cycle', 'nothing was committed');
      else
        assert(
          result.reason instanceof StoreFault,
          `a failed COMMIT is reported as a StoreFault, not as ${result.reason}`,
        );
    }
    // The first write after a failed COMMIT reopens the store.
    await this.ledger.write([{ kind: 'settle', account: 404, endUser: '00000000-0000-4000-8000-000000000404' }]);
  }

  async balance(
    user: ModelUser,
  ): Promise<ModelBalance & { now: Instant; ahead: { renewal: boolean; lapse: boolean } }> {
    const { now, state } = await this.ledger.load(user);
    const balance = activeBalance(cyclesAt(state, now), now);
    const ahead = { renewal: dueCount(state, now) > 0, lapse: state.holds.some(({ expiresAt }) => expiresAt <= now) };
    return { ...balanceOf(state, now), balance, now, ahead };
  }

  async preview(command: ModelStart): Promise<{ now: Instant; preview: ModelPreview | ModelRefused }> {
    const { now, state } = await this.ledger.load(command);
    const preview = previewOf(state, command, now);
    if (preview.refused !== null) return { now, preview: responseOf(preview) as ModelRefused };
    const { cycles, ...others } = preview;
    return { now, preview: { ...others, entries: cycles.map(cycleOf) } };
  }

  /** `instants` must be in ascending order. */
  async balancesAt(
    user: ModelUser,
    instants: readonly Instant[],
  ): Promise<{ now: Instant; balances: readonly ModelBalance[] }> {
    const { now, states } = await this.ledger.store.statesAt(user, instants);
    assert.equal(states.length, instants.length, 'there is a state for each instant');
    return { now, balances: states.map((state, index) => balanceOf(state, instants[index] as Instant)) };
  }

  async transactions(user: ModelUser, limit: number): Promise<{ all: Transaction[]; isAhead: boolean }> {
    let page = await this.ledger.transactions(user, { limit });
    const due = [...dueTransactions(page.state, page.now)];
    const all = [...due, ...page.transactions];
    while (page.next !== null) {
      assert.equal(page.transactions.length, limit, 'a page is full if another page follows');
      page = await this.ledger.transactions(user, { from: page.next, limit });
      assert(
        page.transactions.length > 0 && page.transactions.length <= limit,
        'a page has at most `limit` transactions',
      );
      for (const transaction of page.transactions) all.push(transaction);
    }
    return { all, isAhead: due.length > 0 };
  }

  async history(
    user: ModelUser,
    limit: number,
    filter: HistoryFilter,
  ): Promise<{ all: ModelHistoryEntry[]; isAhead: boolean }> {
    const { store } = this.ledger;
    let page = await store.history(user, { from: null, limit, ...filter });
    const { postings } = settle(page.state, page.now, EVENTS_MAX);
    const { within } = filter;
    const due = [...wholeTransactions(postings, ({ transactionId }) => transactionId)]
      .map((whole) => historyTransactionOf(whole))
      .filter((each) => passes(each, filter) && (within === undefined || each.id >= within.first));
    const all = [...due.reverse(), ...page.transactions];
    while (page.next !== null) {
      page = await store.history(user, { from: page.next, limit, ...filter });
      assert(page.transactions.length <= limit, 'a page has at most `limit` transactions');
      for (const transaction of page.transactions) all.push(transaction);
    }
    return { all: all.map(historyEntryOf), isAhead: due.some(({ kind }) => kind === 'lapse') };
  }

  async refundable(user: ModelUser, id: string): Promise<number | null> {
    const found = await this.ledger.store.find(user, id);
    return found === null ? null : refundableOf(found);
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

export function instantIn(id: string): number {
  return Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
}

function responseOf(outcome: Outcome): ModelResponse {
  if (outcome.refused === 'CycleAlreadyActive') return { ...outcome, cycle: cycleOf(outcome.cycle) };
  if (outcome.refused !== null) return outcome;
  const { cycle, ...others } = outcome;
  return cycle === undefined ? others : { ...others, cycle: cycleOf(cycle) };
}

function balanceOf(state: EndUserState, at: Instant): ModelBalance {
  const { balance, held } = balanceAt(state, at);
  const open = state.holds.filter(({ expiresAt }) => expiresAt > at);
  const holds = open.map((hold) => {
    return { id: hold.id, amount: heldBy(hold), createdAt: instantIn(hold.id), expiresAt: hold.expiresAt };
  });
  const entries = cyclesAt(state, at).map(cycleOf);
  return { balance, held, entries, holds: holds.toSorted((a, b) => (a.id < b.id ? -1 : 1)) };
}

function cycleOf(cycle: Cycle): ModelCycle {
  const { id, type, status, amount, held, start, end, plan } = cycle;
  // The API shows a superseded cycle as canceled.
  const shown = status === 'superseded' ? 'canceled' : status;
  const { validityMonths, rolloverMax } = plan;
  const next = cycle.next === null ? null : { ...cycle.next.plan, startsAt: end };
  const credits = { amount, spendable: spendable(cycle), held };
  return { type, status: shown, ...credits, createdAt: instantIn(id), start, end, validityMonths, rolloverMax, next };
}

/** Transactions of these kinds neither add nor spend credits, so their `expiresAt` has no meaning. */
const WITHOUT_END = ['schedule-plan', 'hold', 'release', 'lapse', 'stop-cycle'];

function historyEntryOf(transaction: HistoryTransaction): ModelHistoryEntry {
  const { id, kind, amount, createdAt, expiresAt, actor, note, reference, postings, refundable } = transaction;
  const touched = postings.map(({ cycleId: cycle, period, amount, held }) => ({ cycle, period, amount, held }));
  const end = WITHOUT_END.includes(kind) ? null : expiresAt;
  return { id, kind, amount, createdAt, expiresAt: end, actor, note, reference, touched, refundable };
}
