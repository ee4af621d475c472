// API keys and accounts in SQLite, on the connection of the process that asks: the CLI makes and revokes them beside a
// running server, which sees the change at its next look-up.

import type { DatabaseSync } from 'node:sqlite';
import { type ApiKey, hashOf, hintOf, type Scope } from '../../accounts/api-key.ts';
import type { Instant } from '../../ledger/instant.ts';
import type { AccountKey, ApiKeys, ListedKey, NewKey } from '../store.ts';
import type { LedgerClock } from './ledger-clock.ts';
import { prepare, rowsOf } from './rows.ts';
import { faultOf } from './sqlite-error.ts';
import { beginToWrite } from './turn-to-write.ts';

export class SqliteApiKeys implements ApiKeys {
  readonly noteUses: (ids: readonly number[]) => Promise<void>;
  readonly #db: DatabaseSync;
  readonly #clock: LedgerClock;
  readonly #find;

  /** @param noteUses by way of the writer: a connection that waits for its turn to write would hold up all requests */
  constructor(db: DatabaseSync, clock: LedgerClock, noteUses: (ids: readonly number[]) => Promise<void>) {
    this.noteUses = noteUses;
    this.#db = db;
    this.#clock = clock;
    this.#find = prepare(
      db,
      'SELECT key_id, account, scope FROM api_keys WHERE secret_sha256 = ? AND revoked_at IS NULL',
    );
  }

  async create({ accountName, ...key }: NewKey): Promise<ApiKey> {
    const now = this.#clock.peek();
    return this.#transact(() => {
      this.#db
        .prepare('INSERT INTO accounts (name, created_at) VALUES (?, ?) ON CONFLICT (name) DO NOTHING')
        .run(accountName, now);
      const row = this.#db.prepare('SELECT account FROM accounts WHERE name = ?').get(accountName);
      return this.#insert(Number(row?.account), key, now);
    });
  }

  async createFor(account: number, key: AccountKey): Promise<ApiKey | null> {
    return this.#transact(() => {
      const isThere = this.#db.prepare('SELECT 1 FROM accounts WHERE account = ?').get(account) !== undefined;
      return isThere ? this.#insert(account, key, this.#clock.peek()) : null;
    });
  }

  async list(account?: number): Promise<readonly ListedKey[]> {
    const rows = this.#db
      .prepare(
        `SELECT key_id, account, scope, k.name, a.name AS account_name, hint, k.created_at, revoked_at, last_used_at
         FROM api_keys k JOIN accounts a USING (account) WHERE ?1 IS NULL OR account = ?1 ORDER BY key_id`,
      )
      .all(account ?? null);
    return rows.map((row) => ({
      id: Number(row.key_id),
      account: Number(row.account),
      scope: row.scope as Scope,
      accountName: String(row.account_name),
      name: String(row.name),
      hint: String(row.hint),
      createdAt: Number(row.created_at),
      revokedAt: row.revoked_at as number | null,
      lastUsedAt: row.last_used_at as number | null,
    }));
  }

  async revoke(id: number, account?: number): Promise<boolean> {
    try {
      const { changes } = this.#db
        .prepare(
          'UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?1) WHERE key_id = ?2 AND (?3 IS NULL OR account = ?3)',
        )
        .run(this.#clock.peek(), id, account ?? null);
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

  #insert(account: number, { scope, secret, name = '' }: AccountKey, now: Instant): ApiKey {
    const { lastInsertRowid } = this.#db
      .prepare('INSERT INTO api_keys (account, scope, secret_sha256, hint, created_at, name) VALUES (?, ?, ?, ?, ?, ?)')
      .run(account, scope, hashOf(secret), hintOf(secret), now, name);
    return { id: Number(lastInsertRowid), account, scope };
  }

  #transact<Result>(work: () => Result): Result {
    try {
      beginToWrite(this.#db);
      const result = work();
      this.#db.exec('COMMIT');
      return result;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw faultOf(error);
    }
  }
}
