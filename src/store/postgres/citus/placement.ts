// Where the rows are stored: in a single database, or in shards that are distributed over machines. A batch writes to
// one part: a shard, or the single database.

import type { EndUserKey } from '../../../ledger/command.ts';
import type { Lanes } from '../../ledger-store.ts';
import { prepared, type Query, sql, type TextRow } from '../pool/connection.ts';
import { BATCH_TIMEOUTS, BEGIN_SNAPSHOT, BY_KEY, READ_COMMITTED, setLocal } from '../pool/transactions.ts';
import { BUCKETS, bucketOf, KEY, KEY_TYPES } from '../rows/key.ts';
import { columnsOf } from '../rows/ledger-rows.ts';
import { unnest } from '../rows/row-arrays.ts';

/** A set of rows. A single statement can lock or change rows of only one part. */
export interface Part {
  /** The name of the part in messages. */
  readonly name: string;
  /** All buckets of the part, in ascending order. */
  readonly buckets: readonly number[];
  /** The bucket of all rows of the part that belong to no end user, such as the rows of the feed. */
  readonly bucket: number;
  /**
   * Whether the part is a Citus shard. Most statements for a shard cannot write in a WITH clause, so this process
   * counts the changed rows before it sends COMMIT. In a single database, the server counts the rows, so COMMIT is sent
   * together with the writes.
   */
  readonly isShard: boolean;
  /**
   * Statements at the beginning of a batch's transaction. Until the transaction ends, Citus cannot move the part to
   * another worker.
   */
  readonly stay: readonly Query[];
  /** SQL that limits a statement to the part, such as ` AND c.bucket IN (5, 9)`. Empty for a single database. */
  within(table: string): string;
  /**
   * SQL that inserts rows of end users. The parameters are arrays, one for each column: first the columns of the key,
   * then `columns`.
   *
   * @param values SQL for the values of `columns`, in which `k` is a row of array elements; if absent, the elements are
   * inserted unchanged
   */
  insert(table: string, columns: string, types: readonly string[], values?: string): string;
  /**
   * Returns a function that makes SQL for inserting a given number of rows, with one parameter for each value. Returns
   * null if the SQL of `insert` is also used for a few rows.
   */
  insertFew(
    table: string,
    columns: string,
    types: readonly string[],
    values?: string,
  ): ((rows: number) => string) | null;
}

export interface LedgerTables {
  /** Tables whose rows are distributed by bucket. */
  readonly spread: readonly string[];
  /** All other tables, stored in full on every machine; a table comes after the tables that it references. */
  readonly whole: readonly string[];
}

export interface Placement {
  readonly parts: readonly Part[];
  partOf(user: EndUserKey): Part;
  partOfBucket(bucket: number): Part;
  /**
   * All commands of a lane write to the same part.
   *
   * @param atOnce the number of batches that are written at the same time; null for the default
   */
  lanes(atOnce: number | null): Lanes;
  /** Statements that begin the transaction of a batch. */
  readonly begin: readonly Query[];
  /** Settings for a background transaction that looks up rows by their keys. */
  readonly byKey: readonly Query[];
  /** Settings for a transaction that uses rows of several parts, or tables that are not divided into parts. */
  readonly throughout: readonly Query[];
  /** Statements that begin a transaction whose reads see the same snapshot, even if they read several parts. */
  readonly beginSnapshot: readonly Query[];
  /** Until the transaction of these statements ends, no part can be moved to another machine. */
  readonly stayAll: readonly Query[];
  /** Pauses all batches until the transaction of this statement ends. */
  readonly pause: Query;
  /** See `LedgerStore`. */
  readonly quietPauseMs: number;
}

/**
 * The parts that contain the buckets of `rows`. The list begins with a random part, so that several processes rarely
 * work on the same part at the same time.
 *
 * @param rows rows whose first column is a bucket
 */
export function partsIn(rows: readonly TextRow[], { partOfBucket }: Placement): Part[] {
  return fromRandomStart([...new Set(rows.map(([bucket]) => partOfBucket(Number(bucket))))]);
}

/** The same items, rotated by a random number of places, so that processes usually begin with different items. */
export function fromRandomStart<Item>(items: readonly Item[]): Item[] {
  const first = Math.floor(Math.random() * items.length);
  return [...items.slice(first), ...items.slice(0, first)];
}

export const EVERYTHING: Part = {
  name: 'the database',
  buckets: [...Array(BUCKETS).keys()],
  bucket: 0,
  isShard: false,
  stay: [],
  within: () => '',
  insert(table, columns, types, values = columnsOf('k', columns)) {
    return `INSERT INTO scrip.${table} (${KEY}, ${columns})
      SELECT ${columnsOf('k', KEY)}, ${values} FROM ${unnest([...KEY_TYPES, ...types])} AS k (${KEY}, ${columns})`;
  },
  insertFew: () => null,
};

/** Statements that begin a transaction in which all statements have these settings. */
export function beginWith(settings: Readonly<Record<string, string>>): readonly Query[] {
  const all = Object.entries(settings).map(([name, value]) => `set_config('${name}', '${value}', true)`);
  return [prepared('begin', READ_COMMITTED)([]), prepared('settings', `SELECT ${all.join(', ')}`)([])];
}

export const SINGLE_DATABASE: Placement = {
  parts: [EVERYTHING],
  partOf: () => EVERYTHING,
  partOfBucket: () => EVERYTHING,
  lanes(chosen) {
    const atOnce = chosen ?? 1;
    return { count: atOnce, atOnce, of: (user) => bucketOf(user) % atOnce };
  },
  begin: beginWith({ ...BATCH_TIMEOUTS, ...BY_KEY }),
  byKey: setLocal(BY_KEY),
  throughout: [],
  beginSnapshot: [BEGIN_SNAPSHOT],
  stayAll: [],
  // Before a batch reads the clock, it locks rows of this table. It keeps the locks until its COMMIT.
  pause: sql('LOCK TABLE scrip.end_users IN EXCLUSIVE MODE'),
  quietPauseMs: 0,
};
