// The rows of a bulk statement, as arrays of their columns: PostgreSQL makes rows of them again with `unnest`. They are
// written out here, since the driver looks at each element anew: for batches of 40 that took a tenth of the main thread.

import assert from 'node:assert/strict';

type Element = string | number | null;

export class RowArrays {
  readonly #isText: readonly boolean[];
  readonly #columns: string[];
  #count = 0;

  /** @param types of the columns; elements of those other than `text` are numbers and UUIDs, which need no quotes */
  constructor(types: readonly string[]) {
    this.#isText = types.map((type) => type === 'text');
    this.#columns = types.map(() => '');
  }

  get count(): number {
    return this.#count;
  }

  add(...row: readonly Element[]): void {
    assert(row.length === this.#columns.length, 'a row has a value for each column');
    const comma = this.#count === 0 ? '' : ',';
    for (let column = 0; column < row.length; column++) {
      const element = row[column] as Element;
      this.#columns[column] += `${comma}${this.#isText[column] ? quoted(element) : (element ?? 'NULL')}`;
    }
    this.#count += 1;
  }

  /** One literal for each column. */
  literals(): string[] {
    return this.#columns.map((column) => `{${column}}`);
  }
}

function quoted(element: Element): string {
  return element === null ? 'NULL' : `"${String(element).replaceAll(/["\\]/g, '\\$&')}"`;
}
