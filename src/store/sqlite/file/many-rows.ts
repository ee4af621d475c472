// A statement that runs for many rows at a time: beginning a statement, opening its table and indexes and ending it is a
// third of what one row costs.

import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import { type Parameter, prepare, type Statement } from './statements.ts';
import { UuidParameter } from './uuid.ts';

const ROWS_MAX = 16;
/** Rows of one run, the most first: any number of rows is made up of these. */
const SIZES = [ROWS_MAX, 4, 1];

export class ManyRows {
  readonly #columns: number;
  readonly #statements: readonly { readonly length: number; readonly statement: Statement }[];
  /** The values of the rows that have been added, side by side. */
  #values: Parameter[] = [];
  /** Each added row keeps its own, since they are bound together. */
  readonly #uuids: UuidParameter[] = [];
  #uuidsUsed = 0;

  /** @param sql the statement, given its rows as they stand behind `VALUES` */
  constructor(db: DatabaseSync, columns: number, sql: (rows: string) => string) {
    const row = `(${Array(columns).fill('?').join(', ')})`;
    this.#columns = columns;
    this.#statements = SIZES.map((size) => ({
      length: size * columns,
      statement: prepare(db, sql(Array(size).fill(row).join(', '))),
    }));
  }

  /** The bytes of a UUID, for the row that is added next. */
  uuid(text: string): Uint8Array {
    const index = this.#uuidsUsed++;
    this.#uuids[index] ??= new UuidParameter();
    return (this.#uuids[index] as UuidParameter).of(text);
  }

  /** Its row is there for other statements after the next `flush`. */
  add(...row: readonly Parameter[]): void {
    assert(row.length === this.#columns, 'a row has a value for each column');
    for (const value of row) this.#values.push(value);
    if (this.#values.length >= ROWS_MAX * this.#columns) this.flush();
  }

  /** Runs the statement for the rows that have been added. It has to change each of them. */
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
