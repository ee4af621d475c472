// The port: what the rest of Scrip asks of a store. An adapter loads, locks, writes and commits; every rule comes from
// the ledger. All writes of credits that anybody asks for go through `write`, and all through group commit, so that this is the
// one way in. Renewals, which time alone does, a store may enter by itself.

import type { ApiKey, Scope } from '../accounts/api-key.ts';
import type { Finding } from '../ledger/audit.ts';
import type { Command, EndUserKey, Outcome } from '../ledger/command.ts';
import type { Instant } from '../ledger/instant.ts';
import type { Transaction } from '../ledger/posting.ts';
import type { IdRange, TransactionId } from '../ledger/transaction-id.ts';
import type { AccountReads } from './account-reads.ts';
import type { LedgerProof } from './ledger-digest.ts';
import type { Loaded, PageCursor } from './loaded.ts';

/**
 * What befell a write. `Overloaded`: too much is waiting, and this was not taken in. `StoreUnavailable`: nothing
 * happened. `OutcomeUnknown`: the commit itself failed, so it may or may not have happened.
 * `Internal`: an invariant is broken; the store has stopped writing and will not start again by itself.
 */
export type FaultCode = 'Overloaded' | 'StoreUnavailable' | 'OutcomeUnknown' | 'Internal';

export class StoreFault extends Error {
  readonly code: FaultCode;

  constructor(code: FaultCode, reason: string) {
    super(reason);
    this.name = 'StoreFault';
    this.code = code;
  }
}

/** Why a store cannot be opened, as a sentence that says what to do. */
export class CannotOpen extends Error {
  override readonly name = 'CannotOpen';
}

export interface TransactionPage extends Loaded {
  /** Stored ones, latest first. Renewals that are due and not yet stored are for the reader to put before them. */
  readonly transactions: readonly Transaction[];
  /** Null when there are no more. */
  readonly next: PageCursor | null;
}

export interface PageRequest {
  /** Null for the latest. */
  readonly from: PageCursor | null;
  readonly limit: number;
  /** Which of them; all when absent. The pages that follow say the same. */
  readonly within?: IdRange;
}

export interface ListedKey extends ApiKey {
  readonly accountName: string;
  /** What its owner calls it; may be empty. */
  readonly name: string;
  readonly hint: string;
  readonly createdAt: Instant;
  readonly revokedAt: Instant | null;
  /** To the minute, and later by a second or two; null when it never was. */
  readonly lastUsedAt: Instant | null;
}

/** What a key may be called, in characters. */
export const KEY_NAME_LENGTH_MAX = 200;

export interface AccountKey {
  readonly scope: Scope;
  readonly secret: string;
  readonly name?: string;
}

export interface NewKey extends AccountKey {
  /** The account of this name; made when there is none. */
  readonly accountName: string;
}

/** API keys and the accounts that own them. Other processes on the same store see a change within a second. */
export interface ApiKeys {
  create(key: NewKey): Promise<ApiKey>;
  /** Null when there is no such account. */
  createFor(account: number, key: AccountKey): Promise<ApiKey | null>;
  /** @param account whose; all when absent */
  list(account?: number): Promise<readonly ListedKey[]>;
  /**
   * False when there is no such key; revoking twice is no error.
   *
   * @param account whose it has to be; anybody's when absent
   */
  revoke(id: number, account?: number): Promise<boolean>;
  /** Keeps that these keys were used now, in one statement. */
  noteUses(ids: readonly number[]): Promise<void>;
  /** The key with this hash, unless it is revoked. */
  find(hash: string): Promise<ApiKey | null>;
}

export interface AuditReport {
  readonly endUsers: number;
  readonly postings: number;
  /** What is broken in the store itself, below the ledger: pages, indexes, the clock. */
  readonly store: readonly string[];
}

/** The ways into a store. */
export interface Lanes {
  /** How many there are. A batch holds commands of one. */
  readonly count: number;
  /** How many batches it takes at the same time, each of another lane. */
  readonly atOnce: number;
  /** Through which lane, from 0, all goes that concerns this end user. */
  of(user: EndUserKey): number;
}

export const ONE_LANE: Lanes = { count: 1, atOnce: 1, of: () => 0 };

export interface RenewedSome {
  /** Of how many end users all that was due is entered. */
  readonly endUsers: number;
  /** Whether more may be due. */
  readonly isMore: boolean;
}

export interface Store {
  readonly lanes: Lanes;
  /**
   * Decides the commands in order, and stores what they do in one transaction. Resolves once that is on stable storage,
   * with an outcome for each command: null for one whose end user is still catching up and who must ask again.
   *
   * @param onDecided called by a store that can take the next batch of the lane before this one is on stable storage, once
   * it can: the next one then sees what this one does, or fails with it and is done by itself
   * @throws StoreFault for all of them alike
   */
  write(commands: readonly Command[], onDecided?: () => void): Promise<readonly (Outcome | null)[]>;
  /**
   * A renewal that is due at `now` stands once it is shown, here and by the other reads of one end user: what is under way
   * comes behind it, or is waited for.
   *
   * @throws StoreFault, as do the reads below
   */
  cycles(user: EndUserKey): Promise<Loaded>;
  transactions(user: EndUserKey, page: PageRequest): Promise<TransactionPage>;
  /** Some of the end users whose cycle is to be renewed by now, the longest overdue first. */
  renewalsDue(limit: number): Promise<readonly EndUserKey[]>;
  /**
   * Enters some of the renewals that are due, behind whoever writes: a store that finds them by itself has this, and with
   * the others each is a command of its own. Resolves once they are on stable storage.
   *
   * @throws StoreFault
   */
  renewDue?(): Promise<RenewedSome>;
  /** Whether batches that are sent now are written together, as while renewals go with them. Absent: they never are. */
  isJoining?(): boolean;
  /**
   * Forgets some of the answers to idempotency keys that are older than `ageMs`, in a step that holds up nobody.
   *
   * @returns how many
   */
  deleteExpiredRecords(ageMs: number): Promise<number>;
  readonly apiKeys: ApiKeys;
  readonly accountReads: AccountReads;
  /** Recomputes the invariants of the whole store from its postings, in one snapshot, beside a running server. */
  audit(report: (finding: Finding) => void): Promise<AuditReport>;
  /**
   * Recomputes the chain of every end user in one snapshot, and reports those that are stored otherwise.
   *
   * @param through the positions up to which to make digests; null for all that has happened
   */
  prove(through: readonly TransactionId[] | null, report: (finding: Finding) => void): Promise<LedgerProof>;
  /**
   * Stores the head of each chain that is not kept, beside no running server.
   *
   * @returns how many
   */
  addChains(): Promise<number>;
  /** Adds up what is derived from the postings, where it is not what they say: see docs/decisions/0017-movements.md. */
  addUpTotals(): Promise<void>;
  /** Null when writes can be expected to work, else why not. */
  trouble(): string | null;
  /** Waits for what is being written. */
  close(): Promise<void>;
}
