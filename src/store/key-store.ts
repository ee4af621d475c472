// The port for API keys and the accounts that own them. Other processes on the same store see a change within a second.

import { randomBytes } from 'node:crypto';
import { type ApiKey, apiKeySecret, type Scope, SECRET_BYTES } from '../accounts/api-key.ts';
import type { Instant } from '../ledger/instant.ts';

export interface ListedKey extends ApiKey {
  readonly accountName: string;
  /** What its owner calls it; may be empty. */
  readonly name: string;
  readonly hint: string;
  readonly createdAt: Instant;
  readonly revokedAt: Instant | null;
  /** To the minute, and later by a second or two; null when it was never used. */
  readonly lastUsedAt: Instant | null;
}

export interface AccountKey {
  readonly scope: Scope;
  readonly secret: string;
  readonly name?: string;
}

interface NamedAccount {
  /** The account of this name; created when there is none. */
  readonly accountName: string;
}

export type NewKey = NamedAccount & AccountKey;

export interface KeyStore {
  create(key: NewKey): Promise<ApiKey>;
  /** Null when there is no such account. */
  createFor(account: number, key: AccountKey): Promise<ApiKey | null>;
  /** @param account all accounts when absent */
  list(account?: number): Promise<readonly ListedKey[]>;
  /**
   * False when there is no such key; revoking twice is no error.
   *
   * @param account the account that has to own it; any when absent
   */
  revoke(id: number, account?: number): Promise<boolean>;
  /** Records that these keys were used now. */
  recordUses(ids: readonly number[]): Promise<void>;
  /** The key with this hash, unless it is revoked. */
  find(hash: string): Promise<ApiKey | null>;
}

/**
 * Creates an API key, and its account if there is none of that name.
 *
 * @returns the secret, which is not stored and cannot be read again
 */
export async function createApiKey(
  keys: KeyStore,
  { accountName, scope, name = '' }: NamedAccount & { readonly scope: Scope; readonly name?: string },
): Promise<string> {
  const secret = apiKeySecret(scope, randomBytes(SECRET_BYTES));
  await keys.create({ accountName, scope, name, secret });
  return secret;
}
