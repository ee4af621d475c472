// The schema of the ledger, except the tables in `accountSchema`. Citus distributes the tables in `END_USER_TABLES` by
// bucket, so their primary keys contain the bucket. Instants are milliseconds since 1970. The CHECK constraints prevent
// an overdraft even if the code has a bug.

import { BUCKETS } from '../rows/key.ts';

/** The tables with a `bucket` column, by which Citus distributes them. */
export const END_USER_TABLES = [
  'end_users',
  'cycles',
  'holds',
  'postings',
  'snapshots',
  'idempotency_records',
  'feed',
  'feed_consumers',
  'daily_totals',
  'expiry_totals',
  'end_user_summaries',
  'end_user_counts',
  'events',
  'shard_moves',
];

const USER = 'bucket smallint NOT NULL, account integer NOT NULL, end_user uuid NOT NULL';

export const ledgerSchema = `
-- Each batch locks the rows of its end users.
CREATE TABLE end_users (
  ${USER},
  -- Like cycles.ids_through, but set only by batches that changed no live cycle of the end user, and by the derivation of
  -- time-driven events. Both are rare, so the row almost never changes.
  ids_through uuid,
  PRIMARY KEY (bucket, account, end_user)
);

-- Each row describes the latest period of a cycle. The primary key sorts by end user and then by ends_at, so the cycles
-- of an end user that have not ended form one short range. The fill factor leaves room on each page for the next
-- version of a row. A new version on the same page needs no new entry in any index.
CREATE TABLE cycles (
  ${USER},
  ends_at bigint NOT NULL CHECK (ends_at <= 253402300799999),
  cycle_id uuid NOT NULL,
  period integer NOT NULL CHECK (period >= 0),
  type text NOT NULL CHECK (type IN ('one-time', 'recurring')),
  status text NOT NULL CHECK (status IN ('active', 'canceled', 'superseded')),
  amount bigint NOT NULL CHECK (amount BETWEEN 1 AND 9007199254740991),
  remaining bigint NOT NULL CHECK (remaining BETWEEN 0 AND amount),
  -- The credits that holds have set aside. This number has no meaning after the cycle has ended.
  held bigint NOT NULL CHECK (held BETWEEN 0 AND remaining),
  starts_at bigint NOT NULL CHECK (starts_at BETWEEN 0 AND ends_at - 1),
  -- The current plan, such as '100/31d'. See src/ledger/plan.ts.
  plan text NOT NULL,
  -- The plan that begins at the end of the period.
  next text CHECK (next IS NULL OR (status = 'active' AND type = 'recurring')),
  -- An id that sorts after all ids assigned by the batch that last changed this row, and before all later ids of the
  -- end user.
  ids_through uuid NOT NULL,
  PRIMARY KEY (bucket, account, end_user, ends_at, cycle_id)
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX one_active_cycle ON cycles (bucket, account, end_user)
  WHERE type = 'recurring' AND status = 'active';
CREATE INDEX renewals_due ON cycles (bucket, ends_at) WHERE type = 'recurring' AND status = 'active';

-- Open holds. The primary key sorts by end user and then by the instant at which the hold lapses, so the due holds of
-- an end user form one short range.
CREATE TABLE holds (
  ${USER},
  expires_at bigint NOT NULL CHECK (expires_at BETWEEN 1 AND 253402300799999),
  hold_id uuid NOT NULL,
  -- The credits held from each cycle. The text is copied to snapshots, so the column has the type json, which preserves
  -- the text as written.
  parts json NOT NULL,
  PRIMARY KEY (bucket, account, end_user, expires_at, hold_id)
);
CREATE INDEX lapses_due ON holds (bucket, expires_at);

CREATE TABLE postings (
  ${USER},
  transaction_id uuid NOT NULL,
  cycle_id uuid NOT NULL,
  period integer NOT NULL CHECK (period >= 0),
  -- The position of the posting within its transaction, from 0.
  line integer NOT NULL DEFAULT 0,
  kind text NOT NULL,
  amount bigint NOT NULL,
  created_at bigint NOT NULL,
  -- Can be at or before created_at only if the posting closes a hold or refunds a transaction.
  expires_at bigint NOT NULL CHECK (expires_at > created_at OR reference IS NOT NULL),
  actor text NOT NULL CHECK (actor <> ''),
  note text CHECK (length(note) BETWEEN 1 AND 500),
  -- The type and plan, such as 'recurring/100/31d', if the posting opens a cycle or a period, or schedules a plan.
  terms text,
  -- The change in the cycle's held credits; null for kinds that do not concern holds.
  held bigint,
  -- The hold that the posting closes, the transaction that it refunds, or the transaction that scheduled the plan.
  reference uuid,
  hold_expires_at bigint,
  -- PostgreSQL parses these constraints again for each statement, so they are short: with a case for each kind, a batch
  -- of 40 subtractions took the server 10% more time.
  CONSTRAINT amount_of_kind CHECK (CASE
    WHEN amount < 0 THEN kind = ANY ('{subtract,capture}')
    WHEN amount > 0 THEN kind = ANY ('{add,start-cycle,renew,change-plan,refund}')
    ELSE kind = ANY ('{schedule-plan,stop-cycle,hold,capture,release,lapse}')
  END),
  CONSTRAINT held_of_kind CHECK (CASE
    WHEN held IS NULL THEN kind <> ALL ('{hold,capture,release,lapse}')
    WHEN held > 0 THEN kind = 'hold'
    ELSE kind = ANY ('{capture,release,lapse}')
  END),
  CONSTRAINT reference_of_kind CHECK ((reference IS NULL) = (kind <> ALL ('{capture,release,lapse,refund,change-plan}'))),
  CONSTRAINT terms_of_kind CHECK (
    terms IS NOT NULL OR kind <> ALL ('{add,start-cycle,renew,schedule-plan,change-plan}')
  ),
  CONSTRAINT hold_expiry_of_kind CHECK ((hold_expires_at IS NULL) = (kind <> 'hold')),
  PRIMARY KEY (bucket, account, end_user, transaction_id, line)
);
CREATE INDEX postings_by_account ON postings (account, transaction_id);
CREATE INDEX refunds ON postings (bucket, account, end_user, reference) WHERE kind = 'refund';

-- Each snapshot is the state of an end user after a transaction. Only some transactions have a snapshot. Balances at
-- past instants are computed from a snapshot and the postings after it.
CREATE TABLE snapshots (
  ${USER},
  transaction_id uuid NOT NULL,
  state text NOT NULL,
  PRIMARY KEY (bucket, account, end_user, transaction_id)
);

-- The latest instant that any process has issued. Processes update this instant once a second, so that ended cycles
-- stay ended even if the database's clock is set back while nothing is written. Batches do not update it. On Citus,
-- only the coordinator has this table, so that an update needs no worker.
CREATE TABLE clock (
  only_row boolean PRIMARY KEY CHECK (only_row),
  at bigint NOT NULL CHECK (at BETWEEN 0 AND 253402300799998)
);
INSERT INTO clock VALUES (true, 0);

-- Has a row only if the ledger has a test clock. The time of the test clock is in the clock table.
CREATE TABLE test_clock (only_row boolean PRIMARY KEY CHECK (only_row));

-- Idempotency records, which are looked up by key and deleted by age. Records of grants are kept longer.
CREATE TABLE idempotency_records (
  ${USER},
  key text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
  request text NOT NULL,
  request_id text NOT NULL,
  -- Null if the request caused no transaction.
  transaction_id uuid,
  -- JSON; null if the request was accepted and the outcome has no further data.
  outcome text,
  recorded_at bigint NOT NULL,
  is_grant boolean NOT NULL,
  PRIMARY KEY (bucket, account, end_user, key)
);
CREATE INDEX idempotency_records_by_age ON idempotency_records (is_grant, recorded_at);

-- Batches that a consumer has not processed yet. Each row lists the transactions of one batch for one consumer. Batches
-- commit in no particular order, but the batches of one end user commit in the order of at and ids_through. The arrays of
-- a large batch are stored uncompressed within the row, because random ids do not compress well and the row is soon
-- deleted.
CREATE TABLE feed (
  bucket smallint NOT NULL,
  consumer text NOT NULL,
  at bigint NOT NULL,
  -- The value that the batch stores in the column of the same name. Two batches of one end user have the same value only
  -- if they store nothing but automatic events.
  ids_through uuid NOT NULL,
  batch uuid NOT NULL,
  accounts integer[] NOT NULL,
  transaction_ids uuid[] NOT NULL,
  PRIMARY KEY (bucket, consumer, at, ids_through, batch)
) WITH (toast_tuple_target = 8160);

-- A process locks the row of a consumer while it processes batches for that consumer.
CREATE TABLE feed_consumers (
  bucket smallint NOT NULL,
  consumer text NOT NULL,
  -- The number of the latest event, for the consumer that derives events.
  latest_event bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (bucket, consumer)
);
INSERT INTO feed_consumers (bucket, consumer)
  SELECT bucket, consumer FROM generate_series(0, ${BUCKETS - 1}) AS bucket, unnest('{totals,events}'::text[]) AS consumer;

-- The totals of all postings. The credits of many end users together can exceed 64 bits, so the credits columns are
-- numeric.
CREATE TABLE daily_totals (
  bucket smallint NOT NULL,
  account integer NOT NULL,
  day integer NOT NULL,
  kind text NOT NULL,
  actor text NOT NULL,
  credits numeric NOT NULL,
  transactions bigint NOT NULL,
  PRIMARY KEY (account, day, kind, actor, bucket)
);
CREATE TABLE expiry_totals (
  bucket smallint NOT NULL,
  account integer NOT NULL,
  hour integer NOT NULL,
  credits numeric NOT NULL,
  PRIMARY KEY (account, hour, bucket)
);

-- One row per end user, with the data that the console's lists show and the progress of event derivation; see
-- EventState. Each row includes all expiries up to derived_to.
CREATE TABLE end_user_summaries (
  ${USER},
  balance bigint NOT NULL CHECK (balance BETWEEN 0 AND 9007199254740991),
  -- The next instant at which credits expire and are not renewed.
  expires_at bigint,
  latest_activity bigint NOT NULL,
  derived_to bigint NOT NULL,
  latest_grant bigint NOT NULL CHECK (latest_grant BETWEEN 0 AND 9007199254740991),
  -- The setting with which the time-driven events up to derived_to were derived.
  expiring_days integer NOT NULL,
  -- In the text format of snapshots.
  state text NOT NULL,
  -- The next instant at which a time-driven event can happen; see Derivation.
  due_at bigint,
  PRIMARY KEY (bucket, account, end_user)
);
CREATE INDEX summaries_by_id ON end_user_summaries (account, end_user);
CREATE INDEX summaries_by_balance ON end_user_summaries (account, balance, latest_activity, end_user);
CREATE INDEX summaries_by_activity ON end_user_summaries (account, latest_activity, end_user);
CREATE INDEX summaries_by_expiry ON end_user_summaries (account, expires_at, end_user) WHERE expires_at IS NOT NULL;
CREATE INDEX summaries_due ON end_user_summaries (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE end_user_counts (
  bucket smallint NOT NULL,
  account integer NOT NULL,
  end_users bigint NOT NULL,
  with_credits bigint NOT NULL,
  PRIMARY KEY (account, bucket)
);

-- Events. Their numbers ascend in commit order, because the lock on the consumer's row is held until the commit.
CREATE TABLE events (
  bucket smallint NOT NULL,
  event bigint NOT NULL,
  account integer NOT NULL,
  id text NOT NULL,
  type text NOT NULL,
  at bigint NOT NULL,
  -- JSON.
  data text NOT NULL,
  -- The time of the database's clock when the event was stored, even if the ledger has a test clock. Within a bucket,
  -- it never decreases from one event to the next. The age of the event is counted from this time.
  recorded_at bigint NOT NULL,
  PRIMARY KEY (bucket, event)
);
CREATE INDEX events_of_account ON events (account, event);

-- Has no rows. To move a shard, Citus locks every table that has a bucket column. A command that must see one snapshot
-- of all shards locks this table, so that no shard moves in the meantime.
CREATE TABLE shard_moves (bucket smallint NOT NULL);

-- See EventLog.epoch.
CREATE TABLE event_log (
  only_row boolean PRIMARY KEY CHECK (only_row),
  epoch uuid NOT NULL
);
INSERT INTO event_log VALUES (true, gen_random_uuid());
`;
