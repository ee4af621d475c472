// API keys and accounts in PostgreSQL. They are few and change rarely: a table lock gives out their numbers.

import type { Pool } from 'pg';
import { type ApiKey, hashOf, hintOf } from '../../accounts/api-key.ts';
import type { ApiKeys, ListedKey, NewKey } from '../store.ts';
import type { DatabaseClock } from './database-clock.ts';
import { readFaultOf } from './postgres-error.ts';

export class PostgresApiKeys implements ApiKeys {
  readonly #pool: Pool;
  readonly #clock: DatabaseClock;

  constructor(pool: Pool, clock: DatabaseClock) {
    this.#pool = pool;
    this.#clock = clock;
  }

  async create({ accountName, scope, secret }: NewKey): Promise<ApiKey> {
    const client = await this.#pool.connect();
    try {
      await client.query('BEGIN; LOCK TABLE scrip.accounts, scrip.api_keys IN EXCLUSIVE MODE');
      const { rows: numbers } = await client.query(
        `SELECT (SELECT account FROM scrip.accounts WHERE name = $1) AS known,
                (SELECT coalesce(max(account), 0) + 1 FROM scrip.accounts) AS account,
                (SELECT coalesce(max(key_id), 0) + 1 FROM scrip.api_keys) AS key_id, ${this.#clock.now} AS now`,
        [accountName],
      );
      const { known, account: next, key_id: id, now } = numbers[0];
      const account: number = known ?? next;
      if (known === null)
        await client.query('INSERT INTO scrip.accounts VALUES ($1, $2, $3)', [account, accountName, now]);
      await client.query(
        'INSERT INTO scrip.api_keys (key_id, account, scope, secret_sha256, hint, created_at) VALUES ($1, $2, $3, $4, $5, $6)',
        [id, account, scope, hashOf(secret), hintOf(secret), now],
      );
      await client.query('COMMIT');
      return { id, account, scope };
    } finally {
      client.release(true);
    }
  }

  async list(): Promise<readonly ListedKey[]> {
    const { rows } = await this.#pool.query(
      `SELECT key_id, account, scope, name, hint, k.created_at, revoked_at
       FROM scrip.api_keys k JOIN scrip.accounts USING (account) ORDER BY key_id`,
    );
    return rows.map((row) => ({
      id: row.key_id,
      account: row.account,
      scope: row.scope,
      accountName: row.name,
      hint: row.hint,
      createdAt: row.created_at,
      revokedAt: row.revoked_at,
    }));
  }

  async revoke(id: number): Promise<boolean> {
    const { rows } = await this.#pool.query(`SELECT ${this.#clock.now} AS now`);
    const { rowCount } = await this.#pool.query(
      'UPDATE scrip.api_keys SET revoked_at = coalesce(revoked_at, $2) WHERE key_id = $1',
      [id, rows[0].now],
    );
    return rowCount === 1;
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
}
