// Prepared statements that return rows as arrays, which are cheaper than objects.

import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';

export type Row = readonly SQLOutputValue[];

export type Parameter = number | string | Uint8Array | null;

/** Node's `StatementSync` after `setReturnArrays`, for which it has no type. */
export interface Statement {
  all(...parameters: readonly Parameter[]): readonly Row[];
  get(...parameters: readonly Parameter[]): Row | undefined;
  iterate(...parameters: readonly Parameter[]): IterableIterator<Row>;
  run(...parameters: readonly Parameter[]): { readonly changes: number | bigint };
  setReadBigInts(enabled: boolean): void;
}

export function prepare(db: DatabaseSync, sql: string): Statement {
  const statement = db.prepare(sql);
  statement.setReturnArrays(true);
  return statement as unknown as Statement;
}
