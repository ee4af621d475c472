// What is entered and not yet posted: it is answered from the journal, found there after a crash, and posted in the end.
// The file is read by SQL, beside the store, to see what is posted and what waits.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { DAY_MS } from '../../src/ledger/instant.ts';
import { openSqliteStore, openSqliteStoreBeside } from '../../src/store/sqlite/sqlite-store.ts';
import { POSTING_LIMITS, type PostingLimits } from '../../src/store/sqlite/unposted.ts';
import type { Store, StoreFault } from '../../src/store/store.ts';
import { byHand, crashed, readByHand } from './outside.ts';
import { auditOf, balanceOf, EndUser, historyOf, NOON, SMALL_LIMITS, temporaryFile } from './temporary-ledger.ts';

const ada = new EndUser(1, 1);
const bob = new EndUser(1, 2);
const NOTHING = { findings: [], store: [] };

interface Opened {
  readonly file: string;
  readonly store: Store;
  readonly moveTo: (instant: number) => void;
}

async function opened(t: TestContext, file = temporaryFile(), limits: PostingLimits = POSTING_LIMITS): Promise<Opened> {
  let now = NOON;
  const store = await openSqliteStore(file, () => now, { limits });
  t.after(() => store.close().catch(() => {}));
  const moveTo = (instant: number) => {
    now = instant;
  };
  return { file, store, moveTo };
}

/** By end user, how many of its postings its holdings count. */
function posted(file: string): number[] {
  const sql = "SELECT posting_count AS count FROM holdings WHERE type = 'end-user' ORDER BY end_user";
  return readByHand(file, sql).map(({ count }) => Number(count));
}

async function auditBeside(file: string) {
  const beside = openSqliteStoreBeside(file);
  return await auditOf(beside).finally(() => beside.close());
}

test('what is entered waits, is answered as it is, and is found whole from beside', async (t) => {
  const { file, store } = await opened(t);
  await store.write([ada.add(10), bob.add(5)]);
  await store.write([ada.add(4), ada.subtract(11), bob.subtract(5)]);
  assert.deepEqual(posted(file), [1, 1], 'only the first posting of each is in its holdings');
  assert.deepEqual([await balanceOf(store, ada), await balanceOf(store, bob)], [3, 0]);
  assert.deepEqual(await historyOf(store, ada), ['-11 subtract', '+4 add', '+10 add']);
  assert.deepEqual(await auditBeside(file), NOTHING);
  assert.deepEqual(await auditOf(store), NOTHING);
  assert.equal(await balanceOf(store, ada), 3, 'an audit leaves nothing behind');
});

test('after a crash it is found in the journal, and goes on', async (t) => {
  const { file, store } = await opened(t);
  await store.write([ada.add(10), bob.add(5)]);
  await store.write([ada.add(4), ada.subtract(11)]);
  await store.write([ada.subtract(1)]);
  const left = crashed(file);
  assert.deepEqual(posted(left), [1, 1]);
  const { store: again } = await opened(t, left);
  assert.deepEqual([await balanceOf(again, ada), await balanceOf(again, bob)], [2, 5]);
  const [refused] = await again.write([ada.subtract(3), ada.subtract(2), bob.subtract(1)]);
  assert.deepEqual(refused, { refused: 'InsufficientFunds', requested: 3, available: 2 });
  assert.deepEqual([await balanceOf(again, ada), await balanceOf(again, bob)], [0, 4]);
  assert.deepEqual(await auditOf(again), NOTHING);
});

test('whoever closes a ledger posts what waits', async (t) => {
  const { file, store } = await opened(t);
  await store.write([ada.add(10), bob.add(5)]);
  await store.write([ada.subtract(1), bob.subtract(1), ada.subtract(1)]);
  await store.close();
  assert.deepEqual(posted(file), [3, 2]);
  assert.deepEqual(await auditBeside(file), NOTHING);
});

test('whoever closes a ledger posts for a second, and the rest waits for the next', async (t) => {
  const { file, store } = await opened(t);
  const users = Array.from({ length: 12_000 }, (_, index) => new EndUser(1, index));
  // Who is new is posted at once; what comes behind that waits.
  for (const amount of [10, 5])
    for (let first = 0; first < users.length; first += 500)
      await store.write(users.slice(first, first + 500).map((user) => user.add(amount)));
  let nowMs = performance.now();
  const slow = t.mock.method(performance, 'now', () => {
    nowMs += 1_100;
    return nowMs;
  });
  await store.close();
  slow.mock.restore();
  const left = posted(file).filter((count) => count === 1).length;
  assert(left > 0 && left < users.length, `${left} wait on`);
  const { store: next } = await opened(t, file);
  for (const user of [users[0], users.at(-1)]) assert.equal(await balanceOf(next, user as EndUser), 15);
  assert.deepEqual(await auditOf(next), NOTHING);
});

test('starts, stops and renewals are posted at once, with what waited before them', async (t) => {
  const { file, store, moveTo } = await opened(t);
  await store.write([ada.add(10)]);
  await store.write([ada.subtract(1)]);
  await store.write([ada.startCycle(7, 1)]);
  assert.deepEqual(posted(file), [3]);
  await store.write([ada.subtract(2)]);
  assert.deepEqual(posted(file), [3]);
  moveTo(NOON + DAY_MS);
  await store.write([ada.renew()]);
  assert.deepEqual(posted(file), [5]);
  await store.write([ada.subtract(1), ada.stopCycle()]);
  assert.deepEqual(posted(file), [7]);
  assert.equal(await balanceOf(store, ada), 10 - 1 - 2 - 1 + 7);
});

test('an end user who is never left alone is posted now and then', async (t) => {
  const { file, store } = await opened(t);
  await store.write([ada.add(1_000)]);
  const { ofUserMax } = POSTING_LIMITS;
  for (let count = 0; count < ofUserMax - 1; count++) await store.write([ada.subtract(1)]);
  assert.deepEqual(posted(file), [1]);
  await store.write([ada.subtract(1)]);
  assert.deepEqual(posted(file), [1 + ofUserMax]);
  assert.equal(await balanceOf(store, ada), 1_000 - ofUserMax);
  for (let count = 0; count < ofUserMax - 1; count++) await store.write([ada.subtract(1)]);
  assert.deepEqual(posted(file), [1 + ofUserMax], 'and waits again');
  await store.write([ada.subtract(1)]);
  assert.deepEqual(posted(file), [1 + 2 * ofUserMax]);
  await store.write([ada.subtract(1)]);
  assert.equal(await balanceOf(store, ada), 1_000 - 2 * ofUserMax - 1);
  assert.deepEqual(await auditBeside(crashed(file)), NOTHING);
});

test('cycles by the dozen are spent from the oldest on, waiting or posted, and end while they wait', async (t) => {
  const { file, store, moveTo } = await opened(t);
  const count = 40;
  await store.write([ada.add(10, 2)]);
  const days = (index: number) => 3 + (index % 5);
  for (let index = 1; index < count; index++) {
    await store.write([ada.add(10, days(index)), ada.subtract(3)]);
    assert.equal(await balanceOf(store, ada), 10 + 7 * index, `${index + 1} cycles`);
  }
  const { store: again, moveTo: moveAgain } = await opened(t, crashed(file));
  for (const each of [store, again]) {
    await each.write([ada.subtract(25)]);
    assert.equal(await balanceOf(each, ada), 10 * count - 3 * (count - 1) - 25);
    assert.deepEqual(await auditOf(each), NOTHING);
  }
  moveTo(NOON + 4 * DAY_MS);
  moveAgain(NOON + 4 * DAY_MS);
  for (const each of [store, again]) {
    await each.write([ada.subtract(1)]);
    assert.deepEqual(await auditOf(each), NOTHING);
  }
  assert.equal(await balanceOf(store, ada), await balanceOf(again, ada));
});

test('credits that end while they wait are in the file as they were left', async (t) => {
  const { file, store, moveTo } = await opened(t);
  await store.write([ada.add(10, 1), ada.add(20, 3)]);
  await store.write([ada.subtract(4), ada.add(5, 2)]);
  moveTo(NOON + DAY_MS + 3_600_000);
  assert.equal(await balanceOf(store, ada), 25);
  const left = crashed(file);
  const { store: again, moveTo: moveAgain } = await opened(t, left);
  moveAgain(NOON + DAY_MS + 3_600_000);
  assert.equal(await balanceOf(again, ada), 25, 'redone from a journal that speaks of ended credits');
  for (const each of [store, again]) {
    await each.write([ada.subtract(1)]);
    assert.equal(await balanceOf(each, ada), 24);
    assert.deepEqual(await auditOf(each), NOTHING);
  }
});

test('the journal never runs away from the holdings, and each state on the way is whole', async (t) => {
  const { file, store } = await opened(t, temporaryFile(), SMALL_LIMITS);
  const people = Array.from({ length: 9 }, (_, index) => new EndUser(1 + (index % 2), index));
  await store.write(people.map((person) => person.add(100)));
  const spent = people.map(() => 0);
  for (let step = 0; step < 60; step++) {
    const some = [(step * 7) % 9, (step * 5 + 3) % 9, step % 4];
    await store.write(some.map((index) => (people[index] as EndUser).subtract(1)));
    for (const index of some) spent[index] = (spent[index] as number) + 1;
    const waiting = people.length + 3 * (step + 1) - posted(file).reduce((sum, count) => sum + count, 0);
    assert(waiting <= SMALL_LIMITS.tailMax + 3 * 3, `${waiting} postings wait`);
    assert.deepEqual(await auditBeside(file), NOTHING);
    if (step % 6 > 0) continue;
    const { store: again } = await opened(t, crashed(file), SMALL_LIMITS);
    for (const [index, person] of people.entries())
      assert.equal(await balanceOf(again, person), 100 - (spent[index] as number));
    await again.close();
  }
});

test('a commit that happened, though nobody could say so, is seen', async (t) => {
  const { store } = await opened(t);
  await store.write([ada.add(10)]);
  await store.write([ada.subtract(1)]);
  const { exec } = DatabaseSync.prototype;
  t.mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
    exec.call(this, sql);
    if (sql !== 'COMMIT') return;
    t.mock.restoreAll();
    throw new Error('disk I/O error');
  });
  await assert.rejects(store.write([ada.subtract(3)]), (error) => (error as StoreFault).code === 'OutcomeUnknown');
  assert.equal(await balanceOf(store, ada), 6);
  await store.write([ada.subtract(1)]);
  assert.equal(await balanceOf(store, ada), 5);
});

test('what is called posted and is not, is found', async (t) => {
  const { file, store } = await opened(t);
  await store.write([ada.add(10), bob.add(5)]);
  await store.write([ada.subtract(1)]);
  const left = crashed(file);
  byHand(left, 'UPDATE posted SET posting = 3');
  const { findings, store: faults } = await auditBeside(left);
  assert.notDeepEqual([...findings, ...faults], []);
});
