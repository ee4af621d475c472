// Tests the sweep that deletes expired idempotency records: its limit, how it stops, and how it reports failures.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ledgerStoreOf } from '../../test/batching/stalled-store.ts';
import type { IdempotencyRetention } from '../store/ledger-store.ts';
import { StoreFault } from '../store/store-fault.ts';
import { idempotencySweep } from './idempotency-sweep.ts';

const RETENTION = { grantsMs: 30 * 86_400_000, othersMs: 86_400_000 };

function begin(...steps: (boolean | StoreFault)[]) {
  const calls: IdempotencyRetention[] = [];
  const troubles: unknown[] = [];
  const store = ledgerStoreOf({
    async deleteExpiredRecords(retention) {
      calls.push(retention);
      const step = steps.shift() ?? false;
      if (step instanceof StoreFault) throw step;
      return step;
    },
  });
  return { calls, troubles, sweep: idempotencySweep(store, RETENTION, (error) => troubles.push(error)) };
}

test('a sweep of idempotency records continues until there are no more expired records', async () => {
  const { calls, sweep } = begin(true, true, false);
  await sweep.tick();
  assert.deepEqual(calls, [RETENTION, RETENTION, RETENTION]);
});

test('a sweep of idempotency records runs at most ten deletions, and the next sweep continues', async () => {
  const { calls, sweep } = begin(...Array<boolean>(15).fill(true));
  await sweep.tick();
  assert.equal(calls.length, 10);
  await sweep.tick();
  assert.equal(calls.length, 16);
});

test('when a sweep of idempotency records is stopped, it finishes the running deletion and does not start another', async () => {
  const { calls, sweep } = begin(...Array<boolean>(15).fill(true));
  const run = sweep.tick();
  await sweep.stop();
  await run;
  assert.equal(calls.length, 1);
});

test('when several consecutive sweeps of idempotency records fail, only the first failure is reported', async () => {
  const fault = new StoreFault('StoreUnavailable', 'for the test');
  const { calls, troubles, sweep } = begin(fault, fault, false, fault);
  for (const reported of [1, 1, 1, 2]) {
    await sweep.tick();
    assert.equal(troubles.length, reported);
  }
  assert.equal(calls.length, 4, 'a sweep ends when a deletion fails');
});
