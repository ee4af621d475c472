// How fast the store is, from what it does while more is waiting than it takes at once.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ThroughputEstimate, WINDOW_MS } from './throughput-estimate.ts';

/** Batches, each of which takes so long; the first ends at that time. */
function paceOf(batches: number, { size, tookMs }: { size: number; tookMs: number }): ThroughputEstimate {
  const pace = new ThroughputEstimate();
  for (let batch = 1; batch <= batches; batch++) pace.note(size, batch * tookMs);
  return pace;
}

test('nothing is known before a window is over', () => {
  assert.equal(paceOf(1, { size: 512, tookMs: 1_000 }).perMs, null);
  assert.equal(paceOf(4, { size: 512, tookMs: WINDOW_MS / 4 }).perMs, null);
});

test('it is what was done in the window, by the time that it took', () => {
  assert.equal(paceOf(5, { size: 512, tookMs: WINDOW_MS / 4 }).perMs, (4 * 512) / WINDOW_MS);
  assert.equal(paceOf(2, { size: 512, tookMs: 1_000 }).perMs, 512 / 1_000);
});

test('what was before counts for half, and half of that with the next window', () => {
  const pace = paceOf(2, { size: 512, tookMs: 512 });
  assert.equal(pace.perMs, 1);
  pace.note(512, 1_536);
  assert.equal(pace.perMs, 1);
  pace.note(1_536, 2_048);
  pace.note(1_024, 2_560);
  assert.equal(pace.perMs, 2);
  pace.note(512, 3_072);
  assert.equal(pace.perMs, 2);
  pace.note(512, 3_584);
  assert.equal(pace.perMs, 1.5);
});

test('once it is forgotten nothing is known', () => {
  const pace = paceOf(2, { size: 512, tookMs: 1_000 });
  pace.forget();
  assert.equal(pace.perMs, null);
  pace.note(512, 5_000);
  assert.equal(pace.perMs, null);
});
