// Drops responses of a real server, and tests that a write takes effect once even if the client retries the write.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  ConnectionFailed,
  IdempotencyKeyReused,
  InsufficientFunds,
  Scrip,
  type ScripOptions,
} from '../../client/src/scrip.ts';
import { type Scrip as Service, someone, startScrip } from '../http/running-service.ts';
import { CLIENT, runNode } from './client-package.ts';

let service: Service;
before(async () => {
  service = await startScrip();
});
after(() => service.stop());

function client(lost: number, options: Partial<ScripOptions> = {}): { scrip: Scrip; replayed: (string | null)[] } {
  const replayed: (string | null)[] = [];
  let seen = 0;
  const lossy: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    const copy = new Response(await response.text(), response);
    seen += 1;
    if (seen <= lost) throw new TypeError('the response was lost');
    replayed.push(response.headers.get('idempotent-replayed'));
    return copy;
  };
  const scrip = new Scrip({ apiKey: service.writeKey, baseUrl: service.url, fetch: lossy, ...options });
  return { scrip, replayed };
}

async function amountsOf(end_user_id: string): Promise<number[]> {
  return (await service.transactions(end_user_id)).map(({ amount }) => amount);
}

test('a write whose response is lost is applied once, and the retry gets the same response', async () => {
  const end_user_id = someone();
  const added = client(2);
  const { transactionId, amount } = await added.scrip.add({ end_user_id, amount: 100 });
  const [listed] = await service.transactions(end_user_id);
  assert.deepEqual([transactionId, amount], [listed?.transaction_id, 100]);
  assert.deepEqual(added.replayed, ['true']);
  await client(1).scrip.subtract({ end_user_id, amount: 30 });
  const cycle = await client(3).scrip.startCycle({ end_user_id, amount: 1000 });
  const replacing = await client(1).scrip.startCycle({ end_user_id, amount: 5000, on_active: 'replace' });
  const stopped = await client(1).scrip.stopCycle({ end_user_id });
  assert.deepEqual([cycle.amount, replacing.amount, stopped.status], [1000, 5000, 'canceled']);
  assert.deepEqual(await amountsOf(end_user_id), [5000, 1000, -30, 100]);
});

test('if the response to a refused write is lost, a retry gets the same refusal, even if credits have been added since then', async () => {
  const end_user_id = someone();
  const key = { idempotencyKey: 'image 1' };
  await assert.rejects(client(1, { retries: 0 }).scrip.subtract({ end_user_id, amount: 5 }, key), ConnectionFailed);
  await client(0).scrip.add({ end_user_id, amount: 100 });
  const again = client(0);
  await assert.rejects(again.scrip.subtract({ end_user_id, amount: 5 }, key), InsufficientFunds);
  assert.deepEqual(again.replayed, ['true']);
  assert.deepEqual(await amountsOf(end_user_id), [100]);
});

test('a hundred concurrent calls with ten idempotency keys make ten writes', async () => {
  const end_user_id = someone();
  const calls = Array.from({ length: 100 }, (_, index) =>
    client(index % 3).scrip.add({ end_user_id, amount: 1 + (index % 10) }, { idempotencyKey: `call ${index % 10}` }),
  );
  await Promise.all(calls);
  assert.deepEqual(
    (await amountsOf(end_user_id)).sort((one, other) => one - other),
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
  );
});

test('an idempotency key can be reused for another end user, but not for a different request for the same end user', async () => {
  const key = { idempotencyKey: 'payment pay_1' };
  const { scrip } = client(0);
  const [end_user_id, other] = [someone(), someone()];
  await scrip.add({ end_user_id, amount: 100 }, key);
  const error = await scrip.add({ end_user_id, amount: 200 }, key).catch((error) => error);
  assert(error instanceof IdempotencyKeyReused, String(error));
  assert.deepEqual([error.status, error.idempotencyKey], [422, 'payment pay_1']);
  await assert.rejects(scrip.subtract({ end_user_id, amount: 100 }, key), IdempotencyKeyReused);
  await scrip.add({ end_user_id: other, amount: 200 }, key);
  assert.deepEqual([await amountsOf(end_user_id), await amountsOf(other)], [[100], [200]]);
});

test('the bundles.ts example prints the expected lines', async () => {
  const env = { SCRIP_URL: service.url, SCRIP_KEY: service.writeKey };
  const program = join(CLIENT, 'examples/bundles.ts');
  const output = await runNode({ cwd: CLIENT, env }, '--conditions=scrip-source', program);
  const lines = ['4800 credits are left.', 'spent 700', 'bought 5000', 'bought 500'];
  assert.deepEqual(output.trimEnd().split('\n'), lines);
});
