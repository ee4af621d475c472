// What the account pages read and write, in memory: commands are decided by the real rules, and every read is a fold of the
// postings.

import { type Batch, batchOf, decideBatch } from '../../src/ledger/batch.ts';
import { type Command, type EndUserKey, endUserText, isSameEndUser, type Outcome } from '../../src/ledger/command.ts';
import { type IdempotencyRecord, nameOf } from '../../src/ledger/idempotency.ts';
import type { Instant } from '../../src/ledger/instant.ts';
import type { Posting } from '../../src/ledger/posting.ts';
import { EMPTY_STATE, type EndUserState, liveState } from '../../src/ledger/state.ts';
import { transactionId } from '../../src/ledger/transaction-id.ts';
import {
  type AccountTransaction,
  type ChartHistory,
  type ConsoleStore,
  type EndUserPage,
  type EndUserSearch,
  type HistoryPage,
  type HistoryRequest,
  type HistoryTransaction,
  historyTransactionOf,
  isUuid,
  laterFirst,
  type Overview,
  overviewOf,
  wholeTransactions,
} from '../../src/store/console-store.ts';
import type { FeedPosting } from '../../src/store/feed.ts';
import type { LoadedEndUser } from '../../src/store/ledger-store.ts';
import { InvalidCursor } from '../../src/store/store-fault.ts';
import { TotalsSum } from '../../src/store/totals.ts';

/** More events of time than any test has. */
const EVENTS_MAX = 10_000;

export class MemoryStore implements ConsoleStore {
  now: Instant;
  /** Oldest first. */
  readonly #postings: FeedPosting[] = [];
  readonly #states = new Map<string, EndUserState>();
  readonly #records = new Map<string, IdempotencyRecord>();
  #sequence = 0;

  constructor(now: Instant) {
    this.now = now;
  }

  submit(command: Command): Outcome {
    const nextId = () => transactionId({ at: this.now, sequence: ++this.#sequence, tail: 'aaaaaaaaaaaa' });
    const batch: Batch = batchOf([command]);
    const loaded = { states: [this.#stateOf(command)], records: this.#records };
    const { outcomes, changes, records } = decideBatch(batch, loaded, { now: this.now, nextId }, EVENTS_MAX);
    for (const { user, postings, after } of changes) {
      this.#states.set(endUserText(user), after);
      for (const posting of postings) this.#postings.push({ user, posting });
    }
    for (const record of records) this.#records.set(nameOf(record), record);
    return outcomes[0] as Outcome;
  }

  load(user: EndUserKey): Promise<LoadedEndUser> {
    return Promise.resolve({ now: this.now, state: this.#stateOf(user) });
  }

  /** All of an account, latest first. */
  transactions(account: number): AccountTransaction[] {
    return this.#endUsers(account)
      .flatMap((endUser) => this.#transactionsOf({ account, endUser }).map((one) => ({ ...one, endUser })))
      .sort(laterFirst);
  }

  async nameOf(account: number): Promise<string> {
    return `Account ${account}`;
  }

  async recent(account: number, limit: number): Promise<readonly AccountTransaction[]> {
    return this.transactions(account).slice(0, limit);
  }

  async endUsers(account: number, { after, prefix, limit }: EndUserSearch): Promise<EndUserPage> {
    if (after !== null && !isUuid(after)) throw new InvalidCursor();
    const found = this.#endUsers(account).filter((endUser) => endUser.startsWith(prefix) && endUser > (after ?? ''));
    const shown = found.slice(0, limit).map((endUser) => {
      return { endUser, latestActivity: this.#postingsOf({ account, endUser }).at(-1)?.createdAt ?? 0 };
    });
    return { endUsers: shown, next: found.length > limit ? (shown.at(-1)?.endUser ?? null) : null };
  }

  async history(user: EndUserKey, { from, limit }: HistoryRequest): Promise<HistoryPage> {
    const start = Number(from ?? 0);
    if (!Number.isInteger(start)) throw new InvalidCursor();
    const all = this.#transactionsOf(user);
    const next = start + limit < all.length ? String(start + limit) : null;
    return { ...(await this.load(user)), transactions: all.slice(start, start + limit), next };
  }

  async chartHistory(user: EndUserKey): Promise<ChartHistory> {
    return { now: this.now, since: 0, state: EMPTY_STATE, postings: this.#postingsOf(user) };
  }

  async overview(account: number, { days }: { readonly days: number }): Promise<Overview> {
    const sum = new TotalsSum();
    for (const entry of this.#postings) if (entry.user.account === account) sum.add(entry);
    return overviewOf(sum.totals(), { now: this.now, asOf: this.now }, days);
  }

  #stateOf(user: EndUserKey): EndUserState {
    return liveState(this.#states.get(endUserText(user)) ?? EMPTY_STATE, this.now);
  }

  /** In the order of their UUIDs. */
  #endUsers(account: number): string[] {
    const ofAccount = this.#postings.filter(({ user }) => user.account === account);
    return [...new Set(ofAccount.map(({ user }) => user.endUser))].sort();
  }

  #postingsOf(user: EndUserKey): Posting[] {
    return this.#postings.filter((entry) => isSameEndUser(entry.user, user)).map(({ posting }) => posting);
  }

  /** Latest first. */
  #transactionsOf(user: EndUserKey): HistoryTransaction[] {
    const transactions = wholeTransactions(this.#postingsOf(user), ({ transactionId }) => transactionId);
    return [...transactions].map(historyTransactionOf).reverse();
  }
}
