// Shares of a pool: half for one account, a third each for two, and room for the next one.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FairShare } from './fair-share.ts';

/** How much the account gets, one at a time. */
function takeAll(pool: FairShare, account: number): number {
  let taken = 0;
  for (; pool.hasRoom(account, 1); taken++) pool.take(account, 1);
  return taken;
}

test('an account that is alone gets half of the pool, and the next ones half of what is left', () => {
  const pool = new FairShare(1_000);
  assert.deepEqual(
    [1, 2, 3].map((account) => takeAll(pool, account)),
    [500, 250, 125],
  );
  assert.equal(pool.total, 875);
});

test('accounts that release and take again come to equal shares', () => {
  const pool = new FairShare(1_000);
  takeAll(pool, 1);
  for (let round = 0; round < 1_000; round++)
    for (const account of [1, 2]) {
      if (pool.heldBy(account) > 0) pool.release(account, 1);
      takeAll(pool, account);
    }
  assert(Math.abs(pool.heldBy(1) - pool.heldBy(2)) <= 2, `${pool.heldBy(1)} and ${pool.heldBy(2)}`);
});

test('what an account releases is free for others', () => {
  const pool = new FairShare(10);
  assert.equal(pool.hasRoom(1, 6), false);
  pool.take(1, 5);
  assert.equal(pool.hasRoom(2, 5), false);
  pool.release(1, 5);
  assert.deepEqual([pool.total, pool.heldBy(1)], [0, 0]);
  assert(pool.hasRoom(2, 5));
});
