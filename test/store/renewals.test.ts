// Renewals that the writer of a ledger file finds by itself: they are those that a command for each would enter, in the
// order of their rows, seen by nobody before they are committed, and entered again where a COMMIT was lost.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import type { Command } from '../../src/ledger/command.ts';
import { DAY_MS } from '../../src/ledger/instant.ts';
import { RENEWAL_SLICE } from '../../src/store/sqlite/due-renewals.ts';
import { LedgerClock } from '../../src/store/sqlite/ledger-clock.ts';
import { openSqliteStore, openSqliteStoreBeside } from '../../src/store/sqlite/sqlite-store.ts';
import { POSTING_LIMITS, type PostingLimits } from '../../src/store/sqlite/unposted.ts';
import { Writer } from '../../src/store/sqlite/writer.ts';
import type { Store, StoreFault } from '../../src/store/store.ts';
import { Random } from '../load/random.ts';
import { readByHand } from './outside.ts';
import {
  auditOf,
  balanceOf,
  EndUser,
  historyOf,
  NOON,
  SMALL_LIMITS,
  temporaryFile,
  transactionsOf,
} from './temporary-ledger.ts';

const NOTHING = { findings: [], store: [] };
const MANY = 40;
const users = Array.from({ length: MANY }, (_, index) => new EndUser(1 + (index % 2), 7 * index));

interface Opened {
  readonly file: string;
  readonly store: Required<Store>;
  readonly moveTo: (instant: number) => void;
}

async function opened(t: TestContext, limits: PostingLimits = POSTING_LIMITS): Promise<Opened> {
  const file = temporaryFile();
  let now = NOON;
  const store = (await openSqliteStore(file, () => now, { limits })) as Required<Store>;
  t.after(() => store.close().catch(() => {}));
  return {
    file,
    store,
    moveTo: (instant) => {
      now = instant;
    },
  };
}

async function renewAll(store: Required<Store>): Promise<number> {
  let renewed = 0;
  for (let rounds = 0; rounds < 1_000; rounds++) {
    const { endUsers, isMore } = await store.renewDue();
    renewed += endUsers;
    if (!isMore) return renewed;
  }
  throw new Error('it does not end');
}

async function renewByCommands(store: Store): Promise<void> {
  for (;;) {
    const due = await store.renewalsDue(MANY);
    if (due.length === 0) return;
    await store.write(due.map((key) => ({ kind: 'renew', ...key })));
  }
}

/** The writer by itself, on a ledger with these commands in it; the clock says what the test says. */
function writerOn(t: TestContext, commands: readonly Command[]) {
  const file = temporaryFile();
  openSqliteStoreBeside(file).close();
  const time = { now: NOON };
  const writer = new Writer(file, new LedgerClock(() => time.now));
  t.after(() => writer.close());
  writer.write(commands);
  return { file, writer, time };
}

/** The end users of the renewals that whoever reads beside the writer finds, in the order in which they were entered. */
function renewedIn(file: string): string[] {
  const sql = "SELECT lower(hex(end_user)) AS user FROM postings WHERE kind = 'renew' ORDER BY posting";
  return readByHand(file, sql).map(({ user }) => String(user));
}

function digitsOf({ key }: EndUser): string {
  return key.endUser.replaceAll('-', '');
}

for (const [who, limits] of [
  ['many', POSTING_LIMITS],
  ['few', SMALL_LIMITS],
] as const)
  test(`what they enter is what a command for each enters, while ${who} wait to be posted`, async (t) => {
    const [found, commanded] = [await opened(t, limits), await opened(t, limits)];
    const both = async (commands: readonly Command[]) => {
      const outcomes = await Promise.all([found, commanded].map(({ store }) => store.write(commands)));
      return outcomes[0];
    };
    const random = new Random(26);
    let at = NOON;
    for (let round = 0; round < 12; round++) {
      const some = users.filter(() => random.below(3) > 0);
      await both(some.map((user) => user.add(1 + random.below(50), 1 + random.below(4))));
      await both(some.map((user) => user.startCycle(10 + random.below(90), 1 + random.below(3), 'refuse')));
      await both(users.map((user) => user.subtract(1 + random.below(20))));
      if (round % 4 === 3) await both(some.slice(0, 5).map((user) => user.stopCycle()));
      at += (1 + random.below(4)) * (DAY_MS / 2) + random.below(1_000);
      for (const { moveTo } of [found, commanded]) moveTo(at);
      await renewAll(found.store);
      await renewByCommands(commanded.store);
      assert.deepEqual(await found.store.renewalsDue(1), []);
    }
    for (const user of users) {
      assert.deepEqual(await historyOf(found.store, user), await historyOf(commanded.store, user));
      assert.equal(await balanceOf(found.store, user), await balanceOf(commanded.store, user));
    }
    for (const { store } of [found, commanded]) assert.deepEqual(await auditOf(store), NOTHING);
    assert(renewedIn(found.file).length > 5 * MANY);
  });

test('who had credits when the hour began, and has spent those of the period, is counted in that hour no more', async (t) => {
  const { file, store, moveTo } = await opened(t);
  const [ada] = users as [EndUser];
  const began = NOON + 600_000;
  moveTo(began);
  await store.write([ada.startCycle(5, 2)]);
  moveTo(began + DAY_MS - 300_000);
  await store.write([ada.add(7, 1), ada.subtract(5)]);
  await store.close();
  // All that it has is in its rows now.
  const again = (await openSqliteStore(file, () => began + 2 * DAY_MS + 60_000)) as Required<Store>;
  t.after(() => again.close());
  assert.equal(await renewAll(again), 1);
  assert.deepEqual(await auditOf(again), NOTHING);
});

test('who has missed more periods than a slice has catches up, and so do those behind it', async (t) => {
  const { store, moveTo } = await opened(t);
  const [late, other] = users as [EndUser, EndUser];
  await store.write([late.startCycle(3, 1), other.startCycle(5, 100)]);
  moveTo(NOON + 100 * DAY_MS);
  assert(100 > 3 * RENEWAL_SLICE.periodsMax);
  assert.equal(await renewAll(store), 2);
  assert.deepEqual(await store.renewDue(), { endUsers: 0, isMore: false });
  assert.equal((await transactionsOf(store, late)).length, 101);
  assert.equal((await transactionsOf(store, other)).length, 2);
  assert.deepEqual(await auditOf(store), NOTHING);
});

test('those that are due at one instant are entered in the order of their rows, those before them first', (t) => {
  const order = [11, 3, 29, 17, 5, 23].map((index) => users[index] as EndUser);
  const { file, writer, time } = writerOn(
    t,
    order.map((user) => user.startCycle(1, 2)),
  );
  const early = users[39] as EndUser;
  writer.write([early.startCycle(1, 1)]);
  time.now += 2 * DAY_MS;
  assert.deepEqual(writer.renew(), { endUsers: 7, periods: 8 });
  writer.saveRenewals();
  const byRow = order.toSorted((a, b) => a.key.account - b.key.account || (digitsOf(a) < digitsOf(b) ? -1 : 1));
  assert.deepEqual(renewedIn(file), [digitsOf(early), digitsOf(early), ...byRow.map(digitsOf)]);
});

test('a slice is bounded, and nobody sees it before it is committed, which a batch does with its own', (t) => {
  const { file, writer, time } = writerOn(
    t,
    users.map((user) => user.startCycle(9, 1)),
  );
  time.now += DAY_MS;
  assert.deepEqual(writer.renew(), { endUsers: RENEWAL_SLICE.usersMax, periods: RENEWAL_SLICE.usersMax });
  assert.deepEqual([renewedIn(file).length, writer.takeRenewed()], [0, 0]);
  const { outcomes } = writer.write([(users[0] as EndUser).subtract(1)]);
  assert.equal(outcomes[0]?.refused, null);
  assert.deepEqual([renewedIn(file).length, writer.takeRenewed()], [RENEWAL_SLICE.usersMax, RENEWAL_SLICE.usersMax]);
  assert.equal(writer.takeRenewed(), 0, 'once');
});

test('a batch that is refused as a whole takes nothing back that was renewed before it, nor does whoever else writes', (t) => {
  const { file, writer, time } = writerOn(
    t,
    users.map((user) => user.startCycle(9, 1)),
  );
  time.now += DAY_MS;
  writer.renew();
  const { outcomes } = writer.write([(users[0] as EndUser).subtract(1_000)]);
  assert.equal(outcomes[0]?.refused, 'InsufficientFunds');
  assert.equal(renewedIn(file).length, RENEWAL_SLICE.usersMax);
  writer.renew();
  assert.equal(writer.deleteExpiredRecords(0), 0);
  assert.equal(renewedIn(file).length, 2 * RENEWAL_SLICE.usersMax);
  writer.renew();
  writer.close();
  assert.equal(renewedIn(file).length, MANY, 'a writer that is closed keeps them');
});

test('where a COMMIT is lost with them, they are entered again, once', (t) => {
  const { file, writer, time } = writerOn(
    t,
    users.map((user) => user.startCycle(9, 1)),
  );
  time.now += DAY_MS;
  writer.renew();
  const { exec } = DatabaseSync.prototype;
  const broken = t.mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
    if (sql === 'COMMIT') throw new Error('the disk is gone');
    exec.call(this, sql);
  });
  assert.throws(
    () => writer.write([(users[0] as EndUser).add(1)]),
    (fault: StoreFault) => fault.code === 'OutcomeUnknown',
  );
  broken.mock.restore();
  assert.deepEqual([writer.takeRenewed(), renewedIn(file).length], [0, 0]);
  for (let slice = writer.renew(); slice.periods > 0; slice = writer.renew());
  writer.saveRenewals();
  assert.deepEqual([writer.takeRenewed(), new Set(renewedIn(file)).size, renewedIn(file).length], [MANY, MANY, MANY]);
});

test('a thread renews beside batches, and all of it is there in the end', async (t) => {
  const file = temporaryFile();
  const before = await openSqliteStore(file, () => Date.now() - DAY_MS - 3_600_000);
  await before.write(users.map((user) => user.startCycle(100, 1)));
  await before.close();
  const store = (await openSqliteStore(file)) as Required<Store>;
  t.after(() => store.close().catch(() => {}));
  const renewing = [store.renewDue(), store.renewDue()];
  assert.equal(store.isJoining(), true);
  const writes = users.map((user) => store.write([user.subtract(1), user.subtract(1)]));
  for (const outcomes of await Promise.all(writes))
    assert.deepEqual(
      outcomes.map((outcome) => outcome?.refused),
      [null, null],
    );
  const renewed = await Promise.all(renewing);
  assert(renewed.every(({ isMore }) => !isMore));
  assert.equal(store.isJoining(), false);
  for (const user of users) {
    assert.equal(await balanceOf(store, user), 98);
    assert.deepEqual(await historyOf(store, user), ['-1 subtract', '-1 subtract', '+100 renew', '+100 start-cycle']);
  }
  assert.deepEqual(await auditOf(store), NOTHING);
  await store.close();
  await assert.rejects(store.renewDue());
});
