// Stores API keys and accounts, with SQL that runs on both SQLite and PostgreSQL.

import { type ApiKey, hashOf, hintOf, type Scope } from '../accounts/api-key.ts';
import type { Instant } from '../ledger/instant.ts';
import type { Actor } from '../ledger/posting.ts';
import { type AccountKey, type KeyStore, type ListedKey, type NewKey, OPERATOR } from './key-store.ts';

type Value = string | number | null;

/** The values of a row. A store can return numbers as text. */
export type KeyRow = readonly Value[];

/** Runs one statement. `values` contains the parameters `$1`, `$2` and so on. */
export type RunStatement = (sql: string, values: readonly Value[]) => Promise<readonly KeyRow[]>;

interface KeyDatabase {
  readonly schema: string;
  readonly run: RunStatement;
  /**
   * Runs `work` in a database transaction. These transactions run one at a time: otherwise, two of them could choose
   * the same account number or key ID.
   */
  transact<Result>(work: (run: RunStatement) => Promise<Result>): Promise<Result>;
  now(): Promise<Instant>;
  recordUses(ids: readonly number[]): Promise<void>;
}

export class SqlKeyStore implements KeyStore {
  readonly #database: KeyDatabase;
  readonly #accounts: string;
  readonly #keys: string;

  constructor(database: KeyDatabase) {
    this.#database = database;
    this.#accounts = `${database.schema}.accounts`;
    this.#keys = `${database.schema}.api_keys`;
  }

  async create({ accountName, ...key }: NewKey): Promise<ApiKey> {
    const now = await this.#database.now();
    return this.#database.transact(async (run) => {
      const account = (await this.#accountNamed(accountName, run)) ?? (await this.#addAccount(accountName, now, run));
      return this.#addKey(account, key, now, run);
    });
  }

  async createFor(account: number, key: AccountKey): Promise<ApiKey | null> {
    const now = await this.#database.now();
    return this.#database.transact(async (run) => {
      const known = await run(`SELECT 1 FROM ${this.#accounts} WHERE account = $1`, [account]);
      const sent = await run(`SELECT 1 FROM ${this.#keys} WHERE form_sha256 = $1`, [key.formSha256 ?? null]);
      return known.length === 0 || sent.length > 0 ? null : this.#addKey(account, key, now, run);
    });
  }

  async list(account?: number): Promise<readonly ListedKey[]> {
    const rows = await this.#database.run(
      `SELECT key_id, account, scope, a.name, k.name, hint, k.created_at, created_by, revoked_at, revoked_by,
       last_used_at
       FROM ${this.#keys} AS k JOIN ${this.#accounts} AS a USING (account)
       WHERE CAST($1 AS integer) IS NULL OR account = $1 ORDER BY key_id`,
      [account ?? null],
    );
    return rows.map(listedKeyOf);
  }

  async revoke(id: number, owner?: { readonly account: number; readonly by: Actor }): Promise<boolean> {
    const revoked = await this.#database.run(
      `UPDATE ${this.#keys} SET revoked_at = coalesce(revoked_at, $1), revoked_by = coalesce(revoked_by, $4)
       WHERE key_id = $2 AND (CAST($3 AS integer) IS NULL OR account = $3) RETURNING key_id`,
      [await this.#database.now(), id, owner?.account ?? null, owner?.by ?? OPERATOR],
    );
    return revoked.length === 1;
  }

  recordUses(ids: readonly number[]): Promise<void> {
    return this.#database.recordUses(ids);
  }

  async find(hash: string): Promise<ApiKey | null> {
    const [row] = await this.#database.run(
      `SELECT key_id, account, scope FROM ${this.#keys} WHERE secret_sha256 = $1 AND revoked_at IS NULL`,
      [hash],
    );
    return row === undefined ? null : { id: Number(row[0]), account: Number(row[1]), scope: row[2] as Scope };
  }

  async #accountNamed(name: string, run: RunStatement): Promise<number | null> {
    const [row] = await run(`SELECT account FROM ${this.#accounts} WHERE name = $1`, [name]);
    return row === undefined ? null : Number(row[0]);
  }

  async #addAccount(name: string, now: Instant, run: RunStatement): Promise<number> {
    const account = await next('account', this.#accounts, run);
    await run(`INSERT INTO ${this.#accounts} (account, name, created_at) VALUES ($1, $2, $3)`, [account, name, now]);
    return account;
  }

  async #addKey(account: number, key: AccountKey, now: Instant, run: RunStatement): Promise<ApiKey> {
    const { scope, secret, name = '', by = OPERATOR, formSha256 = null } = key;
    const id = await next('key_id', this.#keys, run);
    await run(
      `INSERT INTO ${this.#keys} (key_id, account, scope, secret_sha256, hint, name, created_at, created_by, form_sha256)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
      [id, account, scope, hashOf(secret), hintOf(secret), name, now, by, formSha256],
    );
    return { id, account, scope };
  }
}

/**
 * Returns the next free account number or key ID. Uses a separate query, because Citus does not allow a subquery in the
 * VALUES of an INSERT.
 */
async function next(column: string, table: string, run: RunStatement): Promise<number> {
  const [row] = await run(`SELECT coalesce(max(${column}), 0) + 1 FROM ${table}`, []);
  return Number(row?.[0]);
}

function listedKeyOf(row: KeyRow): ListedKey {
  const [id, account, scope, accountName, name, hint, createdAt, createdBy, revokedAt, revokedBy, lastUsedAt] = row;
  return {
    id: Number(id),
    account: Number(account),
    scope: scope as Scope,
    accountName: accountName as string,
    name: name as string,
    hint: hint as string,
    createdAt: Number(createdAt),
    createdBy: createdBy as Actor,
    revokedAt: revokedAt === null ? null : Number(revokedAt),
    revokedBy: revokedBy as Actor | null,
    lastUsedAt: lastUsedAt === null ? null : Number(lastUsedAt),
  };
}
