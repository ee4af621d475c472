// Group commit against a store that does what the test says: when batches form, what is bounded, and that what befalls
// one command never reaches another.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ACCEPTED, type Command, type Outcome } from '../ledger/command.ts';
import { type FaultCode, ONE_LANE, type Store, StoreFault } from '../store/store.ts';
import { GroupCommit, QUEUE_LIMITS, type QueueLimits } from './group-commit.ts';

type Results = readonly (Outcome | null)[];

interface Batch {
  readonly commands: readonly Command[];
  /** Accepts every command when nothing else is said. */
  finish(results?: Results): void;
  fail(error: unknown): void;
}

/** A store that begins each batch and waits for the test to end it. */
class StalledStore {
  readonly lanes = ONE_LANE;
  readonly batches: Batch[] = [];

  write(commands: readonly Command[]): Promise<Results> {
    const { promise, resolve, reject } = Promise.withResolvers<Results>();
    this.batches.push({
      commands,
      finish: (results = commands.map(() => ACCEPTED)) => resolve(results),
      fail: reject,
    });
    return promise;
  }

  batch(index: number): Batch {
    const batch = this.batches[index];
    assert(batch, `batch ${index} has begun`);
    return batch;
  }

  sizes(): number[] {
    return this.batches.map(({ commands }) => commands.length);
  }
}

type Result = Outcome | StoreFault;

/** Group commit on a stalled store, with every answer written down. */
function begin(limits?: QueueLimits) {
  const store = new StalledStore();
  const commit = new GroupCommit(store as unknown as Store, limits);
  /** Amounts and what came back, in the order of the answers. */
  const answers: [amount: number, answer: string][] = [];
  const submit = (amount: number, endUser = USER, onAnswer: () => void = () => {}) =>
    submitOf(1, amount, endUser, onAnswer);
  const submitOf = (account: number, amount: number, endUser = USER, onAnswer: () => void = () => {}) =>
    commit.submit({ ...subtraction(amount, endUser), account }, (result) => {
      answers.push([amount, nameOf(result)]);
      onAnswer();
    });
  const renew = (endUser: string) =>
    commit.submit({ kind: 'renew', account: 1, endUser }, (result) => answers.push([0, nameOf(result)]));
  return { store, commit, answers, submit, submitOf, renew };
}

const USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';

function subtraction(amount: number, endUser = USER): Command {
  return { kind: 'subtract', account: 1, endUser, actor: 'key:1', amount };
}

function nameOf(result: Result): string {
  return result instanceof StoreFault ? result.code : (result.refused ?? 'accepted');
}

function amountsOf({ commands }: Batch): (number | string)[] {
  return commands.map((command) => (command.kind === 'subtract' ? command.amount : command.kind));
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}

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
  const drained = commit.drained();
  await nextTurn();
  store.batch(0).finish();
  await nextTurn();
  await nextTurn();
  assert.deepEqual(store.batches.map(amountsOf), [[1], [2]]);
  store.batch(1).finish();
  await drained;
  assert.deepEqual(answers, [
    [1, 'accepted'],
    [2, 'accepted'],
  ]);
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
