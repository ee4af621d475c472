// The renewal clock against a store that says who is due: that everybody is renewed, a bounded number at a time, that
// trouble is survived, and that stopping waits.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ACCEPTED, type Command, type EndUserKey } from '../ledger/command.ts';
import { ONE_LANE, type RenewedSome, type Store, StoreFault } from '../store/store.ts';
import { GroupCommit } from './group-commit.ts';
import { RenewalJob } from './renewal-job.ts';

const TICK_MS = 1_000;
/** That a store renews in one go. */
const SOME = 100;

/** Knows who is due, and forgets those that were renewed. */
class DueStore {
  readonly lanes = ONE_LANE;
  readonly due = new Map<string, EndUserKey>();
  readonly asked: number[] = [];
  readonly renewed: string[] = [];
  readonly batchSizes: number[] = [];
  /** Called before each batch; what it throws befalls the batch. */
  beforeWrite: () => Promise<void> = async () => {};
  beforeLook: () => void = () => {};

  constructor(count: number) {
    for (let number = 0; number < count; number++) this.add(`user ${number}`);
  }

  add(endUser: string): void {
    this.due.set(endUser, { account: 1, endUser });
  }

  async renewalsDue(limit: number): Promise<readonly EndUserKey[]> {
    this.asked.push(limit);
    this.beforeLook();
    return [...this.due.values()].slice(0, limit);
  }

  async write(commands: readonly Command[]) {
    await this.beforeWrite();
    this.batchSizes.push(commands.length);
    return commands.map(({ kind, endUser }) => {
      assert.equal(kind, 'renew');
      this.renewed.push(endUser);
      this.due.delete(endUser);
      return ACCEPTED;
    });
  }
}

/** One that renews by itself, some at a time, whenever the test says so. */
class RenewingStore extends DueStore {
  readonly waiting: { go: () => void; fail: (error: unknown) => void }[] = [];

  renewDue(): Promise<RenewedSome> {
    const { promise, resolve, reject } = Promise.withResolvers<RenewedSome>();
    const go = () => {
      const some = [...this.due.keys()].slice(0, SOME);
      for (const endUser of some) this.due.delete(endUser);
      this.renewed.push(...some);
      resolve({ endUsers: some.length, isMore: some.length === SOME });
    };
    this.waiting.push({ go, fail: reject });
    return promise;
  }

  /** Until nothing is asked for. */
  async goOn(): Promise<void> {
    for (let next = this.waiting.shift(); next !== undefined; next = this.waiting.shift()) {
      next.go();
      await nextTurn();
    }
  }
}

function begin(store: DueStore) {
  const troubles: unknown[] = [];
  const commit = new GroupCommit(store as unknown as Store);
  const clock = new RenewalJob(store as unknown as Store, commit, (error) => troubles.push(error));
  return { clock, commit, troubles };
}

/** Starts the clock on timers that the test moves. */
function startedIn(test: TestContext, clock: RenewalJob): () => Promise<void> {
  test.mock.timers.enable({ apis: ['setInterval'] });
  clock.start();
  return async () => {
    test.mock.timers.tick(TICK_MS);
    for (let turn = 0; turn < 20; turn++) await nextTurn();
  };
}

test('everybody who is due is renewed, each once, a bounded number at a time', async () => {
  const store = new DueStore(1_700);
  const { clock } = begin(store);
  await clock.tick();
  assert.equal(store.renewed.length, 1_700);
  assert.equal(new Set(store.renewed).size, 1_700);
  assert.equal(clock.renewed, 1_700);
  const [limit = 0] = store.asked;
  assert(limit > 0 && limit <= 512, `${limit} at a time`);
  assert(Math.max(...store.asked) <= 2 * limit, 'with those that are being stored');
  assert(Math.max(...store.batchSizes) <= limit);
});

test('the next are looked for while those before them are being stored, and no further', async () => {
  const store = new DueStore(1_700);
  const { clock, commit } = begin(store);
  const goOn = Promise.withResolvers<void>();
  store.beforeWrite = () => goOn.promise;
  const round = clock.tick();
  for (let turn = 0; turn < 10; turn++) await nextTurn();
  const [limit = 0] = store.asked;
  assert.deepEqual(store.asked, [limit, 2 * limit]);
  assert(commit.queued <= 2 * limit, `${commit.queued} wait`);
  goOn.resolve();
  await round;
  assert.equal(new Set(store.renewed).size, 1_700);
  assert.equal(store.renewed.length, 1_700, 'nobody twice');
});

test('when nobody is due nothing is written', async () => {
  const store = new DueStore(0);
  const { clock, commit } = begin(store);
  await clock.tick();
  assert.deepEqual([store.asked.length, commit.counts.batches, clock.renewed], [1, 0, 0]);
});

test('it looks every second, and not before it is started', async (t) => {
  const store = new DueStore(0);
  const { clock } = begin(store);
  await nextTurn();
  const tick = startedIn(t, clock);
  assert.equal(store.asked.length, 0);
  await tick();
  assert.equal(store.asked.length, 1);
  store.add('somebody');
  await tick();
  assert.deepEqual(store.renewed, ['somebody']);
  await clock.stop();
});

test('a tick during a round joins it', async () => {
  const store = new DueStore(1);
  const { clock } = begin(store);
  const goOn = Promise.withResolvers<void>();
  store.beforeWrite = () => goOn.promise;
  const round = clock.tick();
  assert.equal(clock.tick(), round);
  await nextTurn();
  assert.equal(store.asked.length, 1);
  goOn.resolve();
  await round;
  assert.deepEqual(store.renewed, ['user 0']);
});

test('a store that cannot say who is due is trouble, and the next tick tries again', async (t) => {
  const store = new DueStore(1);
  const { clock, troubles } = begin(store);
  const tick = startedIn(t, clock);
  const fault = new StoreFault('StoreUnavailable', 'for the test');
  store.beforeLook = () => {
    throw fault;
  };
  await tick();
  assert.deepEqual([troubles, store.renewed], [[fault], []]);
  store.beforeLook = () => {};
  await tick();
  assert.deepEqual([troubles.length, store.renewed], [1, ['user 0']]);
  await clock.stop();
});

for (const code of ['StoreUnavailable', 'OutcomeUnknown', 'Internal'] as const) {
  test(`a write that fails with ${code} is trouble, told once, and the next tick renews what is left`, async (t) => {
    const store = new DueStore(300);
    const { clock, troubles } = begin(store);
    const tick = startedIn(t, clock);
    const fault = new StoreFault(code, 'for the test');
    store.beforeWrite = () => Promise.reject(fault);
    await tick();
    assert.deepEqual(troubles, [fault]);
    assert.equal(clock.renewed, 0);
    store.beforeWrite = async () => {};
    await tick();
    assert.equal(store.renewed.length, 300);
    assert.equal(clock.renewed, 300);
    await clock.stop();
  });
}

test('a queue that is full is trouble for this round only, and said once', async () => {
  const store = new DueStore(3);
  const commit = new GroupCommit(store as unknown as Store, { commandsMax: 0, bytesMax: 0 });
  const troubles: unknown[] = [];
  const clock = new RenewalJob(store as unknown as Store, commit, (error) => troubles.push(error));
  await clock.tick();
  assert.equal(troubles.length, 1);
  assert((troubles[0] as StoreFault).code === 'Overloaded');
  await clock.tick();
  assert.equal(commit.counts.overloads, 6, 'it is still trying');
  assert.equal(troubles.length, 1);
});

test('stopping waits for what is being renewed, and begins nothing more', async (t) => {
  const store = new DueStore(1_700);
  const { clock } = begin(store);
  const tick = startedIn(t, clock);
  const goOn = Promise.withResolvers<void>();
  store.beforeWrite = () => goOn.promise;
  await tick();
  let isStopped = false;
  const stopping = clock.stop().then(() => {
    isStopped = true;
  });
  for (let turn = 0; turn < 10; turn++) await nextTurn();
  assert.equal(isStopped, false);
  goOn.resolve();
  await stopping;
  const asked = store.asked.length;
  assert.equal(asked, 2, 'nobody else is asked for');
  assert.equal(store.renewed.length, store.asked[1]);
  await tick();
  assert.equal(store.asked.length, asked, 'and the clock ticks no more');
});

test('stopping a clock that does nothing is done at once, and leaves no timer that would keep the process alive', async (t) => {
  const { clock } = begin(new DueStore(5));
  const { setInterval } = globalThis;
  const made = t.mock.method(globalThis, 'setInterval', (work: () => void, ms: number) =>
    setInterval(work, ms).unref(),
  );
  const cleared = t.mock.method(globalThis, 'clearInterval');
  clock.start();
  await clock.stop();
  await clock.stop();
  const timers = made.mock.calls.map(({ result }) => result);
  assert.equal(timers.length, 1);
  assert.equal(cleared.mock.calls[0]?.arguments[0], timers[0]);
});

test('how late it is counts from when nothing was due', async (t) => {
  let nowMs = 1_000;
  t.mock.method(performance, 'now', () => nowMs);
  const store = new DueStore(3);
  const { clock } = begin(store);
  nowMs = 4_000;
  assert.equal(clock.lateMs(), 3_000, 'it has not looked yet');
  store.beforeWrite = () => Promise.reject(new StoreFault('StoreUnavailable', 'for the test'));
  await clock.tick();
  assert.deepEqual([clock.lateMs(), clock.due], [3_000, 3]);
  store.beforeWrite = async () => {};
  await clock.tick();
  assert.deepEqual([clock.lateMs(), clock.due], [0, 0]);
});

test('a store that renews by itself is asked twice at a time, until nothing is left, and no command is given', async () => {
  const store = new RenewingStore(5 * SOME + 1);
  const { clock, commit } = begin(store);
  const round = clock.tick();
  await nextTurn();
  assert.equal(store.waiting.length, 2, 'it need not wait for the clock');
  await store.goOn();
  await round;
  assert.deepEqual([store.renewed.length, clock.renewed, clock.due], [5 * SOME + 1, 5 * SOME + 1, 0]);
  assert.equal(commit.counts.batches, 0);
  await clock.tick();
  assert.deepEqual(
    [store.waiting.length, clock.lateMs() < TICK_MS],
    [0, true],
    'where nothing is due it is left alone',
  );
});

test('renewing that fails is trouble, and the next tick goes on', async (t) => {
  const store = new RenewingStore(3 * SOME);
  const { clock, troubles } = begin(store);
  const tick = startedIn(t, clock);
  await tick();
  const fault = new StoreFault('OutcomeUnknown', 'for the test');
  for (const { fail } of store.waiting.splice(0)) fail(fault);
  await nextTurn();
  await tick();
  assert.deepEqual([troubles, clock.renewed], [[fault], 0]);
  await store.goOn();
  await tick();
  assert.deepEqual([troubles.length, clock.renewed, store.waiting.length], [1, 3 * SOME, 0]);
  await clock.stop();
});

test('once renewing has failed no more is asked for in that round', async () => {
  const store = new RenewingStore(10 * SOME);
  const { clock, troubles } = begin(store);
  const round = clock.tick();
  await nextTurn();
  const [failing, other] = store.waiting.splice(0);
  const fault = new StoreFault('StoreUnavailable', 'for the test');
  failing?.fail(fault);
  await nextTurn();
  other?.go();
  await nextTurn();
  assert.equal(store.waiting.length, 0);
  await round;
  assert.deepEqual([troubles, clock.renewed], [[fault], SOME]);
});

test('how late a store is that renews by itself counts from when nothing was due, too', async (t) => {
  let nowMs = 1_000;
  t.mock.method(performance, 'now', () => nowMs);
  const store = new RenewingStore(SOME + 1);
  const { clock } = begin(store);
  nowMs = 4_000;
  const round = clock.tick();
  await nextTurn();
  assert.deepEqual([clock.lateMs(), clock.due], [3_000, SOME + 1]);
  await store.goOn();
  await round;
  assert.deepEqual([clock.lateMs(), clock.due], [0, 0]);
});

test('stopping waits for what a store is renewing, and asks for no more', async () => {
  const store = new RenewingStore(10 * SOME);
  const { clock } = begin(store);
  const round = clock.tick();
  await nextTurn();
  let isStopped = false;
  const stopping = clock.stop().then(() => {
    isStopped = true;
  });
  await nextTurn();
  assert.equal(isStopped, false);
  await store.goOn();
  await Promise.all([stopping, round]);
  assert.deepEqual([store.renewed.length, clock.renewed], [2 * SOME, 2 * SOME]);
});
