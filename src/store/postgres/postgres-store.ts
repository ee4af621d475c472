// Opens the PostgreSQL store. Several processes on several machines can use the same ledger at the same time. Writes
// and reads use separate connection pools. Both pools connect to the primary.

import type { Stores } from '../stores.ts';
import { type PostgresOptions, servingPool } from './pool/connection-pool.ts';
import { DatabaseTestClock } from './pool/database-test-clock.ts';
import { Heartbeat } from './pool/heartbeat.ts';
import { postgresKeyStore } from './reads/api-keys.ts';
import { PostgresConsoleStore } from './reads/console-reads.ts';
import { PostgresEventLog } from './reads/event-log.ts';
import { PostgresLedgerStore } from './reads/ledger-store.ts';
import { openLedger } from './schema/open-ledger.ts';
import { BatchWriter } from './writer/batch-writer.ts';

const READERS = 8;

/**
 * A lane has at most two batches in flight. Normally, both share a connection. If the first batch fails, the second one
 * fails too. Each batch is then retried on its own connection.
 */
const CONNECTIONS_PER_LANE = 2;

/**
 * Opens the ledger in a database, and creates or migrates the ledger if needed.
 *
 * @throws CannotOpen if the server cannot be reached, if its settings are unsafe, or if the ledger has an unsupported
 * schema, is an unfinished copy, or does not match `testClock`
 */
export function openPostgresStore({ testClock: isTest = false, ...options }: PostgresOptions): Promise<Stores> {
  return openLedger(
    servingPool(options, READERS),
    { ...options, testClock: isTest, create: true },
    async (database) => {
      const { pool, clock, placement, reach } = database;
      const testClock = clock.isTest ? new DatabaseTestClock(pool, clock) : null;
      await testClock?.begin();
      const heartbeat = new Heartbeat(pool, clock, (trouble) => ledger.onTrouble(trouble));
      const lanes = placement.lanes(options.lanes);
      const writers = servingPool(options, lanes.atOnce * CONNECTIONS_PER_LANE);
      const writer = new BatchWriter(writers, database, heartbeat, lanes);
      await writer.prepare();
      const ledger = new PostgresLedgerStore(database, writer, async () => {
        await heartbeat.stop();
        await Promise.all([writers.end(), reach.close(), pool.end()]);
      });
      const keys = postgresKeyStore(database, (work) => ledger.attempt(work));
      const console = new PostgresConsoleStore(ledger);
      const events = await PostgresEventLog.open(database);
      await heartbeat.start();
      return { ledger, keys, console, events, imports: null, testClock };
    },
  );
}
