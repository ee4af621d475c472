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

test('a process at half load counts as busy if many requests wait, until a second after its latest batch', async () => {
  const meter = meterAt(0.5);
  await sleep(250);
  for (let count = 0; count < 20; count++) meter.noteWaiting(10, performance.now());
  assert.equal(meter.isBusy(), false, 'few waiting requests');
  for (let count = 0; count < 20; count++) meter.noteWaiting(32, performance.now());
  assert.equal(meter.isBusy(), true, 'many waiting requests');
  for (let count = 0; count < 20; count++) meter.noteWaiting(32, performance.now() - 1_001);
  assert.equal(meter.isBusy(), false, 'the latest batch was a second ago');
});

test('a process with little load is not busy even if many requests wait', async () => {
  const meter = meterAt(0.2);
  await sleep(250);
  for (let count = 0; count < 20; count++) meter.noteWaiting(32, performance.now());
  assert.equal(meter.isBusy(), false);
});

function meterAt(utilization: number): LoadMeter {
  return new LoadMeter(() => ({ idle: 0, active: 0, utilization }));
}
