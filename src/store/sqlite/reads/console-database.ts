// The console's own connection to the ledger file, with the same settings as the other connections.

import type { SQLInputValue } from 'node:sqlite';
import { Kysely, SqliteDialect } from 'kysely';
import type { ConsoleDatabase, ConsoleTables } from '../../console-database.ts';
import { connect } from '../file/ledger-file.ts';
import { withWriteLock } from '../file/write-lock.ts';

/** @param file a ledger that this process has already opened, so that the schema is up to date */
export function openSqliteConsoleDatabase(file: string): ConsoleDatabase {
  const db = connect(file);
  const queries = new Kysely<ConsoleTables>({
    dialect: new SqliteDialect({
      database: {
        close: () => db.close(),
        prepare(sql) {
          // Take the write lock at BEGIN: a transaction that begins with a read cannot write once another connection
          // has written.
          const statement = db.prepare(sql === 'begin' ? 'BEGIN IMMEDIATE' : sql);
          return {
            reader: statement.columns().length > 0,
            all: (parameters) => withWriteLock(db, () => statement.all(...(parameters as SQLInputValue[]))),
            run: (parameters) => withWriteLock(db, () => statement.run(...(parameters as SQLInputValue[]))),
            iterate: (parameters) => statement.iterate(...(parameters as SQLInputValue[])),
          };
        },
      },
    }),
  });
  return {
    queries,
    // Every transaction runs alone, since SQLite runs one write transaction at a time.
    alone: (work) => queries.transaction().execute(work),
    [Symbol.asyncDispose]: () => queries.destroy(),
  };
}
