// The schema of a ledger file. UUIDs are stored as 16 bytes, instants as milliseconds since 1970. The CHECK constraints
// prevent an overdraft even if the writer has a bug.
//
// The cost of a batch depends mainly on the number of modified pages, not on the fsync. New rows are therefore always
// appended to `postings` and `idempotency_records`. The rows of an end user in `balances` are adjacent, and are written
// some time after the postings; see `../balances/end-user-cache.ts`.

export const ledgerSchema = `
-- One row per cycle, which describes the latest period of the cycle. The rows are clustered by end user and then by
-- \`ends_at\`, so that the live cycles of an end user are adjacent. Each end user also has a row of the type
-- 'end-user', which sorts after the rows of the cycles. This row contains the open holds, and the number of the latest
-- posting that the end user's rows include.
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
  held INTEGER CHECK (held BETWEEN 0 AND remaining),
  starts_at INTEGER CHECK (starts_at BETWEEN 0 AND ends_at - 1),
  -- The current plan, such as '100/31d'; see src/ledger/plan.ts.
  plan TEXT,
  -- The plan that begins at the end of the period.
  next TEXT CHECK (next IS NULL OR (status = 'active' AND type = 'recurring')),
  latest_posting INTEGER,
  -- JSON; null if there are no holds.
  holds TEXT,
  -- The instant of the next event, such as a renewal or the lapse of a hold; null if there is none.
  due_at INTEGER,
  PRIMARY KEY (account, end_user, ends_at, cycle_id),
  CHECK (
    CASE type
      WHEN 'end-user' THEN ends_at = 9007199254740991 AND length(cycle_id) = 0 AND latest_posting IS NOT NULL
      ELSE ends_at <= 253402300799999 AND length(cycle_id) = 16
        AND coalesce(latest_posting, holds, due_at) IS NULL
        AND status IS NOT NULL AND period + amount + remaining + held + starts_at IS NOT NULL AND plan IS NOT NULL
    END
  )
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX one_active_cycle ON balances (account, end_user) WHERE type = 'recurring' AND status = 'active';
CREATE INDEX due ON balances (due_at) WHERE due_at IS NOT NULL;

-- The journal, in write order. Each posting refers to the previous posting of the same end user, so that the history of
-- an end user can be read backwards from its latest posting.
CREATE TABLE postings (
  posting INTEGER PRIMARY KEY,
  previous INTEGER CHECK (previous < posting),
  account INTEGER NOT NULL,
  end_user BLOB NOT NULL CHECK (length(end_user) = 16),
  transaction_id BLOB NOT NULL CHECK (length(transaction_id) = 16),
  cycle_id BLOB NOT NULL CHECK (length(cycle_id) = 16),
  period INTEGER NOT NULL CHECK (period >= 0),
  kind TEXT NOT NULL,
  amount INTEGER NOT NULL,
  -- The change in the cycle's held credits.
  held INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  actor TEXT NOT NULL CHECK (actor <> ''),
  note TEXT CHECK (length(note) BETWEEN 1 AND 500),
  -- The type and plan, such as 'recurring/100/31d', if the posting opens a cycle or a period, or schedules a plan.
  terms TEXT,
  -- The hold that the posting closes, the transaction that it refunds, or the transaction that scheduled the plan.
  reference BLOB CHECK (length(reference) = 16),
  hold_expires_at INTEGER CHECK (hold_expires_at > created_at),
  -- The check is a single CASE with the most frequent kind first, because comparing strings takes most of its time.
  CHECK (
    CASE kind
      WHEN 'subtract' THEN amount < 0 AND held = 0
        AND reference IS NULL AND hold_expires_at IS NULL AND expires_at > created_at
      WHEN 'hold' THEN amount = 0 AND held > 0
        AND reference IS NULL AND hold_expires_at IS NOT NULL AND expires_at > created_at
      -- Captures, releases, lapses and refunds are also possible after the end of the period.
      WHEN 'capture' THEN amount <= 0 AND held <= 0 AND amount + held < 0
        AND reference IS NOT NULL AND hold_expires_at IS NULL
      WHEN 'release' THEN amount = 0 AND held < 0 AND reference IS NOT NULL AND hold_expires_at IS NULL
      WHEN 'lapse' THEN amount = 0 AND held < 0 AND reference IS NOT NULL AND hold_expires_at IS NULL
      WHEN 'refund' THEN amount > 0 AND held = 0 AND reference IS NOT NULL AND hold_expires_at IS NULL
      WHEN 'stop-cycle' THEN amount = 0 AND held = 0
        AND reference IS NULL AND hold_expires_at IS NULL AND expires_at > created_at
      WHEN 'schedule-plan' THEN amount = 0 AND held = 0 AND terms IS NOT NULL
        AND reference IS NULL AND hold_expires_at IS NULL AND expires_at > created_at
      WHEN 'change-plan' THEN amount > 0 AND held = 0 AND terms IS NOT NULL
        AND reference IS NOT NULL AND hold_expires_at IS NULL AND expires_at > created_at
      ELSE kind IN ('add', 'start-cycle', 'renew') AND amount > 0 AND held = 0 AND terms IS NOT NULL
        AND reference IS NULL AND hold_expires_at IS NULL AND expires_at > created_at
    END
  )
) STRICT;

CREATE INDEX refunds ON postings (account, end_user, reference) WHERE kind = 'refund';

-- \`balances\` includes the posting with this number and all earlier postings. For some end users, it also
-- includes later postings; see \`balances.latest_posting\`.
CREATE TABLE flushed (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  posting INTEGER NOT NULL CHECK (posting >= 0)
) STRICT;
INSERT INTO flushed (only, posting) VALUES (1, 0);

-- Each snapshot is the state of an end user after a transaction. Only some transactions have a snapshot. Scrip uses
-- snapshots to compute balances at past instants and to find old transactions. A waypoint is a row without a state; it
-- is used only to find transactions.
CREATE TABLE snapshots (
  account INTEGER NOT NULL,
  end_user BLOB NOT NULL CHECK (length(end_user) = 16),
  transaction_id BLOB NOT NULL CHECK (length(transaction_id) = 16),
  posting INTEGER NOT NULL,
  state TEXT,
  PRIMARY KEY (account, end_user, transaction_id)
) STRICT, WITHOUT ROWID;

-- The latest instant that the ledger has used, and the sequence number of the last transaction ID of that instant. The
-- checksum detects manual changes to the clock, which could make expired credits valid again, or expire credits early.
CREATE TABLE clock (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  at INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;

-- Has a row only if the ledger has a test clock. The time of the test clock is in the table \`clock\`.
CREATE TABLE test_clock (only INTEGER PRIMARY KEY CHECK (only = 1)) STRICT;

-- Idempotency records, in the order in which they were added. Records of grants, which are kept longer, have odd
-- numbers, and all others have even numbers.
CREATE TABLE idempotency_records (
  record INTEGER PRIMARY KEY,
  hash INTEGER NOT NULL,
  account INTEGER NOT NULL,
  end_user BLOB NOT NULL CHECK (length(end_user) = 16),
  key TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
  request TEXT NOT NULL,
  request_id TEXT NOT NULL,
  -- Null if there is no transaction, as for a refusal.
  transaction_id BLOB CHECK (length(transaction_id) = 16),
  -- JSON; null if the request was accepted and the outcome has no further data.
  outcome TEXT,
  recorded_at INTEGER NOT NULL
) STRICT;

-- The index of the records by a hash of the key. Records after \`idempotency_indexed.record\` can be missing from this
-- table, and are then indexed only in memory.
CREATE TABLE idempotency_index (
  hash INTEGER NOT NULL,
  record INTEGER NOT NULL,
  PRIMARY KEY (hash, record)
) STRICT, WITHOUT ROWID;
CREATE TABLE idempotency_indexed (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  record INTEGER NOT NULL,
  -- A random seed that is hashed together with each key. Without the seed, a client could choose keys with equal
  -- hashes.
  seed BLOB NOT NULL CHECK (length(seed) = 16)
) STRICT;
INSERT INTO idempotency_indexed (only, record, seed) VALUES (1, 0, randomblob(16));

-- Batches that \`scrip import\` has queued for a running server, at most one for each import. The commands and the
-- outcomes are JSON. The server stores the outcomes together with the grants, and \`scrip import\` reads the outcomes.
CREATE TABLE import_batches (
  import_id INTEGER PRIMARY KEY,
  from_row INTEGER NOT NULL,
  to_row INTEGER NOT NULL,
  commands TEXT NOT NULL,
  queued_at INTEGER NOT NULL,
  outcomes TEXT
) STRICT;

-- The last posting that each consumer of the feed has processed. The consumers are 'totals' and 'events'.
CREATE TABLE feed_positions (
  consumer TEXT PRIMARY KEY,
  posting INTEGER NOT NULL
) STRICT;

-- Totals of postings. The credits of many end users together can exceed 64 bits, so the sums are stored as decimal
-- text.
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

-- One row per end user, with the data that the console's lists show and the progress of event derivation; see
-- EventState. Each row includes all postings up to latest_posting, and all expiries up to derived_to.
CREATE TABLE end_user_summaries (
  account INTEGER NOT NULL,
  end_user BLOB NOT NULL CHECK (length(end_user) = 16),
  balance INTEGER NOT NULL CHECK (balance BETWEEN 0 AND 9007199254740991),
  -- The next instant at which credits expire and are not renewed.
  expires_at INTEGER,
  latest_activity INTEGER NOT NULL,
  latest_posting INTEGER NOT NULL,
  derived_to INTEGER NOT NULL,
  latest_grant INTEGER NOT NULL CHECK (latest_grant BETWEEN 0 AND 9007199254740991),
  -- The setting with which the time-driven events up to derived_to were derived.
  expiring_days INTEGER NOT NULL,
  -- In the text format of snapshots.
  state TEXT NOT NULL,
  -- The next instant at which the passage of time causes an event.
  due_at INTEGER,
  PRIMARY KEY (account, end_user)
) STRICT, WITHOUT ROWID;
CREATE INDEX summaries_by_balance ON end_user_summaries (account, balance, latest_activity);
CREATE INDEX summaries_by_activity ON end_user_summaries (account, latest_activity);
CREATE INDEX summaries_by_expiry ON end_user_summaries (account, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX summaries_due ON end_user_summaries (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE end_user_counts (
  account INTEGER PRIMARY KEY,
  end_users INTEGER NOT NULL,
  with_credits INTEGER NOT NULL
) STRICT;

-- Events, in the order in which they were derived. Event numbers are never reused.
CREATE TABLE events (
  event INTEGER PRIMARY KEY AUTOINCREMENT,
  account INTEGER NOT NULL,
  id TEXT NOT NULL,
  type TEXT NOT NULL,
  at INTEGER NOT NULL,
  -- JSON.
  data TEXT NOT NULL,
  -- The time of the machine's clock when the event was stored, even if the ledger has a test clock. It never decreases
  -- from one event to the next. The age of the event is counted from this time.
  recorded_at INTEGER NOT NULL
) STRICT;
CREATE INDEX events_of_account ON events (account, event);

-- See EventLog.epoch.
CREATE TABLE event_log (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  epoch BLOB NOT NULL CHECK (length(epoch) = 16)
) STRICT;
INSERT INTO event_log (only, epoch) VALUES (1, randomblob(16));
`;
