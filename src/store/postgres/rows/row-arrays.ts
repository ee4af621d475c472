// The rows of a bulk statement, as arrays of their columns: PostgreSQL makes rows of them again with `unnest`. They are
// written out here, since the driver looks at each element again: for batches of 40 that took a tenth of the main thread.

import assert from 'node:assert/strict';
import { type PreparedStatement, prepared, type Query, type Value } from '../pool/connection.ts';

/** Characters that PostgreSQL reads otherwise in an element with quotes. */
const SPECIAL = /["\\]/g;

export class RowArrays {
  readonly types: readonly string[];
  readonly #columns: string[];
  /** Whether a column is not null throughout. */
  readonly #isNeeded: boolean[];
  #count = 0;

  /** @param types of the columns; elements of those other than `text` are numbers and UUIDs, which need no quotes */
  constructor(types: readonly string[]) {
    this.types = types;
    this.#columns = types.map(() => '');
    this.#isNeeded = types.map(() => false);
  }

  get count(): number {
    return this.#count;
  }

  add(...row: readonly (Value | bigint)[]): void {
    assert(row.length === this.#columns.length, 'a row has a value for each column');
    const comma = this.#count === 0 ? '' : ',';
    for (let column = 0; column < row.length; column++) {
      const element = row[column] as Value;
      const text = this.types[column] === 'text' ? quoted(element) : (element ?? 'NULL');
      this.#columns[column] += `${comma}${text}`;
      if (element !== null) this.#isNeeded[column] = true;
    }
    this.#count += 1;
  }

  /** One literal for each column. Of arrays that are too short, `unnest` makes nulls, as long as one has all. */
  literals(): string[] {
    return this.#columns.map((column, index) => (this.#isNeeded[index] ? `{${column}}` : '{}'));
  }
}

function quoted(element: Value): string {
  return element === null ? 'NULL' : `"${String(element).replaceAll(SPECIAL, '\\$&')}"`;
}

/** A prepared statement about rows, whose first parameters are the arrays of their columns. */
export class RowsStatement {
  readonly #types: readonly string[];
  readonly #statement: PreparedStatement;

  constructor(label: string, types: readonly string[], text: string) {
    this.#types = types;
    this.#statement = prepared(label, text);
  }

  /** No rows, to be added to. */
  rows(): RowArrays {
    return new RowArrays(this.#types);
  }

  /** @param others the values of the parameters behind the arrays */
  query(rows: RowArrays, ...others: readonly Value[]): Query {
    return this.#statement([...rows.literals(), ...others]);
  }
}

/** SQL for the rows whose columns are in the first parameters. */
export function unnest(columnTypes: readonly string[]): string {
  return `unnest(${columnTypes.map((type, index) => `$${index + 1}::${type}[]`).join(', ')})`;
}
