// A digest of a ledger is a hash over all postings up to a transaction, computed from the hash chains of all end users.
// If an operator keeps a digest outside the ledger, `scrip verify` detects later changes to these postings.
//
// A digest also covers automatic events that are due but not stored yet, such as renewals. This is possible because the
// IDs and instants of automatic events do not depend on when they are stored.

import { createHash, type Hash } from 'node:crypto';
import { applyAll } from '../../ledger/apply.ts';
import type { EndUserKey } from '../../ledger/command.ts';
import { type ChainHash, emptyHashChain, extendHashChain } from '../../ledger/hash-chain.ts';
import type { Posting } from '../../ledger/posting.ts';
import { settle } from '../../ledger/settle.ts';
import { EMPTY_STATE, type EndUserState, liveState } from '../../ledger/state.ts';
import { instantOf, type TransactionId } from '../../ledger/transaction-id.ts';
import type { LedgerRow } from './ledger-row.ts';

export interface PostingsDigest {
  /** The digest covers all transactions with IDs up to this ID. All later transactions have greater IDs. */
  readonly through: TransactionId;
  /** The number of end users with at least one posting in the digest. */
  readonly endUsers: number;
  readonly postings: number;
  readonly sha256: string;
}

/** Computes digests. Call `add` with all rows of the ledger, in order. */
export class LedgerDigester {
  readonly #cuts: readonly Cut[];
  readonly #ascending: readonly Cut[];
  #endUser: EndUserFold | null = null;

  /** @param through one ID for each digest; the digest covers the transactions up to this ID */
  constructor(through: readonly TransactionId[]) {
    this.#cuts = through.map((id) => new Cut(id));
    this.#ascending = this.#cuts.toSorted((a, b) => (a.through < b.through ? -1 : 1));
  }

  add(row: LedgerRow): void {
    this.#endUser ??= new EndUserFold(row.user, this.#ascending);
    if (row.kind === 'transaction') this.#endUser.add(row.postings);
    else {
      this.#endUser.passBefore(null);
      this.#endUser = null;
    }
  }

  /** Returns one digest for each ID that was passed to the constructor, in the same order. */
  digests(): readonly PostingsDigest[] {
    return this.#cuts.map((cut) => cut.digest());
  }
}

class Cut {
  readonly through: TransactionId;
  readonly #hash: Hash = createHash('sha256');
  #endUsers = 0;
  #postings = 0;

  constructor(through: TransactionId) {
    this.through = through;
  }

  /**
   * @param chain the hash chain over the end user's stored postings that the digest covers
   * @param count the number of these postings
   * @param state the state after these postings
   */
  add(user: EndUserKey, chain: ChainHash, count: number, state: EndUserState): void {
    const due = settle(state, instantOf(this.through), Number.POSITIVE_INFINITY).postings;
    const postings = count + due.length;
    if (postings === 0) return;
    this.#endUsers += 1;
    this.#postings += postings;
    this.#hash.update(`${user.account} ${user.endUser} ${postings} ${extendHashChain(chain, due)}\n`);
  }

  digest(): PostingsDigest {
    const sha256 = this.#hash.copy().digest('hex');
    return { through: this.through, endUsers: this.#endUsers, postings: this.#postings, sha256 };
  }
}

class EndUserFold {
  readonly #user: EndUserKey;
  readonly #cuts: readonly Cut[];
  #passed = 0;
  #chain: ChainHash;
  #state = EMPTY_STATE;
  #count = 0;

  constructor(user: EndUserKey, cuts: readonly Cut[]) {
    this.#user = user;
    this.#cuts = cuts;
    this.#chain = emptyHashChain(user);
  }

  add(transaction: readonly [Posting, ...Posting[]]): void {
    const [{ transactionId, createdAt }] = transaction;
    this.passBefore(transactionId);
    this.#chain = extendHashChain(this.#chain, transaction);
    this.#state = liveState(applyAll(this.#state, transaction), createdAt);
    this.#count += transaction.length;
  }

  /**
   * Adds the end user to each remaining digest that ends before transaction `id`, or to all remaining digests if `id`
   * is null.
   */
  passBefore(id: TransactionId | null): void {
    for (let cut = this.#cuts[this.#passed]; cut && (id === null || id > cut.through); cut = this.#cuts[this.#passed]) {
      cut.add(this.#user, this.#chain, this.#count, this.#state);
      this.#passed += 1;
    }
  }
}

const LINE =
  /^scrip-digest-1 at=(?<at>\S+) end_users=(?<endUsers>\d{1,15}) postings=(?<postings>\d{1,15}) through=(?<through>[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}) sha256=(?<sha256>[0-9a-f]{64})$/;

/** The maximum number of digests in a file: enough for a year of hourly digests. */
export const DIGESTS_MAX = 10_000;

/** Returns a digest as a line of text that an operator can store. */
export function lineOf({ through, endUsers, postings, sha256 }: PostingsDigest): string {
  const at = instantText(through);
  return `scrip-digest-1 at=${at} end_users=${endUsers} postings=${postings} through=${through} sha256=${sha256}`;
}

export function instantText(through: string): string {
  return new Date(instantOf(through)).toISOString();
}

/**
 * Parses digests, one per line. Empty lines are ignored.
 *
 * @returns the digest on each line; null if a line is not a digest, if there are no lines, or if there are more than
 * `DIGESTS_MAX`
 */
export function digestsIn(text: string): readonly PostingsDigest[] | null {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  if (lines.length === 0 || lines.length > DIGESTS_MAX) return null;
  const digests = lines.map(digestOf);
  return digests.every((digest) => digest !== null) ? digests : null;
}

function digestOf(line: string): PostingsDigest | null {
  const found = LINE.exec(line.trim())?.groups as Record<string, string> | undefined;
  if (found === undefined) return null;
  const { at, through, sha256 } = found as { at: string; through: string; sha256: string };
  if (at !== instantText(through)) return null;
  return { through, endUsers: Number(found.endUsers), postings: Number(found.postings), sha256 };
}
