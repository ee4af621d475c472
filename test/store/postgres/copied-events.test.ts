// Tests the events of a ledger that was copied to PostgreSQL: the source's events are not derived again, and later
// events are derived from the copied state.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import { copyDatabase } from '../../../src/open-tools.ts';
import { createApiKey } from '../../../src/store/key-store.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { EndUser, temporaryFile } from '../temporary-ledger.ts';
import { at, fileAt, quietly } from '../tools/copied-ledger.ts';
import { openOnMovedClock } from './postgres-ledger.ts';
import { PostgresServer } from './postgres-server.ts';

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start();
});
after(() => server.remove());

test('a copy in PostgreSQL derives events only for transactions and expiries that happen after the copy was made', async (t) => {
  const file = temporaryFile();
  const [ada, bob] = [new EndUser(1, 1), new EndUser(1, 2)];
  const source = await openSqliteStore(file);
  await createApiKey(source.keys, { accountName: 'Lovelace Ltd', scope: 'write' });
  await source.ledger.write([ada.add(100, 2), ada.subtract(7), bob.startCycle(20, 3), bob.hold(5, 60)], () => {});
  await source.ledger.close();
  const url = await server.createDatabase();
  await copyDatabase(at(fileAt(file)), at(url), quietly);
  const database = new URL(url).pathname.slice(1);
  assert.deepEqual((await server.query('SELECT FROM scrip.feed', database)).rows, []);
  await server.query(`INSERT INTO scrip.thresholds VALUES (1, '50%', 0)`, database);

  let wall = Date.now();
  const copy = await openOnMovedClock(t, url, () => wall);
  const happened = async () => {
    await copy.deriveEvents();
    const { events } = await copy.events.page(1, { after: null, limit: 100 });
    return events.map(({ type, data }) => `${type} ${JSON.parse(data).balance}`);
  };
  assert.deepEqual(await happened(), []);
  await copy.write([ada.subtract(50)]);
  const spent = ['credits.subtracted 43', 'balance.low 43'];
  assert.deepEqual(await happened(), spent, 'the threshold is half of the copied grant');
  wall += 2.5 * DAY_MS;
  const expired = ['credits.expired 0', 'balance.exhausted 0'];
  assert.deepEqual(await happened(), [...spent, ...expired], "the lapse of Bob's hold is not stored yet");
  wall += DAY_MS;
  await copy.write([bob.settle()]);
  assert.deepEqual(await happened(), [
    ...spent,
    ...expired,
    'hold.lapsed 20',
    'credits.expired 20',
    'cycle.renewed 20',
  ]);
});
