// Tests the queue of group commit: the fair shares of accounts, and commands whose clients have disconnected.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { amountsOf, begin, nameOf, subtraction, upTo } from '../../test/batching/stalled-store.ts';
import { BATCH_COMMANDS_MAX } from './group-commit.ts';

/**
 * The amounts of account `n` begin at `n * OF_ACCOUNT`, so that each amount identifies its account. The amounts of an
 * account that floods the queue are below `OF_ACCOUNT`.
 */
const OF_ACCOUNT = 100_000;

test('ten commands of one account are in the next batch even if another account floods the queue', async () => {
  const { store, submitOf } = begin();
  submitOf(1, 1);
  await nextTurn();
  for (let count = 2; count <= 9_001; count++) submitOf(1, count);
  const ten = upTo(10).map((count) => 2 * OF_ACCOUNT + count);
  for (const amount of ten) submitOf(2, amount);
  store.batch(0).finish();
  await nextTurn();
  const next = amountsOf(store.batch(1)) as number[];
  assert.equal(next.length, 512, 'the batch is full');
  assert.deepEqual(
    next.filter((amount) => amount > OF_ACCOUNT),
    ten,
  );
  const flood = next.filter((amount) => amount < OF_ACCOUNT);
  assert.deepEqual(flood, upTo(503).slice(1));
});

test('accounts with many queued commands get equal shares of the batches, and the commands of each account keep their order', async () => {
  const { store, commit, submitOf } = begin();
  const accounts = [1, 2, 3];
  submitOf(4, 1);
  await nextTurn();
  for (const account of accounts) for (const amount of upTo(3_000)) submitOf(account, account * OF_ACCOUNT + amount);
  const taken = new Map(accounts.map((account) => [account, [] as number[]]));
  for (let batch = 0; batch <= 12; batch++) {
    store.batch(batch).finish();
    await nextTurn();
    if (batch === 0) continue;
    for (const amount of amountsOf(store.batch(batch)) as number[])
      taken.get(Math.floor(amount / OF_ACCOUNT))?.push(amount % OF_ACCOUNT);
    const counts = [...taken.values()].map(({ length }) => length);
    assert(Math.max(...counts) - Math.min(...counts) <= 1, `after batch ${batch}: ${counts}`);
  }
  for (const amounts of taken.values()) assert.deepEqual(amounts, upTo(amounts.length), 'in the order of submission');
  assert(commit.queued > 0, 'all three accounts always had queued commands');
});

test('if each of a thousand accounts submits one command, the next two batches include all of these commands, even if another account floods the queue', async () => {
  const { store, submitOf } = begin();
  submitOf(1, 1);
  await nextTurn();
  for (const amount of upTo(5_000)) submitOf(1, amount);
  for (const account of upTo(1_000)) submitOf(account + 1, (account + 1) * OF_ACCOUNT);
  const served: number[] = [];
  for (let batch = 0; batch < 2; batch++) {
    store.batch(batch).finish();
    await nextTurn();
    served.push(...(amountsOf(store.batch(batch + 1)) as number[]).filter((amount) => amount >= OF_ACCOUNT));
  }
  assert.equal(served.length, 1_000);
});

test('a command is canceled if its client disconnects before the batch begins, and written if the client disconnects later', async () => {
  const { store, commit, results, submit } = begin();
  submit(1);
  await nextTurn();
  const clients = upTo(4).map(() => ({ isDisconnected: false }));
  clients.forEach((client, index) => {
    commit.submit(subtraction(10 + index), (result) => results.push([10 + index, nameOf(result)]), client);
  });
  for (const index of [0, 2]) Object.assign(clients[index] as object, { isDisconnected: true });
  store.batch(0).finish();
  await nextTurn();
  assert.deepEqual(store.batches.map(amountsOf), [[1], [11, 13]]);
  Object.assign(clients[1] as object, { isDisconnected: true });
  store.batch(1).finish();
  await commit.drained();
  const expected = [
    [10, 'Canceled'],
    [12, 'Canceled'],
    [1, 'accepted'],
    [11, 'accepted'],
    [13, 'accepted'],
  ];
  assert.deepEqual(results, expected, 'a command is written if its batch began before the client disconnected');
});

test('if the clients of all queued commands have disconnected, nothing is written, and group commit is drained', async () => {
  const { store, commit, results } = begin();
  for (const amount of [1, 2])
    commit.submit(subtraction(amount), (result) => results.push([amount, nameOf(result)]), { isDisconnected: true });
  await commit.drained();
  assert.deepEqual(results, [
    [1, 'Canceled'],
    [2, 'Canceled'],
  ]);
  assert.deepEqual([store.batches.length, commit.queued], [0, 0]);
});

test('after batches with requests, the first batch that only settles due end users is small again', async () => {
  const { store, submit, settle } = begin();
  for (let batch = 0; batch < 5; batch++) {
    submit(1);
    await nextTurn();
    store.batch(batch).finish();
    await nextTurn();
  }
  for (let user = 0; user < 4_000; user++) settle(`user ${user}`);
  await nextTurn();
  assert.equal(store.batch(5).commands.length, 48);
});

test('if clients of queued commands have disconnected, other queued commands fill the batch', async () => {
  const { store, commit, submit } = begin();
  submit(1);
  await nextTurn();
  for (const amount of upTo(10)) commit.submit(subtraction(amount), () => {}, { isDisconnected: true });
  for (const amount of upTo(600)) submit(amount);
  store.batch(0).finish();
  await nextTurn();
  assert.deepEqual(store.sizes(), [1, 512]);
  assert.equal(commit.queued, 600 - 512);
});

test('the throughput is estimated while at least one full batch of commands is queued, and is unknown otherwise', async (t) => {
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const { store, commit, submit } = begin();
  for (let amount = 1; amount <= 3 * BATCH_COMMANDS_MAX; amount++) submit(amount);
  await nextTurn();
  const known = [];
  for (let batch = 0; batch < 3; batch++) {
    nowMs += 1_000;
    store.batch(batch).finish();
    await nextTurn();
    known.push(commit.throughput.perMs);
  }
  assert.deepEqual(known, [null, BATCH_COMMANDS_MAX / 1_000, null]);
});
