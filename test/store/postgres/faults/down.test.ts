// PostgreSQL stops for a while, but the service keeps running: requests fail quickly, the fault is logged once, and the
// service recovers by itself.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { hashOf } from '../../../../src/accounts/api-key.ts';
import { assertProblem, eventually, type Reply, type Scrip, someone } from '../../../http/running-service.ts';
import { PostgresServer } from '../postgres-server.ts';
import { startScripOn } from '../scrip-on-postgres.ts';

const ANSWER_MS_MAX = 10_000;
const RECOVERY_MS_MAX = 30_000;

let server: PostgresServer;
let scrip: Scrip;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
  ({ scrip } = await startScripOn(server));
});
after(async () => {
  await scrip?.stop();
  await server.remove();
});

function add(endUser: string): Promise<Reply> {
  return scrip.post('/add', { end_user_id: endUser, amount: 5 });
}

function logged(message: string): number {
  return scrip.log.filter((line) => JSON.parse(line).msg === message).length;
}

async function assertUnavailable(request: Promise<Reply>): Promise<void> {
  const started = performance.now();
  assertProblem(await request, 'StoreUnavailable', 503);
  const tookMs = performance.now() - started;
  assert(tookMs < ANSWER_MS_MAX, `it took ${tookMs} ms`);
}

for (const mode of ['fast', 'immediate'] as const) {
  test(`if PostgreSQL stops (${mode}), requests fail with StoreUnavailable, and the service recovers when PostgreSQL is back`, async (t) => {
    const ada = someone();
    const [failures, recoveries] = [logged('writes are failing'), logged('writes are succeeding again')];
    const rounds = logged('storing due renewals failed');
    assert.equal((await add(ada)).status, 200);
    // Let authentication succeed for the first request after the stop, so that the request fails in the ledger.
    const { keys } = scrip.service.stores;
    const key = await keys.find(hashOf(scrip.writeKey));
    const find = t.mock.method(keys, 'find', async () => key);
    await server.down(mode);
    await assertUnavailable(add(ada));
    find.mock.restore();
    for (let time = 0; time < 12; time++) {
      await assertUnavailable(add(ada));
      await assertUnavailable(scrip.get('/get-active-balance', { end_user_id: ada }));
      await assertUnavailable(scrip.get('/get-all-user-transactions', { end_user_id: ada }));
      await sleep(200);
    }
    assert.equal((await scrip.get('/readyz')).status, 503);
    assert.equal((await scrip.get('/healthz')).status, 200, 'the service itself is alive');
    assert.equal(logged('writes are failing') - failures, 1);
    assert.equal(logged('writes are succeeding again') - recoveries, 0);

    await server.up();
    const isBack = performance.now();
    await eventually(async () => (await scrip.get('/readyz')).status === 200, 'ready again', RECOVERY_MS_MAX);
    await eventually(async () => (await add(ada)).status === 200, 'writes work again', RECOVERY_MS_MAX);
    t.diagnostic(`recovery within ${Math.round(performance.now() - isBack)} ms`);
    assert.equal((await scrip.balance(ada)).active_balance, 10, 'failed requests had no effect');
    assert.equal(logged('writes are failing') - failures, 1, 'the fault is logged once, not for each request');
    assert.equal(logged('writes are succeeding again') - recoveries, 1);
    assert(logged('storing due renewals failed') - rounds <= 1, 'failed renewals are logged once, not every second');
  });
}
