// Tests the routes for operators: health, readiness and metrics.

import assert from 'node:assert/strict';
import { after, afterEach, before, mock, test } from 'node:test';
import { assertProblem, type Scrip, someone, startScrip } from '../running-service.ts';

let scrip: Scrip;
before(async () => {
  scrip = await startScrip();
});
afterEach(() => mock.restoreAll());
after(() => scrip.stop());

const ask = (path: string, method = 'GET') => scrip.call(method, path, { key: null });

async function metric(name: string): Promise<number> {
  const { text } = await ask('/metrics');
  const value = new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1];
  assert(value, `/metrics has no ${name}`);
  return Number(value);
}

test('while Scrip runs, /healthz and /readyz return 200', async () => {
  for (const path of ['/healthz', '/readyz']) {
    const reply = await ask(path);
    assert.deepEqual([reply.status, reply.body], [200, { status: path === '/healthz' ? 'ok' : 'ready' }]);
    const head = await ask(path, 'HEAD');
    assert.deepEqual([head.status, head.text], [200, '']);
  }
});

test('while the store fails, /readyz returns 503 and /healthz still returns 200', async () => {
  mock.method(scrip.service.stores.ledger, 'trouble', () => 'the disk is full');
  const reply = await ask('/readyz');
  assertProblem(reply, 'StoreUnavailable', 503);
  assert.equal(reply.headers['retry-after'], '1');
  assert.equal((await ask('/healthz')).status, 200);
  assert.equal(await metric('scrip_store_ready'), 0);
});

test('while a part of the ledger cannot be reached, /readyz names that part and returns 200', async () => {
  mock.method(scrip.service.stores.ledger, 'unreachable', () => ['shard 102008']);
  const { status, body } = await ask('/readyz');
  assert.deepEqual([status, body], [200, { status: 'ready', unreachable: ['shard 102008'] }]);
  assert.equal(await metric('scrip_store_ready'), 1);
  assert.equal(await metric('scrip_store_unreachable_shards'), 1);
});

test('/metrics uses the Prometheus text format', async () => {
  const reply = await ask('/metrics');
  assert.equal(reply.status, 200);
  assert.match(reply.headers['content-type'] ?? '', /^text\/plain; version=/);
  const sample = /^[a-z_:][a-z0-9_:]*(\{[^}]*\})? (-?[0-9.e+-]+|NaN|\+Inf)$/i;
  const lines = reply.text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  assert(lines.length > 10);
  for (const line of lines) assert.match(line, sample);
});

test('/metrics counts all processed commands, and counts the refused ones separately', async () => {
  const names = ['scrip_commands_total', 'scrip_refusals_total', 'scrip_batch_commands_count'];
  const values = () => Promise.all(names.map(metric));
  const before = await values();
  const user = someone();
  for (const amount of [1, 2, 3]) await scrip.post('/add', { end_user_id: user, amount });
  for (const amount of [6, 1]) await scrip.post('/subtract', { end_user_id: user, amount });
  await scrip.post('/subtract', { end_user_id: user, amount: 0 });
  const after = await values();
  const grown = after.map((value, index) => value - (before[index] as number));
  assert.deepEqual(grown, [5, 1, 5]);
  assert.equal(await metric('scrip_queue_commands'), 0);
  assert.equal(await metric('scrip_store_ready'), 1);
  assert((await metric('scrip_commit_duration_seconds_sum')) > 0);
});

test('/metrics identifies accounts only by number and API keys only by ID, and contains no end user IDs', async () => {
  const user = someone();
  await scrip.post('/start-cycle', { end_user_id: user, amount: 5 });
  await scrip.balance(user);
  const { text } = await ask('/metrics');
  for (const secret of [user, scrip.writeKey, 'Acme']) assert(!text.toLowerCase().includes(secret.toLowerCase()));
  assert.doesNotMatch(text, /[0-9a-f]{8}-[0-9a-f]{4}-/i);
});
