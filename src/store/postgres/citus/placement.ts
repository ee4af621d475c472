// Where the rows are: in one database, or distributed over machines by bucket. This interface covers all differences
// between the two. A transaction writes to one part only. In one database, everything is one part.

import type { EndUserKey } from '../../../ledger/command.ts';
import type { Lanes } from '../../ledger-store.ts';
import { type Connection, prepared, type Query } from '../pool/connection.ts';
import { BATCH_TIMEOUTS, BY_KEY } from '../pool/transactions.ts';
import { bucketOf, KEY, KEY_TYPES } from '../rows/key.ts';
import { columnsOf } from '../rows/ledger-rows.ts';
import { unnest } from '../rows/row-arrays.ts';

/** Rows that one statement may lock or change. */
export interface Part {
  /** The bucket in rows that belong to the part as a whole, not to an end user. */
  readonly bucket: number;
  /**
   * Whether there are other parts, on other machines. If so, no statement may write in a WITH clause, and this
   * process counts the changed rows before it sends COMMIT. In one database, the server counts them: COMMIT is sent
   * with the writes, and the next batch may be sent right after it.
   */
  readonly isShard: boolean;
  /** SQL that limits a statement to the part when it is added to a condition: ` AND c.bucket = 5`, or nothing. */
  within(table: string): string;
  /**
   * SQL that inserts rows of end users. Its parameters are the arrays of their keys and of these columns.
   *
   * @param values SQL for the values of the columns, from the columns of a row `k`; if absent, those columns are
   * inserted unchanged
   */
  insert(table: string, columns: string, types: readonly string[], values?: string): string;
}

export interface LedgerTables {
  /** Tables about end users, which are distributed by bucket. */
  readonly spread: readonly string[];
  /** All other tables, which every machine holds completely. A table comes after the tables that it references. */
  readonly whole: readonly string[];
}

export interface Placement {
  /**
   * Distributes tables over machines, within the caller's transaction. Tables that are already distributed stay as they
   * are.
   */
  distribute(connection: Connection, tables: LedgerTables): Promise<void>;
  readonly parts: readonly Part[];
  partOf(user: EndUserKey): Part;
  /**
   * The lanes for writes. A batch of one lane writes to one part.
   *
   * @param atOnce batches that are written at the same time
   */
  lanes(atOnce: number): Lanes;
  /** Statements that begin the transaction of a batch. */
  readonly begin: readonly Query[];
}

export const EVERYTHING: Part = {
  bucket: 0,
  isShard: false,
  within: () => '',
  insert(table, columns, types, values = columnsOf('k', columns)) {
    return `INSERT INTO scrip.${table} (${KEY}, ${columns})
      SELECT ${columnsOf('k', KEY)}, ${values} FROM ${unnest([...KEY_TYPES, ...types])} AS k (${KEY}, ${columns})`;
  },
};

const SETTINGS = Object.entries({ ...BATCH_TIMEOUTS, ...BY_KEY })
  .map(([name, value]) => `set_config('${name}', '${value}', true)`)
  .join(', ');

export const SINGLE_DATABASE: Placement = {
  distribute: async () => {},
  parts: [EVERYTHING],
  partOf: () => EVERYTHING,
  lanes: (atOnce) => ({ count: atOnce, atOnce, of: (user) => bucketOf(user) % atOnce }),
  begin: [prepared('begin', 'BEGIN')([]), prepared('settings', `SELECT ${SETTINGS}`)([])],
};
