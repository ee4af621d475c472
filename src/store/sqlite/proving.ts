// The chains of a ledger file: proved in one snapshot, beside the server that may run on it; and computed where they are
// not kept, beside none.

import type { DatabaseSync } from 'node:sqlite';
import type { Finding } from '../../ledger/audit.ts';
import type { TransactionId } from '../../ledger/transaction-id.ts';
import type { LedgerProof } from '../ledger-digest.ts';
import { LedgerProver, MissingHeads, throughPosition } from '../ledger-proof.ts';
import { recordsOf } from './copying.ts';
import { connect, lockLedgerFile } from './ledger-file.ts';
import { END_OF_TIME, prepare } from './rows.ts';
import { beginToWrite } from './turn-to-write.ts';
import { showUnposted } from './unposted-view.ts';
import { bytesOf } from './uuid.ts';

/** End users between two commits. */
const CHAINS_PER_COMMIT = 5_000;

/** @param through null for all that has happened: the clock is kept with every batch, and moves on with the next */
export function proveFile(
  db: DatabaseSync,
  through: readonly TransactionId[] | null,
  report: (finding: Finding) => void,
): LedgerProof {
  db.exec('BEGIN');
  try {
    showUnposted(db);
    const prover = new LedgerProver(through ?? [latestOf(db)], report);
    for (const record of recordsOf(db, null, { anyInteger: true })) prover.add(record);
    return prover.proof();
  } finally {
    if (db.isTransaction) db.exec('ROLLBACK');
  }
}

function latestOf(db: DatabaseSync): TransactionId {
  const clock = db.prepare('SELECT at, sequence FROM clock').get();
  return throughPosition({ at: Number(clock?.at ?? 0), sequence: Number(clock?.sequence ?? 0) });
}

/**
 * @returns how many chains it has added
 * @throws CannotOpen when a server runs on the file
 */
export function addChainsTo(db: DatabaseSync): number {
  const file = db.location() as string;
  const lock = lockLedgerFile(file);
  const reader = connect(file);
  try {
    reader.exec('BEGIN');
    showUnposted(reader);
    return addChains(reader, db);
  } finally {
    if (db.isTransaction) db.exec('ROLLBACK');
    reader.close();
    lock.close();
  }
}

function addChains(reader: DatabaseSync, db: DatabaseSync): number {
  const set = prepare(
    db,
    `UPDATE holdings SET chain = ? WHERE account = ? AND end_user = ? AND ends_at = ${END_OF_TIME} AND chain IS NULL`,
  );
  let added = 0;
  const missing = new MissingHeads();
  beginToWrite(db);
  for (const record of recordsOf(reader, null)) {
    const head = missing.take(record);
    if (head === null) continue;
    added += Number(set.run(head, record.user.account, bytesOf(record.user.endUser)).changes);
    if (added % CHAINS_PER_COMMIT > 0) continue;
    db.exec('COMMIT');
    beginToWrite(db);
  }
  db.exec('COMMIT');
  return added;
}
