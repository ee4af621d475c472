// What the console reads of an account: notes, movements, recent activity, and the names and last uses of keys.
//
// Movements are written once a batch, as one row that holds all its entries, and added up in `movements` a few thousand
// entries at a time: with end users whose cycles end at many different hours, a row for each entry would cost a subtraction
// a tenth of its time. Credits of many end users together may pass what 64 bits hold, so they are kept in two parts,
// `high` × 2^31 + `low`.

export const accountReads = `
ALTER TABLE postings ADD COLUMN note TEXT CHECK (length(note) BETWEEN 1 AND 500);

ALTER TABLE api_keys ADD COLUMN name TEXT NOT NULL DEFAULT '' CHECK (length(name) <= 200);
ALTER TABLE api_keys ADD COLUMN last_used_at INTEGER;

-- Series: 0 what is held, by the hour in which cycles end; 1 add, 2 start-cycle, 3 renew, 4 subtract, by day. The count
-- is of end users in series 0, of transactions in the others.
CREATE TABLE movements (
  account INTEGER NOT NULL,
  series INTEGER NOT NULL CHECK (series BETWEEN 0 AND 4),
  slot INTEGER NOT NULL,
  high INTEGER NOT NULL,
  low INTEGER NOT NULL CHECK (low BETWEEN 0 AND 2147483647),
  count INTEGER NOT NULL,
  PRIMARY KEY (account, series, slot)
) STRICT, WITHOUT ROWID;

-- What is not yet in there: a row for each batch, [[account, series, slot, high, low, count], …].
CREATE TABLE recent_movements (
  batch INTEGER PRIMARY KEY,
  entries TEXT NOT NULL
) STRICT;

-- Which stretches of 64 postings hold some of an account.
CREATE TABLE account_activity (
  account INTEGER NOT NULL,
  stretch INTEGER NOT NULL,
  PRIMARY KEY (account, stretch)
) STRICT, WITHOUT ROWID;

CREATE VIEW movement_entries AS
  SELECT account, series, slot, high, low, count FROM movements
  UNION ALL
  SELECT e.value ->> 0, e.value ->> 1, e.value ->> 2, e.value ->> 3, e.value ->> 4, e.value ->> 5
  FROM recent_movements, json_each(entries) AS e;

-- What the postings and cycles say, less what the movements say: nothing, in a ledger that is whole. In which hour the
-- last credits of end users ended is not kept up for hours that are over.
CREATE VIEW movement_differences AS
  WITH hour (first) AS (SELECT coalesce(max(at), 0) / 3600000 FROM clock),
  entries (account, series, slot, high, low, count) AS (
    SELECT account, 0, expires_at / 3600000, amount >> 31, amount & 2147483647, 0
    FROM postings WHERE kind <> 'stop-cycle'
    UNION ALL
    SELECT p.account, CASE p.kind WHEN 'add' THEN 1 WHEN 'start-cycle' THEN 2 WHEN 'renew' THEN 3 ELSE 4 END,
      p.created_at / 86400000, p.amount >> 31, p.amount & 2147483647, same.posting IS NULL
    FROM postings p LEFT JOIN postings same ON same.posting = p.previous AND same.transaction_id = p.transaction_id
    WHERE p.kind <> 'stop-cycle'
    UNION ALL
    SELECT account, 0, max(ends_at) / 3600000, 0, 0, 1
    FROM holdings, hour WHERE remaining > 0 AND ends_at >= first * 3600000 GROUP BY account, end_user
    UNION ALL
    SELECT account, series, slot, -high, -low, CASE WHEN series = 0 AND slot < first THEN 0 ELSE -count END
    FROM movement_entries, hour
  )
  SELECT account, series, slot, sum(high) + (sum(low) >> 31) AS high, sum(low) & 2147483647 AS low, sum(count) AS count
  FROM entries GROUP BY account, series, slot
  HAVING sum(high) + (sum(low) >> 31) <> 0 OR sum(low) & 2147483647 <> 0 OR sum(count) <> 0;

INSERT INTO movements SELECT account, series, slot, high, low, count FROM movement_differences;
INSERT INTO account_activity SELECT DISTINCT account, posting >> 6 FROM postings;
`;
