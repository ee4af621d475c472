// The line in which accounts take turns, taken from one at a time.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FairQueue } from './fair-queue.ts';

function lineOf(...items: [account: number, item: string][]): FairQueue<string> {
  const line = new FairQueue<string>();
  for (const [account, item] of items) line.push(account, item);
  return line;
}

const anyone = () => true;

test('one at a time, accounts take turns, and each has its own in order', () => {
  const line = lineOf([1, 'a1'], [1, 'a2'], [1, 'a3'], [2, 'b1'], [3, 'c1'], [2, 'b2']);
  const taken = Array.from({ length: 7 }, () => line.takeOne(anyone));
  assert.deepEqual(taken, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', undefined]);
  assert.deepEqual([line.length, line.accounts], [0, 0]);
});

test('who may not take is passed over, and keeps what waits', () => {
  const line = lineOf([1, 'a1'], [2, 'b1'], [2, 'b2']);
  const notFirst = (account: number) => account !== 1;
  assert.deepEqual([line.takeOne(notFirst), line.takeOne(notFirst), line.takeOne(notFirst)], ['b1', 'b2', undefined]);
  assert.deepEqual([line.length, line.lengthOf(1), line.lengthOf(2)], [1, 1, 0]);
  assert.equal(line.takeOne(anyone), 'a1');
});

test('of more accounts than there are places the first get one each, and the others come next', () => {
  const line = lineOf([1, 'a1'], [2, 'b1'], [3, 'c1'], [1, 'a2']);
  assert.deepEqual(line.take(2), ['a1', 'b1']);
  assert.deepEqual([line.length, line.accounts], [2, 2]);
  assert.deepEqual(line.take(2), ['c1', 'a2']);
});

test('whose whole share is taken waits no more', () => {
  const line = lineOf([1, 'a1'], [1, 'a2'], [2, 'b1'], [2, 'b2']);
  assert.deepEqual(line.take(4), ['a1', 'a2', 'b1', 'b2']);
  assert.deepEqual([line.length, line.accounts, line.lengthOf(1)], [0, 0, 0]);
});
