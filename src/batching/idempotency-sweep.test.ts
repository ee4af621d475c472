// The sweep of old answers against a store that says how many it forgot: that it goes on while there are more, that a
// tick does not hold up writers for long, and that trouble is told when it begins.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Store, StoreFault } from '../store/store.ts';
import { idempotencySweep } from './idempotency-sweep.ts';

const KEPT_MS = 86_400_000;

/** @param forgets what the store forgets each time that it is asked; then nothing more */
function begin(...forgets: (number | StoreFault)[]) {
  const asked: number[] = [];
  const troubles: unknown[] = [];
  const store = {
    async deleteExpiredRecords(ageMs: number) {
      asked.push(ageMs);
      const forgot = forgets.shift() ?? 0;
      if (forgot instanceof StoreFault) throw forgot;
      return forgot;
    },
  } as unknown as Store;
  return { asked, troubles, sweep: idempotencySweep(store, KEPT_MS, (error) => troubles.push(error)) };
}

test('a tick asks until there is nothing more to forget, each time for what is older than answers are kept', async () => {
  const { asked, sweep } = begin(500, 500, 3);
  await sweep.tick();
  assert.deepEqual(asked, [KEPT_MS, KEPT_MS, KEPT_MS, KEPT_MS]);
});

test('where there is nothing to forget a tick asks once', async () => {
  const { asked, sweep } = begin();
  await sweep.tick();
  assert.equal(asked.length, 1);
});

test('of very many a tick forgets ten steps, and the next tick goes on', async () => {
  const { asked, sweep } = begin(...Array<number>(15).fill(500));
  await sweep.tick();
  assert.equal(asked.length, 10);
  await sweep.tick();
  assert.equal(asked.length, 16);
});

test('trouble is told when it begins, not again while it lasts, and again when it comes back', async () => {
  const fault = new StoreFault('StoreUnavailable', 'for the test');
  const { asked, troubles, sweep } = begin(fault, fault, 0, fault);
  for (const told of [1, 1, 1, 2]) {
    await sweep.tick();
    assert.equal(troubles.length, told);
  }
  assert.equal(asked.length, 4, 'a tick that fails asks no more');
});
