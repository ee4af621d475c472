// API keys and accounts in SQLite, on the connection of the process that asks: the CLI makes and revokes them beside a
// running server, which sees the change at its next look-up.

import type { DatabaseSync } from 'node:sqlite';
import { type ApiKey, hashOf, hintOf, type Scope } from '../../accounts/api-key.ts';
import type { ApiKeys, ListedKey, NewKey } from '../store.ts';
import type { LedgerClock } from './ledger-clock.ts';
import { prepare, rowsOf } from './rows.ts';
import { faultOf } from './sqlite-error.ts';

export class SqliteApiKeys implements ApiKeys {
  readonly #db: DatabaseSync;
  readonly #clock: LedgerClock;
  readonly #find;

  constructor(db: DatabaseSync, clock: LedgerClock) {
    this.#db = db;
    this.#clock = clock;
    this.#find = prepare(
      db,
      'SELECT key_id, account, scope FROM api_keys WHERE secret_sha256 = ? AND revoked_at IS NULL',
    );
  }

  async create({ accountName, scope, secret }: NewKey): Promise<ApiKey> {
    const now = this.#clock.peek();
    try {
      this.#db.exec('BEGIN IMMEDIATE');
      this.#db
        .prepare('INSERT INTO accounts (name, created_at) VALUES (?, ?) ON CONFLICT (name) DO NOTHING')
        .run(accountName, now);
      const account = Number(this.#db.prepare('SELECT account FROM accounts WHERE name = ?').get(accountName)?.account);
      const { lastInsertRowid } = this.#db
        .prepare('INSERT INTO api_keys (account, scope, secret_sha256, hint, created_at) VALUES (?, ?, ?, ?, ?)')
        .run(account, scope, hashOf(secret), hintOf(secret), now);
      this.#db.exec('COMMIT');
      return { id: Number(lastInsertRowid), account, scope };
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw faultOf(error);
    }
  }

  async list(): Promise<readonly ListedKey[]> {
    const rows = this.#db
      .prepare(
        `SELECT key_id, account, scope, name, hint, api_keys.created_at AS created_at, revoked_at
         FROM api_keys JOIN accounts USING (account) ORDER BY key_id`,
      )
      .all();
    return rows.map((row) => ({
      id: Number(row.key_id),
      account: Number(row.account),
      scope: row.scope as Scope,
      accountName: String(row.name),
      hint: String(row.hint),
      createdAt: Number(row.created_at),
      revokedAt: row.revoked_at as number | null,
    }));
  }

  async revoke(id: number): Promise<boolean> {
    try {
      const { changes } = this.#db
        .prepare('UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?) WHERE key_id = ?')
        .run(this.#clock.peek(), id);
      return changes === 1;
    } catch (error) {
      throw faultOf(error);
    }
  }

  async find(hash: string): Promise<ApiKey | null> {
    try {
      const [row] = rowsOf(this.#find, hash);
      return row ? { id: row[0] as number, account: row[1] as number, scope: row[2] as Scope } : null;
    } catch (error) {
      throw faultOf(error);
    }
  }
}
