// Runs an operator's commands, such as `scrip verify`, on a ledger on PostgreSQL. Servers can use the ledger at the
// same time.

import { lastIdAt, type TransactionId } from '../../../ledger/transaction-id.ts';
import { CannotOpen } from '../../store-fault.ts';
import { LedgerDigester, type PostingsDigest } from '../../tools/ledger-digest.ts';
import type { LedgerTools, OperatorStores, ToolsOptions } from '../../tools/ledger-tools.ts';
import { exactInteger, sql } from '../pool/connection.ts';
import { APPLICATION_NAME, type PostgresOptions, toolsPool } from '../pool/connection-pool.ts';
import { attempt, LOCK_NOT_AVAILABLE } from '../pool/postgres-error.ts';
import { BEGIN, COMMIT, IDLE_TIMEOUT, setLocal } from '../pool/transactions.ts';
import { postgresKeyStore } from '../reads/api-keys.ts';
import { type LedgerDatabase, openLedger } from '../schema/open-ledger.ts';
import { auditDatabase, SHARED_MS } from './audit.ts';
import { beginScan, ledgerRowsOf } from './ledger-scan.ts';
import { rebuildTotals } from './totals.ts';

/** One connection for long reads, and a spare one. */
const CONNECTIONS = 2;

const PAUSE_TIMEOUTS = setLocal({ lock_timeout: '2s', ...IDLE_TIMEOUT });

/** @throws CannotOpen */
export function openPostgresTools(
  options: PostgresOptions,
  { create, testClock = null }: ToolsOptions,
): Promise<OperatorStores> {
  const opening = { ...options, acceptUnsafe: true, create, testClock };
  return openLedger(toolsPool(options, CONNECTIONS, APPLICATION_NAME), opening, async (database) => {
    const tools: LedgerTools = {
      audit: (report) => auditDatabase(database, report),
      digest: (through) => digests(database, through),
      rebuildTotals: () => attempt(() => rebuildTotals(database)),
      close: () => database.pool.end(),
    };
    return { tools, keys: postgresKeyStore(database, attempt) };
  });
}

async function digests(
  database: LedgerDatabase,
  through: readonly TransactionId[] | null,
): Promise<readonly PostingsDigest[]> {
  const digester = new LedgerDigester(through ?? [await latestId(database)]);
  const begin = beginScan(database.placement);
  for await (const rows of ledgerRowsOf(database.pool, begin, { after: null, integer: Number }))
    for (const row of rows) digester.add(row);
  return digester.digests();
}

/**
 * Finds an instant up to which all transactions are committed, and returns the greatest possible transaction ID at that
 * instant. Reads the clock while batches are paused, and stores the time as the ledger's latest instant. Keeps batches
 * paused until the clock is past this instant. A test clock stands still, so this function moves it forward by a
 * millisecond.
 *
 * @throws CannotOpen if the ledger is too busy to pause batches
 */
async function latestId({ pool, clock, placement }: LedgerDatabase): Promise<TransactionId> {
  try {
    return await pool.use(async (connection) => {
      await connection.send([BEGIN, ...placement.throughout, ...PAUSE_TIMEOUTS, placement.pause]);
      const now = clock.read(await connection.rows(clock.query));
      const keep = sql('UPDATE scrip.clock SET at = greatest(at, $1) RETURNING at', [now]);
      const pass = sql(clock.isTest ? 'UPDATE scrip.clock SET at = at + 1' : 'SELECT pg_sleep(0.002)');
      const [kept] = await connection.send([keep, pass, COMMIT]);
      const at = exactInteger(kept?.rows[0]?.[0]);
      // If the clock was set back, batches get the instant `at` until the clock has caught up. Batches of a process that
      // has not read `at` yet get a slightly earlier instant.
      return lastIdAt(at > now ? Math.max(at - SHARED_MS, 0) : at);
    });
  } catch (error) {
    if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error;
    throw new CannotOpen('Writes could not be paused, because the ledger is too busy; try again.');
  }
}
