// The store for several processes and machines: PostgreSQL. Writes go through a few lanes, a connection each; reads through
// connections of their own, always to the primary.

import type { Stores } from '../stores.ts';
import { type PostgresOptions, servingPool } from './pool/connection-pool.ts';
import { Heartbeat } from './pool/heartbeat.ts';
import { postgresKeyStore } from './reads/api-keys.ts';
import { PostgresConsoleStore } from './reads/console-reads.ts';
import { PostgresLedgerStore } from './reads/ledger-store.ts';
import { openLedger, refuseUnfinishedCopy } from './schema/open-ledger.ts';
import { BatchWriter } from './writer/batch-writer.ts';

const READERS = 8;

/** One as a rule; another when a batch has failed that the next one had followed, and both are tried again. */
const CONNECTIONS_PER_LANE = 2;

/**
 * Opens the ledger in a database, creating or migrating it where needed.
 *
 * @throws CannotOpen when the server cannot be reached or trusted, or the schema is one that this version cannot read
 */
export function openPostgresStore(options: PostgresOptions): Promise<Stores> {
  return openLedger(servingPool(options, READERS), { ...options, create: true }, async (database) => {
    const { pool, clock } = database;
    await refuseUnfinishedCopy(pool);
    const heartbeat = new Heartbeat(pool, clock, (trouble) => ledger.onTrouble(trouble));
    const writers = servingPool(options, options.lanes * CONNECTIONS_PER_LANE);
    const writer = new BatchWriter(writers, database, heartbeat, options.lanes);
    const ledger = new PostgresLedgerStore(database, writer, async () => {
      await heartbeat.stop();
      await Promise.all([writers.end(), pool.end()]);
    });
    await heartbeat.start();
    const keys = postgresKeyStore(database, (work) => ledger.attempt(work));
    return { ledger, keys, console: new PostgresConsoleStore(ledger) };
  });
}
