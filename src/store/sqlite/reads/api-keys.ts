// Stores API keys in a ledger file. While a server runs, an operator can change keys on the command line; the server
// sees the change at its next lookup of the key.

import type { DatabaseSync } from 'node:sqlite';
import type { KeyStore } from '../../key-store.ts';
import { type RunStatement, SqlKeyStore } from '../../sql-key-store.ts';
import { faultOf } from '../file/sqlite-error.ts';
import { runNumbered } from '../file/statements.ts';
import { transact, withWriteLock } from '../file/write-lock.ts';
import type { LedgerClock } from '../writer/ledger-clock.ts';

/**
 * @param db a connection that nothing else uses during a transaction: any other statement would become part of the
 * transaction
 * @param recordUses lets the writer thread store the times at which keys were used: if this thread waited for the write
 * lock, all requests would be delayed
 */
export function sqliteKeyStore(
  db: DatabaseSync,
  clock: LedgerClock,
  recordUses: (ids: readonly number[]) => Promise<void>,
): KeyStore {
  const run: RunStatement = async (sql, values) => {
    const rows = () => runNumbered(db, sql, values);
    return sql.startsWith('SELECT') ? rows() : withWriteLock(db, rows);
  };
  // Statements and transactions run one at a time, because they share the connection: a second BEGIN would fail, and
  // any other statement would become part of the transaction.
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
    now: async () => clock.machineTime(clock.peek()),
    transact: (work) => inTurn(() => transact(db, () => work(run))),
    recordUses,
  });
}
