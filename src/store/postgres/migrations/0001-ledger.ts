// The first schema. Each table of the ledger begins its primary key with the bucket of the end user, by which it is
// distributed where there are several machines. Instants are milliseconds since 1970. The CHECKs refuse an overdraft by
// themselves, whatever the code above them does.

export const ledger = `
CREATE TABLE scrip.accounts (
  account integer PRIMARY KEY,
  name text NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 200),
  created_at bigint NOT NULL
);

CREATE TABLE scrip.api_keys (
  key_id integer PRIMARY KEY,
  account integer NOT NULL REFERENCES scrip.accounts,
  scope text NOT NULL CHECK (scope IN ('read', 'write')),
  secret_sha256 text NOT NULL UNIQUE CHECK (length(secret_sha256) = 64),
  hint text NOT NULL,
  created_at bigint NOT NULL,
  revoked_at bigint
);

-- The row that a batch locks for each of its end users, and their latest transaction: the next one sorts after it.
CREATE TABLE scrip.end_users (
  bucket smallint NOT NULL,
  account integer NOT NULL,
  end_user uuid NOT NULL,
  latest uuid,
  PRIMARY KEY (bucket, account, end_user)
) WITH (fillfactor = 70);

-- Clustered by end user and end, so that one short range of the key holds all that has not ended. The fill factor
-- leaves room on each page for the next version of a row, which then needs no new entry in any index.
CREATE TABLE scrip.cycles (
  bucket smallint NOT NULL,
  account integer NOT NULL,
  end_user uuid NOT NULL,
  ends_at bigint NOT NULL CHECK (ends_at <= 253402300799999),
  cycle_id uuid NOT NULL,
  period integer NOT NULL CHECK (period >= 0),
  type text NOT NULL CHECK (type IN ('one-time', 'recurring')),
  status text NOT NULL CHECK (status IN ('active', 'canceled', 'renewed')),
  amount bigint NOT NULL CHECK (amount BETWEEN 1 AND 9007199254740991),
  remaining bigint NOT NULL CHECK (remaining BETWEEN 0 AND amount),
  starts_at bigint NOT NULL CHECK (starts_at >= 0 AND starts_at < ends_at),
  validity_days integer NOT NULL CHECK (validity_days >= 1),
  PRIMARY KEY (bucket, account, end_user, ends_at, cycle_id)
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX one_active_cycle ON scrip.cycles (bucket, account, end_user)
  WHERE type = 'recurring' AND status = 'active';
CREATE INDEX renewals_due ON scrip.cycles (ends_at) WHERE type = 'recurring' AND status = 'active';

CREATE TABLE scrip.postings (
  bucket smallint NOT NULL,
  account integer NOT NULL,
  end_user uuid NOT NULL,
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
  PRIMARY KEY (bucket, account, end_user, transaction_id, cycle_id)
);

-- The latest instant that any process has given out, kept once a second: a clock that jumps back while nobody writes
-- revives nothing. No batch touches it.
CREATE TABLE scrip.clock (
  only_row boolean PRIMARY KEY CHECK (only_row),
  at bigint NOT NULL
);
INSERT INTO scrip.clock VALUES (true, 0);
`;
