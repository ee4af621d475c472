// The tables of the web console: who signs in, for which account, and with which link one may join. Those of users,
// sessions, credentials and verifications are read and written by better-auth, which fixes their columns and keeps
// instants as ISO 8601 text; the instants of the others are milliseconds since 1970. Of a secret, only a hash is there.

export const consoleTables = `
CREATE TABLE console_users (
  id TEXT PRIMARY KEY,
  email TEXT NOT NULL UNIQUE CHECK (email = lower(email)),
  email_verified INTEGER NOT NULL CHECK (email_verified IN (0, 1)),
  name TEXT NOT NULL,
  image TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;

CREATE TABLE console_sessions (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES console_users ON DELETE CASCADE,
  token_sha256 TEXT NOT NULL UNIQUE CHECK (length(token_sha256) = 64),
  expires_at TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  ip_address TEXT,
  user_agent TEXT
) STRICT;
CREATE INDEX console_sessions_of_user ON console_sessions (user_id);
CREATE INDEX console_sessions_expiry ON console_sessions (expires_at);

CREATE TABLE console_credentials (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES console_users ON DELETE CASCADE,
  provider TEXT NOT NULL,
  subject TEXT NOT NULL,
  password_hash TEXT,
  access_token TEXT,
  refresh_token TEXT,
  id_token TEXT,
  access_token_expires_at TEXT,
  refresh_token_expires_at TEXT,
  scope TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  UNIQUE (user_id, provider)
) STRICT;

CREATE TABLE console_verifications (
  id TEXT PRIMARY KEY,
  identifier TEXT NOT NULL,
  value TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX console_verifications_by_identifier ON console_verifications (identifier);

-- A person is a member of one account.
CREATE TABLE console_members (
  user_id TEXT PRIMARY KEY REFERENCES console_users ON DELETE CASCADE,
  account INTEGER NOT NULL REFERENCES accounts,
  role TEXT NOT NULL CHECK (role IN ('owner', 'member')),
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX console_members_of_account ON console_members (account);

CREATE TABLE console_invitations (
  token_sha256 TEXT PRIMARY KEY CHECK (length(token_sha256) = 64),
  account INTEGER NOT NULL REFERENCES accounts,
  role TEXT NOT NULL CHECK (role IN ('owner', 'member')),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL CHECK (expires_at > created_at),
  used_at INTEGER
) STRICT;

-- How often something was tried that somebody may try only so often, until when that counts.
CREATE TABLE console_attempts (
  subject_sha256 TEXT PRIMARY KEY CHECK (length(subject_sha256) = 64),
  attempts INTEGER NOT NULL CHECK (attempts >= 0),
  ends_at INTEGER NOT NULL
) STRICT;
`;
