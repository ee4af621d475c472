// What waits for group commit: that it is bounded, in commands and in bytes, and that no account takes the places or the
// turns of another.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { amountsOf, type Batch, begin, nameOf, subtraction, USER, upTo } from '../../test/batching/stalled-store.ts';
import { ACCEPTED, type Command } from '../ledger/command.ts';
import { StoreFault } from '../store/store.ts';
import { BATCH_COMMANDS_MAX, QUEUE_LIMITS } from './group-commit.ts';

test('past so many waiting commands the next is Overloaded at once, and all others are answered once the store goes on', async () => {
  // Half of them for an account that is alone.
  const { store, commit, answers, submit } = begin({ commandsMax: 6, bytesMax: Infinity });
  submit(1);
  await nextTurn();
  for (const amount of [2, 3, 4]) submit(amount);
  assert.deepEqual(answers, []);
  for (const amount of [5, 6]) submit(amount);
  assert.deepEqual(answers, [
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
    answers.slice(2),
    [1, 2, 3, 4].map((amount) => [amount, 'accepted']),
  );
  submit(7);
  await nextTurn();
  assert.deepEqual(amountsOf(store.batch(2)), [7], 'there is room again');
});

/** How many commands are taken before the first is Overloaded. */
function room({ commit }: ReturnType<typeof begin>, command: Command): number {
  for (let taken = 0; ; taken++) {
    let isRefused = false;
    commit.submit(command, (result) => {
      isRefused = result instanceof StoreFault && result.code === 'Overloaded';
    });
    if (isRefused) return taken;
    assert(taken < 100_000, 'the queue has a bound');
  }
}

const BYTES_MAX = 50_000;

test('past so many bytes the next is Overloaded at once, sooner when the commands are larger', async () => {
  const small = begin({ commandsMax: Infinity, bytesMax: BYTES_MAX });
  const large = begin({ commandsMax: Infinity, bytesMax: BYTES_MAX });
  const smallRoom = room(small, subtraction(1));
  const largeRoom = room(large, subtraction(1, 'x'.repeat(5_000)));
  assert(smallRoom > 50 && smallRoom < BYTES_MAX / USER.length / 2, `${smallRoom} small ones`);
  assert(largeRoom >= 1 && largeRoom <= BYTES_MAX / 10_000, `${largeRoom} large ones`);
  await nextTurn();
  assert.deepEqual(large.store.sizes(), [largeRoom], 'what was taken is written');
});

test('what is being written still takes up bytes, and gives them back when it is answered, whatever the answer', async () => {
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
    assert.deepEqual([store.batch(index).commands.length, commit.queued], [all, 0], 'all of it is being written');
    assert.equal(room(tried, subtraction(1)), 0);
    end(store.batch(index));
    await nextTurn();
    assert.equal(room(tried, subtraction(1)), roomAfter);
  }
});

test('the bounds in use hold what is waiting to a few megabytes', async () => {
  const tried = begin();
  const taken = room(tried, subtraction(1));
  assert.equal(taken, QUEUE_LIMITS.commandsMax / 2, 'an account that is alone leaves as much free as it takes');
  assert(QUEUE_LIMITS.bytesMax <= 16 * 2 ** 20);
});

/** Amounts of account 1 are below this, and those of account n begin at n times it. */
const OF_ACCOUNT = 100_000;

test('of an account that floods the queue and one that asks for ten, the ten are in the next batch, in their order', async () => {
  const { store, submitOf } = begin({ commandsMax: 20_000, bytesMax: Infinity });
  submitOf(1, 1);
  await nextTurn();
  for (let count = 2; count <= 9_001; count++) submitOf(1, count);
  const ten = upTo(10).map((count) => 2 * OF_ACCOUNT + count);
  for (const amount of ten) submitOf(2, amount);
  store.batch(0).finish();
  await nextTurn();
  const next = amountsOf(store.batch(1)) as number[];
  assert.equal(next.length, 512, 'the batch is full all the same');
  assert.deepEqual(
    next.filter((amount) => amount > OF_ACCOUNT),
    ten,
  );
  const flood = next.filter((amount) => amount < OF_ACCOUNT);
  assert.deepEqual(flood, upTo(503).slice(1));
});

test('accounts that all have much waiting get the same share of every few batches, each in its own order', async () => {
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
  for (const amounts of taken.values()) assert.deepEqual(amounts, upTo(amounts.length), 'first come, first served');
  assert(commit.queued > 0, 'all of the time all three had some waiting');
});

test('a thousand accounts with one command each, behind a flood, are served before the flood is', async () => {
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

test('an account that fills the queue is Overloaded, and another one still gets in, and another', () => {
  const { commit, answers, submitOf } = begin({ commandsMax: 1_000, bytesMax: Infinity });
  const held: number[] = [];
  for (const account of [1, 2, 3, 4]) {
    const before = commit.queued;
    for (let count = 0; count < 2_000; count++) submitOf(account, account);
    held.push(commit.queued - before);
  }
  assert.deepEqual(held, [500, 250, 125, 63], 'each has as much as it leaves free');
  assert.deepEqual([...new Set(answers.map(([, answer]) => answer))], ['Overloaded']);
});

test('bytes are shared as places are: long names of one account leave room for another', () => {
  const { commit, submitOf } = begin({ commandsMax: Infinity, bytesMax: 100_000 });
  for (let count = 0; count < 100; count++) submitOf(1, 1, 'x'.repeat(1_000));
  const before = commit.queued;
  assert(before > 10 && before < 30, `${before} of the first`);
  submitOf(2, 1, 'x'.repeat(1_000));
  assert.equal(commit.queued, before + 1);
});

test('an account that had its share gets it again once it is answered', async () => {
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

test('renewals of an account that has its share of the queue still get in', async () => {
  const { commit, renew, submit } = begin({ commandsMax: 100, bytesMax: Infinity });
  for (let count = 0; count < 80; count++) submit(1);
  renew(USER);
  assert.equal(commit.queued, 51);
});

test('what nobody waits for any more is not begun, and what the others wait for is', async () => {
  const { store, commit, answers, submit } = begin();
  submit(1);
  await nextTurn();
  const clients = upTo(4).map(() => ({ isDisconnected: false }));
  clients.forEach((client, index) => {
    commit.submit(subtraction(10 + index), (result) => answers.push([10 + index, nameOf(result)]), client);
  });
  for (const index of [0, 2]) Object.assign(clients[index] as object, { isDisconnected: true });
  store.batch(0).finish();
  await nextTurn();
  assert.deepEqual(store.batches.map(amountsOf), [[1], [11, 13]]);
  Object.assign(clients[1] as object, { isDisconnected: true });
  store.batch(1).finish();
  await commit.drained();
  const expected = [
    [10, 'Overloaded'],
    [12, 'Overloaded'],
    [1, 'accepted'],
    [11, 'accepted'],
    [13, 'accepted'],
  ];
  assert.deepEqual(answers, expected, 'what was begun is done, whoever has gone');
});

test('when all have gone nothing is written, and nothing is waited for', async () => {
  const { store, commit, answers } = begin({ commandsMax: 4, bytesMax: 1_000_000 });
  for (const amount of [1, 2])
    commit.submit(subtraction(amount), (result) => answers.push([amount, nameOf(result)]), { isDisconnected: true });
  await commit.drained();
  assert.deepEqual(answers, [
    [1, 'Overloaded'],
    [2, 'Overloaded'],
  ]);
  assert.deepEqual([store.batches.length, commit.queued], [0, 0]);
});

/** What a subtraction of 1 takes up: 256 bytes, and 2 for each character of its end user and of its API key. */
const BYTES = 256 + 2 * (USER.length + 'key:1'.length);

for (const [what, command, bytes] of [
  ['a command', subtraction(1), BYTES],
  ['a command with a note', { ...subtraction(1), note: 'for Ada' } as Command, BYTES + 2 * 'for Ada'.length],
] as const) {
  test(`${what} takes up what its texts do: two of an account need room for three, to the byte`, () => {
    assert.equal(room(begin({ commandsMax: Infinity, bytesMax: 3 * bytes }), command), 2);
    assert.equal(room(begin({ commandsMax: Infinity, bytesMax: 3 * bytes - 1 }), command), 1);
  });
}

test('an account keeps its share of the bytes while some of its commands are still being written', async () => {
  const tried = begin({ commandsMax: Infinity, bytesMax: BYTES_MAX });
  const all = room(tried, subtraction(1));
  await nextTurn();
  const { commands } = tried.store.batch(0);
  tried.store.batch(0).finish(commands.map((_, index) => (index === 0 ? ACCEPTED : null)));
  await nextTurn();
  assert.equal(tried.store.batch(1).commands.length, all - 1);
  assert.equal(room(tried, subtraction(1)), 1, 'the place that became free');
});

test('renewals fill all that is left of the queue, in commands and in bytes, and no more', () => {
  const renewalBytes = 256 + 2 * 'a'.length;
  for (const limits of [
    { commandsMax: 2, bytesMax: Infinity },
    { commandsMax: Infinity, bytesMax: 2 * renewalBytes },
    { commandsMax: Infinity, bytesMax: 3 * renewalBytes - 1 },
  ]) {
    const { commit, answers, renew } = begin(limits);
    for (const endUser of ['a', 'b', 'c']) renew(endUser);
    assert.deepEqual([commit.queued, answers], [2, [[0, 'Overloaded']]]);
  }
});

test('after a pause renewals begin in a small batch again', async () => {
  const { store, submit, renew } = begin();
  for (let batch = 0; batch < 5; batch++) {
    submit(1);
    await nextTurn();
    store.batch(batch).finish();
    await nextTurn();
  }
  for (let user = 0; user < 4_000; user++) renew(`user ${user}`);
  await nextTurn();
  assert.equal(store.batch(5).commands.length, 48);
});

test('the places in a batch of those who have gone are filled up, and no more than those', async () => {
  const { store, commit, submit } = begin();
  for (const amount of upTo(10)) commit.submit(subtraction(amount), () => {}, { isDisconnected: true });
  for (const amount of upTo(600)) submit(amount);
  await nextTurn();
  assert.deepEqual(store.sizes(), [512]);
  assert.equal(commit.queued, 600 - 512);
});

test('how fast the store is, is known while more waits than it takes at once, and not for longer', async (t) => {
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
    known.push(commit.pace.perMs);
  }
  assert.deepEqual(known, [null, BATCH_COMMANDS_MAX / 1_000, null]);
});
