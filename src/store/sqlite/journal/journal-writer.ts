// Appends postings and snapshots to the journal of a ledger file.

import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../../ledger/command.ts';
import { type Posting, termsText } from '../../../ledger/posting.ts';
import type { EndUserState } from '../../../ledger/state.ts';
import { isSnapshotDue, isWaypointDue, stateText } from '../../state-text.ts';
import { ManyRows } from '../file/many-rows.ts';
import { type Parameter, prepare, type Statement } from '../file/statements.ts';
import { POSTING_COLUMN_COUNT, POSTING_COLUMNS } from './posting-rows.ts';

const OWN_COLUMNS = ['posting', 'previous', 'account', 'end_user'];

export class JournalWriter {
  readonly #postings: ManyRows;
  readonly #insertSnapshot: Statement;
  #latest: number;

  constructor(db: DatabaseSync) {
    this.#postings = new ManyRows(
      db,
      OWN_COLUMNS.length + POSTING_COLUMN_COUNT,
      (rows) => `INSERT INTO postings (${OWN_COLUMNS}, ${POSTING_COLUMNS}) VALUES ${rows}`,
    );
    this.#insertSnapshot = prepare(
      db,
      'INSERT INTO snapshots (account, end_user, transaction_id, posting, state) VALUES (?, ?, ?, ?, ?)',
    );
    this.#latest = Number(db.prepare('SELECT max(posting) AS latest FROM postings').get()?.latest ?? 0);
  }

  /** The number of the latest posting in the journal; 0 if there is none. */
  get latest(): number {
    return this.#latest;
  }

  /**
   * Appends whole transactions of one end user. Other statements see the postings only after `flush`.
   *
   * @param previous the number of the latest posting of the end user so far; null if there is none
   * @param after the state after all of these postings
   * @returns the number of the last appended posting
   */
  append(
    { account, endUser }: EndUserKey,
    postings: readonly Posting[],
    previous: number | null,
    after: EndUserState,
  ): number {
    const uuid = (text: string) => this.#postings.uuid(text);
    let latest = previous;
    for (const posting of postings) {
      const number = ++this.#latest;
      this.#postings.add(number, latest, account, uuid(endUser), ...postingValues(posting, uuid));
      latest = number;
    }
    if (isWaypointDue(postings)) {
      const { transactionId, createdAt } = postings.at(-1) as Posting;
      const state = isSnapshotDue(postings, after) ? stateText(after, createdAt) : null;
      this.#insertSnapshot.run(account, uuid(endUser), uuid(transactionId), latest, state);
    }
    return latest as number;
  }

  flush(): void {
    this.#postings.flush();
  }
}

function postingValues(posting: Posting, uuid: (text: string) => Uint8Array): Parameter[] {
  const { transactionId, cycleId, period, kind, amount, held, createdAt, expiresAt, actor, note } = posting;
  const { terms, reference, holdExpiresAt } = posting;
  const ids = [uuid(transactionId), uuid(cycleId)];
  return [
    ...ids,
    period,
    kind,
    amount,
    held,
    createdAt,
    expiresAt,
    actor,
    note,
    terms === null ? null : termsText(terms),
    reference === null ? null : uuid(reference),
    holdExpiresAt,
  ];
}
