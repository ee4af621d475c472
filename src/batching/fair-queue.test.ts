// Tests that a fair queue gives each account an equal share of the dequeued items.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FairQueue } from './fair-queue.ts';

function queueOf(...items: [account: number, item: string][]): FairQueue<string> {
  const queue = new FairQueue<string>();
  for (const [account, item] of items) queue.push(account, item);
  return queue;
}

test('a fair queue alternates between accounts and keeps the items of each account in order', () => {
  const queue = queueOf([1, 'a1'], [1, 'a2'], [1, 'a3'], [2, 'b1'], [3, 'c1'], [2, 'b2']);
  const taken = Array.from({ length: 7 }, () => queue.take());
  assert.deepEqual(taken, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', undefined]);
  assert.equal(queue.length, 0);
});

test('an emptied fair queue can be filled again', () => {
  const queue = queueOf([1, 'a1'], [2, 'b1']);
  while (queue.take() !== undefined);
  queue.push(2, 'b2');
  assert.deepEqual([queue.length, queue.take(), queue.take()], [1, 'b2', undefined]);
});
