// Group commit against a store that does what the test says: when batches form, and that what befalls one command never
// reaches another. What waits is the matter of another file.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  amountsOf,
  begin,
  type Result,
  StalledStore,
  subtraction,
  USER,
  upTo,
} from '../../test/batching/stalled-store.ts';
import { ACCEPTED } from '../ledger/command.ts';
import { type FaultCode, type Store, StoreFault } from '../store/store.ts';
import { BATCH_COMMANDS_MAX, GroupCommit } from './group-commit.ts';

test('a lone command waits for nobody: it is with the store in the next turn', async () => {
  const { store, answers, submit } = begin();
  submit(1);
  assert.equal(store.batches.length, 0, 'whoever comes in the same turn shares the batch');
  await nextTurn();
  assert.deepEqual(store.sizes(), [1]);
  assert.deepEqual(answers, [], 'it is answered when it is durable, not before');
  store.batch(0).finish();
  await nextTurn();
  assert.deepEqual(answers, [[1, 'accepted']]);
});

test('commands of one turn share a batch, in the order in which they came', async () => {
  const { store, answers, submit } = begin();
  for (const amount of [1, 2, 3]) submit(amount);
  await nextTurn();
  assert.deepEqual(store.batches.map(amountsOf), [[1, 2, 3]]);
  store.batch(0).finish();
  await nextTurn();
  assert.deepEqual(
    answers.map(([amount]) => amount),
    [1, 2, 3],
  );
});

test('what arrives while a batch is being written makes up the next one; two are never written at once', async () => {
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

test('the next batch is with the store before the last one is answered', async () => {
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

test('a batch that is decided is followed by one that is as large, and not by a third', async () => {
  const { store, submit } = begin();
  for (const amount of [1, 2]) submit(amount);
  await nextTurn();
  for (const amount of [3, 4]) submit(amount);
  await nextTurn();
  assert.deepEqual(store.batches.map(amountsOf), [[1, 2]], 'the first is not decided');
  store.batch(0).decide();
  assert.deepEqual(store.batches.map(amountsOf), [
    [1, 2],
    [3, 4],
  ]);
  store.batch(1).decide();
  for (const amount of [5, 6, 7]) submit(amount);
  await nextTurn();
  assert.equal(store.batches.length, 2, 'a third would wait behind the second');
  store.batch(0).finish();
  await nextTurn();
  assert.deepEqual(store.sizes(), [2, 2, 3]);
});

test('a store that writes batches together has them at once, until they make up a whole one', async () => {
  const { store, answers, submit } = begin();
  store.joins = true;
  for (const amount of upTo(3)) {
    submit(amount);
    await nextTurn();
  }
  assert.deepEqual(store.batches.map(amountsOf), [[1], [2], [3]]);
  for (const amount of upTo(BATCH_COMMANDS_MAX - 3)) submit(amount);
  await nextTurn();
  submit(4);
  await nextTurn();
  assert.deepEqual(store.sizes(), [1, 1, 1, BATCH_COMMANDS_MAX - 3], 'more would make its COMMIT a long one');
  store.batch(0).finish();
  await nextTurn();
  assert.deepEqual(store.sizes().slice(4), [1]);
  assert.deepEqual(answers, [[1, 'accepted']]);
  store.joins = false;
  submit(5);
  await nextTurn();
  assert.equal(store.batches.length, 5, 'then it has the next one when it is done');
});

test('what is less than the batch that is decided waits until that is durable, or until there is as much', async () => {
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
  assert.deepEqual(store.sizes(), [3, 3], 'there is one in front of it that is not durable');
  store.batch(1).finish();
  await nextTurn();
  assert.deepEqual(store.sizes(), [3, 3, 1]);
});

test('what befalls a batch does not befall the one that follows it', async () => {
  const { store, answers, submit } = begin();
  submit(1);
  await nextTurn();
  submit(2);
  store.batch(0).decide();
  store.batch(0).fail(new StoreFault('OutcomeUnknown', 'the line is cut'));
  store.batch(1).finish();
  await nextTurn();
  assert.deepEqual(answers, [
    [1, 'OutcomeUnknown'],
    [2, 'accepted'],
  ]);
});

test('a batch has at most 512 commands; the others wait for the next', async () => {
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

test('renewals go behind every request that waits, whenever they came', async () => {
  const { store, submit, renew } = begin();
  for (const user of ['a', 'b']) renew(user);
  for (const amount of upTo(600)) submit(amount);
  await nextTurn();
  assert.deepEqual(amountsOf(store.batch(0)), upTo(512));
  store.batch(0).finish();
  await nextTurn();
  assert.deepEqual(amountsOf(store.batch(1)), [...upTo(600).slice(512), 'renew', 'renew']);
});

test('renewals come in larger batches while nobody asks for anything, and in small ones beside requests', async () => {
  const { store, submit, renew } = begin();
  for (let user = 0; user < 4_000; user++) renew(`user ${user}`);
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
  assert.deepEqual(sizes.slice(-3), [512, 25, 48], 'a request waits for the batch that is being written, and no other');
});

test('a refusal goes to the one who is refused, and disturbs no neighbour', async () => {
  const { store, commit, answers, submit } = begin();
  for (const amount of [1, 2, 3]) submit(amount);
  await nextTurn();
  store.batch(0).finish([ACCEPTED, { refused: 'InsufficientFunds', requested: 2, available: 1 }, ACCEPTED]);
  await nextTurn();
  assert.deepEqual(answers, [
    [1, 'accepted'],
    [2, 'InsufficientFunds'],
    [3, 'accepted'],
  ]);
  const { commands, refusals, faults, batches } = commit.counts;
  assert.deepEqual({ commands, refusals, faults, batches }, { commands: 3, refusals: 1, faults: 0, batches: 1 });
});

for (const code of ['Overloaded', 'StoreUnavailable', 'OutcomeUnknown', 'Internal'] satisfies FaultCode[]) {
  test(`a store that fails a batch with ${code} answers all of that batch so, and none of the next`, async () => {
    const { store, commit, answers, submit } = begin();
    for (const amount of [1, 2]) submit(amount);
    await nextTurn();
    submit(3);
    store.batch(0).fail(new StoreFault(code, 'for the test'));
    await nextTurn();
    store.batch(1).finish();
    await nextTurn();
    assert.deepEqual(answers, [
      [1, code],
      [2, code],
      [3, 'accepted'],
    ]);
    assert.deepEqual([commit.counts.faults, commit.counts.commands], [1, 1]);
    const none = { Overloaded: 0, StoreUnavailable: 0, OutcomeUnknown: 0, Internal: 0 };
    assert.deepEqual(commit.counts.faultsByKind, { ...none, [code]: 1 });
  });
}

test('whoever watches hears of trouble when it begins, when it becomes another and when it is over, and not in between', async () => {
  const store = new StalledStore();
  const heard: (FaultCode | null)[] = [];
  const commit = new GroupCommit(store as unknown as Store, undefined, (trouble) => heard.push(trouble?.code ?? null));
  const befalls: (FaultCode | null)[] = [null, 'StoreUnavailable', 'StoreUnavailable', 'OutcomeUnknown', null, null];
  for (const [index, code] of befalls.entries()) {
    commit.submit(subtraction(1), () => {});
    await nextTurn();
    if (code === null) store.batch(index).finish();
    else store.batch(index).fail(new StoreFault(code, 'for the test'));
    await nextTurn();
  }
  assert.deepEqual(heard, ['StoreUnavailable', 'OutcomeUnknown', null]);
});

test('a store that fails in a way nobody foresaw is Internal, with the reason kept', async () => {
  const { store, commit } = begin();
  let fault: Result = ACCEPTED;
  commit.submit(subtraction(1), (result) => {
    fault = result;
  });
  await nextTurn();
  store.batch(0).fail(new TypeError('x is not a function'));
  await nextTurn();
  assert((fault as Result) instanceof StoreFault);
  assert.equal((fault as unknown as StoreFault).code, 'Internal');
  assert.match((fault as unknown as StoreFault).message, /x is not a function/);
});

test('a command whose end user is still catching up is asked again, and answered once; neighbours do not wait for it', async () => {
  const { store, commit, answers, submit, renew } = begin();
  for (const amount of [1, 2]) submit(amount);
  renew('a');
  await nextTurn();
  store.batch(0).finish([null, ACCEPTED, null]);
  await nextTurn();
  assert.deepEqual(answers, [[2, 'accepted']]);
  submit(3);
  store.batch(1).finish([null, ACCEPTED]);
  await nextTurn();
  assert.deepEqual(store.batches.map(amountsOf), [
    [1, 2, 'renew'],
    [1, 'renew'],
    [3, 1],
  ]);
  store.batch(2).finish();
  await nextTurn();
  assert.deepEqual(answers, [
    [2, 'accepted'],
    [0, 'accepted'],
    [3, 'accepted'],
    [1, 'accepted'],
  ]);
  assert.equal(commit.queued, 0);
});

test('drained is resolved when all that was submitted is answered, and at once when nothing was', async () => {
  const { store, commit, answers, submit } = begin();
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
  assert.deepEqual(answers, [
    [2, 'StoreUnavailable'],
    [1, 'StoreUnavailable'],
  ]);
  await commit.drained();
});

test('drained waits for what is being written, also when nothing else waits', async () => {
  const { store, commit, answers, submit } = begin();
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
  assert.deepEqual(answers, [[1, 'accepted']]);
});

test('a command that is submitted in answer to another is written like any other, and waited for', async () => {
  const { store, commit, answers, submit } = begin();
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
  assert.deepEqual(answers, [
    [1, 'accepted'],
    [2, 'accepted'],
  ]);
});

test('each batch is counted: how long it took, how many commands it had', async (t) => {
  let nowMs = 5_000;
  t.mock.method(performance, 'now', () => nowMs);
  const { store, commit, submit } = begin();
  for (const [index, commands] of [3, 1].entries()) {
    for (const amount of upTo(commands)) submit(amount);
    await nextTurn();
    nowMs += index === 0 ? 20 : 700;
    store.batch(index).finish();
    await nextTurn();
  }
  const { batches, seconds, sizes, times } = commit.counts;
  assert.deepEqual([batches, seconds, times.sum, sizes.sum], [2, 0.72, 0.72, 4]);
  const bounded = ({ bounds, counts }: typeof sizes) => bounds.filter((_, index) => (counts[index] as number) > 0);
  assert.deepEqual(bounded(sizes), [1, 4]);
  assert.deepEqual(bounded(times), [0.025, 1]);
});

test('whoever traces hears of a batch before its commands are answered, and that they all are', async (t) => {
  let nowMs = 5_000;
  t.mock.method(performance, 'now', () => nowMs);
  const { store, commit, answers, submit } = begin();
  const heard: unknown[] = [];
  commit.onAnswering = (batch) => heard.push([batch, answers.length]);
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
