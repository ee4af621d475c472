// Tests when a process counts as busy.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { LoadMeter } from './load.ts';

test('a process counts as busy if its load has not been measured for a second', async () => {
  const meter = new LoadMeter();
  await sleep(1_050);
  assert.equal(meter.isBusy(), true);
});

test('a process counts as busy after a second in which its event loop was never idle', async () => {
  const meter = new LoadMeter();
  assert.equal(meter.isBusy(), false);
  const until = performance.now() + 1_100;
  while (performance.now() < until) {
    // Occupies the event loop.
  }
  await sleep(0);
  assert.equal(meter.isBusy(), true);
});
