// Tests the queue of group commit: its bounds on commands and bytes, and the fair shares of accounts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  ACCEPTED,
  amountsOf,
  type Batch,
  begin,
  nameOf,
  subtraction,
  USER,
  upTo,
} from '../../test/batching/stalled-store.ts';
import type { Command } from '../ledger/command.ts';
import { StoreFault } from '../store/store-fault.ts';
import { BATCH_COMMANDS_MAX, NotBegun } from './group-commit.ts';
import { QUEUE_LIMITS } from './queue-space.ts';

test('if the queue has no room, further commands immediately get Overloaded, and the queued commands are still accepted', async () => {
  const { store, commit, results, submit } = begin({ commandsMax: 6, bytesMax: Infinity });
  submit(1);
  await nextTurn();
  for (const amount of [2, 3, 4]) submit(amount);
  assert.deepEqual(results, []);
  for (const amount of [5, 6]) submit(amount);
  assert.deepEqual(results, [
    [5, 'Overloaded'],
    [6, 'Overloaded'],
  ]);
  assert.deepEqual([commit.queued, commit.counts.overloads], [3, 2]);
  store.batch(0).finish();
  await nextTurn();
  store.batch(1).finish();
  await nextTurn();
  assert.deepEqual(store.batches.map(amountsOf), [[1], [2, 3, 4]]);
  assert.deepEqual(
    results.slice(2),
    [1, 2, 3, 4].map((amount) => [amount, 'accepted']),
  );
  submit(7);
  await nextTurn();
  assert.deepEqual(amountsOf(store.batch(2)), [7], 'the queue has room again');
});

function room({ commit }: ReturnType<typeof begin>, command: Command): number {
  for (let taken = 0; ; taken++) {
    let isRefused = false;
    commit.submit(command, (result) => {
      isRefused = result instanceof NotBegun && result.code === 'Overloaded';
    });
    if (isRefused) return taken;
    assert(taken < 100_000, 'the queue has a bound');
  }
}

const BYTES_MAX = 50_000;

test('the queue is bounded in bytes, so it has room for fewer commands if the commands are larger', async () => {
  const small = begin({ commandsMax: Infinity, bytesMax: BYTES_MAX });
  const large = begin({ commandsMax: Infinity, bytesMax: BYTES_MAX });
  const smallRoom = room(small, subtraction(1));
  const largeRoom = room(large, subtraction(1, 'x'.repeat(5_000)));
  assert(smallRoom > 50 && smallRoom < BYTES_MAX / USER.length / 2, `${smallRoom} small commands`);
  assert(largeRoom >= 1 && largeRoom <= BYTES_MAX / 10_000, `${largeRoom} large commands`);
  await nextTurn();
  assert.deepEqual(large.store.sizes(), [largeRoom], 'the queued commands are written');
});

test('commands that are being written count toward the byte limit of the queue until they are answered, whatever the result', async () => {
  const tried = begin({ commandsMax: Infinity, bytesMax: BYTES_MAX });
  const { store, commit } = tried;
  const all = room(tried, subtraction(1));
  const endings: readonly (readonly [end: (batch: Batch) => void, roomAfter: number])[] = [
    [(batch) => batch.finish(), all],
    [(batch) => batch.finish(batch.commands.map(() => ({ refused: 'CycleNotFound' }))), all],
    [(batch) => batch.fail(new StoreFault('OutcomeUnknown', 'for the test')), all],
    [(batch) => batch.finish(batch.commands.map(() => null)), 0],
    [(batch) => batch.finish(), all],
  ];
  for (const [index, [end, roomAfter]] of endings.entries()) {
    await nextTurn();
    assert.deepEqual([store.batch(index).commands.length, commit.queued], [all, 0], 'all commands are being written');
    assert.equal(room(tried, subtraction(1)), 0);
    end(store.batch(index));
    await nextTurn();
    assert.equal(room(tried, subtraction(1)), roomAfter);
  }
});

test('by default, the queue has room for 10,000 commands and 16 MiB, and a single account can use half of it', async () => {
  const tried = begin();
  tried.submit(1);
  await nextTurn();
  const taken = room(tried, subtraction(1));
  assert.equal(taken, 5_000, 'a single account leaves half of the queue free');
  assert.deepEqual(QUEUE_LIMITS, { commandsMax: 10_000, bytesMax: 16 * 2 ** 20 });
});

/**
 * The amounts of account `n` begin at `n * OF_ACCOUNT`, so that each amount identifies its account. The amounts of an
 * account that floods the queue are below `OF_ACCOUNT`.
 */
const OF_ACCOUNT = 100_000;

test('ten commands of one account are in the next batch even if another account floods the queue', async () => {
  const { store, submitOf } = begin({ commandsMax: 20_000, bytesMax: Infinity });
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
  const { store, commit, submitOf } = begin({ commandsMax: 40_000, bytesMax: Infinity });
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
  const { store, submitOf } = begin({ commandsMax: 40_000, bytesMax: Infinity });
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

test('if an account fills its share of the queue, its further commands get Overloaded, and other accounts still get room', async () => {
  const { commit, results, submitOf } = begin({ commandsMax: 1_000, bytesMax: Infinity });
  submitOf(5, 5);
  await nextTurn();
  const held: number[] = [];
  for (const account of [1, 2, 3, 4]) {
    const before = commit.queued;
    for (let count = 0; count < 2_000; count++) submitOf(account, account);
    held.push(commit.queued - before);
  }
  assert.deepEqual(held, [500, 250, 125, 62], 'each account uses as much as remains free');
  assert.deepEqual([...new Set(results.map(([, answer]) => answer))], ['Overloaded']);
});

test('large commands of one account leave room in the queue for commands of another account', () => {
  const { commit, submitOf } = begin({ commandsMax: Infinity, bytesMax: 100_000 });
  for (let count = 0; count < 100; count++) submitOf(1, 1, 'x'.repeat(1_000));
  const before = commit.queued;
  assert(before > 10 && before < 30, `${before} commands of the first account`);
  submitOf(2, 1, 'x'.repeat(1_000));
  assert.equal(commit.queued, before + 1);
});

test('an account can use its whole share again after its commands have been answered', async () => {
  const { store, commit, submitOf } = begin({ commandsMax: 100, bytesMax: 1_000_000 });
  for (const round of [0, 1, 2]) {
    for (let count = 0; count < 80; count++) submitOf(1, 1);
    assert.equal(commit.queued, 50, `round ${round}`);
    await nextTurn();
    store.batch(round).finish();
    await nextTurn();
    assert.equal(commit.queued, 0);
  }
});

test('commands that settle end users are queued even if their account has filled its share of the queue', async () => {
  const { commit, settle, submit } = begin({ commandsMax: 100, bytesMax: Infinity });
  for (let count = 0; count < 80; count++) submit(1);
  settle(USER);
  assert.equal(commit.queued, 51);
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
  const { store, commit, results } = begin({ commandsMax: 4, bytesMax: 1_000_000 });
  for (const amount of [1, 2])
    commit.submit(subtraction(amount), (result) => results.push([amount, nameOf(result)]), { isDisconnected: true });
  await commit.drained();
  assert.deepEqual(results, [
    [1, 'Canceled'],
    [2, 'Canceled'],
  ]);
  assert.deepEqual([store.batches.length, commit.queued], [0, 0]);
});

const COMMAND_BYTES = 256 + 2 * (USER.length + 'key:1'.length);

for (const [what, command, bytes] of [
  ['a command', subtraction(1), COMMAND_BYTES],
  ['a command with a note', { ...subtraction(1), note: 'for Ada' } as Command, COMMAND_BYTES + 2 * 'for Ada'.length],
] as const) {
  test(`the queue counts ${what} as 256 bytes, plus 2 bytes for each character of the end user ID, the actor and the note; a single account can use half of the byte limit of the queue`, () => {
    assert.equal(room(begin({ commandsMax: Infinity, bytesMax: 4 * bytes }), command), 2);
    assert.equal(room(begin({ commandsMax: Infinity, bytesMax: 4 * bytes - 1 }), command), 1);
  });
}

test('commands that are sent to the store again still count toward the byte limit of their account', async () => {
  const tried = begin({ commandsMax: Infinity, bytesMax: BYTES_MAX });
  const all = room(tried, subtraction(1));
  await nextTurn();
  const { commands } = tried.store.batch(0);
  tried.store.batch(0).finish(commands.map((_, index) => (index === 0 ? ACCEPTED : null)));
  await nextTurn();
  assert.equal(tried.store.batch(1).commands.length, all - 1);
  assert.equal(room(tried, subtraction(1)), 1, 'the one answered command left room');
});

test('the renewal job can fill the whole queue, but cannot exceed the command limit or the byte limit of the queue', () => {
  const settleBytes = 256 + 2 * 'a'.length;
  for (const limits of [
    { commandsMax: 2, bytesMax: Infinity },
    { commandsMax: Infinity, bytesMax: 2 * settleBytes },
    { commandsMax: Infinity, bytesMax: 3 * settleBytes - 1 },
  ]) {
    const { commit, results, settle } = begin(limits);
    for (const endUser of ['a', 'b', 'c']) settle(endUser);
    assert.deepEqual([commit.queued, results], [2, [[0, 'Overloaded']]]);
  }
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
  const { store, commit, submit } = begin({ commandsMax: 10_000, bytesMax: Infinity });
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
