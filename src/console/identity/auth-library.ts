// better-auth, set up for our tables: it keeps users, credentials, sessions and one-time tokens, on both stores. Its
// routes and cookies are not used, so its secret signs nothing that anybody is given; which answers people get, and what
// they may learn from them, is ours. Loading it took 260 to 284 ms in six runs, on two busy cores, so this file is imported
// when the console is first asked.

import { randomBytes } from 'node:crypto';
import { kyselyAdapter } from '@better-auth/kysely-adapter';
import type { BetterAuthOptions } from 'better-auth';
import { betterAuth } from 'better-auth/minimal';
import type { ConsoleDatabase, ConsoleQueries } from '../../store/console-database.ts';
import type { PasswordHash } from './password-hash.ts';

const timestamps = { createdAt: 'created_at', updatedAt: 'updated_at' };

function optionsFor({ type, queries }: ConsoleDatabase, password: PasswordHash) {
  return {
    appName: 'Scrip',
    baseURL: 'http://localhost',
    secret: randomBytes(32).toString('hex'),
    database: kyselyAdapter(queries, { type, transaction: true }),
    // What it logs has e-mail addresses in it.
    logger: { disabled: true },
    telemetry: { enabled: false },
    advanced: { database: { validateSchema: false } },
    emailAndPassword: {
      enabled: true,
      password: {
        hash: (text) => password.hash(text),
        verify: ({ password: text, hash }) => password.verify(text, hash),
      },
    },
    user: { modelName: 'console_users', fields: { emailVerified: 'email_verified', ...timestamps } },
    session: {
      modelName: 'console_sessions',
      fields: {
        userId: 'user_id',
        token: 'token_sha256',
        expiresAt: 'expires_at',
        ipAddress: 'ip_address',
        userAgent: 'user_agent',
        ...timestamps,
      },
    },
    account: {
      modelName: 'console_credentials',
      fields: {
        userId: 'user_id',
        providerId: 'provider',
        accountId: 'subject',
        password: 'password_hash',
        accessToken: 'access_token',
        refreshToken: 'refresh_token',
        idToken: 'id_token',
        accessTokenExpiresAt: 'access_token_expires_at',
        refreshTokenExpiresAt: 'refresh_token_expires_at',
        ...timestamps,
      },
    },
    verification: {
      modelName: 'console_verifications',
      storeIdentifier: 'hashed',
      fields: { expiresAt: 'expires_at', ...timestamps },
    },
  } satisfies BetterAuthOptions;
}

export type AuthLibrary = Awaited<ReturnType<typeof openAuthLibrary>>;

export async function openAuthLibrary(database: ConsoleDatabase, password: PasswordHash) {
  const options = optionsFor(database, password);
  const context = await betterAuth(options).$context;
  return {
    records: context.internalAdapter,
    password: context.password,
    adapter: context.adapter,
    checkSchema: context.explicitSchemaCheck,
    /** The same tables, inside a transaction of ours. */
    within: (queries: ConsoleQueries) => kyselyAdapter(queries, { type: database.type })(options),
  };
}
