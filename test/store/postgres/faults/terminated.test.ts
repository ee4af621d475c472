// Tests the service while its connections are terminated at random, for example by an administrator.

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { History, startLoad } from '../acknowledged-history.ts';
import { openFor } from '../postgres-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';

const TERMINATIONS = Number(process.env.TERMINATIONS ?? 300);

const TERMINATE = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE application_name = 'scrip' AND datname = current_database() ORDER BY state = 'active' DESC, random() LIMIT 1`;

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

test('if PostgreSQL terminates connections at random, no acknowledged write is lost or stored twice', async (t) => {
  const url = await server.createDatabase();
  const { store } = await openFor(t, url);
  const history = new History();
  const load = startLoad(store, history);
  const administrator = new pg.Client({ connectionString: url });
  await administrator.connect();
  let terminated = 0;
  while (terminated < TERMINATIONS) {
    terminated += (await administrator.query(TERMINATE)).rows.length;
    await sleep(randomInt(20));
  }
  await administrator.end();
  await load.acknowledged(100);
  await load.stop();
  assert.deepEqual(await history.faultsOf(store, url), []);
  assert.equal(
    history.count('OutcomeUnknown'),
    0,
    'the server is up, so the outcome of each lost COMMIT can be determined',
  );
  assert(history.count('acknowledged') > TERMINATIONS, 'the load was heavy enough');
  t.diagnostic(`${terminated} connections terminated: ${history.summary}`);
});
