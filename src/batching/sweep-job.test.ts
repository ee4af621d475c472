// Tests the jobs that delete expired rows: their limit, how they stop, and how they report failures.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StoreFault } from '../store/store-fault.ts';
import { sweepJob } from './sweep-job.ts';

function begin(...steps: (boolean | StoreFault)[]) {
  const troubles: unknown[] = [];
  const counts = { deletions: 0 };
  const deleteExpired = async () => {
    counts.deletions++;
    const step = steps.shift() ?? false;
    if (step instanceof StoreFault) throw step;
    return step;
  };
  return { counts, troubles, sweep: sweepJob(deleteExpired, (error) => troubles.push(error)) };
}

test('a sweep continues until there are no more expired rows', async () => {
  const { counts, sweep } = begin(true, true, false);
  await sweep.tick();
  assert.equal(counts.deletions, 3);
});

test('a sweep runs at most ten deletions, and the next sweep continues', async () => {
  const { counts, sweep } = begin(...Array<boolean>(15).fill(true));
  await sweep.tick();
  assert.equal(counts.deletions, 10);
  await sweep.tick();
  assert.equal(counts.deletions, 16);
});

test('when a sweep is stopped, it finishes the running deletion and does not start another', async () => {
  const { counts, sweep } = begin(...Array<boolean>(15).fill(true));
  const run = sweep.tick();
  await sweep.stop();
  await run;
  assert.equal(counts.deletions, 1);
});

test('when several consecutive sweeps fail, only the first failure is reported', async () => {
  const fault = new StoreFault('StoreUnavailable', 'for the test');
  const { counts, troubles, sweep } = begin(fault, fault, false, fault);
  for (const reported of [1, 1, 1, 2]) {
    await sweep.tick();
    assert.equal(troubles.length, reported);
  }
  assert.equal(counts.deletions, 4, 'a sweep ends when a deletion fails');
});
