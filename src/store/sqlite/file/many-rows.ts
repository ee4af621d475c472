// Runs one statement for many rows. With one statement per row, a third of the time would be spent on starting the
// statement and opening the table and its indexes.

import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import { type Parameter, prepare, type Statement } from './statements.ts';
import { UuidParameter } from './uuid.ts';

const ROWS_MAX = 16;
/** The numbers of rows that a statement can write, largest first. */
const SIZES = [ROWS_MAX, 4, 1];

export class ManyRows {
  readonly #columns: number;
  readonly #statements: readonly { readonly length: number; readonly statement: Statement }[];
  #values: Parameter[] = [];
  /** Buffers for UUIDs. Each row needs its own buffers, because one statement binds the values of all rows. */
  readonly #uuids: UuidParameter[] = [];
  #uuidsUsed = 0;

  /** @param sql returns the SQL of a statement, with the text `rows` after `VALUES` */
  constructor(db: DatabaseSync, columns: number, sql: (rows: string) => string) {
    const row = `(${Array(columns).fill('?').join(', ')})`;
    this.#columns = columns;
    this.#statements = SIZES.map((size) => ({
      length: size * columns,
      statement: prepare(db, sql(Array(size).fill(row).join(', '))),
    }));
  }

  /**
   * Returns the bytes of a UUID. Pass them to the next call to `add`, and do not keep them: `add` can call `flush`,
   * after which the buffer is reused.
   */
  uuid(text: string): Uint8Array {
    const index = this.#uuidsUsed++;
    this.#uuids[index] ??= new UuidParameter();
    return (this.#uuids[index] as UuidParameter).of(text);
  }

  /** Adds a row. Other statements see the row only after `flush`. */
  add(...row: readonly Parameter[]): void {
    assert(row.length === this.#columns, 'a row has a value for each column');
    for (const value of row) this.#values.push(value);
    if (this.#values.length >= ROWS_MAX * this.#columns) this.flush();
  }

  /** Writes all added rows. Fails if a statement does not write all of its rows. */
  flush(): void {
    let at = 0;
    for (const { length, statement } of this.#statements)
      for (; this.#values.length - at >= length; at += length) {
        const { changes } = statement.run(...this.#values.slice(at, at + length));
        assert(changes === length / this.#columns, 'each row is written');
      }
    if (at > 0) this.#values = [];
    this.#uuidsUsed = 0;
  }
}
