// Tests the estimate of how many commands the store writes per millisecond.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ThroughputEstimate, WINDOW_MS } from './throughput-estimate.ts';

function estimateOf(batches: number, { size, tookMs }: { size: number; tookMs: number }): ThroughputEstimate {
  const estimate = new ThroughputEstimate();
  for (let batch = 1; batch <= batches; batch++) estimate.note(size, batch * tookMs);
  return estimate;
}

test('the throughput estimate is unknown until its first window ends', () => {
  assert.equal(estimateOf(1, { size: 512, tookMs: 1_000 }).perMs, null);
  assert.equal(estimateOf(4, { size: 512, tookMs: WINDOW_MS / 4 }).perMs, null);
});

test('the throughput estimate is the number of commands per millisecond in a window', () => {
  assert.equal(estimateOf(5, { size: 512, tookMs: WINDOW_MS / 4 }).perMs, (4 * 512) / WINDOW_MS);
  assert.equal(estimateOf(2, { size: 512, tookMs: 1_000 }).perMs, 512 / 1_000);
});

test('the latest window makes up half of the throughput estimate, and all earlier windows the other half', () => {
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

test('after a reset, the throughput estimate is unknown', () => {
  const estimate = estimateOf(2, { size: 512, tookMs: 1_000 });
  estimate.forget();
  assert.equal(estimate.perMs, null);
  estimate.note(512, 5_000);
  assert.equal(estimate.perMs, null);
});
