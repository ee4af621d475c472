// Converts idempotency records to rows and back, and deletes expired records.

import { type IdempotencyRecord, type IdempotencyRecords, nameOf } from '../../../ledger/idempotency.ts';
import type { Instant } from '../../../ledger/instant.ts';
import type { IdempotencyRetention } from '../../ledger-store.ts';
import { isGrant, outcomeOf, storedOutcome } from '../../stored-record.ts';
import type { Part } from '../citus/placement.ts';
import { exactInteger, type Query, sql, type TextRow, type Value } from '../pool/connection.ts';
import type { ConnectionPool } from '../pool/connection-pool.ts';
import { BEGIN_UNPROMISED, COMMIT } from '../pool/transactions.ts';

/** The columns that follow the key columns of the end user. */
export const RECORD_COLUMNS = 'key, request, request_id, transaction_id, outcome, recorded_at, is_grant';
export const RECORD_TYPES = 'text text text uuid text bigint boolean'.split(' ');

export function recordValues(record: IdempotencyRecord): Value[] {
  const { key, request, requestId, outcome, recordedAt } = record;
  const stored = storedOutcome(outcome);
  return [key, request, requestId, stored.transactionId, stored.outcome, recordedAt, `${isGrant(record)}`];
}

export function recordsOf(rows: readonly TextRow[]): IdempotencyRecords {
  return new Map(rows.map(recordOf).map((record) => [nameOf(record), record]));
}

/** @param row the account, the end user and `RECORD_COLUMNS` */
export function recordOf(row: TextRow): IdempotencyRecord {
  const [account, endUser, key, request, requestId, transactionId = null, outcome = null, recordedAt] = row;
  return {
    account: Number(account),
    endUser: endUser as string,
    key: key as string,
    request: request as string,
    requestId: requestId as string,
    outcome: outcomeOf({ transactionId, outcome }),
    recordedAt: exactInteger(recordedAt),
  };
}

/**
 * One step deletes at most this many records for each of the two retention times. This takes PostgreSQL about 10 ms.
 */
const DELETED_MAX = 1_000;

/**
 * Deletes some of a part's records that have expired by `now`.
 *
 * @returns whether the part might have more expired records
 */
export async function deleteOldest(
  pool: ConnectionPool,
  part: Part,
  { grantsMs, othersMs }: IdempotencyRetention,
  now: Instant,
): Promise<boolean> {
  const deletions = [deletion(part, true, now - grantsMs), deletion(part, false, now - othersMs)];
  const results = await pool.send([...BEGIN_UNPROMISED, ...deletions, COMMIT]);
  return results.some(({ command, rowCount }) => command === 'DELETE' && rowCount === DELETED_MAX);
}

function deletion(part: Part, isGrant: boolean, before: Instant): Query {
  const key = 'bucket, account, end_user, key';
  return sql(
    `DELETE FROM scrip.idempotency_records r WHERE (${key}) IN (
       SELECT ${key} FROM scrip.idempotency_records o
       WHERE is_grant = $1 AND recorded_at < $2${part.within('o')} ORDER BY recorded_at LIMIT $3
     )${part.within('r')}`,
    [`${isGrant}`, before, DELETED_MAX],
  );
}
