// A correct ledger file and its rows, for tests that change copies of the file by hand and audit each copy.

import assert from 'node:assert/strict';
import { copyFileSync, rmSync } from 'node:fs';
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite';
import { uuidOf } from '../../../src/store/sqlite/file/uuid.ts';
import { effort } from '../../effort.ts';
import { byHand } from '../outside.ts';
import { auditBeside } from '../sqlite/sqlite-ledger.ts';
import { makeHistory, problemsOf, temporaryFile } from '../temporary-ledger.ts';

export type Row = Record<string, SQLOutputValue>;
export type Table = keyof typeof KEYS;

const KEYS = {
  balances: ['account', 'end_user', 'ends_at', 'cycle_id'],
  postings: ['posting'],
  clock: ['only'],
} as const;

export interface Verdict {
  /** `account 1, end user …` for each problem of an end user, then one `store` if the audit found other problems. */
  readonly names: readonly string[];
  readonly text: string;
}

export class ChangedLedger {
  readonly file = temporaryFile();
  readonly rows: Record<Table, Row[]> = { balances: [], postings: [], clock: [] };

  static async make(): Promise<ChangedLedger> {
    const ledger = new ChangedLedger();
    await makeHistory(ledger.file);
    const db = new DatabaseSync(ledger.file, { readOnly: true });
    for (const table of Object.keys(KEYS) as Table[]) ledger.rows[table] = db.prepare(`SELECT * FROM ${table}`).all();
    db.close();
    return ledger;
  }

  /** Returns the first, a middle and the last row of each kind. In the long form of the tests, returns all rows. */
  sample(table: Table): readonly Row[] {
    const byKind = Map.groupBy(this.rows[table], ({ type, status, kind }) => `${type} ${status} ${kind}`);
    const sampled = [...byKind.values()].flatMap((alike) => [alike[0], alike[alike.length >> 1], alike.at(-1)]);
    return effort([...new Set(sampled)] as Row[], this.rows[table]);
  }

  row(table: Table, columns: Row): Row {
    const found = this.rows[table].filter((row) =>
      Object.entries(columns).every(([name, value]) => row[name] === value),
    );
    assert.equal(found.length, 1, `one row of ${table} has ${JSON.stringify(columns)}`);
    return found[0] as Row;
  }

  changed(sql: string): string {
    const copy = `${this.file}.copy`;
    for (const end of ['', '-wal', '-shm']) rmSync(copy + end, { force: true });
    copyFileSync(this.file, copy);
    byHand(copy, `PRAGMA synchronous = OFF; ${sql}`);
    return copy;
  }

  async verdictAfter(sql: string): Promise<Verdict> {
    const audited = await auditBeside(this.changed(sql));
    const names = audited.findings.map(({ user }) => `account ${user.account}, end user ${user.endUser}`);
    return { names: audited.store.length > 0 ? [...names, 'store'] : names, text: problemsOf(audited).join('\n') };
  }

  /**
   * Changes a row, and asserts that the audit names its end user, or the store if the row belongs to no end user.
   *
   * @param orStore whether the audit may name the store instead of the end user; by default, true only for rows of type
   * `end-user`
   * @returns false if the database itself rejects the change because of a duplicate key
   */
  async assertNamed(row: Row, sql: string, { orStore = row.type === 'end-user' } = {}): Promise<boolean> {
    try {
      const { names } = await this.verdictAfter(sql);
      const owner = row.end_user ? `account ${row.account}, end user ${uuidOf(row.end_user as Uint8Array)}` : 'store';
      const isNamed = names.includes(owner) || (orStore && names.includes('store'));
      assert(isNamed, `${sql}: the audit ${names.length ? `named ${names}` : 'found nothing'}`);
      return true;
    } catch (error) {
      if (/^UNIQUE constraint failed/.test((error as Error).message)) return false;
      throw error;
    }
  }
}

export function literal(value: SQLOutputValue | undefined): string {
  if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString('hex')}'`;
  return typeof value === 'string' ? `'${value}'` : String(value);
}

export function where(table: Table, row: Row): string {
  return KEYS[table].map((column) => `${column} = ${literal(row[column])}`).join(' AND ');
}

export function whereUser({ account, end_user }: Row): string {
  return `account = ${account} AND end_user = ${literal(end_user)}`;
}

export function flipped(bytes: SQLOutputValue | undefined, index: number): SQLOutputValue {
  const copy = Uint8Array.from(bytes as Uint8Array);
  copy[index] = (copy[index] as number) ^ 1;
  return copy;
}
