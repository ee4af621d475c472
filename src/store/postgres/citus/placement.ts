// Where the rows are: in one database, or distributed over machines by bucket. All that differs between the two is behind
// this interface. A transaction that writes concerns one part. In one database everything is one part.

import type { EndUserKey } from '../../../ledger/command.ts';
import type { Lanes } from '../../ledger-store.ts';
import { type Connection, prepared, type Query } from '../pool/connection.ts';
import { BATCH_TIMEOUTS, BY_KEY } from '../pool/transactions.ts';
import { bucketOf, KEY, KEY_TYPES } from '../rows/key.ts';
import { unnest } from '../rows/row-arrays.ts';

/** Rows that one statement may lock or change. */
export interface Part {
  /** The bucket of those rows that belong to the part as a whole. */
  readonly bucket: number;
  /**
   * Whether there are others, on other machines. No statement may then write within WITH, and the rows that are changed are
   * counted here before COMMIT is sent. In one database the server counts them: COMMIT is sent with the writes, and the next
   * batch may follow behind it.
   */
  readonly isShard: boolean;
  /** SQL that keeps a statement within the part, to be added to a condition: ` AND c.bucket = 5`, or nothing. */
  within(table: string): string;
  /** SQL that inserts rows of end users, given the arrays of their keys and of these columns. */
  insert(table: string, columns: string, types: readonly string[]): string;
}

export interface LedgerTables {
  /** Of end users, to be spread by bucket. */
  readonly spread: readonly string[];
  /** Of everything else, to be whole on every machine. One that refers to another comes behind it. */
  readonly whole: readonly string[];
}

export interface Placement {
  /** Spreads tables over machines. Those that are spread already stay as they are. Within a transaction of the caller. */
  distribute(connection: Connection, tables: LedgerTables): Promise<void>;
  readonly parts: readonly Part[];
  partOf(user: EndUserKey): Part;
  /** A batch of one lane concerns one part. @param atOnce batches that are written at the same time */
  lanes(atOnce: number): Lanes;
  /** Begins the transaction of a batch. */
  readonly begin: readonly Query[];
}

export const EVERYTHING: Part = {
  bucket: 0,
  isShard: false,
  within: () => '',
  insert(table, columns, types) {
    return `INSERT INTO scrip.${table} (${KEY}, ${columns}) SELECT * FROM ${unnest([...KEY_TYPES, ...types])}`;
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
