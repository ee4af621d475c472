// Tests webhooks on PostgreSQL. Several processes share the endpoints, and the database's clock determines when leases
// expire.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Thresholds } from '../../src/events/thresholds.ts';
import { openPostgresAccountDatabase } from '../../src/store/postgres/reads/account-database.ts';
import { openFor } from '../store/postgres/postgres-ledger.ts';
import { PostgresServer } from '../store/postgres/postgres-server.ts';
import { testResending } from './resend-cases.ts';
import {
  ACCOUNT,
  addEndpoint,
  Receiver,
  type Setting,
  settingOn,
  ticks,
  until,
  withStatus,
} from './webhook-fixture.ts';

const LEASES = { leaseMs: 1_000, renewMs: 100, safeMs: 700 };

describe('webhooks on PostgreSQL', { timeout: 120_000 }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await PostgresServer.start({ fsync: 'off' });
  });
  after(() => server.remove());

  async function postgresSetting(t: Parameters<typeof settingOn>[0]): Promise<Setting & { url: string }> {
    const url = await server.createLedger();
    await openFor(t, url);
    return { ...(await settingOn(t, openPostgresAccountDatabase(url))), url };
  }

  testResending(test, postgresSetting);

  test('a failed event and later events of the same end user stay pending until the failed event is resent, and every attempt is recorded', async (t) => {
    await using receiver = await Receiver.start();
    const setting = await postgresSetting(t);
    const { endpoints } = setting;
    const ids = setting.events.add('u1', 3);
    setting.events.add('u2', 3);
    receiver.answer = ({ id }, response) => withStatus(id === ids[0] ? 500 : 200, 'ok\0')({} as never, response);
    const { id } = await addEndpoint(setting, receiver.url());
    const job = setting.job({ leases: LEASES, retryDelay: () => 3_600_000 });
    await until(async () => (await endpoints.summary(ACCOUNT, id)).pending === 3, job);
    receiver.answer = withStatus(200);
    assert.equal(await endpoints.resend(ACCOUNT, id, ids[0] as string), true);
    await until(() => receiver.received.length === 7, job);
    await until(async () => (await endpoints.summary(ACCOUNT, id)).pending === 0, job);
    const { deliveries } = await endpoints.deliveries(ACCOUNT, id, { before: null, limit: 10 });
    assert.equal(deliveries.length, 7);
    assert.deepEqual(
      deliveries.filter(({ error }) => error !== null).map(({ status }) => status),
      [500],
    );
    const [latest] = deliveries;
    assert(latest !== undefined);
    assert.deepEqual(await endpoints.delivery(ACCOUNT, id, latest.id), latest);
    const page = await endpoints.deliveries(ACCOUNT, id, { before: latest.id, limit: 2 });
    assert.deepEqual(page.deliveries, deliveries.slice(1, 3));
    const { lastDeliveredAt, oldestPendingAt } = await endpoints.summary(ACCOUNT, id);
    assert(lastDeliveredAt !== null && oldestPendingAt === null);
  });

  test('endpoints can be paused, resumed, changed, tested and removed, and their secrets can be rotated', async (t) => {
    await using receiver = await Receiver.start();
    const setting = await postgresSetting(t);
    const { endpoints, database } = setting;
    receiver.answer = withStatus(410);
    setting.events.add('u1');
    const { id } = await addEndpoint(setting, receiver.url());
    const job = setting.job({ leases: LEASES });
    await until(async () => (await endpoints.find(null, id))?.paused != null, job);
    receiver.answer = withStatus(200);
    await endpoints.resume(ACCOUNT, id);
    await endpoints.setTypes(ACCOUNT, id, ['balance.low']);
    await endpoints.sendTest(ACCOUNT, id);
    assert.notEqual(await endpoints.rotate(ACCOUNT, id), null);
    await until(async () => (await endpoints.summary(ACCOUNT, id)).pending === 0, job);
    assert.deepEqual(receiver.received.map(({ body }) => JSON.parse(body).type).sort(), [
      ...['credits.added', 'credits.added', 'webhook.test'],
    ]);
    const event = { account: ACCOUNT, type: 'balance.low', at: 5, recorded_at: 5, data: '{"end_user_id":"u1"}' };
    await server.query(
      `INSERT INTO scrip.events (bucket, event, account, id, type, at, data, recorded_at)
       VALUES (3, 1, ${event.account}, 'evt_5', '${event.type}', 5, '${event.data}', 5)`,
      new URL(setting.url).pathname.slice(1),
    );
    assert.equal(await endpoints.resendRange(ACCOUNT, id, 5, 6), 1);
    assert.equal(await endpoints.resendRange(ACCOUNT, id, 6, 7), 0);
    await until(() => receiver.ids.includes('evt_5'), job);
    assert.equal((await endpoints.list(null))[0]?.accountName, 'Acme');
    assert.equal(await endpoints.pause(ACCOUNT, id), true);
    assert.equal(await endpoints.remove(ACCOUNT, id), true);
    await ticks(2, job);
    assert.deepEqual(await database.queries.selectFrom('webhook_deliveries').selectAll().execute(), []);
    const thresholds = new Thresholds(database, Date.now);
    assert.equal(await thresholds.add(ACCOUNT, { percent: 20 }), 'added');
    assert.deepEqual(
      (await thresholds.list(null)).map(({ below }) => below),
      ['20%'],
    );
    await thresholds.setExpiringDays(ACCOUNT, 3);
    assert.equal(await thresholds.expiringDays(ACCOUNT), 3);
    assert.equal(await thresholds.remove(ACCOUNT, { percent: 20 }), true);
  });

  test('two processes share the endpoints, and if one disappears, the other takes over its endpoints', async (t) => {
    await using receiver = await Receiver.start();
    const setting = await postgresSetting(t);
    for (let endpoint = 0; endpoint < 8; endpoint++) await addEndpoint(setting, receiver.url(`/${endpoint}`));
    const other = openPostgresAccountDatabase(setting.url);
    t.after(() => other[Symbol.asyncDispose]());
    const [first, second] = [setting.job({ leases: LEASES }), setting.job({ leases: LEASES, database: other })];
    const holders = async () => {
      const rows = await setting.database.queries.selectFrom('webhook_endpoints').select('leased_by').execute();
      return rows.map((row) => row.leased_by);
    };
    await until(async () => !(await holders()).includes(null), first, second);
    assert.equal(new Set(await holders()).size, 2);
    setting.events.add('u1', 10);
    await until(() => receiver.received.length >= 80, first, second);
    await ticks(5, first, second);
    assert.equal(receiver.received.length, 80);
    // From here on, the test does not run `first`, to simulate a crash of its process.
    await until(async () => new Set(await holders()).size === 1, second);
    setting.events.add('u1', 1);
    await until(() => receiver.ids.length === 11 && receiver.received.length >= 88, second);
  });
});
