// Summarizes end users in a database while other processes do the same. Each step locks the feed consumer of one part,
// and skips the part if another process has locked it.

import { randomInt } from 'node:crypto';
import type { SummaryKeeper } from '../../end-user-summaries.ts';
import { lockConsumer } from '../journal/feed.ts';
import { summarizeSome } from '../journal/summaries.ts';
import { sql } from '../pool/connection.ts';
import { BEGIN_UNPROMISED, BY_KEY, COMMIT, ROLLBACK, setLocal } from '../pool/transactions.ts';
import { BUCKETS } from '../rows/key.ts';
import type { PostgresLedgerStore } from './ledger-store.ts';

export class PostgresSummaryKeeper implements SummaryKeeper {
  readonly #ledger: PostgresLedgerStore;

  constructor(ledger: PostgresLedgerStore) {
    this.#ledger = ledger;
  }

  catchUp(): Promise<boolean> {
    const { pool, clock, placement } = this.#ledger.database;
    // An idle database must get no writes.
    const waiting = sql(
      `(SELECT bucket FROM scrip.stale_end_users LIMIT 1)
       UNION ALL (SELECT bucket FROM scrip.end_user_summaries WHERE expires_at <= (SELECT ${clock.sql}) LIMIT 1)`,
    );
    return this.#ledger.attempt(async () => {
      const [found] = await pool.rows(waiting);
      if (found === undefined) return false;
      const part = placement.parts.find(({ bucket }) => bucket === Number(found[0])) ?? placement.parts[0];
      if (part === undefined) return false;
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
