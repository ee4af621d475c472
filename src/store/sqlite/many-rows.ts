// A statement that is run for many rows at a time: what it costs whatever it does, to begin, to open the table and its
// indexes and to end, is a third of what one row costs.

import assert from 'node:assert/strict';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { prepare } from './rows.ts';
import { UuidParameter } from './uuid.ts';

type Value = number | string | Uint8Array | null;

const ROWS_MAX = 16;
/** Rows of one run, the most first: however many wait are made up of these. */
const SIZES = [ROWS_MAX, 4, 1];

export class ManyRows {
  readonly #columns: number;
  readonly #statements: readonly { readonly length: number; readonly statement: StatementSync }[];
  /** The rows that wait, one behind the other. */
  #values: Value[] = [];
  /** Each waiting row keeps its own, since they are bound together. */
  readonly #uuids: UuidParameter[] = [];
  #uuidsUsed = 0;

  /** @param sql the statement for these rows, which are as they stand behind `VALUES` */
  constructor(db: DatabaseSync, columns: number, sql: (rows: string) => string) {
    const row = `(${Array(columns).fill('?').join(', ')})`;
    this.#columns = columns;
    this.#statements = SIZES.map((size) => ({
      length: size * columns,
      statement: prepare(db, sql(Array(size).fill(row).join(', '))),
    }));
  }

  /** Whether those that wait are best run now. */
  get isFull(): boolean {
    return this.#values.length >= ROWS_MAX * this.#columns;
  }

  /** The bytes of a UUID, for the row that is added next. */
  uuid(text: string): Uint8Array {
    const place = this.#uuidsUsed++;
    this.#uuids[place] ??= new UuidParameter();
    return (this.#uuids[place] as UuidParameter).of(text);
  }

  add(...row: readonly Value[]): void {
    assert(row.length === this.#columns, 'a row has a value for each column');
    for (const value of row) this.#values.push(value);
  }

  /** Runs the statement for the rows that wait. It has to change each of them. */
  flush(): void {
    let at = 0;
    for (const { length, statement } of this.#statements)
      for (; this.#values.length - at >= length; at += length) {
        const { changes } = statement.run(...this.#values.slice(at, at + length));
        assert(changes === length / this.#columns, 'a row that was loaded is there to be changed');
      }
    if (at > 0) this.#values = [];
    this.#uuidsUsed = 0;
  }
}
