// Prepared statements whose rows come as arrays, which are cheaper than objects.

import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';

export type Row = readonly SQLOutputValue[];

export type Parameter = number | string | Uint8Array | null;

/** What Node's `StatementSync` is once it returns arrays, which its type does not say. */
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
