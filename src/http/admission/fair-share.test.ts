// Tests how accounts share a resource: one account can use half of it, and a new account always gets room.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FairShare } from './fair-share.ts';

function takeAll(pool: FairShare, account: number): number {
  let taken = 0;
  for (; pool.hasRoom(account, 1); taken++) pool.take(account, 1);
  return taken;
}

test('the first account gets half of a shared resource, and each further account gets half of the rest', () => {
  const pool = new FairShare(1_000);
  assert.deepEqual(
    [1, 2, 3].map((account) => takeAll(pool, account)),
    [500, 250, 125],
  );
  assert.equal(pool.total, 875);
});

test('when accounts repeatedly release and take units of a shared resource, their shares become equal', () => {
  const pool = new FairShare(1_000);
  takeAll(pool, 1);
  for (let round = 0; round < 1_000; round++)
    for (const account of [1, 2]) {
      if (pool.heldBy(account) > 0) pool.release(account, 1);
      takeAll(pool, account);
    }
  assert(Math.abs(pool.heldBy(1) - pool.heldBy(2)) <= 2, `${pool.heldBy(1)} and ${pool.heldBy(2)}`);
});

test('units that an account releases to a shared resource are available to other accounts', () => {
  const pool = new FairShare(10);
  assert.equal(pool.hasRoom(1, 6), false);
  pool.take(1, 5);
  assert.equal(pool.hasRoom(2, 5), false);
  pool.release(1, 5);
  assert.deepEqual([pool.total, pool.heldBy(1)], [0, 0]);
  assert(pool.hasRoom(2, 5));
});
