// The rows of a bulk statement as one array per column, which PostgreSQL converts back to rows with `unnest`. The array
// literals are built here, since the driver would process each element again: for batches of 40 that took a tenth of
// the main thread's time.

import assert from 'node:assert/strict';
import { type PreparedStatement, prepared, type Query, type Value } from '../pool/connection.ts';

/** Characters that must be escaped in a quoted array element. */
const SPECIAL = /["\\]/g;

export class RowArrays {
  readonly types: readonly string[];
  readonly #columns: string[];
  /** By column, whether any of its values is not null. */
  readonly #isNeeded: boolean[];
  #count = 0;

  /**
   * @param types the types of the columns. Only elements of type `text` are quoted; numbers, UUIDs and booleans need no
   * quotes.
   */
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

  /**
   * One literal for each column. A column that is null in all rows is an empty array, which `unnest` fills up with
   * nulls.
   */
  literals(): string[] {
    return this.#columns.map((column, index) => (this.#isNeeded[index] ? `{${column}}` : '{}'));
  }
}

function quoted(element: Value): string {
  return element === null ? 'NULL' : `"${String(element).replaceAll(SPECIAL, '\\$&')}"`;
}

/** A prepared statement with the columns of rows as arrays in its first parameters. */
export class RowsStatement {
  readonly #types: readonly string[];
  readonly #statement: PreparedStatement;

  constructor(label: string, types: readonly string[], text: string) {
    this.#types = types;
    this.#statement = prepared(label, text);
  }

  /** An empty collection of rows for this statement. */
  rows(): RowArrays {
    return new RowArrays(this.#types);
  }

  /** @param others the values of the parameters after the arrays */
  query(rows: RowArrays, ...others: readonly Value[]): Query {
    return this.#statement([...rows.literals(), ...others]);
  }
}

/** SQL that converts the arrays in the first parameters to rows. */
export function unnest(columnTypes: readonly string[]): string {
  return `unnest(${columnTypes.map((type, index) => `$${index + 1}::${type}[]`).join(', ')})`;
}
