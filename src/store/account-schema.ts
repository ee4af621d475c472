// The tables of accounts, API keys, imports and users of the web console, the same in both stores. Instants are
// milliseconds since 1970. Passwords are stored only as argon2id hashes, and secrets and tokens only as SHA-256 hashes.

import { KEY_NAME_CHARACTERS_MAX } from '../accounts/api-key.ts';

/** Each table comes after the tables that it refers to. */
export const ACCOUNT_TABLES = [
  'accounts',
  'api_keys',
  'imports',
  'console_users',
  'console_sessions',
  'console_password_resets',
  'console_members',
  'console_invitations',
  'console_pending_users',
  'console_attempts',
];

/**
 * The SQL that creates the tables.
 *
 * @param instant the SQL type of an instant
 * @param options the SQL after the column list of each table
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
  -- Actors: a user of the console, or the operator.
  created_by TEXT NOT NULL CHECK (created_by <> ''),
  revoked_at ${instant},
  revoked_by TEXT CHECK ((revoked_by IS NULL) = (revoked_at IS NULL)),
  last_used_at ${instant}
) ${options};

-- Imported files of grants, each with its progress, which is stored in the same transaction as the grants.
CREATE TABLE imports (
  import_id INTEGER PRIMARY KEY,
  account INTEGER NOT NULL REFERENCES accounts,
  file_name TEXT NOT NULL,
  rows_sha256 TEXT NOT NULL CHECK (length(rows_sha256) = 64),
  row_count INTEGER NOT NULL CHECK (row_count >= 1),
  rows_done INTEGER NOT NULL CHECK (rows_done BETWEEN 0 AND row_count),
  rows_granted INTEGER NOT NULL CHECK (rows_granted BETWEEN 0 AND rows_done),
  started_at ${instant} NOT NULL,
  updated_at ${instant} NOT NULL,
  UNIQUE (account, rows_sha256)
) ${options};

CREATE TABLE console_users (
  id TEXT PRIMARY KEY,
  email TEXT NOT NULL UNIQUE CHECK (email = lower(email)),
  password_hash TEXT NOT NULL,
  created_at ${instant} NOT NULL
) ${options};

CREATE TABLE console_sessions (
  token_sha256 TEXT PRIMARY KEY CHECK (length(token_sha256) = 64),
  user_id TEXT NOT NULL REFERENCES console_users ON DELETE CASCADE,
  created_at ${instant} NOT NULL,
  expires_at ${instant} NOT NULL CHECK (expires_at > created_at),
  used_at ${instant} NOT NULL,
  -- A short description from the browser's user agent.
  browser TEXT NOT NULL
) ${options};
CREATE INDEX console_sessions_of_user ON console_sessions (user_id);
CREATE INDEX console_sessions_expiry ON console_sessions (expires_at);

-- Links to reset a password, sent by mail.
CREATE TABLE console_password_resets (
  token_sha256 TEXT PRIMARY KEY CHECK (length(token_sha256) = 64),
  user_id TEXT NOT NULL REFERENCES console_users ON DELETE CASCADE,
  expires_at ${instant} NOT NULL
) ${options};
CREATE INDEX console_password_resets_of_user ON console_password_resets (user_id);

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

-- Users who have signed up or joined, and have not confirmed their address yet with the mailed link. Each has either an
-- invitation or the name of an account, which is new or being claimed.
CREATE TABLE console_pending_users (
  token_sha256 TEXT PRIMARY KEY CHECK (length(token_sha256) = 64),
  email TEXT NOT NULL CHECK (email = lower(email)),
  password_hash TEXT NOT NULL,
  account_name TEXT,
  claimed_account INTEGER REFERENCES accounts,
  invitation_sha256 TEXT CHECK ((invitation_sha256 IS NULL) <> (account_name IS NULL)),
  expires_at ${instant} NOT NULL
) ${options};

-- Attempts to sign in, sign up or reset a password, counted in time windows.
CREATE TABLE console_attempts (
  subject_sha256 TEXT PRIMARY KEY CHECK (length(subject_sha256) = 64),
  attempts INTEGER NOT NULL CHECK (attempts >= 0),
  ends_at ${instant} NOT NULL
) ${options};
`;
