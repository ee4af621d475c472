// API keys in a ledger file. The command line can create and revoke them while a server runs; the server sees the
// change at its next look-up.

import type { DatabaseSync } from 'node:sqlite';
import type { KeyStore } from '../../key-store.ts';
import { type KeyRow, type RunStatement, SqlKeyStore } from '../../sql-key-store.ts';
import { faultOf } from '../file/sqlite-error.ts';
import { named } from '../file/statements.ts';
import { transactAsync, withWriteLock } from '../file/write-lock.ts';
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
    const rows = () => statement.all(named(values)) as unknown as readonly KeyRow[];
    return sql.startsWith('SELECT') ? rows() : withWriteLock(db, rows);
  };
  // Only one transaction runs at a time. A second one would block the thread while it waits for the write lock, so the
  // first one could not end.
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
    transact: (work) => inTurn(() => transactAsync(db, () => work(run))),
    recordUses,
  });
}
