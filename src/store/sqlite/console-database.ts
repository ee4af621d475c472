// The console's connection to the ledger file: one more beside those of the ledger, with the same settings.

import type { SQLInputValue } from 'node:sqlite';
import { Kysely, SqliteDialect } from 'kysely';
import type { ConsoleDatabase, ConsoleTables } from '../console-database.ts';
import { connect } from './ledger-file.ts';
import { inTurn } from './turn-to-write.ts';

/** @param file a ledger that is open already, and so has the schema of this version */
export function openSqliteConsoleDatabase(file: string): ConsoleDatabase {
  const db = connect(file);
  const queries = new Kysely<ConsoleTables>({
    dialect: new SqliteDialect({
      database: {
        close: () => db.close(),
        prepare(sql) {
          // A transaction that begins by reading could not go on to write once the ledger has written in between.
          const statement = db.prepare(sql === 'begin' ? 'BEGIN IMMEDIATE' : sql);
          return {
            reader: statement.columns().length > 0,
            all: (parameters) => inTurn(db, () => statement.all(...(parameters as SQLInputValue[]))),
            run: (parameters) => inTurn(db, () => statement.run(...(parameters as SQLInputValue[]))),
            iterate: (parameters) => statement.iterate(...(parameters as SQLInputValue[])),
          };
        },
      },
    }),
  });
  return {
    type: 'sqlite',
    queries,
    // The file has one writer at a time.
    alone: (work) => queries.transaction().execute(work),
    close: () => queries.destroy(),
  };
}
