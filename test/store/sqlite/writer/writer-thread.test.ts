// Tests the writer thread: the order of batches, concurrent reads, the stored clock, and the death of the thread.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { hashOf } from '../../../../src/accounts/api-key.ts';
import { DAY_MS } from '../../../../src/ledger/instant.ts';
import type { Transaction } from '../../../../src/ledger/posting.ts';
import { dueTransactions } from '../../../../src/ledger/settle.ts';
import { createApiKey } from '../../../../src/store/key-store.ts';
import { openSqliteTools } from '../../../../src/store/sqlite/tools/ledger-tools.ts';
import { Random } from '../../../load/random.ts';
import {
  ACCEPTED,
  balanceOf,
  EndUser,
  keyed,
  problemsOf,
  replayed,
  temporaryFile,
  transactionsOf,
} from '../../temporary-ledger.ts';
import type { TestLedger } from '../../test-ledger.ts';
import { openFor, openInPlace, SMALL } from '../sqlite-ledger.ts';

const ada = new EndUser(1, 1);

test('batches that are sent at the same time are executed and answered in order', async (t) => {
  for (const options of [{}, SMALL]) {
    const ledger = await openFor(t, temporaryFile(), options);
    const ended: number[] = [];
    const batches = Array.from({ length: 50 }, (_, index) => [ada.add(index + 1), ada.subtract(index + 1)]);
    const writes = batches.map(async (batch, index) => {
      const outcomes = await ledger.results(batch);
      ended.push(index);
      return outcomes;
    });
    for (const outcomes of await Promise.all(writes)) assert.deepEqual(outcomes, [ACCEPTED, ACCEPTED]);
    assert.deepEqual(ended, [...batches.keys()]);
    assert.equal(await balanceOf(ledger, ada), 0);
  }
});

test('a read during writes includes every write that was acknowledged before the read', async (t) => {
  for (const options of [{}, SMALL]) {
    const ledger = await openFor(t, temporaryFile(), options);
    const random = new Random(51);
    const users = Array.from({ length: 9 }, (_, index) => new EndUser(1 + (index % 2), random.uuid()));
    const acknowledged = new Map(users.map((user) => [user, 0]));
    const write = async (user: EndUser) => {
      await ledger.write([user.add(1)]);
      acknowledged.set(user, (acknowledged.get(user) as number) + 1);
    };
    const read = async (user: EndUser) => {
      const before = acknowledged.get(user) as number;
      assert((await balanceOf(ledger, user)) >= before);
      const page = await ledger.transactions(user.key);
      assert(page.transactions.length >= before);
      assert.equal(
        page.state.cycles.reduce((sum, { remaining }) => sum + remaining, 0),
        page.transactions.reduce((sum, { amount }) => sum + amount, 0),
        'a page and its cycles are one snapshot',
      );
    };
    for (let round = 0; round < 60; round++)
      await Promise.all([...users, ...users].map((user) => (random.chance(0.5) ? write(user) : read(user))));
    assert.deepEqual(problemsOf(await ledger.audit()), []);
  }
});

const SECOND_MS = 1_000;

test('after a read has shown a renewal, no earlier transaction is inserted into the history, even while the writer is busy', async (t) => {
  for (const options of [{}, SMALL]) {
    const file = temporaryFile();
    const users = Array.from({ length: 24 }, (_, index) => new EndUser(1, index));
    const soon = Date.now() + SECOND_MS;
    // The first daily cycle ends in a second. Each further cycle ends 30 ms after the previous one.
    const before = await openInPlace(t, file, { wall: soon - DAY_MS });
    for (const user of users) {
      await before.write([user.startCycle(1_000, 1)]);
      before.wall += 30;
    }
    await before.close();
    const ledger = await openFor(t, file, options);
    const shown = new Map<EndUser, (readonly Transaction[])[]>(users.map((user) => [user, []]));
    const isOver = () => Date.now() > soon + SECOND_MS;
    const random = new Random(53);
    const busy = Array.from({ length: 3 }, async () => {
      while (!isOver()) await ledger.write([random.pick(users).subtract(1)]);
    });
    while (!isOver()) {
      await Promise.all(users.map(async (user) => shown.get(user)?.push(await shownOf(ledger, user))));
      await new Promise(setImmediate);
    }
    await Promise.all(busy);
    await ledger.write(users.map((user) => user.settle()));
    let renewals = 0;
    for (const user of users) {
      const all = await transactionsOf(ledger, user);
      for (const list of shown.get(user) ?? []) {
        if (list[0]?.kind === 'renew') renewals += 1;
        assert.deepEqual(list, all.slice(all.length - list.length), 'nothing is inserted into a list that was shown');
      }
    }
    assert(renewals > 0, 'some lists began with a renewal');
    assert.deepEqual(problemsOf(await ledger.audit()), []);
  }
});

/** Long enough for the writer thread to commit while the test blocks its own thread. */
const COMMITTED_MS = 200;

test('a read that shows a renewal waits for an earlier write that is committed but not acknowledged yet', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  const ledger = await openFor(t, temporaryFile());
  await ledger.write([ada.startCycle(100, 1)]);
  const writing = Promise.withResolvers<unknown>();
  setImmediate(() => {
    writing.resolve(ledger.write([ada.subtract(30)]));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, COMMITTED_MS);
    // The day has ended on the clock of this thread, but not on the clock of the writer thread.
    t.mock.timers.tick(DAY_MS + SECOND_MS);
  });
  // These reads begin before this thread has received the reply of the writer thread.
  const [list, page, history] = await Promise.all([
    shownOf(ledger, ada),
    ledger.load(ada.key),
    ledger.history(ada.key),
  ]);
  assert.deepEqual(
    list.map(({ amount }) => amount),
    [100, -30, 100],
  );
  for (const { state } of [page, history]) assert.equal(state.cycles[0]?.remaining, 70);
  assert.equal(history.transactions.length, 2);
  await writing.promise;
  await ledger.write([ada.settle()]);
  assert.deepEqual(await transactionsOf(ledger, ada), list);
});

async function shownOf(ledger: TestLedger, { key }: EndUser): Promise<readonly Transaction[]> {
  const { state, now, transactions } = await ledger.transactions(key, { limit: 10_000 });
  return [...dueTransactions(state, now), ...transactions];
}

test('an idle ledger flushes its pending balances, and every read is correct during and after the flush', async (t) => {
  const file = temporaryFile();
  const ledger = await openFor(t, file);
  const random = new Random(52);
  const users = Array.from({ length: 300 }, () => new EndUser(1, random.uuid()));
  await ledger.write(users.map((user) => user.add(5)));
  await ledger.write(users.map((user) => user.subtract(2)));
  const db = new DatabaseSync(file, { readOnly: true });
  t.after(() => db.close());
  const stored = () => Number(db.prepare(`SELECT count(*) AS count FROM balances WHERE remaining = 3`).get()?.count);
  for (let tries = 0; stored() < users.length; tries++) {
    assert(tries < 200, `${stored()} balances are stored after 10 s`);
    for (const user of users.slice(0, 10)) assert.equal(await balanceOf(ledger, user), 3);
    await sleep(50);
  }
  for (const user of users) assert.equal(await balanceOf(ledger, user), 3);
  await ledger.write(users.map((user) => user.subtract(1)));
  for (const user of users) assert.equal(await balanceOf(ledger, user), 2);
  assert.deepEqual(problemsOf(await ledger.audit()), []);
});

test('the clock of the ledger file is moved to the instant of the latest read, even if nothing else is written', async (t) => {
  const file = temporaryFile();
  const ledger = await openFor(t, file);
  const db = new DatabaseSync(file, { readOnly: true });
  t.after(() => db.close());
  await sleep(5);
  const { now } = await ledger.load(ada.key);
  for (let tries = 0; Number(db.prepare('SELECT at FROM clock').get()?.at) < now; tries++) {
    assert(tries < 100, 'after a kill, the clock of the ledger would be earlier than the read');
    await sleep(50);
  }
});

test('if another process creates or revokes an API key in a ledger file, the next lookup of the key by the server shows the change', async (t) => {
  const file = temporaryFile();
  const ledger = await openFor(t, file);
  const { tools, keys } = openSqliteTools(file, { create: false });
  t.after(() => tools.close());
  const secret = await createApiKey(keys, { accountName: 'Lovelace Ltd', scope: 'read' });
  const key = await ledger.keys.find(hashOf(secret));
  assert.equal(key?.scope, 'read');
  assert.deepEqual(await ledger.keys.list(), await keys.list());
  assert.equal(await keys.revoke(key.id), true);
  assert.equal(await ledger.keys.find(hashOf(secret)), null);
});

async function withWriter(t: TestContext, file: string): Promise<{ ledger: TestLedger; worker: Worker }> {
  const started = Promise.withResolvers<Worker>();
  process.once('worker', (worker) => started.resolve(worker));
  return { ledger: await openFor(t, file), worker: await started.promise };
}

test('if the writer thread dies, writes fail, reads continue, and the next start finds all acknowledged writes', async (t) => {
  const file = temporaryFile();
  const { ledger, worker } = await withWriter(t, file);
  assert.deepEqual(await ledger.results([keyed(ada.add(10), 'first', '1')]), [ACCEPTED]);
  const inFlight = [ledger.write([keyed(ada.add(20), 'second', '2')]), ledger.consumeFeed()];
  const results = Promise.allSettled(inFlight);
  await worker.terminate();
  for (const result of await results)
    if (result.status === 'rejected') assert.equal(result.reason.code, 'OutcomeUnknown');
  assert.match(ledger.trouble() ?? '', /the writer thread has ended/);
  await assert.rejects(ledger.write([ada.add(1)]), { name: 'StoreFault', code: 'Internal' });
  assert((await balanceOf(ledger, ada)) >= 10, 'reads continue');
  await ledger.close();
  const again = await openFor(t, file);
  const repeated = [keyed(ada.add(10), 'first', '3'), keyed(ada.add(20), 'second', '4')];
  const [first, second] = await again.results(repeated);
  assert.deepEqual(first, replayed(ACCEPTED, '1'));
  assert(second?.replayOf === '2' || second?.replayOf === undefined, 'the key resolves the unknown outcome');
  assert.equal(await balanceOf(again, ada), 30);
  assert.deepEqual(problemsOf(await again.audit()), []);
});

test('after the writer thread dies, a read that would show a renewal fails if the outcome of an earlier write of the end user is unknown', async (t) => {
  const file = temporaryFile();
  const bob = new EndUser(1, 2);
  const soon = Date.now() + SECOND_MS;
  const before = await openInPlace(t, file, { wall: soon - DAY_MS });
  await before.write([ada.startCycle(100, 1), bob.startCycle(100, 1)]);
  await before.close();
  const { ledger, worker } = await withWriter(t, file);
  const write = ledger.write([ada.subtract(1)]);
  const result = write.then(
    () => 'acknowledged',
    (error) => error.code,
  );
  await worker.terminate();
  await sleep(Math.max(0, soon - Date.now()));
  assert.equal(await balanceOf(ledger, bob), 100, 'renewals of other end users are shown');
  if ((await result) === 'acknowledged') assert.equal(await balanceOf(ledger, ada), 100);
  else await assert.rejects(ledger.load(ada.key), { name: 'StoreFault', code: 'StoreUnavailable' });
});

test('closing a ledger waits for running writes', async (t) => {
  const file = temporaryFile();
  const ledger = await openFor(t, file);
  const writes = Array.from({ length: 10 }, () => ledger.results([ada.add(1)]));
  await ledger.close();
  for (const outcomes of await Promise.all(writes)) assert.deepEqual(outcomes, [ACCEPTED]);
  assert.equal(await balanceOf(await openFor(t, file), ada), 10);
});
