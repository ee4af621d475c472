// The schema of a ledger file. UUIDs are stored as their 16 bytes, instants as milliseconds since 1970. The CHECKs refuse
// an overdraft by themselves, whatever the code above them does.
//
// What costs time here is not the fsync but the number of pages that a batch dirties. So `postings` and
// `idempotency_records` are appended to, and `balances`, which keeps all of an end user on one page, is written back later
// (`../balances/end-user-cache.ts`).

export const ledgerSchema = `
-- Cycles, each in its latest period, clustered by end user and end: one short range holds all that are live. An end
-- user's own row sorts behind its cycles, at the end of time, and names the latest posting that they count.
CREATE TABLE balances (
  account INTEGER NOT NULL,
  end_user BLOB NOT NULL CHECK (length(end_user) = 16),
  ends_at INTEGER NOT NULL,
  cycle_id BLOB NOT NULL,
  type TEXT NOT NULL CHECK (type IN ('one-time', 'recurring', 'end-user')),
  status TEXT CHECK (status IN ('active', 'canceled', 'superseded')),
  period INTEGER CHECK (period >= 0),
  amount INTEGER CHECK (amount BETWEEN 1 AND 9007199254740991),
  remaining INTEGER CHECK (remaining BETWEEN 0 AND amount),
  starts_at INTEGER CHECK (starts_at BETWEEN 0 AND ends_at - 1),
  validity_days INTEGER CHECK (validity_days >= 1),
  latest_posting INTEGER,
  PRIMARY KEY (account, end_user, ends_at, cycle_id),
  CHECK (
    CASE type
      WHEN 'end-user' THEN ends_at = 9007199254740991 AND length(cycle_id) = 0 AND latest_posting IS NOT NULL
      ELSE ends_at <= 253402300799999 AND length(cycle_id) = 16 AND latest_posting IS NULL
        AND status IS NOT NULL AND period + amount + remaining + starts_at + validity_days IS NOT NULL
    END
  )
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX one_active_cycle ON balances (account, end_user) WHERE type = 'recurring' AND status = 'active';
CREATE INDEX renewals_due ON balances (ends_at) WHERE type = 'recurring' AND status = 'active';

-- The journal, in the order in which it was written. Each posting names the previous one of the same end user: listing
-- what happened to an end user is following these from the latest posting.
CREATE TABLE postings (
  posting INTEGER PRIMARY KEY,
  previous INTEGER CHECK (previous < posting),
  account INTEGER NOT NULL,
  end_user BLOB NOT NULL CHECK (length(end_user) = 16),
  transaction_id BLOB NOT NULL CHECK (length(transaction_id) = 16),
  cycle_id BLOB NOT NULL CHECK (length(cycle_id) = 16),
  period INTEGER NOT NULL CHECK (period >= 0),
  kind TEXT NOT NULL CHECK (kind IN ('add', 'start-cycle', 'renew', 'subtract', 'stop-cycle')),
  amount INTEGER NOT NULL CHECK (
    CASE kind WHEN 'subtract' THEN amount < 0 WHEN 'stop-cycle' THEN amount = 0 ELSE amount > 0 END
  ),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL CHECK (expires_at > created_at),
  actor TEXT NOT NULL CHECK (actor <> ''),
  note TEXT CHECK (length(note) BETWEEN 1 AND 500),
  -- What the cycle is, where the posting opens it or a period of it.
  cycle_type TEXT CHECK (cycle_type IN ('one-time', 'recurring')),
  validity_days INTEGER CHECK (validity_days >= 1),
  CHECK ((cycle_type IS NULL) = (validity_days IS NULL))
) STRICT;

-- All postings up to this one are counted in balances. Later ones may be, too: each end user's own row tells.
CREATE TABLE flushed (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  posting INTEGER NOT NULL CHECK (posting >= 0)
) STRICT;
INSERT INTO flushed (only, posting) VALUES (1, 0);

-- The state of an end user right behind some of its transactions: where the balance at an earlier instant, and a place far
-- back in its history, are found from.
CREATE TABLE snapshots (
  account INTEGER NOT NULL,
  end_user BLOB NOT NULL CHECK (length(end_user) = 16),
  transaction_id BLOB NOT NULL CHECK (length(transaction_id) = 16),
  posting INTEGER NOT NULL,
  state TEXT NOT NULL,
  PRIMARY KEY (account, end_user, transaction_id)
) STRICT, WITHOUT ROWID;

-- The latest instant that the ledger has given out, and the last sequence within it. The checksum tells a clock that
-- was set by hand, which would revive or end credits, from one that the ledger wrote.
CREATE TABLE clock (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  at INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;

-- Idempotency records, appended. Those of grants have odd numbers, since they are kept longer.
CREATE TABLE idempotency_records (
  record INTEGER PRIMARY KEY,
  hash INTEGER NOT NULL,
  account INTEGER NOT NULL,
  end_user BLOB NOT NULL CHECK (length(end_user) = 16),
  key TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
  request TEXT NOT NULL,
  request_id TEXT NOT NULL,
  -- JSON; null where the request was accepted and there is no more to say.
  outcome TEXT,
  recorded_at INTEGER NOT NULL
) STRICT;

-- Where the record of a key is, by a hash of the key. Records after \`indexed\` are not in it yet: memory has them.
CREATE TABLE idempotency_index (
  hash INTEGER NOT NULL,
  record INTEGER NOT NULL,
  PRIMARY KEY (hash, record)
) STRICT, WITHOUT ROWID;
CREATE TABLE idempotency_indexed (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  record INTEGER NOT NULL,
  -- So that clients, who choose the keys, cannot choose the hashes.
  seed BLOB NOT NULL CHECK (length(seed) = 16)
) STRICT;
INSERT INTO idempotency_indexed (only, record, seed) VALUES (1, 0, randomblob(16));

-- Up to which posting each consumer of the feed has come.
CREATE TABLE feed_positions (
  consumer TEXT PRIMARY KEY,
  posting INTEGER NOT NULL
) STRICT;

-- What postings add up to. Credits of many end users together may pass what 64 bits hold, so they are decimal text.
CREATE TABLE daily_totals (
  account INTEGER NOT NULL,
  day INTEGER NOT NULL,
  kind TEXT NOT NULL,
  actor TEXT NOT NULL,
  credits TEXT NOT NULL,
  transactions INTEGER NOT NULL,
  PRIMARY KEY (account, day, kind, actor)
) STRICT, WITHOUT ROWID;
CREATE TABLE expiry_totals (
  account INTEGER NOT NULL,
  hour INTEGER NOT NULL,
  credits TEXT NOT NULL,
  PRIMARY KEY (account, hour)
) STRICT, WITHOUT ROWID;

-- Which stretches of 64 postings hold some of an account.
CREATE TABLE account_activity (
  account INTEGER NOT NULL,
  stretch INTEGER NOT NULL,
  PRIMARY KEY (account, stretch)
) STRICT, WITHOUT ROWID;
`;
