// The queue of slots against an array, through rings that grow while they are turned.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '../../../test/load/random.ts';
import { SlotQueue } from './slot-queue.ts';
import { NO_SLOT } from './user-table.ts';

const STEPS = 20_000;
const SLOTS = 5_000;

test('slots leave in the order in which they came, each of them once', () => {
  const random = new Random(5);
  const queue = new SlotQueue();
  const expected: number[] = [];
  for (let step = 0; step < STEPS; step++) {
    // It fills, is emptied by half, and fills again.
    const isFilling = Math.floor(step / 4_000) % 2 === 0;
    if (random.below(4) < (isFilling ? 3 : 1)) {
      const slot = random.below(SLOTS);
      queue.push(slot);
      if (!expected.includes(slot)) expected.push(slot);
    } else assert.equal(queue.shift(), expected.shift() ?? NO_SLOT, `step ${step}`);
  }
  assert(expected.length > 1_024, 'it has grown');
  for (const slot of expected) assert.equal(queue.shift(), slot);
  assert.equal(queue.shift(), NO_SLOT);
});
