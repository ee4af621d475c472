// A digest over all rows of a ledger in one order, whatever keeps it: two ledgers are the same when their digests are.

import { createHash, type Hash } from 'node:crypto';
import type { Cycle } from '../ledger/cycle.ts';
import type { IdempotencyRecord } from '../ledger/idempotency.ts';
import type { Posting } from '../ledger/posting.ts';
import type { TransactionId } from '../ledger/transaction-id.ts';
import type { CopySource, LedgerHead, LedgerRecord, Totals } from './ledger-copy.ts';
import { type PeopleRow, peopleIn } from './people-rows.ts';
import { storedOutcome } from './stored-outcome.ts';

export interface LedgerDigest extends Totals {
  readonly sha256: string;
  readonly accounts: number;
  readonly keys: number;
  /** Who sign in to the console. */
  readonly people: number;
  readonly cycles: number;
  /** The transaction that sorts last of all; null when there is none. */
  readonly latest: TransactionId | null;
}

/** @param progress told how many postings were read since it was last told */
export async function digestOf(source: CopySource, progress: (postings: number) => void): Promise<LedgerDigest> {
  const head = await source.head();
  const digest = new RecordDigest(head);
  for await (const records of source.dump(null)) {
    const before = digest.counts.postings;
    for (const record of records) digest.add(record);
    progress(digest.counts.postings - before);
  }
  for await (const answers of source.answers()) for (const answer of answers) digest.addAnswer(answer);
  const people = await source.people();
  for (const row of people) digest.addPeople(row);
  const sha256 = digest.end();
  return {
    ...digest.counts,
    accounts: head.accounts.length,
    keys: head.keys.length,
    people: peopleIn(people),
    latest: digest.latest,
    sha256,
  };
}

/** Of accounts and keys alone. The clock is left out: that of a copy may be later. */
export function headDigest(head: LedgerHead): string {
  return hashOfHead(head).digest('hex');
}

class RecordDigest {
  readonly counts = { endUsers: 0, postings: 0, cycles: 0 };
  latest: TransactionId | null = null;
  readonly #hash: Hash;
  /** The postings of the transaction that is being read. */
  #transaction: Posting[] = [];

  constructor(head: LedgerHead) {
    this.#hash = hashOfHead(head);
  }

  add(record: LedgerRecord): void {
    if (record.kind === 'posting') this.#addPosting(record.posting);
    else this.#endTransaction();
    const { account, endUser } = record.user;
    if (record.kind === 'cycle') {
      this.counts.cycles += 1;
      this.#line(['cycle', account, endUser, ...cycleColumns(record.cycle)]);
    }
    if (record.kind === 'end-user') {
      this.counts.endUsers += 1;
      this.#line(['end-user', account, endUser, record.latest]);
    }
  }

  addAnswer({ account, endUser, key, request, requestId, outcome, answeredAt }: IdempotencyRecord): void {
    this.#endTransaction();
    this.#line(['answer', account, endUser, key, request, requestId, storedOutcome(outcome), answeredAt]);
  }

  addPeople({ table, values }: PeopleRow): void {
    this.#endTransaction();
    this.#line([table, ...values]);
  }

  end(): string {
    this.#endTransaction();
    return this.#hash.digest('hex');
  }

  #addPosting(posting: Posting): void {
    this.counts.postings += 1;
    if (this.latest === null || posting.transactionId > this.latest) this.latest = posting.transactionId;
    if (this.#transaction[0]?.transactionId !== posting.transactionId) this.#endTransaction();
    this.#transaction.push(posting);
  }

  /** The postings of one transaction have no order among them: PostgreSQL keeps none. */
  #endTransaction(): void {
    const postings = this.#transaction.sort((a, b) => (a.cycleId < b.cycleId ? -1 : 1));
    for (const posting of postings) this.#line(['posting', ...postingColumns(posting)]);
    this.#transaction = [];
  }

  #line(columns: readonly unknown[]): void {
    this.#hash.update(`${JSON.stringify(columns)}\n`);
  }
}

function hashOfHead({ accounts, keys }: LedgerHead): Hash {
  const hash = createHash('sha256');
  for (const { account, name, createdAt } of accounts)
    hash.update(`${JSON.stringify(['account', account, name, createdAt])}\n`);
  // When a key was last used is left out, as is the clock: it changes without anything being changed.
  for (const { id, account, scope, secretSha256, hint, createdAt, revokedAt, name } of keys)
    hash.update(`${JSON.stringify(['key', id, account, scope, secretSha256, hint, createdAt, revokedAt, name])}\n`);
  return hash;
}

function cycleColumns({ id, period, type, status, amount, remaining, start, end, validityDays }: Cycle): unknown[] {
  return [id, period, type, status, amount, remaining, start, end, validityDays];
}

function postingColumns(posting: Posting): unknown[] {
  const { transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor, note } = posting;
  return [transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor, note];
}
