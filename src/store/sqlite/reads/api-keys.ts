// API keys in a ledger file. The command line can create and revoke them while a server runs; the server sees the
// change at its next look-up.

import type { DatabaseSync } from 'node:sqlite';
import type { KeyStore } from '../../key-store.ts';
import { type KeyRow, type RunStatement, SqlKeyStore } from '../../sql-key-store.ts';
import { faultOf } from '../file/sqlite-error.ts';
import { beginToWrite, withWriteLock } from '../file/write-lock.ts';
import type { LedgerClock } from '../writer/ledger-clock.ts';

/**
 * @param db a connection that nothing else uses: other statements on it would become part of its transactions
 * @param recordUses records uses through the writer: waiting for the write lock here would delay all requests
 */
export function sqliteKeyStore(
  db: DatabaseSync,
  clock: LedgerClock,
  recordUses: (ids: readonly number[]) => Promise<void>,
): KeyStore {
  const run: RunStatement = async (sql, values) => {
    const statement = db.prepare(sql);
    statement.setReturnArrays(true);
    const named = Object.fromEntries(values.map((value, index) => [`$${index + 1}`, value]));
    const rows = () => statement.all(named) as unknown as readonly KeyRow[];
    return sql.startsWith('SELECT') ? rows() : withWriteLock(db, rows);
  };
  // One at a time: a second transaction would block the thread while it waits for the write lock, and so the first one
  // could not end.
  let latest: Promise<unknown> = Promise.resolve();
  const inTurn = <Result>(work: () => Promise<Result>): Promise<Result> => {
    const result = latest.then(work).catch((error) => {
      throw faultOf(error);
    });
    latest = result.catch(() => {});
    return result;
  };
  return new SqlKeyStore({
    schema: 'main',
    run: (sql, values) => inTurn(() => run(sql, values)),
    now: async () => clock.peek(),
    transact: (work) => inTurn(() => transact(db, () => work(run))),
    recordUses,
  });
}

/** `work` only awaits promises that are already settled, so the write lock is held only briefly. */
async function transact<Result>(db: DatabaseSync, work: () => Promise<Result>): Promise<Result> {
  beginToWrite(db);
  try {
    const result = await work();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}
