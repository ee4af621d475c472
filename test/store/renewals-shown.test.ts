// A renewal that is due and not stored is computed by whoever reads. Once shown it stands: what a batch does that has its
// instant already, and is not answered yet, comes before it and has to be waited for.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Command } from '../../src/ledger/command.ts';
import { DAY_MS, HOUR_MS } from '../../src/ledger/instant.ts';
import { renewalsDueCount } from '../../src/ledger/settle.ts';
import { openLedgerFile } from '../../src/store/sqlite/ledger-file.ts';
import { ReadsInTurn } from '../../src/store/sqlite/reads-in-turn.ts';
import { WritesUnderWay } from '../../src/store/sqlite/writes-under-way.ts';
import { type Store, StoreFault } from '../../src/store/store.ts';
import { EndUser, historyOf, openFor, temporaryFile } from './temporary-ledger.ts';

const ada = new EndUser(1, 1);
const bob = new EndUser(1, 2);

/** Long enough for the writer's thread to be done, whose answer this thread then has still to read. */
const WRITE_MS = 200;

/**
 * Reads while the writer's thread, in which the day goes on, has done a command and its answer has not been looked at: here
 * the day is over by then.
 *
 * @param read asks for one turn of the event loop, in which it is done behind the write
 */
async function readDuring<Result>(
  t: TestContext,
  command: Command,
  read: (store: Store) => Promise<Result>,
): Promise<{ store: Store; result: Result }> {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  const store = await openFor(t, temporaryFile());
  await store.write([ada.startCycle(100, 1), bob.startCycle(50, 1)]);
  const writing = new Promise((resolve) => {
    setImmediate(() => {
      resolve(store.write([command]));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WRITE_MS);
      t.mock.timers.tick(DAY_MS + HOUR_MS);
    });
  });
  const result = await read(store);
  await writing;
  return { store, result };
}

test('a list waits for a write that comes before the renewal that it shows', async (t) => {
  const list = (store: Store) => store.transactions(ada.key, { from: null, limit: 10 });
  const { store, result } = await readDuring(t, ada.subtract(30), list);
  assert.equal(renewalsDueCount(result.cycles, result.now), 1, 'it shows a renewal');
  assert.deepEqual(
    result.transactions.map(({ amount }) => amount),
    [-30, 100],
  );
  await store.write([ada.renew()]);
  assert.deepEqual(await historyOf(store, ada), ['+100 renew', '-30 subtract', '+100 start-cycle']);
});

test('so do what is held, and what the console shows', async (t) => {
  const all = (store: Store) =>
    Promise.all([
      store.cycles(ada.key),
      store.accountReads.history(ada.key, { from: null, limit: 10, since: null }),
      store.accountReads.cyclesSince(ada.key, 0),
    ]);
  const { result } = await readDuring(t, ada.subtract(30), all);
  for (const { cycles, now } of result) {
    assert.equal(renewalsDueCount(cycles, now), 1);
    assert.deepEqual(
      cycles.map(({ remaining }) => remaining),
      [70],
    );
  }
});

const START = Date.UTC(2026, 0, 1);
const cycle = {
  id: '00000000-0000-4000-8000-000000000001',
  period: 0,
  type: 'recurring',
  status: 'active',
  amount: 10,
  remaining: 10,
  start: START,
  end: START + DAY_MS,
  validityDays: 1,
} as const;

/** Reads that find a cycle of one day, a day later, or in its middle. */
function reads(t: TestContext) {
  const db = openLedgerFile(temporaryFile(), false);
  t.after(() => db.close());
  const writes = new WritesUnderWay();
  const inTurn = new ReadsInTurn(db, writes);
  const read = (user: EndUser, now: number) => inTurn.add(user.key, () => ({ now, cycles: [cycle] }));
  return { writes, read };
}

test('whoever sees no renewal waits for nobody', async (t) => {
  const { writes, read } = reads(t);
  writes.begin([ada.subtract(1)]);
  await read(ada, cycle.end - 1);
  await read(bob, cycle.end);
});

test('of several batches each is waited for, and one that fails did nothing', async (t) => {
  const { writes, read } = reads(t);
  const first = writes.begin([bob.subtract(1), ada.subtract(1)]);
  const second = writes.begin([ada.subtract(2)]);
  let isRead = false;
  const reading = read(ada, cycle.end).then(() => {
    isRead = true;
  });
  const turns = async () => {
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
  };
  await turns();
  writes.end(first);
  await turns();
  assert(!isRead, 'the second is under way still');
  writes.end(second);
  await reading;
});

test('while it is not known what became of a write, no renewal is shown', async (t) => {
  const { writes, read } = reads(t);
  const batch = writes.begin([ada.subtract(1)]);
  const reading = read(ada, cycle.end);
  await new Promise(setImmediate);
  writes.lose(batch);
  const unavailable = (error: unknown) => error instanceof StoreFault && error.code === 'StoreUnavailable';
  await assert.rejects(reading, unavailable);
  await assert.rejects(read(ada, cycle.end), unavailable);
  await read(ada, cycle.end - 1);
  await read(bob, cycle.end);
  writes.find();
  await read(ada, cycle.end);
});
