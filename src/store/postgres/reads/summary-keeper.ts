// Computes the summaries of end users in a database, while other processes may do the same. Each step locks the feed
// consumer of one part. If another process holds this lock, the step skips the part.

import { randomInt } from 'node:crypto';
import type { Instant } from '../../../ledger/instant.ts';
import type { SummaryKeeper } from '../../end-user-summaries.ts';
import { type Part, partsIn } from '../citus/placement.ts';
import type { Reachable } from '../citus/reach.ts';
import { lockConsumer } from '../journal/feed.ts';
import { summarizeSome } from '../journal/summaries.ts';
import { type Query, sql } from '../pool/connection.ts';
import { BEGIN_UNPROMISED, COMMIT, ROLLBACK } from '../pool/transactions.ts';
import { BUCKETS } from '../rows/key.ts';
import type { PostgresLedgerStore } from './ledger-store.ts';

/** A lookup reads at most this many end users. Usually, that is enough to find every part with work. */
const LOOKED_AT_MAX = 256;

/** Finds the buckets of end users that need a new summary. Call this first, so that an idle database gets no writes. */
function waiting(now: Instant, reachable: Reachable): Query {
  return sql(
    `SELECT DISTINCT bucket FROM (
       SELECT bucket FROM scrip.stale_end_users WHERE true${reachable('stale_end_users')}
       UNION ALL SELECT bucket FROM scrip.end_user_summaries WHERE expires_at <= $1${reachable('end_user_summaries')}
       LIMIT $2
     ) AS waiting`,
    [now, LOOKED_AT_MAX],
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
      const rows = await reach.lookUp((reachable) => pool.rows(waiting(now, reachable)));
      let isMore = false;
      for (const part of partsIn(rows, placement)) if (await this.#summarize(part)) isMore = true;
      return isMore;
    });
  }

  /** @returns whether further end users may need a new summary; false if another process works on this part */
  #summarize(part: Part): Promise<boolean> {
    const { pool, clock, placement } = this.#ledger.database;
    return pool.use(async (connection) => {
      const lock = lockConsumer('totals', part, 'SKIP LOCKED');
      const locked = await connection.send([...BEGIN_UNPROMISED, ...placement.byKey, lock]);
      if (locked.at(-1)?.rows.length === 0) {
        await connection.send([ROLLBACK]);
        return false;
      }
      // Begin at a random bucket, so that every end user is summarized eventually, even under load.
      const from = part.isShard ? 0 : randomInt(BUCKETS);
      const isMore = await summarizeSome(connection, part, { clock, from });
      await connection.send([COMMIT]);
      return isMore || from > 0;
    });
  }
}
