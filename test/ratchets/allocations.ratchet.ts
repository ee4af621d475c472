// Counts the bytes that V8 allocates on the main thread for one request. To make the count repeatable, optimization is
// off and requests are sent one at a time.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { getHeapStatistics, type HeapInfo, setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { BALANCE_SMALL, endUserId, SUBTRACT_SMALL, type Workload } from '../../bench/workload.ts';
import { startScrip } from '../http/running-service.ts';
import type { ClientData } from './closed-loop-worker.ts';

const USERS = 100;
const WARM_UP_REQUESTS = 200;
const REQUESTS = 400;
/** The number of measurements. The test uses the lowest result, because V8 sometimes allocates memory for itself. */
const STRETCHES = 5;

const BOUNDS: readonly { readonly what: string; readonly workload: Workload; readonly bytesMax: number }[] = [
  { what: 'a subtraction', workload: { ...SUBTRACT_SMALL, users: USERS }, bytesMax: 31_000 },
  { what: 'a balance query', workload: { ...BALANCE_SMALL, users: USERS }, bytesMax: 26_500 },
];

setFlagsFromString('--no-opt');
setFlagsFromString('--no-maglev');
setFlagsFromString('--no-sparkplug');

const allocated = () => (getHeapStatistics() as HeapInfo & { total_allocated_bytes: number }).total_allocated_bytes;

for (const { what, workload, bytesMax } of BOUNDS) {
  test(`${what} allocates a bounded number of bytes on the main thread`, async (t) => {
    // Mock the timers, so that no background job runs.
    t.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
    const scrip = await startScrip();
    t.after(() => scrip.stop());
    const users = Array.from({ length: USERS }, (_, number) => endUserId(number));
    await Promise.all(users.map((end_user_id) => scrip.post('/add', { end_user_id, amount: 1_000_000 })));
    const workerData: ClientData = { port: scrip.port, secret: scrip.writeKey, workload };
    const client = new Worker(new URL('./closed-loop-worker.ts', import.meta.url), { workerData });
    t.after(() => client.terminate());
    const answeredOf = async (requests: number) => {
      client.postMessage(requests);
      const [answered] = (await once(client, 'message')) as [number];
      return answered;
    };
    assert.equal(await answeredOf(WARM_UP_REQUESTS), WARM_UP_REQUESTS);
    let bytes = Number.POSITIVE_INFINITY;
    for (let stretch = 0; stretch < STRETCHES; stretch++) {
      const before = allocated();
      assert.equal(await answeredOf(REQUESTS), REQUESTS);
      bytes = Math.min(bytes, (allocated() - before) / REQUESTS);
    }
    client.postMessage(0);
    t.diagnostic(`${Math.round(bytes)} bytes a request`);
    assert(bytes > 500, 'bytes are counted');
    assert(bytes <= bytesMax, `${bytes} bytes a request`);
  });
}
