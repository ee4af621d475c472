// An in-memory store for the account pages.

import assert from 'node:assert/strict';
import { applyAll } from '../../src/ledger/apply.ts';
import { type Batch, batchOf, decideBatch, referenceName } from '../../src/ledger/batch.ts';
import {
  type Command,
  type EndUserKey,
  endUserOf,
  endUserText,
  isSameEndUser,
  type Outcome,
  type WriteCommand,
} from '../../src/ledger/command.ts';
import type { Referenced } from '../../src/ledger/decide-refund.ts';
import { type IdempotencyRecord, nameOf } from '../../src/ledger/idempotency.ts';
import type { Instant } from '../../src/ledger/instant.ts';
import { nextEventAt } from '../../src/ledger/next-event.ts';
import type { Posting } from '../../src/ledger/posting.ts';
import { EMPTY_STATE, type EndUserState, liveState } from '../../src/ledger/state.ts';
import { FIRST_SEQUENCE, type TransactionId, transactionId } from '../../src/ledger/transaction-id.ts';
import {
  type AccountTransaction,
  type ConsoleStore,
  laterFirst,
  type Overview,
  type OverviewRequest,
  overviewOf,
} from '../../src/store/console-store.ts';
import {
  cursorBehind,
  type EndUserList,
  type EndUserPage,
  type ListedEndUser,
  type ListRequest,
  pageOf,
} from '../../src/store/end-user-lists.ts';
import { type EndUserCounts, summaryOf } from '../../src/store/end-user-summaries.ts';
import type { FeedPosting } from '../../src/store/feed.ts';
import type { LedgerStore, StatesAt } from '../../src/store/ledger-store.ts';
import type { LoadedEndUser } from '../../src/store/loaded-end-user.ts';
import { InvalidCursor } from '../../src/store/store-fault.ts';
import { TotalsSum } from '../../src/store/totals.ts';
import {
  type HistoryPage,
  type HistoryRequest,
  type HistoryTransaction,
  historyTransactionOf,
  passes,
  wholeTransactions,
} from '../../src/store/transaction-history.ts';

const EVENTS_MAX = 10_000;

export type CommandWithout<Field extends keyof WriteCommand, Each = WriteCommand> = Each extends unknown
  ? Omit<Each, Field>
  : never;

type LedgerReads = Pick<LedgerStore, 'load' | 'history' | 'statesAt' | 'find' | 'due'>;

export class MemoryStore implements ConsoleStore, LedgerReads {
  now: Instant;
  readonly #postings: FeedPosting[] = [];
  readonly #states = new Map<string, EndUserState>();
  readonly #records = new Map<string, IdempotencyRecord>();
  #sequence = FIRST_SEQUENCE;

  constructor(now: Instant) {
    this.now = now;
  }

  submit(command: Command): Outcome {
    const nextId = () => transactionId({ at: this.now, sequence: this.#sequence++, tail: 'aaaaaaaaaaaa' });
    const batch: Batch = batchOf([command]);
    const referenced = new Map(
      batch.references.flatMap((reference) => {
        const found = this.#find(command, reference.transaction);
        return found === null ? [] : [[referenceName(reference), found] as const];
      }),
    );
    const loaded = { states: [this.#stateOf(command)], records: this.#records, referenced };
    const { outcomes, changes, records } = decideBatch(batch, loaded, { now: this.now, nextId }, EVENTS_MAX);
    for (const { user, postings, after } of changes) {
      this.#states.set(endUserText(user), after);
      for (const posting of postings) this.#postings.push({ user, posting });
    }
    for (const record of records) this.#records.set(nameOf(record), record);
    return outcomes[0] as Outcome;
  }

  transact(command: WriteCommand): string {
    const outcome = this.submit(command);
    assert(outcome.refused === null && outcome.transactionId !== null, `${command.kind} is accepted`);
    return outcome.transactionId;
  }

  load(user: EndUserKey): Promise<LoadedEndUser> {
    return Promise.resolve({ now: this.now, state: this.#stateOf(user) });
  }

  transactions(account: number): AccountTransaction[] {
    return this.#endUsers(account)
      .flatMap((endUser) => this.#transactionsOf({ account, endUser }).map((one) => ({ ...one, endUser })))
      .sort(laterFirst);
  }

  async nameOf(account: number): Promise<string> {
    return `Account ${account}`;
  }

  async recent(account: number, limit: number): Promise<readonly AccountTransaction[]> {
    const latest = new Map(
      this.transactions(account)
        .toReversed()
        .map((one) => [one.endUser, one]),
    );
    return [...latest.values()].sort(laterFirst).slice(0, limit);
  }

  async endUsers(account: number, { list, after, limit }: ListRequest): Promise<EndUserPage> {
    const all = this.#listed(account)
      .filter((endUser) => isListed(endUser, list))
      .sort(inOrderOf(list));
    const start = after === null ? 0 : all.findIndex((endUser) => cursorBehind(endUser, list) === after) + 1;
    if (after !== null && start === 0) throw new InvalidCursor();
    return { asOf: this.now, ...pageOf(all.slice(start), { list, after, limit }) };
  }

  async endUserCounts(account: number): Promise<EndUserCounts> {
    const all = this.#listed(account);
    return { endUsers: all.length, withCredits: all.filter(({ balance }) => balance > 0).length };
  }

  async history(user: EndUserKey, request: HistoryRequest): Promise<HistoryPage> {
    const { from, limit, within } = request;
    const start = Number(from ?? 0);
    if (!Number.isInteger(start)) throw new InvalidCursor();
    const all = this.#transactionsOf(user).filter(
      (one) => passes(one, request) && (!within || (one.id >= within.first && one.id <= within.last)),
    );
    const next = start + limit < all.length ? String(start + limit) : null;
    const opened = this.#postingsOf(user).filter(({ cycleId, transactionId }) => cycleId === transactionId);
    const terms = new Map(opened.flatMap(({ cycleId, terms }) => (terms === null ? [] : [[cycleId, terms] as const])));
    return { ...(await this.load(user)), transactions: all.slice(start, start + limit), next, terms };
  }

  async statesAt(user: EndUserKey, instants: readonly Instant[]): Promise<StatesAt> {
    const postings = this.#postingsOf(user);
    const stateAt = (at: Instant) =>
      applyAll(
        EMPTY_STATE,
        postings.filter(({ createdAt }) => createdAt <= at),
      );
    return { now: this.now, states: instants.map(stateAt) };
  }

  async find(user: EndUserKey, id: TransactionId): Promise<Referenced | null> {
    return this.#find(user, id);
  }

  async due(limit: number): Promise<readonly EndUserKey[]> {
    const due = [...this.#states].filter(([, state]) => nextEventAt(state) <= this.now);
    return due.slice(0, limit).map(([name]) => endUserOf(name));
  }

  async overview(account: number, request: OverviewRequest): Promise<Overview> {
    const sum = new TotalsSum();
    for (const entry of this.#postings) if (entry.user.account === account) sum.add(entry);
    return overviewOf(sum.totals(), { now: this.now, asOf: this.now }, request);
  }

  #listed(account: number): ListedEndUser[] {
    return this.#endUsers(account).map((endUser) => {
      const latestActivity = this.#postingsOf({ account, endUser }).at(-1)?.createdAt ?? 0;
      return { endUser, latestActivity, ...summaryOf(this.#stateOf({ account, endUser }), this.now) };
    });
  }

  #stateOf(user: EndUserKey): EndUserState {
    return liveState(this.#states.get(endUserText(user)) ?? EMPTY_STATE, this.now);
  }

  #endUsers(account: number): string[] {
    const ofAccount = this.#postings.filter(({ user }) => user.account === account);
    return [...new Set(ofAccount.map(({ user }) => user.endUser))].sort();
  }

  #postingsOf(user: EndUserKey): Posting[] {
    return this.#postings.filter((entry) => isSameEndUser(entry.user, user)).map(({ posting }) => posting);
  }

  #transactionsOf(user: EndUserKey): HistoryTransaction[] {
    const transactions = wholeTransactions(this.#postingsOf(user), ({ transactionId }) => transactionId);
    return [...transactions]
      .map((postings) => historyTransactionOf(postings, this.#refundsOf(user, postings[0].transactionId)))
      .reverse();
  }

  #find(user: EndUserKey, id: TransactionId): Referenced | null {
    const postings = this.#postingsOf(user).filter(({ transactionId }) => transactionId === id);
    return postings.length === 0 ? null : { postings, refunds: this.#refundsOf(user, id) };
  }

  #refundsOf(user: EndUserKey, id: TransactionId): Posting[] {
    return this.#postingsOf(user).filter(({ kind, reference }) => kind === 'refund' && reference === id);
  }
}

function isListed({ endUser, balance, expiresAt }: ListedEndUser, list: EndUserList): boolean {
  switch (list.by) {
    case 'low-balance':
      return balance > 0 && balance <= list.balanceMax;
    case 'no-credits':
      return balance === 0;
    case 'expiry':
      return expiresAt !== null && expiresAt <= list.until;
    case 'id':
      return endUser.replaceAll('-', '').startsWith(list.prefix.replaceAll('-', ''));
    default:
      return true;
  }
}

function inOrderOf({ by }: EndUserList): (a: ListedEndUser, b: ListedEndUser) => number {
  const byId = (a: ListedEndUser, b: ListedEndUser) => (a.endUser < b.endUser ? -1 : 1);
  const byActivity = (a: ListedEndUser, b: ListedEndUser) => a.latestActivity - b.latestActivity || byId(a, b);
  const byBalance = (a: ListedEndUser, b: ListedEndUser) => a.balance - b.balance || byActivity(a, b);
  switch (by) {
    case 'id':
      return byId;
    case 'low-balance':
      return byBalance;
    case 'balance':
      return (a, b) => byBalance(b, a);
    case 'expiry':
      return (a, b) => (a.expiresAt ?? 0) - (b.expiresAt ?? 0) || byId(a, b);
    default:
      return (a, b) => byActivity(b, a);
  }
}
