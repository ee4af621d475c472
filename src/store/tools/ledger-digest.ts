// Digests of a ledger: one line that stands for all postings up to some transaction, made of the hash chains of all end
// users. With such a line kept elsewhere, `scrip verify` can tell later whether anything before it was changed.
//
// A digest counts the renewals that were due by then and not yet stored, since they will be stored as they would have
// been: same ids, same instants. So it does not matter when the renewal job ran.

import { createHash, type Hash } from 'node:crypto';
import { applyAll } from '../../ledger/apply.ts';
import { type EndUserKey, isSameEndUser } from '../../ledger/command.ts';
import { type ChainHash, emptyHashChain, extendHashChain } from '../../ledger/hash-chain.ts';
import type { Posting } from '../../ledger/posting.ts';
import { settle } from '../../ledger/settle.ts';
import { EMPTY_STATE, type EndUserState, liveState } from '../../ledger/state.ts';
import { instantOf, type TransactionId } from '../../ledger/transaction-id.ts';

/** What all postings up to one come to. */
export interface PostingsDigest {
  /** The ids of all later transactions sort behind this one. */
  readonly through: TransactionId;
  /** Those that have postings. */
  readonly endUsers: number;
  readonly postings: number;
  readonly sha256: string;
}

/** Takes in the postings of a whole ledger: end user after end user in one order, oldest first within each. */
export class LedgerDigester {
  readonly #cuts: readonly Cut[];
  readonly #ascending: readonly Cut[];
  #endUser: EndUserFold | null = null;

  /** @param through the positions up to which to make digests */
  constructor(through: readonly TransactionId[]) {
    this.#cuts = through.map((id) => new Cut(id));
    this.#ascending = this.#cuts.toSorted((a, b) => (a.through < b.through ? -1 : 1));
  }

  add(user: EndUserKey, posting: Posting): void {
    if (this.#endUser === null || !isSameEndUser(this.#endUser.user, user)) {
      this.#endUser?.end();
      this.#endUser = new EndUserFold(user, this.#ascending);
    }
    this.#endUser.add(posting);
  }

  /** One for each of the positions, in their order. */
  digests(): readonly PostingsDigest[] {
    this.#endUser?.end();
    this.#endUser = null;
    return this.#cuts.map((cut) => cut.digest());
  }
}

/** One position up to which a digest is made. */
class Cut {
  readonly through: TransactionId;
  readonly #hash: Hash = createHash('sha256');
  #endUsers = 0;
  #postings = 0;

  constructor(through: TransactionId) {
    this.through = through;
  }

  /** @param chain over the `count` postings before the cut, which lead to `state` */
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

/** One end user as far as its postings were read. */
class EndUserFold {
  readonly user: EndUserKey;
  readonly #cuts: readonly Cut[];
  #passed = 0;
  #chain: ChainHash;
  #state = EMPTY_STATE;
  #count = 0;
  #transaction: Posting[] = [];

  constructor(user: EndUserKey, cuts: readonly Cut[]) {
    this.user = user;
    this.#cuts = cuts;
    this.#chain = emptyHashChain(user);
  }

  add(posting: Posting): void {
    if (this.#transaction[0]?.transactionId !== posting.transactionId) this.#endTransaction();
    this.#transaction.push(posting);
  }

  end(): void {
    this.#endTransaction();
    this.#passBefore(null);
  }

  #endTransaction(): void {
    const [first] = this.#transaction;
    if (first === undefined) return;
    this.#passBefore(first.transactionId);
    this.#chain = extendHashChain(this.#chain, this.#transaction);
    this.#state = liveState(applyAll(this.#state, this.#transaction), first.createdAt);
    this.#count += this.#transaction.length;
    this.#transaction = [];
  }

  /** Adds to the cuts that lie before a transaction; to all that are left when there is none. */
  #passBefore(id: TransactionId | null): void {
    for (let cut = this.#cuts[this.#passed]; cut && (id === null || id > cut.through); cut = this.#cuts[this.#passed]) {
      cut.add(this.user, this.#chain, this.#count, this.#state);
      this.#passed += 1;
    }
  }
}

const LINE =
  /^scrip-digest-1 at=(?<at>\S+) end_users=(?<endUsers>\d{1,15}) postings=(?<postings>\d{1,15}) through=(?<through>[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}) sha256=(?<sha256>[0-9a-f]{64})$/;

/** One an hour for a year, and some. */
const LINES_MAX = 10_000;

/** The line in which an operator keeps a digest. */
export function lineOf({ through, endUsers, postings, sha256 }: PostingsDigest): string {
  const at = instantText(through);
  return `scrip-digest-1 at=${at} end_users=${endUsers} postings=${postings} through=${through} sha256=${sha256}`;
}

export function instantText(through: string): string {
  return new Date(instantOf(through)).toISOString();
}

/** @returns the digests of a text, one a line; null when it is anything else */
export function digestsIn(text: string): readonly PostingsDigest[] | null {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  if (lines.length === 0 || lines.length > LINES_MAX) return null;
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
