// Scrip on PostgreSQL against a service written by hand on the same PostgreSQL, each with a database of its own: both
// under the same load, in turn, in one run, with every answer on stable storage.
// `npm run bench:postgres -- [CONNECTIONS] [ROUNDS] [SECONDS]`; Scrip's own settings come from the environment.

import { databaseOf } from '../src/config.ts';
import { PostgresServer } from '../test/postgres/postgres-server.ts';
import { makeKey, verify } from './ledger.ts';
import { startServer, stopServers } from './servers.ts';
import { compare, fund, newEndUsers, print, runOf } from './subtractions.ts';

const run = runOf(process.argv.slice(2).map(Number));
const endUsers = newEndUsers();
const postgres = await PostgresServer.start({ fsync: 'on', synchronous_commit: 'on', shared_buffers: '256MB' });
try {
  const url = await postgres.createDatabase();
  const database = databaseOf({ ...process.env, DATABASE_URL: url });
  const secret = await makeKey(database);
  const settings = { DATABASE_URL: await postgres.createDatabase(), SECRET: secret };
  const byHand = { name: 'by hand', url: await startServer('hand-written-service.ts', [], settings), secret };
  const scripUrl = await startServer('../src/cli.ts', ['serve'], { DATABASE_URL: url });
  const scrip = { name: 'Scrip', url: scripUrl, secret };
  await Promise.all([fund(byHand, endUsers), fund(scrip, endUsers)]);
  // As autovacuum does within a minute or so: until then PostgreSQL plans for tables that it takes to be almost empty.
  for (const each of [url, settings.DATABASE_URL]) await postgres.query('VACUUM ANALYZE', nameOf(each));
  await compare(byHand, scrip, endUsers, run);
  await stopServers();
  await verify(database);
  await printSizes(nameOf(url));
} finally {
  await stopServers();
  await postgres.remove();
}

function nameOf(url: string): string {
  return new URL(url).pathname.slice(1);
}

/** What a row takes on disk, its share of indexes and of room that updates left included. */
async function printSizes(database: string): Promise<void> {
  for (const table of ['end_users', 'cycles', 'postings']) {
    const { rows } = await postgres.query(
      `SELECT count(*) AS count, pg_total_relation_size('scrip.${table}') / count(*) AS bytes FROM scrip.${table}`,
      database,
    );
    print(`${table}: ${rows[0].count} rows, ${rows[0].bytes} bytes a row`);
  }
}
