// Tests how many reads run in one turn of the event loop, and which reads wait for a write.

import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { oneTime, recurring, stateOf, subtract } from '../../../../test/ledger/ledger-builders.ts';
import { temporaryFile } from '../../../../test/store/temporary-ledger.ts';
import type { EndUserKey } from '../../../ledger/command.ts';
import { DAY_MS } from '../../../ledger/instant.ts';
import type { LoadedEndUser } from '../../loaded-end-user.ts';
import { StoreFault } from '../../store-fault.ts';
import { PendingPostings } from '../balances/pending-postings.ts';
import { openLedgerFile } from '../file/ledger-file.ts';
import { LedgerClock } from '../writer/ledger-clock.ts';
import type { LedgerWriter } from '../writer/ledger-writer.ts';
import type { Written } from '../writer/written.ts';
import { CYCLES_PER_TURN_MAX, SqliteLedgerStore } from './ledger-store.ts';

const ADA = { account: 1, endUser: '0a5d6e7c-8f90-4123-8456-7890abcdef01' };
const BOB = { account: 1, endUser: '0a5d6e7c-8f90-4123-8456-7890abcdef02' };

const others = (count: number) => Array.from({ length: count }, () => ({ account: 1, endUser: crypto.randomUUID() }));

const opened: DatabaseSync[] = [];
after(() => {
  for (const db of opened) db.close();
});

function storeWithSlowWriter() {
  const db = openLedgerFile(temporaryFile(), false);
  opened.push(db);
  const batches: PromiseWithResolvers<Written>[] = [];
  const call = () => {
    const batch = Promise.withResolvers<Written>();
    batches.push(batch);
    return batch.promise;
  };
  const clock = new LedgerClock(Date.now);
  const store = new SqliteLedgerStore(db, clock, new PendingPostings(), { call } as unknown as LedgerWriter, []);
  return { store, batches };
}

class Turns {
  readonly #store = storeWithSlowWriter().store;
  readonly #reads: Promise<LoadedEndUser>[] = [];
  readonly #byTurn: string[][] = [];
  #inTurn: string[] = [];

  add(user: EndUserKey, cycles: number): void {
    const cycle = oneTime();
    const loaded = { now: cycle.start, state: stateOf(...Array.from({ length: cycles }, () => cycle)) };
    const read = () => {
      assert(this.#store.db.isTransaction, 'a read runs in a transaction');
      this.#inTurn.push(user.endUser);
      return loaded;
    };
    this.#reads.push(this.#store.enqueue(user, read));
  }

  async end(): Promise<string[][]> {
    while (this.#byTurn.flat().length < this.#reads.length) {
      await nextTurn();
      if (this.#inTurn.length > 0) this.#byTurn.push(this.#inTurn);
      this.#inTurn = [];
    }
    await Promise.all(this.#reads);
    assert(!this.#store.db.isTransaction, 'no transaction is left open');
    return this.#byTurn;
  }
}

test('reads of end users with few cycles run together in one turn of the event loop, in the order in which they were queued', async () => {
  const turns = new Turns();
  const users = others(500);
  for (const user of users) turns.add(user, 3);
  assert.deepEqual(await turns.end(), [users.map(({ endUser }) => endUser)]);
});

test('only one or two reads of end users with thousands of cycles run in one turn of the event loop', async () => {
  const turns = new Turns();
  for (const user of others(5)) turns.add(user, CYCLES_PER_TURN_MAX);
  assert.deepEqual(
    (await turns.end()).map(({ length }) => length),
    [1, 1, 1, 1, 1],
  );
  const fewer = new Turns();
  for (let read = 0; read < 5; read++) fewer.add(ADA, CYCLES_PER_TURN_MAX - 1);
  assert.deepEqual(
    (await fewer.end()).map(({ length }) => length),
    [2, 2, 1],
  );
});

test('if one of the reads in a turn of the event loop fails, the other reads succeed', async () => {
  const { store } = storeWithSlowWriter();
  const failing = store.enqueue(ADA, () => {
    throw new StoreFault('StoreUnavailable', 'this one');
  });
  const beside = store.enqueue(BOB, () => ({ now: 0, state: stateOf() }));
  await assert.rejects(failing, /this one/);
  assert.deepEqual(await beside, { now: 0, state: stateOf() });
});

function besideReadsOfOneCycle() {
  const { store, batches } = storeWithSlowWriter();
  const cycle = recurring({ validityDays: 1, end: recurring().start + DAY_MS });
  return {
    store,
    due: cycle.end,
    read: (user: EndUserKey, now: number) => store.enqueue(user, () => ({ now, state: stateOf(cycle) })),
    write: (...users: readonly EndUserKey[]) => {
      const commands = users.map((user) => subtract(1, user));
      store.write(commands, () => {}).catch(() => {});
      const { resolve, reject } = batches.at(-1) as PromiseWithResolvers<Written>;
      const none = { outcomes: users.map(() => null), latestPostings: users.map(() => 0), rotations: 0 };
      return { end: () => resolve(none), fail: reject };
    },
  };
}

async function severalTurns(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await nextTurn();
}

test('a read waits for writes only if it shows a renewal, and only for writes of the same end user', async () => {
  const { read, write, due } = besideReadsOfOneCycle();
  write(ADA);
  await read(ADA, due - 1);
  await read(BOB, due);
});

test('a read that shows a renewal waits until every batch with a command for the same end user has succeeded or failed', async () => {
  const { read, write, due } = besideReadsOfOneCycle();
  const first = write(BOB, ADA);
  const second = write(ADA);
  let isRead = false;
  const reading = read(ADA, due).then(() => {
    isRead = true;
  });
  await severalTurns();
  first.end();
  await severalTurns();
  assert(!isRead, 'the second batch is still being written');
  second.fail(new StoreFault('StoreUnavailable', 'the disk is full'));
  await reading;
});

test('while the outcome of a write is unknown, a read of the same end user fails if it would show a renewal', async () => {
  const { store, read, write, due } = besideReadsOfOneCycle();
  const batch = write(ADA);
  const reading = read(ADA, due);
  await nextTurn();
  batch.fail(new StoreFault('OutcomeUnknown', 'COMMIT failed'));
  const unavailable = (error: unknown) => error instanceof StoreFault && error.code === 'StoreUnavailable';
  await assert.rejects(reading, unavailable);
  await assert.rejects(read(ADA, due), unavailable);
  await read(ADA, due - 1);
  await read(BOB, due);
  store.onTrouble(null);
  await read(ADA, due);
});

test('if the outcome of a write becomes unknown, a read of past balances fails, and a call that waits for all writes fails too', async () => {
  const { store, write, due } = besideReadsOfOneCycle();
  const batch = write(ADA);
  const waiting = [store.statesAt(ADA, [due]), store.passedInstant()];
  await severalTurns();
  batch.fail(new StoreFault('OutcomeUnknown', 'COMMIT failed'));
  for (const each of waiting) await assert.rejects(each, /the outcome of a write/);
});

test('if the journal cannot be read after the writer has recovered, reads fail until it can, and new writes succeed', async () => {
  const { store, batches } = storeWithSlowWriter();
  const { db } = store;
  store.onTrouble(new StoreFault('OutcomeUnknown', 'the COMMIT failed'));
  db.prepare = () => {
    throw Object.assign(new Error('disk I/O error'), { errcode: 10 });
  };
  const writing = store.write([subtract(1, BOB)], () => {});
  batches.at(-1)?.resolve({ outcomes: [null], latestPostings: [0], rotations: 0 });
  assert.deepEqual(await writing, [null]);
  await assert.rejects(store.load(ADA), { code: 'StoreUnavailable', message: 'disk I/O error' });
  Reflect.deleteProperty(db, 'prepare');
  assert.deepEqual((await store.load(ADA)).state, stateOf());
});
