// API keys and the accounts that own them. A revoked key stops working in every process within a second.

import { randomBytes } from 'node:crypto';
import { type ApiKey, apiKeySecret, type Scope, SECRET_BYTES } from '../accounts/api-key.ts';
import type { Instant } from '../ledger/instant.ts';
import type { Actor } from '../ledger/posting.ts';

/** The actor of changes made on the command line. For changes made in the console, the actor is `user:<id>`. */
export const OPERATOR: Actor = 'operator';

export interface ListedKey extends ApiKey {
  readonly accountName: string;
  /** The name that the owner of the key chose; can be empty. */
  readonly name: string;
  readonly hint: string;
  readonly createdAt: Instant;
  readonly createdBy: Actor;
  readonly revokedAt: Instant | null;
  /** Null unless the key is revoked. */
  readonly revokedBy: Actor | null;
  /**
   * When the key was last used, accurate to the minute; null if it was never used. A use is stored within two seconds.
   */
  readonly lastUsedAt: Instant | null;
}

export interface AccountKey {
  readonly scope: Scope;
  readonly secret: string;
  readonly name?: string;
  /** `OPERATOR` if absent. */
  readonly by?: Actor;
  /** The `formHash` of the console form that creates the key; null or absent if there is none. */
  readonly formSha256?: string | null;
}

interface NamedAccount {
  /** The account is created if it does not exist. */
  readonly accountName: string;
}

export type NewKey = NamedAccount & AccountKey;

export interface KeyStore {
  create(key: NewKey): Promise<ApiKey>;
  /** Returns null if the account does not exist, or if the form has already created a key. */
  createFor(account: number, key: AccountKey): Promise<ApiKey | null>;
  /** @param account the owner of the listed keys; if absent, the keys of all accounts are listed */
  list(account?: number): Promise<readonly ListedKey[]>;
  /**
   * Revoking a key twice is not an error.
   *
   * @param owner if present, `account` must own the key, and `by` is the console user who revokes it; if absent, any
   * account can own the key, and `OPERATOR` revokes it
   * @returns false if the key does not exist or another account owns it
   */
  revoke(id: number, owner?: { readonly account: number; readonly by: Actor }): Promise<boolean>;
  recordUses(ids: readonly number[]): Promise<void>;
  /** The key with this hash; null if no key has this hash, or if the key is revoked. */
  find(hash: string): Promise<ApiKey | null>;
}

/**
 * Creates an API key, and also the account if no account is named `accountName`.
 *
 * @returns the secret, which is not stored
 */
export async function createApiKey(
  keys: KeyStore,
  { accountName, scope, name = '' }: NamedAccount & { readonly scope: Scope; readonly name?: string },
): Promise<string> {
  const secret = apiKeySecret(scope, randomBytes(SECRET_BYTES));
  await keys.create({ accountName, scope, name, secret });
  return secret;
}
