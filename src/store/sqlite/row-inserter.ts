// Inserts rows many at a time: what a statement costs whatever it does, to begin, to open the table and its indexes and to
// end, is a third of what one row costs.

import assert from 'node:assert/strict';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { prepare } from './rows.ts';
import { UuidParameter } from './uuid.ts';

export type Value = number | string | Uint8Array | null;

/** Rows of one statement, the most first: what there is is made up of these. */
const SIZES = [16, 4, 1];

export class RowInserter {
  readonly #columns: number;
  readonly #statements: readonly { readonly size: number; readonly statement: StatementSync }[];
  /** The rows that wait, one behind the other. */
  #values: Value[] = [];
  /** Each waiting row keeps its own, since they are bound together. */
  readonly #uuids: UuidParameter[] = [];
  #uuidsUsed = 0;

  /** @param into the table and its columns, as in `INSERT INTO` */
  constructor(db: DatabaseSync, into: string, columns: number) {
    const row = `(${Array(columns).fill('?').join(', ')})`;
    this.#columns = columns;
    this.#statements = SIZES.map((size) => {
      const rows = Array(size).fill(row).join(', ');
      return { size, statement: prepare(db, `INSERT INTO ${into} VALUES ${rows}`) };
    });
  }

  /** The bytes of a UUID, for a row that is added before the next `flush`. */
  uuid(text: string): Uint8Array {
    const place = this.#uuidsUsed++;
    this.#uuids[place] ??= new UuidParameter();
    return (this.#uuids[place] as UuidParameter).of(text);
  }

  /** Adds a row, which is inserted by the next `flush` or earlier. */
  add(...row: Value[]): void {
    assert(row.length === this.#columns, 'a row has a value for each column');
    for (const value of row) this.#values.push(value);
    if (this.#values.length === (SIZES[0] as number) * this.#columns) this.flush();
  }

  /** Inserts the rows that wait. */
  flush(): void {
    let at = 0;
    for (const { size, statement } of this.#statements) {
      const length = size * this.#columns;
      for (; this.#values.length - at >= length; at += length)
        statement.run(
          ...(at === 0 && length === this.#values.length ? this.#values : this.#values.slice(at, at + length)),
        );
    }
    this.#values = [];
    this.#uuidsUsed = 0;
  }
}
