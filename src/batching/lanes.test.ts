// Tests group commit on a store with several lanes: all commands of an end user go through the same lane, and busy
// lanes write equally often.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { amountsOf, begin as beginOn, StalledStore } from '../../test/batching/stalled-store.ts';

function begin(count: number, atOnce: number) {
  const lanes = { count, atOnce, of: ({ endUser }: { endUser: string }) => Number(endUser.at(-1)) };
  const { submit, ...begun } = beginOn(new StalledStore(lanes));
  return { ...begun, submit: (lane: number, amount: number) => submit(amount, `user ${lane}`) };
}

test('lanes write at the same time, and each lane writes only the commands of its own end users', async () => {
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

test('if the store limits how many lanes write at the same time, busy lanes write equally often', async () => {
  const { store, submit } = begin(3, 1);
  for (const round of [0, 1, 2, 3]) for (const lane of [0, 1, 2]) submit(lane, 10 * lane + round);
  await nextTurn();
  const lanes: number[] = [];
  for (let batch = 0; batch < 9; batch++) {
    assert.equal(store.batches.length, batch + 1, 'one batch at a time');
    const [amount] = amountsOf(store.batch(batch)) as number[];
    const lane = Math.floor((amount as number) / 10);
    lanes.push(lane);
    submit(lane, 10 * lane);
    store.batch(batch).finish();
    await nextTurn();
  }
  for (const lane of [0, 1, 2]) assert.equal(lanes.filter((one) => one === lane).length, 3, `${lanes}`);
});

test('a lane with two batches counts as writing until both are durable', async () => {
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

test('group commit is drained only when every lane has finished its batches', async () => {
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
