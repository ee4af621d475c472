// Lists all end users of a ledger file in order, and reads their postings oldest first. All reads must be in one read
// transaction, because a server can be writing to the file.

import type { DatabaseSync } from 'node:sqlite';
import { type EndUserKey, isSameEndUser } from '../../../ledger/command.ts';
import type { Posting } from '../../../ledger/posting.ts';
import type { LedgerRow } from '../../tools/ledger-row.ts';
import { wholeTransactions } from '../../transaction-history.ts';
import { END_OF_TIME } from '../balances/end-user-reader.ts';
import { prepare, type Row, type Statement } from '../file/statements.ts';
import { bytesOf, uuidOf } from '../file/uuid.ts';
import { PostingReader } from '../journal/posting-reader.ts';

export interface EndUserPostings {
  readonly user: EndUserKey;
  /** The number of the latest posting that the stored balances include; null if no balances are stored yet. */
  readonly stored: number | null;
  readonly latest: number;
}

/**
 * SQLite merges two ordered lists: end users with stored balances, and end users with postings after the position in
 * `flushed`. An end user that is in both lists has two consecutive rows.
 */
const END_USERS = `
  SELECT account, end_user, latest_posting, 1 AS is_stored FROM balances
  WHERE (account, end_user) > (?1, ?2) AND ends_at = ${END_OF_TIME}
  UNION ALL
  SELECT account, end_user, max(posting), 0 FROM postings
  WHERE (account, end_user) > (?1, ?2) AND posting > (SELECT posting FROM flushed) GROUP BY account, end_user
  ORDER BY account, end_user, is_stored DESC`;

/** @param after the list contains only end users that sort after this one; null to list all */
export function* endUsersOf(db: DatabaseSync, after: EndUserKey | null): Generator<EndUserPostings> {
  const rows = prepare(db, END_USERS);
  rows.setReadBigInts(true);
  let current = null as EndUserPostings | null;
  for (const row of rows.iterate(after?.account ?? -1, after === null ? '' : bytesOf(after.endUser))) {
    const [account, endUser, posting, isStored] = row as unknown as [bigint, Uint8Array, bigint, bigint];
    const user = { account: Number(account), endUser: uuidOf(endUser) };
    const latest = Number(posting);
    if (current !== null && isSameEndUser(current.user, user)) {
      current = { ...current, latest: Math.max(current.latest, latest) };
      continue;
    }
    if (current !== null) yield current;
    current = { user, stored: isStored ? latest : null, latest };
  }
  if (current !== null) yield current;
}

/** The maximum number of postings in memory at a time. */
const STRETCH = 1_000;

/**
 * Reads the postings of an end user oldest first, although each posting links only to the previous posting. A first
 * pass follows the links, and remembers the latest posting of each group of `STRETCH` postings. A second pass reads the
 * groups, oldest first, and reverses each group.
 */
export class OldestFirst {
  readonly #postings: PostingReader;
  readonly #previous: Statement;

  /** @param options the options of `PostingReader` */
  constructor(db: DatabaseSync, options: { anyInteger?: boolean } = {}) {
    this.#postings = new PostingReader(db, options);
    this.#previous = prepare(db, 'SELECT previous FROM postings WHERE posting = ? AND previous < posting');
  }

  *of({ user, latest }: EndUserPostings): Generator<Posting> {
    const ends: number[] = [];
    let at: number | null | undefined = latest;
    for (let step = 0; typeof at === 'number'; step++) {
      if (step % STRETCH === 0) ends.push(at);
      const row: Row | undefined = this.#previous.get(at);
      at = row?.[0] as number | null | undefined;
    }
    for (const end of ends.reverse()) {
      const stretch: Posting[] = [];
      for (const { posting } of this.#postings.backwards(end, user)) if (stretch.push(posting) === STRETCH) break;
      yield* stretch.reverse();
    }
  }
}

/** @param options the options of `PostingReader` */
export function* ledgerRowsOf(
  db: DatabaseSync,
  after: EndUserKey | null,
  options: { anyInteger?: boolean } = {},
): Generator<LedgerRow> {
  const postings = new OldestFirst(db, options);
  for (const endUser of endUsersOf(db, after)) {
    const { user } = endUser;
    for (const transaction of wholeTransactions(postings.of(endUser), ({ transactionId }) => transactionId))
      yield { kind: 'transaction', user, postings: transaction };
    yield { kind: 'end-user', user };
  }
}
