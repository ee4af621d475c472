// The estimate of how many commands the store writes per millisecond.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ThroughputEstimate, WINDOW_MS } from './throughput-estimate.ts';

/** After batches of one size, one after another from 0 on. */
function estimateOf(batches: number, { size, tookMs }: { size: number; tookMs: number }): ThroughputEstimate {
  const estimate = new ThroughputEstimate();
  for (let batch = 1; batch <= batches; batch++) estimate.note(size, batch * tookMs);
  return estimate;
}

test('the throughput is unknown before the first window is over', () => {
  assert.equal(estimateOf(1, { size: 512, tookMs: 1_000 }).perMs, null);
  assert.equal(estimateOf(4, { size: 512, tookMs: WINDOW_MS / 4 }).perMs, null);
});

test('the throughput is the commands of a window per millisecond', () => {
  assert.equal(estimateOf(5, { size: 512, tookMs: WINDOW_MS / 4 }).perMs, (4 * 512) / WINDOW_MS);
  assert.equal(estimateOf(2, { size: 512, tookMs: 1_000 }).perMs, 512 / 1_000);
});

test('each window counts for half of the estimate, and all windows before it for the other half', () => {
  const estimate = estimateOf(2, { size: 512, tookMs: 512 });
  assert.equal(estimate.perMs, 1);
  estimate.note(512, 1_536);
  assert.equal(estimate.perMs, 1);
  estimate.note(1_536, 2_048);
  estimate.note(1_024, 2_560);
  assert.equal(estimate.perMs, 2);
  estimate.note(512, 3_072);
  assert.equal(estimate.perMs, 2);
  estimate.note(512, 3_584);
  assert.equal(estimate.perMs, 1.5);
});

test('once the estimate is forgotten the throughput is unknown', () => {
  const estimate = estimateOf(2, { size: 512, tookMs: 1_000 });
  estimate.forget();
  assert.equal(estimate.perMs, null);
  estimate.note(512, 5_000);
  assert.equal(estimate.perMs, null);
});
