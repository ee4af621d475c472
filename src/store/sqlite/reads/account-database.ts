// A connection to the ledger file, for the console and the webhooks.

import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DatabaseConnection, Kysely, SqliteDialect, type SqliteDialectConfig, SqliteDriver } from 'kysely';
import type { AccountDatabase, AccountTables } from '../../account-database.ts';
import { connect } from '../file/ledger-file.ts';
import { beginToWrite, tryToWrite, withWriteLock } from '../file/write-lock.ts';

/**
 * A transaction first tries to take the write lock this many times, once a millisecond, without blocking the thread.
 * Between these attempts, the thread can answer requests while the writer holds the lock and waits for the disk. If all
 * attempts fail, the transaction blocks the thread until the lock is free.
 */
const TRIES = 50;

/** @param file a ledger that this process has already opened */
export function openSqliteAccountDatabase(file: string): AccountDatabase {
  const db = connect(file);
  // A checkpoint would block this thread. The writer runs checkpoints in its own thread.
  db.exec('PRAGMA wal_autocheckpoint = 0');
  const config: SqliteDialectConfig = {
    database: {
      close: () => db.close(),
      prepare(sql) {
        const statement = db.prepare(sql);
        return {
          reader: statement.columns().length > 0,
          all: (parameters) => withWriteLock(db, () => statement.all(...(parameters as SQLInputValue[]))),
          run: (parameters) => withWriteLock(db, () => statement.run(...(parameters as SQLInputValue[]))),
          iterate: (parameters) => statement.iterate(...(parameters as SQLInputValue[])),
        };
      },
    },
  };
  const dialect = new SqliteDialect(config);
  dialect.createDriver = () => new LedgerDriver(db, config);
  const queries = new Kysely<AccountTables>({ dialect });
  return {
    queries,
    clock: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
    // SQLite runs one write transaction at a time, so `alone` needs no lock of its own.
    alone: (work) => queries.transaction().execute(work),
    relaxed: (work) =>
      queries.connection().execute(async (connection) => {
        db.exec('PRAGMA synchronous = NORMAL');
        try {
          return await connection.transaction().execute(work);
        } finally {
          db.exec('PRAGMA synchronous = FULL');
        }
      }),
    [Symbol.asyncDispose]: () => queries.destroy(),
  };
}

class LedgerDriver extends SqliteDriver {
  readonly #db: DatabaseSync;

  constructor(db: DatabaseSync, config: SqliteDialectConfig) {
    super(config);
    this.#db = db;
  }

  /**
   * Takes the write lock at BEGIN. Otherwise, a transaction that begins with a read could no longer write if another
   * connection wrote after the read.
   */
  override async beginTransaction(): Promise<void> {
    for (let left = TRIES; left > 0; left--) {
      if (tryToWrite(this.#db)) return;
      await sleep(1);
    }
    beginToWrite(this.#db);
  }

  /** After some errors, such as a full disk, SQLite has already rolled back. A second ROLLBACK would hide the error. */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#db.isTransaction) await super.rollbackTransaction(connection);
  }
}
