// Tests that a fair queue gives each account an equal share of the dequeued items.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FairQueue } from './fair-queue.ts';

function queueOf(...items: [account: number, item: string][]): FairQueue<string> {
  const queue = new FairQueue<string>();
  for (const [account, item] of items) queue.push(account, item);
  return queue;
}

test('if items are taken one at a time, a fair queue alternates between accounts and keeps the items of each account in order', () => {
  const queue = queueOf([1, 'a1'], [1, 'a2'], [1, 'a3'], [2, 'b1'], [3, 'c1'], [2, 'b2']);
  const taken = Array.from({ length: 7 }, () => queue.takeOne());
  assert.deepEqual(taken, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', undefined]);
  assert.equal(queue.length, 0);
});

test('an account that gets nothing in one call to a fair queue is served first in the next call', () => {
  const queue = queueOf([1, 'a1'], [2, 'b1'], [3, 'c1'], [1, 'a2']);
  assert.deepEqual(queue.take(2), ['a1', 'b1']);
  assert.equal(queue.length, 2);
  assert.deepEqual(queue.take(2), ['c1', 'a2']);
});

test('a fair queue gives the unused share of one account to the others', () => {
  const queue = queueOf([1, 'a1'], [1, 'a2'], [1, 'a3'], [2, 'b1']);
  assert.deepEqual(queue.take(4), ['a1', 'a2', 'b1', 'a3']);
  assert.equal(queue.length, 0);
});

test('an emptied fair queue can be filled again', () => {
  const queue = queueOf([1, 'a1'], [2, 'b1']);
  queue.take(5);
  queue.push(2, 'b2');
  assert.deepEqual([queue.length, queue.take(5)], [1, ['b2']]);
});
