// Group commit on a store with several lanes: that an end user stays in one, that no more lanes write at once than the
// store takes, and that each has its turn.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { amountsOf, StalledStore, subtraction } from '../../test/batching/stalled-store.ts';
import type { Lanes, Store } from '../store/store.ts';
import { GroupCommit } from './group-commit.ts';

/** The last digit of an end user is its lane. */
class LanedStore extends StalledStore {
  override readonly lanes: Lanes;

  constructor(count: number, atOnce: number) {
    super();
    this.lanes = { count, atOnce, of: ({ endUser }) => Number(endUser.at(-1)) };
    // One that writes no batches together need not say so.
    Object.assign(this, { isJoining: undefined });
  }
}

function begin(count: number, atOnce: number) {
  const store = new LanedStore(count, atOnce);
  const commit = new GroupCommit(store as unknown as Store);
  const submit = (lane: number, amount: number) => commit.submit(subtraction(amount, `user ${lane}`), () => {});
  return { store, commit, submit };
}

test('lanes write beside each other, each what is its own', async () => {
  const { store, submit } = begin(2, 2);
  for (const [lane, amount] of [
    [0, 1],
    [1, 2],
    [0, 3],
  ] as const)
    submit(lane, amount);
  await nextTurn();
  assert.deepEqual(store.batches.map(amountsOf), [[1, 3], [2]]);
});

test('of lanes that all have something waiting no more write at once than the store takes, and all have their turn', async () => {
  const { store, submit } = begin(3, 1);
  for (const round of [0, 1, 2, 3]) for (const lane of [0, 1, 2]) submit(lane, 10 * lane + round);
  await nextTurn();
  const lanes: number[] = [];
  for (let batch = 0; batch < 9; batch++) {
    assert.equal(store.batches.length, batch + 1, 'one at a time');
    const [amount] = amountsOf(store.batch(batch)) as number[];
    const lane = Math.floor((amount as number) / 10);
    lanes.push(lane);
    submit(lane, 10 * lane);
    store.batch(batch).finish();
    await nextTurn();
  }
  for (const lane of [0, 1, 2]) assert.equal(lanes.filter((one) => one === lane).length, 3, `${lanes}`);
});

test('a lane that has two batches under way is still writing when the first of them is durable', async () => {
  const { store, submit } = begin(2, 1);
  submit(0, 1);
  await nextTurn();
  submit(0, 2);
  store.batch(0).decide();
  submit(1, 3);
  store.batch(0).finish();
  await nextTurn();
  assert.deepEqual(store.batches.map(amountsOf), [[1], [2]]);
  store.batch(1).finish();
  await nextTurn();
  assert.deepEqual(store.batches.map(amountsOf), [[1], [2], [3]]);
});

test('drained waits for every lane', async () => {
  const { store, commit, submit } = begin(2, 2);
  submit(0, 1);
  submit(1, 2);
  await nextTurn();
  let isDrained = false;
  const drained = commit.drained().then(() => {
    isDrained = true;
  });
  store.batch(0).finish();
  await nextTurn();
  assert.equal(isDrained, false);
  store.batch(1).finish();
  await drained;
});
