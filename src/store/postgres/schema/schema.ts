// The schema of the ledger, beside accounts and their users. Each table that is about end users has the bucket in its primary
// key, by which it is distributed where there are several machines. Instants are milliseconds since 1970. The CHECKs refuse an
// overdraft by themselves, whatever the code above them does.

import { BUCKETS } from '../rows/key.ts';

/** Those of end users, distributed by bucket. */
export const END_USER_TABLES = [
  'end_users',
  'cycles',
  'postings',
  'snapshots',
  'idempotency_records',
  'feed',
  'feed_consumers',
  'daily_totals',
  'expiry_totals',
];

const USER = 'bucket smallint NOT NULL, account integer NOT NULL, end_user uuid NOT NULL';

export const ledgerSchema = `
-- The row that a batch locks for each of its end users. It is never changed.
CREATE TABLE end_users (
  ${USER},
  PRIMARY KEY (bucket, account, end_user)
);
CREATE INDEX end_users_by_account ON end_users (account, end_user);

-- Cycles, each in its latest period, clustered by end user and end: one short range of the key holds all that have not
-- ended. The fill factor leaves room on each page for the next version of a row, which then needs no new entry in any index.
CREATE TABLE cycles (
  ${USER},
  ends_at bigint NOT NULL CHECK (ends_at <= 253402300799999),
  cycle_id uuid NOT NULL,
  period integer NOT NULL CHECK (period >= 0),
  type text NOT NULL CHECK (type IN ('one-time', 'recurring')),
  status text NOT NULL CHECK (status IN ('active', 'canceled', 'superseded')),
  amount bigint NOT NULL CHECK (amount BETWEEN 1 AND 9007199254740991),
  remaining bigint NOT NULL CHECK (remaining BETWEEN 0 AND amount),
  starts_at bigint NOT NULL CHECK (starts_at BETWEEN 0 AND ends_at - 1),
  validity_days integer NOT NULL CHECK (validity_days >= 1),
  -- Behind all ids that the batch gave out which changed the row last: the end user's next ones sort behind this one.
  ids_through uuid NOT NULL,
  PRIMARY KEY (bucket, account, end_user, ends_at, cycle_id)
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX one_active_cycle ON cycles (bucket, account, end_user)
  WHERE type = 'recurring' AND status = 'active';
CREATE INDEX renewals_due ON cycles (ends_at) WHERE type = 'recurring' AND status = 'active';

CREATE TABLE postings (
  ${USER},
  transaction_id uuid NOT NULL,
  cycle_id uuid NOT NULL,
  period integer NOT NULL CHECK (period >= 0),
  kind text NOT NULL CHECK (kind IN ('add', 'start-cycle', 'renew', 'subtract', 'stop-cycle')),
  amount bigint NOT NULL CHECK (
    CASE kind WHEN 'subtract' THEN amount < 0 WHEN 'stop-cycle' THEN amount = 0 ELSE amount > 0 END
  ),
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL CHECK (expires_at > created_at),
  actor text NOT NULL CHECK (actor <> ''),
  note text CHECK (length(note) BETWEEN 1 AND 500),
  -- What the cycle is, where the posting opens it or a period of it.
  cycle_type text CHECK (cycle_type IN ('one-time', 'recurring')),
  validity_days integer CHECK (validity_days >= 1),
  CHECK ((cycle_type IS NULL) = (validity_days IS NULL)),
  PRIMARY KEY (bucket, account, end_user, transaction_id, cycle_id, period)
);
CREATE INDEX postings_by_account ON postings (account, transaction_id);

-- The state of an end user right behind some of its transactions: where the balance at an earlier instant is found from.
CREATE TABLE snapshots (
  ${USER},
  transaction_id uuid NOT NULL,
  state text NOT NULL,
  PRIMARY KEY (bucket, account, end_user, transaction_id)
);

-- The latest instant that any process has given out, kept once a second: a clock that jumps back while nothing is written
-- revives nothing. No batch touches it.
CREATE TABLE clock (
  only_row boolean PRIMARY KEY CHECK (only_row),
  at bigint NOT NULL CHECK (at BETWEEN 0 AND 253402300799998)
);
INSERT INTO clock VALUES (true, 0);

-- Found by their key, and deleted by their age: those of grants are kept longer.
CREATE TABLE idempotency_records (
  ${USER},
  key text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
  request text NOT NULL,
  request_id text NOT NULL,
  -- JSON; null where the request was accepted and there is no more to say.
  outcome text,
  recorded_at bigint NOT NULL,
  is_grant boolean NOT NULL,
  PRIMARY KEY (bucket, account, end_user, key)
);
CREATE INDEX idempotency_records_by_age ON idempotency_records (is_grant, recorded_at);

-- What no consumer has taken yet: for each consumer a row a batch, with the transactions of the batch. Batches do not
-- commit in the order of any number, but those of one end user do. Arrays of a large batch stay in their row, uncompressed,
-- since they are random and soon deleted.
CREATE TABLE feed (
  bucket smallint NOT NULL,
  consumer text NOT NULL,
  at bigint NOT NULL,
  batch uuid NOT NULL,
  accounts integer[] NOT NULL,
  transaction_ids uuid[] NOT NULL,
  PRIMARY KEY (bucket, consumer, at, batch)
) WITH (toast_tuple_target = 8160);

-- The rows that processes lock while they work for a consumer.
CREATE TABLE feed_consumers (
  bucket smallint NOT NULL,
  consumer text NOT NULL,
  PRIMARY KEY (bucket, consumer)
);
INSERT INTO feed_consumers SELECT bucket, 'totals' FROM generate_series(0, ${BUCKETS - 1}) AS bucket;

-- What postings add up to. Credits of many end users together may pass what 64 bits hold.
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
`;
