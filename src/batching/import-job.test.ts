// Tests how the import job waits for further batches of a running import, and how it stops.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { importJob } from './import-job.ts';

function importOf(batches: number, gapMs: number) {
  const one = {
    granted: 0,
    readyAt: 0,
    async grantNext() {
      if (one.granted === batches || performance.now() < one.readyAt) return false;
      one.granted += 1;
      one.readyAt = performance.now() + gapMs;
      return true;
    },
  };
  return one;
}

test('a run of the import job imports all rows of a running import, and ends immediately if no import is running', async () => {
  const running = importOf(5, 20);
  await importJob(running, assert.ifError).tick();
  assert.equal(running.granted, 5);
  const began = performance.now();
  await importJob(running, assert.ifError).tick();
  assert(performance.now() - began < 500);
});

test('stopping the import job ends its run between two batches', async () => {
  const running = importOf(Number.POSITIVE_INFINITY, 1);
  const job = importJob(running, assert.ifError);
  const run = job.tick();
  await sleep(50);
  await job.stop();
  await run;
  const { granted } = running;
  assert(granted > 0);
  await sleep(20);
  assert.equal(running.granted, granted);
});
