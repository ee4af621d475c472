// The chains of a database: proved in one snapshot, beside the servers that may run on it; and computed where they are
// not kept, with all writes held up.

import type { Pool } from 'pg';
import type { Finding } from '../../ledger/audit.ts';
import type { TransactionId } from '../../ledger/transaction-id.ts';
import type { LedgerProof } from '../ledger-digest.ts';
import { LedgerProver, MissingHeads, throughInstant } from '../ledger-proof.ts';
import { CannotOpen } from '../store.ts';
import { ANY_INTEGER } from './connection.ts';
import type { DatabaseClock } from './database-clock.ts';
import { keyOf } from './key.ts';
import { scanLedger } from './ledger-scan.ts';
import { RowArrays } from './row-arrays.ts';
import { type Statement, statementsFor } from './statements.ts';

/** Every batch locks rows of this table before it asks for the time, and until it is committed. */
const HOLD_WRITES = `BEGIN; SET LOCAL lock_timeout = '2s'; LOCK TABLE scrip.end_users IN EXCLUSIVE MODE`;

/** The chain of whoever has no posting yet, and a row only because somebody once asked, begins with the first one. */
const BEGIN_OTHERS = `UPDATE scrip.end_users SET chain = '' WHERE chain IS NULL`;

/** PostgreSQL's code for a lock that was not given in time. */
const LOCK_NOT_AVAILABLE = '55P03';

/** @param through null for all that has happened */
export async function proveDatabase(
  pool: Pool,
  clock: DatabaseClock,
  through: readonly TransactionId[] | null,
  report: (finding: Finding) => void,
): Promise<LedgerProof> {
  const prover = new LedgerProver(through ?? [await latestOf(pool, clock)], report);
  for await (const records of scanLedger(pool, null, ANY_INTEGER)) for (const record of records) prover.add(record);
  return prover.proof();
}

/**
 * An instant behind which all is still to come, and before which all is committed: found while no batch is under way,
 * kept as the ledger's own, and left behind before the next batch can ask for the time.
 */
async function latestOf(pool: Pool, clock: DatabaseClock): Promise<TransactionId> {
  return holdingWrites(pool, async (query) => {
    const [clocked] = await query(`SELECT ${clock.now} AS now`);
    const latest = clock.notBefore(clocked?.now as number);
    const [row] = await query('UPDATE scrip.clock SET at = greatest(at, $1) RETURNING at', [latest]);
    await query('SELECT pg_sleep(0.002)');
    return throughInstant(clock.notBefore(row?.at as number));
  });
}

/**
 * @returns how many chains it has added
 * @throws CannotOpen when there is too much going on
 */
export async function addChainsTo(pool: Pool): Promise<number> {
  return holdingWrites(pool, async (query) => {
    const missing = new MissingHeads();
    let added = 0;
    for await (const records of scanLedger(pool, null)) {
      const heads = records.flatMap((record) => {
        const head = missing.take(record);
        return head === null ? [] : [[...keyOf(record.user), head] as const];
      });
      for (const [bucket, those] of Map.groupBy(heads, ([bucket]) => bucket)) {
        const { text, types } = statementsFor(bucket).updateChains;
        const rows = new RowArrays(types);
        for (const columns of those) rows.add(...columns);
        await query(text, rows.literals());
      }
      added += heads.length;
    }
    await query(BEGIN_OTHERS);
    return added;
  });
}

type Query = (text: Statement['text'], values?: unknown[]) => Promise<readonly Record<string, unknown>[]>;

async function holdingWrites<Result>(pool: Pool, work: (query: Query) => Promise<Result>): Promise<Result> {
  const client = await pool.connect();
  try {
    await client.query(HOLD_WRITES);
    const result = await work(async (text, values) => (await client.query(text, values)).rows);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error;
    throw new CannotOpen('The ledger is too busy to be held still for a moment; try again.');
  } finally {
    // Without COMMIT, closing the connection rolls back.
    client.release(true);
  }
}
