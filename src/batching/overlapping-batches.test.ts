// Tests when the next batch of a lane begins before the previous batch has ended. Group commit divides the commands of
// many clients: while the store writes one half of them, the process answers the other half and receives new commands.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { amountsOf, begin, upTo } from '../../test/batching/stalled-store.ts';
import { StoreFault } from '../store/store-fault.ts';

type Begun = ReturnType<typeof begin>;

/** Submits commands in one turn of the event loop, and waits until the store has written them as one batch. */
async function writeBatch({ store, submit }: Begun, commands: number, { canOverlap = true } = {}): Promise<void> {
  for (const amount of upTo(commands)) submit(amount);
  await nextTurn();
  const batch = store.batches.at(-1);
  assert.equal(batch?.commands.length, commands);
  if (canOverlap) batch.decide();
  batch.finish();
  await nextTurn();
}

/** The sizes of the batches that begin when `commands` commands are submitted in one turn of the event loop. */
async function sizesOf({ store, submit }: Begun, commands: number): Promise<number[]> {
  const before = store.batches.length;
  for (const amount of upTo(commands)) submit(amount);
  await nextTurn();
  store.batches[before]?.decide();
  return store.sizes().slice(before);
}

test('if batches can overlap, the commands of many clients are divided into two batches that are in flight together', async () => {
  const begun = begin();
  await writeBatch(begun, 64);
  assert.deepEqual(await sizesOf(begun, 64), [32, 32]);
});

test('the second half begins only when it is as large as the first half', async () => {
  const begun = begin();
  await writeBatch(begun, 64);
  assert.deepEqual(await sizesOf(begun, 63), [32]);
  assert.equal(begun.commit.queued, 31);
  begun.submit(64);
  await nextTurn();
  assert.deepEqual(begun.store.sizes(), [64, 32, 32]);
});

test('the first half begins as soon as it is queued, before the other commands of the same turn arrive', async () => {
  const begun = begin();
  await writeBatch(begun, 64);
  for (const amount of upTo(31)) begun.submit(amount);
  assert.deepEqual(begun.store.sizes(), [64]);
  begun.submit(32);
  assert.deepEqual(begun.store.sizes(), [64, 32]);
});

test('up to 16 commands are not divided', async () => {
  const begun = begin();
  await writeBatch(begun, 16);
  assert.deepEqual(await sizesOf(begun, 16), [16]);
});

test('if batches cannot overlap, commands are not divided', async () => {
  const begun = begin();
  await writeBatch(begun, 64, { canOverlap: false });
  assert.deepEqual(await sizesOf(begun, 64), [64]);
});

test('the size of a half follows the highest recent number of commands, which falls by 2% with each batch', async () => {
  const begun = begin();
  await writeBatch(begun, 400);
  for (let batch = 0; batch < 49; batch++) await writeBatch(begun, 1);
  const half = Math.ceil((400 * 0.98 ** 50) / 2);
  for (const amount of upTo(half - 1)) begun.submit(amount);
  assert.equal(begun.store.batches.length, 50);
  begun.submit(half);
  assert.equal(begun.store.batches.length, 51);
});

test('while a batch is decided but not yet durable, a second batch of at least the same size can begin, but a third batch cannot', async () => {
  const { store, submit } = begin();
  for (const amount of [1, 2]) submit(amount);
  await nextTurn();
  for (const amount of [3, 4]) submit(amount);
  await nextTurn();
  assert.deepEqual(store.batches.map(amountsOf), [[1, 2]], 'the first batch is not decided yet');
  store.batch(0).decide();
  assert.deepEqual(store.batches.map(amountsOf), [
    [1, 2],
    [3, 4],
  ]);
  store.batch(1).decide();
  for (const amount of [5, 6, 7]) submit(amount);
  await nextTurn();
  assert.equal(store.batches.length, 2, 'a third batch does not begin');
  store.batch(0).finish();
  await nextTurn();
  assert.deepEqual(store.sizes(), [2, 2, 3]);
});

test('while a batch is decided but not yet durable, the next batch begins only when it has at least as many commands as that batch', async () => {
  const { store, submit } = begin();
  for (const amount of [1, 2, 3]) submit(amount);
  await nextTurn();
  submit(4);
  store.batch(0).decide();
  assert.deepEqual(store.sizes(), [3]);
  submit(5);
  await nextTurn();
  assert.deepEqual(store.sizes(), [3]);
  submit(6);
  await nextTurn();
  assert.deepEqual(store.batches.map(amountsOf), [
    [1, 2, 3],
    [4, 5, 6],
  ]);
  store.batch(1).decide();
  submit(7);
  store.batch(0).finish();
  await nextTurn();
  assert.deepEqual(store.sizes(), [3, 3], 'the previous batch is not durable yet');
  store.batch(1).finish();
  await nextTurn();
  assert.deepEqual(store.sizes(), [3, 3, 1]);
});

test('while the outcome of a batch is unknown, later batches can begin and fail', async () => {
  const { store, results, submit } = begin();
  submit(1);
  await nextTurn();
  store.batch(0).decide();
  for (const amount of [2, 3]) {
    submit(amount);
    await nextTurn();
    store.batch(amount - 1).fail(new StoreFault('StoreUnavailable', 'for the test'));
    await nextTurn();
  }
  assert.deepEqual(results, [
    [2, 'StoreUnavailable'],
    [3, 'StoreUnavailable'],
  ]);
});
