// What the console reads of an account: notes, movements, and the names and last uses of keys. As in a ledger file,
// movements are written once a batch, as one row that no other batch touches, and added up behind the batches.

/**
 * What the postings and cycles say, less what the movements say: nothing, in a ledger that is whole. In which hour the
 * last credits of end users ended is not kept up for hours that are over.
 *
 * @param now SQL for the time
 * @param bucket the one that is looked at, on Citus, where a batch holds one; all together when null, since there the
 * movements of a batch are in the bucket of one of its end users
 */
export function movementDifferences(now: string, bucket: number | null): string {
  const within = bucket === null ? 'true' : `bucket = ${bucket}`;
  return `
  WITH hour AS (SELECT greatest((SELECT at FROM scrip.clock), ${now}) / 3600000 AS first)
  SELECT account, series, slot, sum(credits) AS credits, sum(count)::bigint AS count FROM (
    SELECT account, 0 AS series, (expires_at / 3600000)::integer AS slot, sum(amount) AS credits, 0::bigint AS count
    FROM scrip.postings WHERE kind <> 'stop-cycle' AND ${within} GROUP BY 1, 2, 3
    UNION ALL
    SELECT account, CASE kind WHEN 'add' THEN 1 WHEN 'start-cycle' THEN 2 WHEN 'renew' THEN 3 ELSE 4 END,
      (created_at / 86400000)::integer, sum(amount), count(*)
    FROM (
      SELECT account, kind, created_at, sum(amount) AS amount FROM scrip.postings
      WHERE kind <> 'stop-cycle' AND ${within} GROUP BY bucket, account, end_user, transaction_id, kind, created_at
    ) AS transactions GROUP BY 1, 2, 3
    UNION ALL
    SELECT account, 0, (last / 3600000)::integer, 0, count(*) FROM (
      SELECT account, max(ends_at) AS last FROM scrip.cycles
      WHERE remaining > 0 AND ends_at >= (SELECT first FROM hour) * 3600000 AND ${within} GROUP BY bucket, account, end_user
    ) AS lasting GROUP BY 1, 2, 3
    UNION ALL
    SELECT account, series, slot, -credits, CASE WHEN series = 0 AND slot < (SELECT first FROM hour) THEN 0 ELSE -count END
    FROM scrip.movements WHERE ${within}
    UNION ALL
    SELECT account, series, slot, -credits, CASE WHEN series = 0 AND slot < (SELECT first FROM hour) THEN 0 ELSE -count END
    FROM ${entriesOf(`(SELECT entries FROM scrip.recent_movements WHERE ${within})`)}
  ) AS entries GROUP BY account, series, slot HAVING sum(credits) <> 0 OR sum(count) <> 0`;
}

/** @param recent SQL for rows with a column `entries` */
export function entriesOf(recent: string): string {
  return `(
    SELECT (e ->> 0)::integer AS account, (e ->> 1)::integer AS series, (e ->> 2)::integer AS slot,
      (e ->> 3)::numeric AS credits, (e ->> 4)::bigint AS count
    FROM ${recent} AS recent, jsonb_array_elements(recent.entries) AS e
  ) AS recent_entries`;
}

const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';
const NO_PART = '00000000-0000-0000-0000-000000000000';

/** Enters what there is of a bucket; of all when null. */
function fill(bucket: number | null): string {
  return `
  INSERT INTO scrip.movements (bucket, account, series, slot, part, credits, count)
  SELECT ${bucket ?? 0}, account, series, slot, '${NO_PART}', credits, count FROM (${movementDifferences(NOW, bucket)}) AS d;`;
}

/** Before the tables are distributed: from then on, each bucket is compared by itself. */
export function fillByBucket(buckets: number): string {
  return `
  DELETE FROM scrip.movements;
  DELETE FROM scrip.recent_movements;
  ${Array.from({ length: buckets }, (_, bucket) => fill(bucket)).join('')}`;
}

export const accountReads = `
-- Citus before 12.1 refuses a column that comes with a CHECK. The names are those that PostgreSQL gives by itself.
ALTER TABLE scrip.postings ADD COLUMN note text;
ALTER TABLE scrip.postings ADD CONSTRAINT postings_note_check CHECK (length(note) BETWEEN 1 AND 500);

ALTER TABLE scrip.api_keys ADD COLUMN name text NOT NULL DEFAULT '';
ALTER TABLE scrip.api_keys ADD CONSTRAINT api_keys_name_check CHECK (length(name) <= 200);
ALTER TABLE scrip.api_keys ADD COLUMN last_used_at bigint;

CREATE INDEX end_users_by_account ON scrip.end_users (account, end_user);
CREATE INDEX postings_by_account ON scrip.postings (account, transaction_id);

-- Series: 0 what is held, by the hour in which cycles end; 1 add, 2 start-cycle, 3 renew, 4 subtract, by day. The count
-- is of end users in series 0, of transactions in the others. A slot may have several parts, which count together: who
-- adds up waits for nobody's row. Credits of many end users together may pass what 64 bits hold.
CREATE TABLE scrip.movements (
  bucket smallint NOT NULL,
  account integer NOT NULL,
  series smallint NOT NULL CHECK (series BETWEEN 0 AND 4),
  slot integer NOT NULL,
  part uuid NOT NULL,
  credits numeric NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (bucket, account, series, slot, part)
);
CREATE INDEX movements_by_account ON scrip.movements (account, series, slot);

-- What is not yet in there: a row for each batch, [[account, series, slot, credits, count], …].
CREATE TABLE scrip.recent_movements (
  bucket smallint NOT NULL,
  batch uuid NOT NULL,
  entries jsonb NOT NULL,
  PRIMARY KEY (bucket, batch)
);

${fill(null)}
`;
