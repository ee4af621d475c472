// Tests that the renewal job settles all due end users, a bounded number at a time, even after faults.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ACCEPTED, ledgerStoreOf, ONE_LANE } from '../../test/batching/stalled-store.ts';
import type { Command, EndUserKey } from '../ledger/command.ts';
import { StoreFault } from '../store/store-fault.ts';
import { GroupCommit } from './group-commit.ts';
import { RenewalJob } from './renewal-job.ts';

const TICK_MS = 1_000;

class DueStore {
  readonly lanes = ONE_LANE;
  readonly dueUsers = new Map<string, EndUserKey>();
  readonly limits: number[] = [];
  readonly settled: string[] = [];
  readonly batchSizes: number[] = [];
  beforeWrite: () => Promise<void> = async () => {};
  beforeLookUp: () => void = () => {};

  constructor(count: number) {
    for (let number = 0; number < count; number++) this.add(`user ${number}`);
  }

  add(endUser: string): void {
    this.dueUsers.set(endUser, { account: 1, endUser });
  }

  async due(limit: number): Promise<readonly EndUserKey[]> {
    this.limits.push(limit);
    this.beforeLookUp();
    return [...this.dueUsers.values()].slice(0, limit);
  }

  async write(commands: readonly Command[], onDecided: () => void) {
    await this.beforeWrite();
    onDecided();
    this.batchSizes.push(commands.length);
    return commands.map(({ kind, endUser }) => {
      assert.equal(kind, 'settle');
      this.settled.push(endUser);
      this.dueUsers.delete(endUser);
      return ACCEPTED;
    });
  }
}

function begin(store: DueStore) {
  const troubles: unknown[] = [];
  const commit = new GroupCommit(ledgerStoreOf(store));
  const job = new RenewalJob(ledgerStoreOf(store), commit, (error) => troubles.push(error));
  return { job, commit, troubles };
}

function startedIn(test: TestContext, job: RenewalJob): () => Promise<void> {
  test.mock.timers.enable({ apis: ['setInterval'] });
  job.start();
  return async () => {
    test.mock.timers.tick(TICK_MS);
    for (let turn = 0; turn < 20; turn++) await nextTurn();
  };
}

test('the renewal job settles every due end user exactly once, a bounded number at a time', async () => {
  const store = new DueStore(1_700);
  const { job } = begin(store);
  await job.tick();
  assert.equal(store.settled.length, 1_700);
  assert.equal(new Set(store.settled).size, 1_700);
  assert.equal(job.settled, 1_700);
  assert(Math.max(...store.limits) <= 2 * 512, 'a search asks for at most two batches of end users');
  assert(Math.max(...store.batchSizes) <= 512);
});

test('while a batch is being written, the renewal job looks up due end users for only one more batch', async () => {
  const store = new DueStore(1_700);
  const { job, commit } = begin(store);
  const release = Promise.withResolvers<void>();
  store.beforeWrite = () => release.promise;
  const run = job.tick();
  for (let turn = 0; turn < 10; turn++) await nextTurn();
  const [limit = 0] = store.limits;
  assert.deepEqual(store.limits, [limit, 2 * limit]);
  assert(commit.queued <= 2 * limit, `${commit.queued} are queued`);
  release.resolve();
  await run;
  assert.equal(new Set(store.settled).size, 1_700);
  assert.equal(store.settled.length, 1_700, 'each end user is settled exactly once');
});

test('the renewal job stops even if its end users have so many due events that the store postpones each command', async () => {
  const store = new DueStore(3);
  const { job, commit, troubles } = begin(store);
  store.write = async (commands, onDecided) => {
    onDecided();
    store.batchSizes.push(commands.length);
    await nextTurn();
    return commands.map(() => null) as never;
  };
  void job.tick();
  while (store.batchSizes.length < 5) await nextTurn();
  await job.stop();
  await commit.drained();
  assert.deepEqual([commit.queued, troubles], [0, []]);
});

test('the renewal job writes nothing if nothing is due', async () => {
  const store = new DueStore(0);
  const { job, commit } = begin(store);
  await job.tick();
  assert.deepEqual([store.limits.length, commit.counts.batches, job.settled], [1, 0, 0]);
});

test('the renewal job looks for due end users every second after it has been started', async (t) => {
  const store = new DueStore(0);
  const { job } = begin(store);
  await nextTurn();
  const tick = startedIn(t, job);
  assert.equal(store.limits.length, 0);
  await tick();
  assert.equal(store.limits.length, 1);
  store.add('ada');
  await tick();
  assert.deepEqual(store.settled, ['ada']);
  await job.stop();
});

test('a tick of the renewal job during a run does not start a second run', async () => {
  const store = new DueStore(1);
  const { job } = begin(store);
  const release = Promise.withResolvers<void>();
  store.beforeWrite = () => release.promise;
  const run = job.tick();
  assert.equal(job.tick(), run);
  await nextTurn();
  assert.equal(store.limits.length, 1);
  release.resolve();
  await run;
  assert.deepEqual(store.settled, ['user 0']);
});

test('a failed search for due end users is reported, and the next tick tries again', async (t) => {
  const store = new DueStore(1);
  const { job, troubles } = begin(store);
  const tick = startedIn(t, job);
  const fault = new StoreFault('StoreUnavailable', 'for the test');
  store.beforeLookUp = () => {
    throw fault;
  };
  await tick();
  assert.deepEqual([troubles, store.settled], [[fault], []]);
  store.beforeLookUp = () => {};
  await tick();
  assert.deepEqual([troubles.length, store.settled], [1, ['user 0']]);
  await job.stop();
});

for (const code of ['StoreUnavailable', 'OutcomeUnknown', 'Internal'] as const) {
  test(`when a batch of the renewal job fails with ${code}, the fault is reported only once, and the next tick settles the end users`, async (t) => {
    const store = new DueStore(300);
    const { job, troubles } = begin(store);
    const tick = startedIn(t, job);
    const fault = new StoreFault(code, 'for the test');
    store.beforeWrite = () => Promise.reject(fault);
    await tick();
    assert.deepEqual(troubles, [fault]);
    assert.equal(job.settled, 0);
    store.beforeWrite = async () => {};
    await tick();
    assert.deepEqual([store.settled.length, job.settled], [300, 300]);
    await job.stop();
  });
}

test('stopping the renewal job waits for the batches that are being written and begins no new batch', async (t) => {
  const store = new DueStore(1_700);
  const { job } = begin(store);
  const tick = startedIn(t, job);
  const release = Promise.withResolvers<void>();
  store.beforeWrite = () => release.promise;
  await tick();
  let isStopped = false;
  const stopping = job.stop().then(() => {
    isStopped = true;
  });
  for (let turn = 0; turn < 10; turn++) await nextTurn();
  assert.equal(isStopped, false);
  release.resolve();
  await stopping;
  const { length } = store.limits;
  assert.equal(length, 2);
  assert.deepEqual([store.settled.length], store.batchSizes);
  await tick();
  assert.equal(store.limits.length, length, 'the job no longer ticks');
});

test('the renewal lag is measured from the latest search that found nothing due', async (t) => {
  let nowMs = 1_000;
  t.mock.method(performance, 'now', () => nowMs);
  const store = new DueStore(3);
  const { job } = begin(store);
  nowMs = 4_000;
  assert.equal(job.lateMs(), 3_000, 'the job has not looked yet');
  store.beforeWrite = () => Promise.reject(new StoreFault('StoreUnavailable', 'for the test'));
  await job.tick();
  assert.deepEqual([job.lateMs(), job.due], [3_000, 3]);
  store.beforeWrite = async () => {};
  await job.tick();
  assert.deepEqual([job.lateMs(), job.due], [0, 0]);
});
