// The tables for accounts, API keys, imports, webhooks and console users. They are the same in both stores. Instants
// are milliseconds since 1970. Passwords are stored only as argon2id hashes, API keys and tokens only as SHA-256
// hashes, and webhook secrets only in encrypted form.

import { KEY_NAME_CHARACTERS_MAX } from '../accounts/api-key.ts';
import { EXPIRING_DAYS_DEFAULT, EXPIRING_DAYS_MAX } from './event-log.ts';

/** Each table is listed after the tables that it refers to. */
export const ACCOUNT_TABLES = [
  'accounts',
  'api_keys',
  'imports',
  'thresholds',
  'webhook_endpoints',
  'webhook_pending',
  'webhook_deliveries',
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
  created_at ${instant} NOT NULL,
  -- The credits.expiring event happens this many days before credits expire.
  expiring_days INTEGER NOT NULL DEFAULT ${EXPIRING_DAYS_DEFAULT}
    CHECK (expiring_days BETWEEN 1 AND ${EXPIRING_DAYS_MAX}),
  -- The ID of the webhook endpoint that was added last to the account, or 0. IDs of removed endpoints are not reused.
  last_endpoint_id INTEGER NOT NULL DEFAULT 0
) ${options};

CREATE TABLE api_keys (
  key_id INTEGER PRIMARY KEY,
  account INTEGER NOT NULL REFERENCES accounts,
  scope TEXT NOT NULL CHECK (scope IN ('read', 'write')),
  secret_sha256 TEXT NOT NULL UNIQUE CHECK (length(secret_sha256) = 64),
  hint TEXT NOT NULL,
  name TEXT NOT NULL DEFAULT '' CHECK (length(name) <= ${KEY_NAME_CHARACTERS_MAX}),
  created_at ${instant} NOT NULL,
  -- created_by and revoked_by are actors: a console user or the operator.
  created_by TEXT NOT NULL CHECK (created_by <> ''),
  revoked_at ${instant},
  revoked_by TEXT CHECK ((revoked_by IS NULL) = (revoked_at IS NULL)),
  last_used_at ${instant},
  -- Identifies the console form that created the key, so that a form that is sent twice creates only one key. Null if
  -- the key was created on the command line.
  form_sha256 TEXT UNIQUE CHECK (length(form_sha256) = 64)
) ${options};

-- Imports of grants from files. One database transaction stores a batch of grants and the progress of its import.
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

-- Thresholds for the balance.low event. Each is an amount, such as '20', or a percentage of the latest grant, such as
-- '20%'.
CREATE TABLE thresholds (
  account INTEGER NOT NULL REFERENCES accounts,
  below TEXT NOT NULL,
  created_at ${instant} NOT NULL,
  PRIMARY KEY (account, below)
) ${options};

CREATE TABLE webhook_endpoints (
  endpoint_id INTEGER PRIMARY KEY,
  account INTEGER NOT NULL REFERENCES accounts,
  url TEXT NOT NULL,
  -- The types of events that the endpoint receives, separated by commas; empty for all types.
  types TEXT NOT NULL,
  -- All secrets are encrypted; see src/events/webhooks/secrets.ts. Scrip signs each delivery with the current secret and
  -- with each previous secret that has not expired.
  secret TEXT NOT NULL,
  -- JSON, latest first: [{"sealed": "…", "expiresAt": 1795590000000}, …]
  previous_secrets TEXT NOT NULL DEFAULT '[]',
  created_at ${instant} NOT NULL,
  created_by TEXT NOT NULL CHECK (created_by <> ''),
  -- Both columns are null unless the endpoint is paused. paused_because is a sentence that gives the reason.
  paused_at ${instant},
  paused_because TEXT CHECK ((paused_because IS NULL) = (paused_at IS NULL)),
  -- Delivery continues with the events after this position. Every event up to it has been delivered, is in
  -- webhook_pending, is no longer retried, or did not need to be sent. If the position is null, delivery begins with
  -- the events that were recorded after the endpoint was created.
  position TEXT,
  -- How many changes of the position or of pending events the senders have stored. After a crash or a failover, the
  -- database can lack the latest changes; a sender then starts again from the stored ones.
  changes INTEGER NOT NULL DEFAULT 0,
  -- Increases with each change that the delivering process must notice.
  revision INTEGER NOT NULL DEFAULT 0,
  -- The process that may deliver to the endpoint, and the end of its lease.
  leased_by TEXT,
  leased_until ${instant} NOT NULL DEFAULT 0,
  -- Identify the console forms that added the endpoint and that created the current secret, as in api_keys.
  form_sha256 TEXT UNIQUE CHECK (length(form_sha256) = 64),
  rotation_form_sha256 TEXT CHECK (length(rotation_form_sha256) = 64)
) ${options};
CREATE INDEX webhook_endpoints_of_account ON webhook_endpoints (account);

-- Pending events: events whose delivery has failed, later events of the same end users, test events, and events that a
-- user asked Scrip to resend. The later events wait, because the events of an end user are delivered in order.
CREATE TABLE webhook_pending (
  endpoint_id INTEGER NOT NULL REFERENCES webhook_endpoints ON DELETE CASCADE,
  -- The order in which an end user's events are delivered.
  place ${instant} NOT NULL,
  event_id TEXT NOT NULL,
  type TEXT NOT NULL,
  end_user_id TEXT NOT NULL,
  -- The body of the request.
  body TEXT NOT NULL,
  attempts INTEGER NOT NULL CHECK (attempts >= 0),
  first_attempt_at ${instant},
  next_attempt_at ${instant} NOT NULL,
  -- The endpoint's revision when a user last made the retries of this event start from the beginning, or 0.
  restart_revision INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (endpoint_id, place)
) ${options};

-- The latest deliveries, for display in the console.
CREATE TABLE webhook_deliveries (
  delivery_id TEXT PRIMARY KEY,
  endpoint_id INTEGER NOT NULL REFERENCES webhook_endpoints ON DELETE CASCADE,
  event_id TEXT NOT NULL,
  type TEXT NOT NULL,
  body TEXT NOT NULL,
  -- 1 for the first attempt.
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  at ${instant} NOT NULL,
  duration_ms INTEGER NOT NULL CHECK (duration_ms >= 0),
  -- Null if there was no HTTP response. In that case, the column error contains the reason.
  status INTEGER,
  error TEXT,
  -- The beginning of the response body.
  answer TEXT NOT NULL
) ${options};
CREATE INDEX webhook_deliveries_of_endpoint ON webhook_deliveries (endpoint_id, at);

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
  -- A short description of the browser, from its user agent.
  browser TEXT NOT NULL
) ${options};
CREATE INDEX console_sessions_of_user ON console_sessions (user_id);
CREATE INDEX console_sessions_expiry ON console_sessions (expires_at);

-- Password-reset links, which are sent by email.
CREATE TABLE console_password_resets (
  token_sha256 TEXT PRIMARY KEY CHECK (length(token_sha256) = 64),
  user_id TEXT NOT NULL REFERENCES console_users ON DELETE CASCADE,
  expires_at ${instant} NOT NULL
) ${options};
CREATE INDEX console_password_resets_of_user ON console_password_resets (user_id);

-- A user is a member of at most one account.
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
  used_at ${instant},
  -- The owner who created the invitation; null if it was created on the command line.
  inviter_id TEXT REFERENCES console_users ON DELETE CASCADE,
  -- Identifies the console form that created the invitation, as in api_keys.
  form_sha256 TEXT UNIQUE CHECK (length(form_sha256) = 64)
) ${options};

-- People who have signed up or accepted an invitation, but have not yet confirmed their address with the emailed link.
-- Each row has either an invitation, or the name of the account that the person creates or claims.
CREATE TABLE console_pending_users (
  token_sha256 TEXT PRIMARY KEY CHECK (length(token_sha256) = 64),
  email TEXT NOT NULL CHECK (email = lower(email)),
  password_hash TEXT NOT NULL,
  account_name TEXT,
  claimed_account INTEGER REFERENCES accounts,
  invitation_sha256 TEXT CHECK ((invitation_sha256 IS NULL) <> (account_name IS NULL)),
  expires_at ${instant} NOT NULL
) ${options};

-- Counts of attempts to sign in, sign up or reset a password. A new count begins when the time window ends.
CREATE TABLE console_attempts (
  subject_sha256 TEXT PRIMARY KEY CHECK (length(subject_sha256) = 64),
  attempts INTEGER NOT NULL CHECK (attempts >= 0),
  ends_at ${instant} NOT NULL
) ${options};
`;
