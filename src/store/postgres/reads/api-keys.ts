// Stores API keys in PostgreSQL. A table lock prevents two API keys from getting the same ID, and two accounts from
// getting the same account number.

import assert from 'node:assert/strict';
import type { KeyStore } from '../../key-store.ts';
import { SqlKeyStore } from '../../sql-key-store.ts';
import { sql } from '../pool/connection.ts';
import type { attempt } from '../pool/postgres-error.ts';
import { BEGIN_UNPROMISED, beginLocking, COMMIT } from '../pool/transactions.ts';
import type { LedgerDatabase } from '../schema/open-ledger.ts';

export function postgresKeyStore({ pool, clock }: LedgerDatabase, attempted: typeof attempt): KeyStore {
  return new SqlKeyStore({
    schema: 'scrip',
    run: (text, values) => attempted(() => pool.rows(sql(text, values))),
    now: () => attempted(() => clock.peekMachine(pool)),
    transact: (work) =>
      attempted(() =>
        pool.use(async (connection) => {
          await connection.send(beginLocking('scrip.accounts, scrip.api_keys'));
          const result = await work((text, values) => connection.rows(sql(text, values)));
          await connection.send([COMMIT]);
          return result;
        }),
      ),
    /** Locks the rows in a fixed order; otherwise, several processes could deadlock. */
    async recordUses(ids) {
      assert(ids.every(Number.isSafeInteger), 'API key IDs are integers');
      const used = `key_id = ANY('{${ids}}')`;
      await attempted(async () => {
        const now = await clock.peekMachine(pool);
        const locking = sql(`SELECT 1 FROM scrip.api_keys WHERE ${used} ORDER BY key_id FOR UPDATE`);
        const update = sql(`UPDATE scrip.api_keys SET last_used_at = greatest(last_used_at, $1) WHERE ${used}`, [now]);
        await pool.send([...BEGIN_UNPROMISED, locking, update, COMMIT]);
      });
    },
  });
}
