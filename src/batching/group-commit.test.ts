// Tests when group commit forms batches, and which result each command gets. The store first decides the commands of a
// batch, and then makes the batch durable. In between, the store can already take the next batch of the same lane.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  ACCEPTED,
  amountsOf,
  begin,
  ledgerStoreOf,
  StalledStore,
  subtraction,
  USER,
  upTo,
} from '../../test/batching/stalled-store.ts';
import { type FaultCode, StoreFault } from '../store/store-fault.ts';
import { type CommitResult, GroupCommit } from './group-commit.ts';
import { LOAD } from './load.ts';

test('a lone command is written in the next turn of the event loop', async () => {
  const { store, results, submit } = begin();
  submit(1);
  assert.equal(store.batches.length, 0, 'more commands of the same turn can still join the batch');
  await nextTurn();
  assert.deepEqual(store.sizes(), [1]);
  assert.deepEqual(results, [], 'a command is answered only when it is durable');
  store.batch(0).finish();
  await nextTurn();
  assert.deepEqual(results, [[1, 'accepted']]);
});

test('commands that arrive in the same turn of the event loop share a batch and keep their order', async () => {
  const { store, results, submit } = begin();
  for (const amount of [1, 2, 3]) submit(amount);
  await nextTurn();
  assert.deepEqual(store.batches.map(amountsOf), [[1, 2, 3]]);
  store.batch(0).finish();
  await nextTurn();
  assert.deepEqual(
    results.map(([amount]) => amount),
    [1, 2, 3],
  );
});

test('the next batch consists of the commands that arrive while a batch is being written', async () => {
  const { store, submit } = begin();
  submit(1);
  await nextTurn();
  for (const amount of [2, 3, 4]) {
    submit(amount);
    await nextTurn();
  }
  assert.deepEqual(store.sizes(), [1]);
  store.batch(0).finish();
  await nextTurn();
  assert.deepEqual(store.batches.map(amountsOf), [[1], [2, 3, 4]]);
});

test('the next batch begins before the commands of the previous batch are answered', async () => {
  const { store, submit } = begin();
  let begunWhenAnswered = 0;
  submit(1, USER, () => {
    begunWhenAnswered = store.batches.length;
  });
  await nextTurn();
  submit(2);
  store.batch(0).finish();
  await nextTurn();
  assert.equal(begunWhenAnswered, 2);
});

test('a fault in one batch does not affect the next batch', async () => {
  const { store, results, submit } = begin();
  submit(1);
  await nextTurn();
  submit(2);
  store.batch(0).decide();
  store.batch(0).fail(new StoreFault('OutcomeUnknown', 'the connection is lost'));
  store.batch(1).finish();
  await nextTurn();
  assert.deepEqual(results, [
    [1, 'OutcomeUnknown'],
    [2, 'accepted'],
  ]);
});

test('a batch has at most 512 commands, and further commands go into the next batches', async () => {
  const { store, commit, submit } = begin();
  for (const amount of upTo(1_100)) submit(amount);
  await nextTurn();
  assert.equal(commit.queued, 1_100 - 512);
  for (const index of [0, 1, 2]) {
    store.batch(index).finish();
    await nextTurn();
  }
  assert.deepEqual(store.sizes(), [512, 512, 76]);
  assert.deepEqual(store.batches.flatMap(amountsOf), upTo(1_100));
});

test('due end users are settled after the requests of the same batch, in which they have room for 24 commands', async () => {
  const { store, submit, settle } = begin();
  for (const user of upTo(30)) settle(`user ${user}`);
  for (const amount of upTo(600)) submit(amount);
  await nextTurn();
  assert.deepEqual(amountsOf(store.batch(0)), [...upTo(512 - 24), ...Array(24).fill('settle')]);
  store.batch(0).finish();
  await nextTurn();
  assert.deepEqual(amountsOf(store.batch(1)), [...upTo(600).slice(512 - 24), ...Array(6).fill('settle')]);
});

test('without requests, due end users are settled in growing batches; a batch with requests settles only a few end users', async () => {
  const { store, submit, settle } = begin();
  for (let user = 0; user < 4_000; user++) settle(`user ${user}`);
  const sizes: number[] = [];
  const finishNext = async () => {
    await nextTurn();
    const batch = store.batch(sizes.length);
    sizes.push(batch.commands.length);
    batch.finish();
  };
  for (let turn = 0; turn < 6; turn++) await finishNext();
  assert.deepEqual(sizes, [48, 96, 192, 384, 512, 512]);
  submit(1);
  for (let turn = 0; turn < 3; turn++) await finishNext();
  assert.deepEqual(sizes.slice(-3), [512, 25, 48], 'a request waits only for the batch that is being written');
});

test('if one command of a batch is refused, the other commands of the batch are still accepted', async () => {
  const { store, commit, results, submit } = begin();
  for (const amount of [1, 2, 3]) submit(amount);
  await nextTurn();
  store.batch(0).finish([ACCEPTED, { refused: 'InsufficientFunds', requested: 2, available: 1 }, ACCEPTED]);
  await nextTurn();
  assert.deepEqual(results, [
    [1, 'accepted'],
    [2, 'InsufficientFunds'],
    [3, 'accepted'],
  ]);
  const { commands, refusals, faults, batches } = commit.counts;
  assert.deepEqual({ commands, refusals, faults, batches }, { commands: 3, refusals: 1, faults: 0, batches: 1 });
});

for (const code of ['StoreUnavailable', 'OutcomeUnknown', 'Internal'] satisfies FaultCode[]) {
  test(`if a batch fails with ${code}, all commands of that batch get the fault, but no command of the next batch does`, async () => {
    const { store, commit, results, submit } = begin();
    for (const amount of [1, 2]) submit(amount);
    await nextTurn();
    submit(3);
    store.batch(0).fail(new StoreFault(code, 'for the test'));
    await nextTurn();
    store.batch(1).finish();
    await nextTurn();
    assert.deepEqual(results, [
      [1, code],
      [2, code],
      [3, 'accepted'],
    ]);
    assert.deepEqual([commit.counts.faults, commit.counts.commands], [1, 1]);
    const none = { StoreUnavailable: 0, OutcomeUnknown: 0, Internal: 0 };
    assert.deepEqual(commit.counts.faultsByKind, { ...none, [code]: 1 });
  });
}

test('a store fault is reported when it begins, when its code changes and when it ends, but not for each failed batch', async () => {
  const store = new StalledStore();
  const heard: (FaultCode | null)[] = [];
  const commit = new GroupCommit(ledgerStoreOf(store), (trouble) => heard.push(trouble?.code ?? null));
  const faults: (FaultCode | null)[] = [null, 'StoreUnavailable', 'StoreUnavailable', 'OutcomeUnknown', null, null];
  for (const [index, code] of faults.entries()) {
    commit.submit(subtraction(1), () => {});
    await nextTurn();
    if (code === null) store.batch(index).finish();
    else store.batch(index).fail(new StoreFault(code, 'for the test'));
    await nextTurn();
  }
  assert.deepEqual(heard, ['StoreUnavailable', 'OutcomeUnknown', null]);
});

test('a fault that concerns only some end users is counted, but is not reported as a fault of the store', async () => {
  const store = new StalledStore();
  const heard: (FaultCode | null)[] = [];
  const commit = new GroupCommit(ledgerStoreOf(store), (trouble) => heard.push(trouble?.code ?? null));
  commit.submit(subtraction(1), () => {});
  await nextTurn();
  store.batch(0).fail(new StoreFault('StoreUnavailable', 'for the test', { isPartial: true }));
  await nextTurn();
  assert.equal(commit.counts.faults, 1);
  assert.deepEqual(heard, []);
});

test('an unexpected store error becomes an Internal fault that contains the message of the error', async () => {
  const { store, commit } = begin();
  let fault: CommitResult = ACCEPTED;
  commit.submit(subtraction(1), (result) => {
    fault = result;
  });
  await nextTurn();
  store.batch(0).fail(new TypeError('x is not a function'));
  await nextTurn();
  assert((fault as CommitResult) instanceof StoreFault);
  assert.equal((fault as unknown as StoreFault).code, 'Internal');
  assert.match((fault as unknown as StoreFault).message, /x is not a function/);
});

test('a command that the store postpones is sent to the store again and answered only once, and the other commands of its batch do not wait for it', async () => {
  const { store, commit, results, submit, settle } = begin();
  for (const amount of [1, 2]) submit(amount);
  settle('a');
  await nextTurn();
  store.batch(0).finish([null, ACCEPTED, null]);
  await nextTurn();
  assert.deepEqual(results, [[2, 'accepted']]);
  submit(3);
  store.batch(1).finish([null, ACCEPTED]);
  await nextTurn();
  assert.deepEqual(store.batches.map(amountsOf), [
    [1, 2, 'settle'],
    [1, 'settle'],
    [3, 1],
  ]);
  store.batch(2).finish();
  await nextTurn();
  assert.deepEqual(results, [
    [2, 'accepted'],
    [0, 'accepted'],
    [3, 'accepted'],
    [1, 'accepted'],
  ]);
  assert.equal(commit.queued, 0);
});

test('group commit is drained once all submitted commands are answered, and immediately if there are none', async () => {
  const { store, commit, results, submit } = begin();
  await commit.drained();
  submit(1);
  let isDrained = false;
  const drained = commit.drained().then(() => {
    isDrained = true;
  });
  await nextTurn();
  submit(2);
  store.batch(0).finish([null]);
  await nextTurn();
  assert.deepEqual(amountsOf(store.batch(1)), [2, 1]);
  assert.equal(isDrained, false);
  store.batch(1).fail(new StoreFault('StoreUnavailable', 'for the test'));
  await drained;
  assert.deepEqual(results, [
    [2, 'StoreUnavailable'],
    [1, 'StoreUnavailable'],
  ]);
  await commit.drained();
});

test('group commit is not drained while a batch is being written', async () => {
  const { store, commit, results, submit } = begin();
  submit(1);
  await nextTurn();
  assert.equal(commit.queued, 0);
  let isDrained = false;
  const drained = commit.drained().then(() => {
    isDrained = true;
  });
  await nextTurn();
  assert.equal(isDrained, false);
  store.batch(0).finish();
  await drained;
  assert.deepEqual(results, [[1, 'accepted']]);
});

test('the callback of a command can submit another command, and group commit is not drained until that command is answered', async () => {
  const { store, commit, results, submit } = begin();
  submit(1, USER, () => submit(2));
  let isDrained = false;
  const drained = commit.drained().then(() => {
    isDrained = true;
  });
  await nextTurn();
  store.batch(0).finish();
  await nextTurn();
  await nextTurn();
  assert.deepEqual(store.batches.map(amountsOf), [[1], [2]]);
  assert.equal(isDrained, false);
  store.batch(1).finish();
  await drained;
  assert.deepEqual(results, [
    [1, 'accepted'],
    [2, 'accepted'],
  ]);
});

test('each finished batch reports how many requests wait, without settle commands, as the load of the process', async (t) => {
  const { store, submit, settle } = begin();
  const noted = t.mock.method(LOAD, 'noteWaiting');
  for (const amount of upTo(3)) submit(amount);
  settle(USER);
  await nextTurn();
  for (const amount of upTo(2)) submit(amount);
  settle(USER);
  store.batch(0).finish();
  await nextTurn();
  assert.deepEqual(store.sizes(), [4, 3]);
  store.batch(1).finish();
  await nextTurn();
  assert.deepEqual(
    noted.mock.calls.map(({ arguments: [requests] }) => requests),
    [5, 2],
  );
});

test('each accepted command is reported, but refusals, replays and settle commands are not', async () => {
  const { store, commit, submit, settle } = begin();
  const heard: object[] = [];
  commit.onAccepted = (command, accepted) => heard.push({ command, accepted });
  for (const amount of [1, 2, 3]) submit(amount);
  settle(USER);
  await nextTurn();
  const refused = { refused: 'InsufficientFunds', requested: 2, available: 1 } as const;
  store.batch(0).finish([ACCEPTED, refused, { ...ACCEPTED, replayOf: 'request-1' }, ACCEPTED]);
  await nextTurn();
  assert.deepEqual(heard, [{ command: subtraction(1), accepted: ACCEPTED }]);
});

test('each batch is reported with its number of commands and its duration in seconds', async (t) => {
  let nowMs = 5_000;
  t.mock.method(performance, 'now', () => nowMs);
  const { store, commit, submit } = begin();
  const heard: [commands: number, seconds: number][] = [];
  commit.onBatch = (...batch) => heard.push(batch);
  for (const [index, commands] of [3, 1].entries()) {
    for (const amount of upTo(commands)) submit(amount);
    await nextTurn();
    nowMs += index === 0 ? 20 : 700;
    store.batch(index).finish();
    await nextTurn();
  }
  assert.deepEqual(heard, [
    [3, 0.02],
    [1, 0.7],
  ]);
  assert.equal(commit.counts.batches, 2);
});

test('a tracer gets each batch before the commands of the batch are answered, and null after they have all been answered', async (t) => {
  let nowMs = 5_000;
  t.mock.method(performance, 'now', () => nowMs);
  const { store, commit, results, submit } = begin();
  const heard: unknown[] = [];
  commit.onAnswering = (batch) => heard.push([batch, results.length]);
  for (const amount of [1, 2]) submit(amount);
  await nextTurn();
  nowMs = 5_030;
  store.batch(0).finish();
  await nextTurn();
  submit(3);
  await nextTurn();
  store.batch(1).fail(new StoreFault('StoreUnavailable', 'for the test'));
  await nextTurn();
  assert.deepEqual(heard, [
    [{ startedMs: 5_000, endedMs: 5_030, commands: 2, fault: null }, 0],
    [null, 2],
    [{ startedMs: 5_030, endedMs: 5_030, commands: 1, fault: 'StoreUnavailable' }, 2],
    [null, 3],
  ]);
});
