// Converts rows to totals, and adds totals to the stored rows.

import type { PostingKind } from '../../../ledger/posting.ts';
import type { Totals } from '../../totals.ts';
import type { Part } from '../citus/placement.ts';
import { type Query, sql, type TextRow } from '../pool/connection.ts';
import { columnsOf } from '../rows/ledger-rows.ts';
import { RowArrays, unnest } from '../rows/row-arrays.ts';

/** SQL for the stored totals, with the columns that `totalsOf` expects. */
export const DAILY_TOTALS = 'SELECT account, day, kind, actor, credits, transactions FROM scrip.daily_totals';
export const EXPIRY_TOTALS = 'SELECT account, hour, credits FROM scrip.expiry_totals';

export function totalsOf(daily: readonly TextRow[], expiries: readonly TextRow[]): Totals {
  return {
    daily: daily.map(([account, day, kind, actor, credits, transactions]) => ({
      account: Number(account),
      day: Number(day),
      kind: kind as PostingKind,
      actor: actor as string,
      credits: BigInt(credits as string),
      transactions: Number(transactions),
    })),
    expiries: expiries.map(([account, hour, credits]) => ({
      account: Number(account),
      hour: Number(hour),
      credits: BigInt(credits as string),
    })),
  };
}

export function totalsUpserts({ daily, expiries }: Totals, part: Part): Query[] {
  const days = new RowArrays(['integer', 'integer', 'text', 'text', 'numeric', 'bigint']);
  for (const { account, day, kind, actor, credits, transactions } of daily)
    days.add(account, day, kind, actor, credits, transactions);
  const hours = new RowArrays(['integer', 'integer', 'numeric']);
  for (const { account, hour, credits } of expiries) hours.add(account, hour, credits);
  return [
    ...upsert('daily_totals', 'account, day, kind, actor', ['credits', 'transactions'], days, part),
    ...upsert('expiry_totals', 'account, hour', ['credits'], hours, part),
  ];
}

/**
 * Statements that add `rows` to the stored sums of a part. The SELECT reads `feed_consumers` because Citus accepts the
 * INSERT only if its SELECT reads a table of the same shard.
 */
export function upsert(
  table: string,
  key: string,
  sums: readonly string[],
  rows: RowArrays,
  { bucket }: Part,
): Query[] {
  if (rows.count === 0) return [];
  const columns = `${key}, ${sums.join(', ')}`;
  const text = `
    INSERT INTO scrip.${table} AS t (bucket, ${columns})
    SELECT c.bucket, ${columnsOf('k', columns)} FROM ${unnest(rows.types)} AS k (${columns})
    JOIN scrip.feed_consumers c ON c.bucket = ${bucket} AND c.consumer = 'totals'
    ON CONFLICT (${key}, bucket) DO UPDATE SET ${sums.map((sum) => `${sum} = t.${sum} + excluded.${sum}`).join(', ')}`;
  return [sql(text, rows.literals())];
}
