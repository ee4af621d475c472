// Runs a statement for many rows at a time. For a single row, a third of the cost is to start and end the statement and
// to open its table and indexes.

import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import { type Parameter, prepare, type Statement } from './statements.ts';
import { UuidParameter } from './uuid.ts';

const ROWS_MAX = 16;
/** The numbers of rows per run, largest first. Any number of rows is split into runs of these sizes. */
const SIZES = [ROWS_MAX, 4, 1];

export class ManyRows {
  readonly #columns: number;
  readonly #statements: readonly { readonly length: number; readonly statement: Statement }[];
  /** The values of all added rows, one row after the other. */
  #values: Parameter[] = [];
  /** Each added row needs its own buffers, since all rows are bound together. */
  readonly #uuids: UuidParameter[] = [];
  #uuidsUsed = 0;

  /** @param sql returns the statement for the given rows, which follow `VALUES` */
  constructor(db: DatabaseSync, columns: number, sql: (rows: string) => string) {
    const row = `(${Array(columns).fill('?').join(', ')})`;
    this.#columns = columns;
    this.#statements = SIZES.map((size) => ({
      length: size * columns,
      statement: prepare(db, sql(Array(size).fill(row).join(', '))),
    }));
  }

  /** The bytes of a UUID for the next row to be added. */
  uuid(text: string): Uint8Array {
    const index = this.#uuidsUsed++;
    this.#uuids[index] ??= new UuidParameter();
    return (this.#uuids[index] as UuidParameter).of(text);
  }

  /** Other statements see the row only after `flush`. */
  add(...row: readonly Parameter[]): void {
    assert(row.length === this.#columns, 'a row has a value for each column');
    for (const value of row) this.#values.push(value);
    if (this.#values.length >= ROWS_MAX * this.#columns) this.flush();
  }

  /** Runs the statement for all added rows. It must write each of them. */
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
