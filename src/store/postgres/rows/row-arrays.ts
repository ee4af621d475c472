// Passes the rows of a bulk statement as one array per column. In SQL, `unnest` converts the arrays back to rows. Scrip
// builds the array literals itself, because the driver would make a second pass over each element. With batches of 40
// commands, this pass took a tenth of the main thread's time.

import assert from 'node:assert/strict';
import { type PreparedStatement, prepared, type Query, type Value } from '../pool/connection.ts';

const SPECIAL = /["\\]/g;

/**
 * On Citus, the maximum number of rows that are inserted with a VALUES list. Citus makes a new plan for each
 * execution of an INSERT with a SELECT. For 6 rows, Citus needs 0.5 ms of CPU time with VALUES, and 1.4 ms with a
 * SELECT. For many rows, a SELECT needs less CPU time.
 */
const ROWS_FEW_MAX = 16;

/** The statements for a few rows, by their text. All shards use the same statements. */
const SHARED = new Map<string, PreparedStatement>();

export class RowArrays {
  readonly types: readonly string[];
  /** The elements of each column, as text; empty while all elements of the column are null. */
  readonly #columns: string[];
  /** The first `ROWS_FEW_MAX` rows; null if no statement needs them. */
  readonly #rows: (readonly (Value | bigint)[])[] | null;
  #count = 0;

  constructor(types: readonly string[], keepsRows = false) {
    this.types = types;
    this.#columns = types.map(() => '');
    this.#rows = keepsRows ? [] : null;
  }

  get count(): number {
    return this.#count;
  }

  add(...row: readonly (Value | bigint)[]): void {
    assert(row.length === this.#columns.length, 'a row has a value for each column');
    if (this.#rows !== null && this.#count < ROWS_FEW_MAX) this.#rows.push(row);
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

  /** Returns the values of all rows, one row after the other; null if there are too many. */
  values(): Value[] | null {
    if (this.#rows === null || this.#count > ROWS_FEW_MAX) return null;
    return this.#rows.flat().map((value) => (typeof value === 'bigint' ? String(value) : value));
  }

  /**
   * Returns one literal for each column. A column that is null in all rows becomes an empty array, which `unnest` pads
   * with nulls.
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
  readonly #label: string;
  readonly #few: ((rows: number) => string) | null;
  /** The statements for a few rows, by the number of rows. */
  readonly #ofRows: PreparedStatement[] = [];

  /**
   * @param few returns SQL for a given number of rows, with one parameter for each value; null if `text` is also used
   * for a few rows
   */
  constructor(label: string, types: readonly string[], text: string, few: ((rows: number) => string) | null = null) {
    this.#types = types;
    this.#statement = prepared(label, text);
    this.#label = label;
    this.#few = few;
  }

  rows(): RowArrays {
    return new RowArrays(this.#types, this.#few !== null);
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
    const values = rows.values();
    if (this.#few !== null && values !== null) {
      this.#ofRows[rows.count] ??= sharedStatement(`${this.#label}_${rows.count}`, this.#few(rows.count));
      return (this.#ofRows[rows.count] as PreparedStatement)(values);
    }
    return this.#statement([...rows.literals().slice(0, this.#types.length), ...others]);
  }
}

/** Each connection prepares statements with the same text only once. */
function sharedStatement(label: string, text: string): PreparedStatement {
  const statement = SHARED.get(text) ?? prepared(label, text);
  SHARED.set(text, statement);
  return statement;
}

/** SQL that converts the arrays in the first parameters to rows. */
export function unnest(columnTypes: readonly string[]): string {
  return `unnest(${columnTypes.map((type, index) => `$${index + 1}::${type}[]`).join(', ')})`;
}
