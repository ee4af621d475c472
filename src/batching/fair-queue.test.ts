// The queue that is fair to accounts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FairQueue } from './fair-queue.ts';

function queueOf(...items: [account: number, item: string][]): FairQueue<string> {
  const queue = new FairQueue<string>();
  for (const [account, item] of items) queue.push(account, item);
  return queue;
}

test('a fair queue that gives out one item at a time alternates between accounts, and keeps the order of each', () => {
  const queue = queueOf([1, 'a1'], [1, 'a2'], [1, 'a3'], [2, 'b1'], [3, 'c1'], [2, 'b2']);
  const taken = Array.from({ length: 7 }, () => queue.takeOne());
  assert.deepEqual(taken, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', undefined]);
  assert.equal(queue.length, 0);
});

test('when a fair queue has more accounts than are taken, the others come first the next time', () => {
  const queue = queueOf([1, 'a1'], [2, 'b1'], [3, 'c1'], [1, 'a2']);
  assert.deepEqual(queue.take(2), ['a1', 'b1']);
  assert.equal(queue.length, 2);
  assert.deepEqual(queue.take(2), ['c1', 'a2']);
});

test('a fair queue gives what one account does not use of its share to the others', () => {
  const queue = queueOf([1, 'a1'], [1, 'a2'], [1, 'a3'], [2, 'b1']);
  assert.deepEqual(queue.take(4), ['a1', 'a2', 'b1', 'a3']);
  assert.equal(queue.length, 0);
});

test('a fair queue that was emptied can be filled again', () => {
  const queue = queueOf([1, 'a1'], [2, 'b1']);
  queue.take(5);
  queue.push(2, 'b2');
  assert.deepEqual([queue.length, queue.take(5)], [1, ['b2']]);
});
