// Counts the statements that an idle process would send to the Citus workers.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startScrip } from '../../../http/running-service.ts';
import { PostgresServer } from '../postgres-server.ts';
import { databaseAt } from '../scrip-on-postgres.ts';
import { workerStatements } from './citus-rules.ts';
import { LOG_ENTRY, LOGGED, logOf, STAND_IN } from './stand-in.ts';

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start(LOGGED);
});
after(() => server.remove());

/** Longer than a process takes to start the console and to look for work once. */
const BEGIN_MS = 3_000;

/** Twice the interval at which an idle process looks for work. */
const IDLE_MS = 20_000;

test('with the SQL for Citus, an idle process sends at most 15 statements a second to the workers', async () => {
  const url = await server.createDatabase();
  await server.query(STAND_IN, new URL(url).pathname.slice(1));
  const scrip = await startScrip({ database: databaseAt(url, { citus: true }) });
  await sleep(BEGIN_MS);
  const { length } = logOf(server);
  await sleep(IDLE_MS);
  const statements = logOf(server)
    .slice(length)
    .flatMap((entry) => LOG_ENTRY.exec(entry)?.[3]?.split(';') ?? []);
  const sent = statements.reduce((sum, statement) => sum + workerStatements(statement), 0);
  await scrip.stop();
  const perSecond = (1_000 * sent) / IDLE_MS;
  assert(perSecond <= 15, `${perSecond} statements a second`);
  assert(perSecond > 0, 'the process looks for work');
});
