// API keys and accounts in PostgreSQL. They are few and change rarely: a table lock gives out their numbers.

import assert from 'node:assert/strict';
import type { Pool, PoolClient } from 'pg';
import { type ApiKey, hashOf, hintOf } from '../../accounts/api-key.ts';
import type { AccountKey, ApiKeys, ListedKey, NewKey } from '../store.ts';
import { BEGIN_UNPROMISED } from './connection.ts';
import type { DatabaseClock } from './database-clock.ts';
import { readFaultOf } from './postgres-error.ts';

export class PostgresApiKeys implements ApiKeys {
  readonly #pool: Pool;
  readonly #clock: DatabaseClock;

  constructor(pool: Pool, clock: DatabaseClock) {
    this.#pool = pool;
    this.#clock = clock;
  }

  async create({ accountName, ...key }: NewKey): Promise<ApiKey> {
    return this.#transact(async (client) => {
      const { rows } = await client.query(
        `SELECT (SELECT account FROM scrip.accounts WHERE name = $1) AS known,
                (SELECT coalesce(max(account), 0) + 1 FROM scrip.accounts) AS next`,
        [accountName],
      );
      const { known, next } = rows[0];
      if (known === null) {
        await client.query('INSERT INTO scrip.accounts (account, name, created_at) VALUES ($1, $2, $3)', [
          next,
          accountName,
          await this.#clock.ask(client),
        ]);
      }
      return this.#insert(client, known ?? next, key);
    });
  }

  async createFor(account: number, key: AccountKey): Promise<ApiKey | null> {
    return this.#transact(async (client) => {
      const { rowCount } = await client.query('SELECT 1 FROM scrip.accounts WHERE account = $1', [account]);
      return rowCount === 0 ? null : this.#insert(client, account, key);
    });
  }

  async list(account?: number): Promise<readonly ListedKey[]> {
    const { rows } = await this.#pool.query(
      `SELECT key_id, account, scope, k.name, a.name AS account_name, hint, k.created_at, revoked_at, last_used_at
       FROM scrip.api_keys k JOIN scrip.accounts a USING (account)
       WHERE $1::integer IS NULL OR account = $1 ORDER BY key_id`,
      [account ?? null],
    );
    return rows.map((row) => ({
      id: row.key_id,
      account: row.account,
      scope: row.scope,
      accountName: row.account_name,
      name: row.name,
      hint: row.hint,
      createdAt: row.created_at,
      revokedAt: row.revoked_at,
      lastUsedAt: row.last_used_at,
    }));
  }

  async revoke(id: number, account?: number): Promise<boolean> {
    const now = await this.#clock.ask(this.#pool);
    const { rowCount } = await this.#pool.query(
      `UPDATE scrip.api_keys SET revoked_at = coalesce(revoked_at, $2)
       WHERE key_id = $1 AND ($3::integer IS NULL OR account = $3)`,
      [id, now, account ?? null],
    );
    return rowCount === 1;
  }

  /** Rows in one order, since every process does this. */
  async noteUses(ids: readonly number[]): Promise<void> {
    assert(ids.every(Number.isSafeInteger), 'keys have numbers');
    const used = `key_id = ANY('{${ids}}')`;
    const now = await this.#clock.ask(this.#pool);
    await this.#pool.query(
      `${BEGIN_UNPROMISED};
       SELECT key_id FROM scrip.api_keys WHERE ${used} ORDER BY key_id FOR UPDATE;
       UPDATE scrip.api_keys SET last_used_at = greatest(last_used_at, ${now}) WHERE ${used};
       COMMIT`,
    );
  }

  async find(hash: string): Promise<ApiKey | null> {
    const found = this.#pool.query(
      'SELECT key_id, account, scope FROM scrip.api_keys WHERE secret_sha256 = $1 AND revoked_at IS NULL',
      [hash],
    );
    const { rows } = await found.catch((error) => {
      throw readFaultOf(error);
    });
    const [row] = rows;
    return row ? { id: row.key_id, account: row.account, scope: row.scope } : null;
  }

  async #insert(client: PoolClient, account: number, { scope, secret, name = '' }: AccountKey): Promise<ApiKey> {
    const { rows } = await client.query('SELECT coalesce(max(key_id), 0) + 1 AS next FROM scrip.api_keys');
    const id: number = rows[0].next;
    await client.query(
      `INSERT INTO scrip.api_keys (key_id, account, scope, secret_sha256, hint, created_at, name)
       VALUES ($1, $2, $3, $4, $5, $6, $7)`,
      [id, account, scope, hashOf(secret), hintOf(secret), await this.#clock.ask(client), name],
    );
    return { id, account, scope };
  }

  async #transact<Result>(work: (client: PoolClient) => Promise<Result>): Promise<Result> {
    const client = await this.#pool.connect();
    try {
      await client.query('BEGIN; LOCK TABLE scrip.accounts, scrip.api_keys IN EXCLUSIVE MODE');
      const result = await work(client);
      await client.query('COMMIT');
      return result;
    } finally {
      // Without COMMIT, closing the connection rolls back.
      client.release(true);
    }
  }
}
