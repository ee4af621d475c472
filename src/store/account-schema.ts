// The tables of accounts, API keys and the web console's users, alike in both stores. Instants are milliseconds since 1970.
// Of a password, only an argon2id hash is stored; of a secret or token, only its SHA-256.

import { KEY_NAME_CHARACTERS_MAX } from '../accounts/api-key.ts';

/** One that refers to another comes behind it. */
export const ACCOUNT_TABLES = [
  'accounts',
  'api_keys',
  'console_users',
  'console_sessions',
  'console_verifications',
  'console_members',
  'console_invitations',
  'console_attempts',
];

/**
 * SQL that creates them.
 *
 * @param instant the type of an instant
 * @param options behind each table
 */
export const accountSchema = ({ instant, options }: { readonly instant: string; readonly options: string }) => `
CREATE TABLE accounts (
  account INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 200),
  created_at ${instant} NOT NULL
) ${options};

CREATE TABLE api_keys (
  key_id INTEGER PRIMARY KEY,
  account INTEGER NOT NULL REFERENCES accounts,
  scope TEXT NOT NULL CHECK (scope IN ('read', 'write')),
  secret_sha256 TEXT NOT NULL UNIQUE CHECK (length(secret_sha256) = 64),
  hint TEXT NOT NULL,
  name TEXT NOT NULL DEFAULT '' CHECK (length(name) <= ${KEY_NAME_CHARACTERS_MAX}),
  created_at ${instant} NOT NULL,
  revoked_at ${instant},
  last_used_at ${instant}
) ${options};

CREATE TABLE console_users (
  id TEXT PRIMARY KEY,
  email TEXT NOT NULL UNIQUE CHECK (email = lower(email)),
  password_hash TEXT NOT NULL,
  -- Null until the user has proved that the address is theirs.
  email_confirmed_at ${instant},
  created_at ${instant} NOT NULL
) ${options};

CREATE TABLE console_sessions (
  token_sha256 TEXT PRIMARY KEY CHECK (length(token_sha256) = 64),
  user_id TEXT NOT NULL REFERENCES console_users ON DELETE CASCADE,
  created_at ${instant} NOT NULL,
  expires_at ${instant} NOT NULL CHECK (expires_at > created_at)
) ${options};
CREATE INDEX console_sessions_of_user ON console_sessions (user_id);
CREATE INDEX console_sessions_expiry ON console_sessions (expires_at);

-- Links sent by mail.
CREATE TABLE console_verifications (
  token_sha256 TEXT PRIMARY KEY CHECK (length(token_sha256) = 64),
  purpose TEXT NOT NULL CHECK (purpose IN ('confirm-email', 'reset-password')),
  user_id TEXT NOT NULL REFERENCES console_users ON DELETE CASCADE,
  expires_at ${instant} NOT NULL
) ${options};
CREATE INDEX console_verifications_of_user ON console_verifications (user_id);

-- A user is a member of one account.
CREATE TABLE console_members (
  user_id TEXT PRIMARY KEY REFERENCES console_users ON DELETE CASCADE,
  account INTEGER NOT NULL REFERENCES accounts,
  role TEXT NOT NULL CHECK (role IN ('owner', 'member')),
  created_at ${instant} NOT NULL
) ${options};
CREATE INDEX console_members_of_account ON console_members (account);

CREATE TABLE console_invitations (
  token_sha256 TEXT PRIMARY KEY CHECK (length(token_sha256) = 64),
  account INTEGER NOT NULL REFERENCES accounts,
  role TEXT NOT NULL CHECK (role IN ('owner', 'member')),
  created_at ${instant} NOT NULL,
  expires_at ${instant} NOT NULL CHECK (expires_at > created_at),
  used_at ${instant}
) ${options};

-- Attempts to sign in, sign up or reset a password, counted in windows of time.
CREATE TABLE console_attempts (
  subject_sha256 TEXT PRIMARY KEY CHECK (length(subject_sha256) = 64),
  attempts INTEGER NOT NULL CHECK (attempts >= 0),
  ends_at ${instant} NOT NULL
) ${options};
`;
