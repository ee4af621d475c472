// What a store can do for a copy of a whole ledger: give out its rows in one order, and take them in. Apart from the port
// of the service, since a ledger that is copied is not served.

import type { Scope } from '../accounts/api-key.ts';
import type { Finding } from '../ledger/audit.ts';
import type { EndUserKey } from '../ledger/command.ts';
import type { Cycle } from '../ledger/cycle.ts';
import type { ChainHash } from '../ledger/hash-chain.ts';
import type { IdempotencyRecord } from '../ledger/idempotency.ts';
import type { Instant } from '../ledger/instant.ts';
import type { Posting } from '../ledger/posting.ts';
import type { TransactionId } from '../ledger/transaction-id.ts';
import type { PeopleRow } from './people-rows.ts';
import type { AuditReport } from './store.ts';
import type { IdPosition } from './transaction-ids.ts';

export interface AccountRow {
  readonly account: number;
  readonly name: string;
  readonly createdAt: Instant;
}

export interface KeyRow {
  readonly id: number;
  readonly account: number;
  readonly scope: Scope;
  readonly secretSha256: string;
  readonly hint: string;
  readonly createdAt: Instant;
  readonly revokedAt: Instant | null;
  readonly name: string;
  readonly lastUsedAt: Instant | null;
}

/** What a ledger holds beside its end users. Small enough to be held in memory. */
export interface LedgerHead {
  /** By number, as are the keys. */
  readonly accounts: readonly AccountRow[];
  readonly keys: readonly KeyRow[];
  /** The latest instant that the ledger has given out. */
  readonly clock: IdPosition;
}

/**
 * What is stored of one end user comes as one record after another: its cycles by end and id, its postings from the
 * first to the latest, and then, as a sign that it is complete, the end user itself.
 */
export type LedgerRecord =
  | { readonly kind: 'cycle'; readonly user: EndUserKey; readonly cycle: Cycle }
  | { readonly kind: 'posting'; readonly user: EndUserKey; readonly posting: Posting }
  | {
      readonly kind: 'end-user';
      readonly user: EndUserKey;
      readonly latest: TransactionId | null;
      /** The head of its chain as stored; null when none is kept. A copy keeps one where its source does. */
      readonly chain: ChainHash | null;
    };

export interface Totals {
  readonly endUsers: number;
  readonly postings: number;
}

/** Records that travel together. An end user may have more: then it goes on in the next batch. */
export const RECORDS_PER_BATCH = 1_000;

/** A ledger from which nothing but the copy is served, for as long as this is open. */
export interface CopySource {
  /** For sentences: what the operator knows it by, without a password. */
  readonly name: string;
  head(): Promise<LedgerHead>;
  totals(): Promise<Totals>;
  /** The records of the end users behind `after`, by account and end user, in one snapshot. */
  dump(after: EndUserKey | null): AsyncIterable<readonly LedgerRecord[]>;
  /** The answers to idempotency keys, by account, end user and key in the order of their bytes. */
  answers(): AsyncIterable<readonly IdempotencyRecord[]>;
  /** Of the console, by table and key. Few enough to be held in memory. */
  people(): Promise<readonly PeopleRow[]>;
  audit(report: (finding: Finding) => void): Promise<AuditReport>;
  close(): Promise<void>;
}

/**
 * A ledger that is being made by a copy. It bears a mark that says of which source it is a copy and how far it has come;
 * as long as the mark is there, no store opens the ledger.
 */
export interface CopyDestination extends CopySource {
  /**
   * Marks an empty ledger, and gives it the accounts and keys of `head`; or finds the mark of the same copy.
   *
   * @param source a name that the source keeps for as long as nothing in it changes
   * @returns the last end user that is complete; null when there is none
   * @throws CannotOpen when it holds anything else
   */
  begin(source: string, head: LedgerHead): Promise<EndUserKey | null>;
  /** Writes records that follow those of the last call, all in one transaction until `commit`. */
  load(records: readonly LedgerRecord[]): Promise<void>;
  /** Puts what was loaded on stable storage, together with the mark that all up to `last` is there. */
  commit(last: EndUserKey): Promise<void>;
  /** Enters these answers and takes away all others, in one transaction: whoever was interrupted begins anew. */
  loadAnswers(answers: AsyncIterable<readonly IdempotencyRecord[]>): Promise<void>;
  /** Enters these people and takes away all others, in one transaction. */
  loadPeople(people: readonly PeopleRow[]): Promise<void>;
  /** Moves the clock up to `position`, unless it is there already. */
  moveClock(position: IdPosition): Promise<void>;
  /** Adds up what is derived from the postings: it is not copied. The clock has been moved before. */
  addUpTotals(): Promise<void>;
  /** Takes the mark away: from now on it is a ledger like any other. */
  finish(): Promise<void>;
}

/** Gathers records into batches of a bounded size. */
export function* inBatches<Row>(records: Iterable<Row>): Generator<readonly Row[]> {
  let batch: Row[] = [];
  for (const record of records) {
    batch.push(record);
    if (batch.length < RECORDS_PER_BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
