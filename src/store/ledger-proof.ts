// Proves a ledger from its postings: recomputes the chain of every end user, compares it with the head that is stored,
// and makes of all heads one digest that stands for everything up to some transaction. Whoever keeps that line elsewhere
// can tell later, however much has happened since, whether anything before it was changed.
//
// A digest counts the renewals that were due by then and not yet entered, since they will be entered as they would have
// been: same ids, same instants. So it does not matter when the renewal clock came by.

import { createHash, type Hash } from 'node:crypto';
import type { Finding } from '../ledger/audit.ts';
import type { EndUserKey } from '../ledger/command.ts';
import { brokenRules, type Cycle, renews } from '../ledger/cycle.ts';
import { type ChainHash, emptyHashChain, extend } from '../ledger/hash-chain.ts';
import type { Posting } from '../ledger/posting.ts';
import { settle } from '../ledger/settle.ts';
import { instantOf, SEQUENCE_COUNT, type TransactionId, transactionId } from '../ledger/transaction-id.ts';
import type { LedgerRecord } from './ledger-copy.ts';
import type { LedgerProof, PostingsDigest } from './ledger-digest.ts';
import type { IdPosition } from './transaction-ids.ts';

/** Behind whatever was given out up to `position`, and before all that follows. */
export function throughPosition({ at, sequence }: IdPosition): TransactionId {
  return transactionId({ at, sequence, tail: 'ffffffffffff' });
}

/** Behind whatever happens within the millisecond `at`. */
export function throughInstant(at: number): TransactionId {
  return throughPosition({ at, sequence: SEQUENCE_COUNT - 1 });
}

/** Takes in the records of a whole ledger in their order. */
export class LedgerProver {
  readonly #cuts: readonly Cut[];
  readonly #ascending: readonly Cut[];
  readonly #report: (finding: Finding) => void;
  #endUsers = 0;
  #chained = 0;
  #user: UserChain | null = null;

  /** @param through up to where to make digests */
  constructor(through: readonly TransactionId[], report: (finding: Finding) => void) {
    this.#cuts = through.map((id) => new Cut(id));
    this.#ascending = this.#cuts.toSorted((a, b) => (a.through < b.through ? -1 : 1));
    this.#report = report;
  }

  add(record: LedgerRecord): void {
    if (this.#user === null || !isSame(this.#user.key, record.user))
      this.#user = new UserChain(record.user, this.#ascending);
    if (record.kind === 'cycle') this.#user.addCycle(record.cycle);
    else if (record.kind === 'posting') this.#user.addPosting(record.posting);
    else this.#end(this.#user, record.chain);
  }

  proof(): LedgerProof {
    return { digests: this.#cuts.map((cut) => cut.digest()), endUsers: this.#endUsers, chained: this.#chained };
  }

  #end(user: UserChain, stored: ChainHash | null): void {
    const head = user.end();
    this.#user = null;
    this.#endUsers += 1;
    if (stored === null) return;
    this.#chained += 1;
    if (stored === head) return;
    const message = 'its postings lead to another head of their chain than the one that is stored';
    this.#report({ invariant: 4, user: user.key, message });
  }
}

/** Finds the heads that are not stored. */
export class MissingHeads {
  #user: UserChain | null = null;

  /** @returns the head of the end user that is complete with this record, when it has none */
  take(record: LedgerRecord): ChainHash | null {
    if (this.#user === null || !isSame(this.#user.key, record.user)) this.#user = new UserChain(record.user, []);
    if (record.kind === 'posting') this.#user.addPosting(record.posting);
    return record.kind === 'end-user' && record.chain === null ? this.#user.end() : null;
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

  /** @param head of the postings that are stored, and of which `count` lie before the cut */
  add({ account, endUser }: EndUserKey, head: ChainHash, count: number, renewing: Cycle | null): void {
    const due = renewing === null ? [] : settle([renewing], instantOf(this.through), Number.POSITIVE_INFINITY).postings;
    const postings = count + due.length;
    if (postings === 0) return;
    this.#endUsers += 1;
    this.#postings += postings;
    this.#hash.update(`${account} ${endUser} ${postings} ${extend(head, due)}\n`);
  }

  digest(): PostingsDigest {
    const sha256 = this.#hash.copy().digest('hex');
    return { through: this.through, endUsers: this.#endUsers, postings: this.#postings, sha256 };
  }
}

/** The chain of one end user as far as its postings were read. */
class UserChain {
  readonly key: EndUserKey;
  readonly #cuts: readonly Cut[];
  #passed = 0;
  #head: ChainHash;
  #count = 0;
  #transaction: Posting[] = [];
  #renewing: Cycle | null = null;

  constructor(key: EndUserKey, cuts: readonly Cut[]) {
    this.key = key;
    this.#cuts = cuts;
    this.#head = emptyHashChain(key);
  }

  /** A cycle that cannot be is reported by the audit; here it renews nothing. */
  addCycle(cycle: Cycle): void {
    if (renews(cycle) && brokenRules(cycle).length === 0) this.#renewing = cycle;
  }

  addPosting(posting: Posting): void {
    if (this.#transaction[0]?.transactionId !== posting.transactionId) this.#link();
    this.#transaction.push(posting);
  }

  end(): ChainHash {
    this.#link();
    this.#passBefore(null);
    return this.#head;
  }

  #link(): void {
    const [first] = this.#transaction;
    if (first === undefined) return;
    this.#passBefore(first.transactionId);
    this.#head = extend(this.#head, this.#transaction);
    this.#count += this.#transaction.length;
    this.#transaction = [];
  }

  /** Leaves behind the cuts that lie before a transaction; all of them when there is none. */
  #passBefore(id: TransactionId | null): void {
    for (let cut = this.#cuts[this.#passed]; cut && (id === null || id > cut.through); cut = this.#cuts[this.#passed]) {
      cut.add(this.key, this.#head, this.#count, this.#renewing);
      this.#passed += 1;
    }
  }
}

function isSame(a: EndUserKey, b: EndUserKey): boolean {
  return a.account === b.account && a.endUser === b.endUser;
}
