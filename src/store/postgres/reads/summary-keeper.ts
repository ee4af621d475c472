// Summarizes end users in a database while other processes do the same. Each step locks the feed consumer of one part,
// and skips the part if another process has locked it.

import { randomInt } from 'node:crypto';
import type { Instant } from '../../../ledger/instant.ts';
import type { SummaryKeeper } from '../../end-user-summaries.ts';
import type { Reachable } from '../citus/reach.ts';
import { lockConsumer } from '../journal/feed.ts';
import { summarizeSome } from '../journal/summaries.ts';
import { type Query, sql } from '../pool/connection.ts';
import { BEGIN_UNPROMISED, BY_KEY, COMMIT, ROLLBACK, setLocal } from '../pool/transactions.ts';
import { BUCKETS } from '../rows/key.ts';
import type { PostgresLedgerStore } from './ledger-store.ts';

/** The bucket of an end user to summarize. Check for work first, so that an idle database gets no writes. */
function waiting(now: Instant, reachable: Reachable): Query {
  return sql(
    `SELECT bucket FROM (
       SELECT bucket FROM scrip.stale_end_users WHERE true${reachable('stale_end_users')}
       UNION ALL SELECT bucket FROM scrip.end_user_summaries WHERE expires_at <= $1${reachable('end_user_summaries')}
     ) AS waiting LIMIT 1`,
    [now],
  );
}

export class PostgresSummaryKeeper implements SummaryKeeper {
  readonly #ledger: PostgresLedgerStore;

  constructor(ledger: PostgresLedgerStore) {
    this.#ledger = ledger;
  }

  catchUp(): Promise<boolean> {
    const { pool, clock, placement, reach } = this.#ledger.database;
    return this.#ledger.attempt(async () => {
      const now = await clock.peek(pool);
      const [found] = await reach.lookUp((reachable) => pool.rows(waiting(now, reachable)));
      if (found === undefined) return false;
      const part = placement.partOfBucket(Number(found[0]));
      return pool.use(async (connection) => {
        const lock = lockConsumer('totals', part, 'SKIP LOCKED');
        const locked = await connection.send([...BEGIN_UNPROMISED, ...setLocal(BY_KEY), lock]);
        if (locked.at(-1)?.rows.length === 0) {
          await connection.send([ROLLBACK]);
          return false;
        }
        // Begin at a random bucket, so that every end user is summarized eventually, even under load.
        const from = part.isShard ? 0 : randomInt(BUCKETS);
        const isMore = await summarizeSome(connection, part, { clock, from });
        await connection.send([COMMIT]);
        return isMore || from > 0 || part.isShard;
      });
    });
  }
}
