// Passes the rows of a bulk statement as one array per column. In SQL, `unnest` converts the arrays back to rows. Scrip
// builds the array literals itself, because the driver would make a second pass over each element. With batches of 40
// commands, this pass took a tenth of the main thread's time.

import assert from 'node:assert/strict';
import { type PreparedStatement, prepared, type Query, type Value } from '../pool/connection.ts';

const SPECIAL = /["\\]/g;

export class RowArrays {
  readonly types: readonly string[];
  /** The elements of each column, as text; empty while all elements of the column are null. */
  readonly #columns: string[];
  #count = 0;

  constructor(types: readonly string[]) {
    this.types = types;
    this.#columns = types.map(() => '');
  }

  get count(): number {
    return this.#count;
  }

  add(...row: readonly (Value | bigint)[]): void {
    assert(row.length === this.#columns.length, 'a row has a value for each column');
    for (let column = 0; column < row.length; column++) {
      const element = row[column] as Value;
      const elements = this.#columns[column] as string;
      if (element === null) {
        if (elements !== '') this.#columns[column] = `${elements},NULL`;
        continue;
      }
      const type = this.types[column];
      // Numbers, UUIDs and booleans need no quotes.
      const text = type === 'text' || type === 'json' ? quoted(element) : element;
      this.#columns[column] = `${elements === '' ? 'NULL,'.repeat(this.#count) : `${elements},`}${text}`;
    }
    this.#count += 1;
  }

  /** Whether `column` and all later columns are null in every row. */
  isNullFrom(column: number): boolean {
    return this.#columns.every((elements, index) => index < column || elements === '');
  }

  /**
   * Returns one literal for each column. A column that is null in all rows is an empty array, which `unnest` pads with
   * nulls.
   */
  literals(): string[] {
    return this.#columns.map((elements) => `{${elements}}`);
  }
}

function quoted(element: string | number): string {
  return `"${String(element).replaceAll(SPECIAL, '\\$&')}"`;
}

/** A prepared statement for several rows. Its leading parameters are arrays, one for each column. */
export class RowsStatement {
  readonly #types: readonly string[];
  readonly #statement: PreparedStatement;

  constructor(label: string, types: readonly string[], text: string) {
    this.#types = types;
    this.#statement = prepared(label, text);
  }

  rows(): RowArrays {
    return new RowArrays(this.#types);
  }

  /** Whether the statement can write the rows. Any columns that the statement lacks must be null in every row. */
  takes(rows: RowArrays): boolean {
    return rows.isNullFrom(this.#types.length);
  }

  /**
   * @param rows rows for which `takes` returns true
   * @param others the values of the parameters that follow the arrays
   */
  query(rows: RowArrays, ...others: readonly Value[]): Query {
    assert(this.takes(rows), 'every value is written');
    return this.#statement([...rows.literals().slice(0, this.#types.length), ...others]);
  }
}

/** SQL that converts the arrays in the first parameters to rows. */
export function unnest(columnTypes: readonly string[]): string {
  return `unnest(${columnTypes.map((type, index) => `$${index + 1}::${type}[]`).join(', ')})`;
}
