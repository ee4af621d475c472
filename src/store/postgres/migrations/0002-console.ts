// The tables of the web console: who signs in, for which account, and with which link one may join. Those of users,
// sessions, credentials and verifications are read and written by better-auth, which fixes their columns; the instants
// of the others are milliseconds since 1970. Of a secret, only a hash is there.

export const consoleTables = `
CREATE TABLE scrip.console_users (
  id text PRIMARY KEY,
  email text NOT NULL UNIQUE CHECK (email = lower(email)),
  email_verified boolean NOT NULL,
  name text NOT NULL,
  image text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);

CREATE TABLE scrip.console_sessions (
  id text PRIMARY KEY,
  user_id text NOT NULL REFERENCES scrip.console_users ON DELETE CASCADE,
  token_sha256 text NOT NULL UNIQUE CHECK (length(token_sha256) = 64),
  expires_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  ip_address text,
  user_agent text
);
CREATE INDEX console_sessions_of_user ON scrip.console_sessions (user_id);
CREATE INDEX console_sessions_expiry ON scrip.console_sessions (expires_at);

CREATE TABLE scrip.console_credentials (
  id text PRIMARY KEY,
  user_id text NOT NULL REFERENCES scrip.console_users ON DELETE CASCADE,
  provider text NOT NULL,
  subject text NOT NULL,
  password_hash text,
  access_token text,
  refresh_token text,
  id_token text,
  access_token_expires_at timestamptz,
  refresh_token_expires_at timestamptz,
  scope text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  UNIQUE (user_id, provider)
);

CREATE TABLE scrip.console_verifications (
  id text PRIMARY KEY,
  identifier text NOT NULL,
  value text NOT NULL,
  expires_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX console_verifications_by_identifier ON scrip.console_verifications (identifier);

-- A person is a member of one account.
CREATE TABLE scrip.console_members (
  user_id text PRIMARY KEY REFERENCES scrip.console_users ON DELETE CASCADE,
  account integer NOT NULL REFERENCES scrip.accounts,
  role text NOT NULL CHECK (role IN ('owner', 'member')),
  created_at bigint NOT NULL
);
CREATE INDEX console_members_of_account ON scrip.console_members (account);

CREATE TABLE scrip.console_invitations (
  token_sha256 text PRIMARY KEY CHECK (length(token_sha256) = 64),
  account integer NOT NULL REFERENCES scrip.accounts,
  role text NOT NULL CHECK (role IN ('owner', 'member')),
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL CHECK (expires_at > created_at),
  used_at bigint
);

-- How often something was tried that somebody may try only so often, until when that counts.
CREATE TABLE scrip.console_attempts (
  subject_sha256 text PRIMARY KEY CHECK (length(subject_sha256) = 64),
  attempts integer NOT NULL CHECK (attempts >= 0),
  ends_at bigint NOT NULL
);
`;
