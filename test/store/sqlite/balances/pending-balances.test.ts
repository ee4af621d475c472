// Tests pending balances: reads and writes include them, a crash does not lose them, and all are eventually flushed.

import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { DAY_MS, HOUR_MS } from '../../../../src/ledger/instant.ts';
import { CACHE_LIMITS, type CacheLimits } from '../../../../src/store/sqlite/balances/end-user-cache.ts';
import { openLedgerFile } from '../../../../src/store/sqlite/file/ledger-file.ts';
import { LedgerClock } from '../../../../src/store/sqlite/writer/ledger-clock.ts';
import { Writer } from '../../../../src/store/sqlite/writer/writer.ts';
import { Random } from '../../../load/random.ts';
import {
  ACCEPTED,
  balanceOf,
  EndUser,
  historyOf,
  idsOf,
  NOON,
  problemsOf,
  resultOf,
  temporaryFile,
} from '../../temporary-ledger.ts';
import type { TestLedger } from '../../test-ledger.ts';
import { auditBeside, crashed, openInPlace } from '../sqlite-ledger.ts';

const [ada, bob] = [new EndUser(1, 1), new EndUser(1, 2)];
const CACHE: CacheLimits = { endUsersMax: 8, postingsMax: 8, cyclesMax: 60, ageMaxMs: HOUR_MS, perUserMax: 5 };

const NO_ID = '019c13ec-9e00-4000-8002-000000000000';

function scattered(count: number, random: Random): EndUser[] {
  return Array.from({ length: count }, (_, index) => new EndUser(1 + (index % 2), random.uuid()));
}

test('reads, writes and an audit of an open ledger include pending balances', async (t) => {
  const file = temporaryFile();
  const ledger = await openInPlace(t, file);
  await ledger.write([ada.add(10), bob.add(5)]);
  await ledger.write([ada.add(4), ada.subtract(11), bob.subtract(5)]);
  assert.deepEqual([await balanceOf(ledger, ada), await balanceOf(ledger, bob)], [3, 0]);
  assert.deepEqual(await historyOf(ledger, ada), ['-11 subtract', '+4 add', '+10 add']);
  assert.deepEqual(problemsOf(await auditBeside(file)), []);
  assert.equal(await balanceOf(ledger, ada), 3, 'an audit changes nothing');
});

test('after a crash, pending balances are recovered from the journal, and further writes can change them', async (t) => {
  const file = temporaryFile();
  const ledger = await openInPlace(t, file);
  await ledger.write([ada.add(10), bob.add(5)]);
  await ledger.write([ada.add(4), ada.subtract(11)]);
  await ledger.write([ada.subtract(1)]);
  const again = await openInPlace(t, crashed(file));
  assert.deepEqual([await balanceOf(again, ada), await balanceOf(again, bob)], [2, 5]);
  const refused = { refused: 'InsufficientFunds', requested: 3, available: 2 };
  const outcomes = await again.results([ada.subtract(3), ada.subtract(2), bob.subtract(1)]);
  assert.deepEqual(outcomes, [refused, ACCEPTED, ACCEPTED]);
  assert.deepEqual([await balanceOf(again, ada), await balanceOf(again, bob)], [0, 4]);
  assert.deepEqual(problemsOf(await again.audit()), []);
});

test('a crash after any batch loses no pending balance', async (t) => {
  const random = new Random(31);
  const people = scattered(20, random);
  const balances = new Map(people.map((user) => [user, 0]));
  const file = temporaryFile();
  const ledger = await openInPlace(t, file, { cache: CACHE });
  for (let step = 0; step < 60; step++) {
    // Each step writes to the first end user, so that its balance is pending in nearly every generation of the cache.
    const some = [people[0], people[step % 3], random.pick(people), random.pick(people)] as EndUser[];
    for (const user of new Set(some)) {
      const amount = 1 + random.below(9);
      const isSpent = (balances.get(user) as number) >= amount && random.chance(0.5);
      await ledger.write([isSpent ? user.subtract(amount) : user.add(amount, 1 + random.below(60))]);
      balances.set(user, (balances.get(user) as number) + (isSpent ? -amount : amount));
    }
    const again = await openInPlace(t, crashed(file), { cache: CACHE, wall: ledger.wall });
    await assertBalances(again, balances);
    if (step % 5 === 0) {
      await again.write(people.flatMap((user) => [user.add(1), user.subtract(1)]));
      await assertBalances(again, balances);
      assert.deepEqual(problemsOf(await again.audit()), []);
    }
    await again.close();
    if (step % 20 === 19) await ledger.reopen();
  }
  await assertBalances(ledger, balances);
});

async function assertBalances(ledger: TestLedger, balances: ReadonlyMap<EndUser, number>): Promise<void> {
  for (const [user, balance] of balances) assert.equal(await balanceOf(ledger, user), balance, user.key.endUser);
}

test('a crash after any batch loses no pending hold or refund', async (t) => {
  const random = new Random(37);
  const people = scattered(12, random);
  const file = temporaryFile();
  const ledger = await openInPlace(t, file, { cache: CACHE });
  await ledger.write(people.map((user) => user.add(200, 30)));
  const ids = new Map(people.map((user) => [user, { holds: [NO_ID], spent: [NO_ID] }]));
  for (let step = 0; step < 80; step++) {
    const user = random.pick(people);
    const own = ids.get(user) as { holds: string[]; spent: string[] };
    const [hold, spent] = [random.pick(own.holds), random.pick(own.spent)];
    const commands = [
      user.hold(1 + random.below(9), random.pick([60, 3_600, 86_400])),
      random.pick([user.capture(hold, random.pick([null, 2, 12])), user.release(hold), user.subtract(3)]),
      random.pick([user.refund(spent, random.pick([null, 1])), user.add(5, 1), user.startCycle(9, 1, 'replace')]),
    ];
    const [held, ended] = idsOf(await ledger.write(commands));
    if (held) own.holds.push(held);
    if (ended) own.spent.push(ended);
    ledger.wall += random.pick([0, 1_000, 61_000, HOUR_MS, 9 * HOUR_MS]);
    const again = await openInPlace(t, crashed(file), { cache: CACHE, wall: ledger.wall });
    for (const { key } of people) assert.deepEqual(await again.load(key), await ledger.load(key));
    await again.write(people.map((each) => each.settle()));
    if (step % 8 === 0) assert.deepEqual(problemsOf(await again.audit()), []);
    await again.close();
  }
});

test('a ledger that crashes repeatedly, soon after each start, loses nothing', async (t) => {
  const random = new Random(32);
  const people = scattered(30, random);
  let file = temporaryFile();
  const balances = new Map(people.map((user) => [user, 0]));
  for (let crashes = 0; crashes < 24; crashes++) {
    const ledger = await openInPlace(t, file, { cache: CACHE, wall: NOON + crashes * HOUR_MS });
    for (let batch = 0; batch < 1 + (crashes % 4); batch++) {
      const some = [...new Set(Array.from({ length: 5 }, () => random.pick(people)))];
      await ledger.write(some.map((user) => user.add(3, 90)));
      for (const user of some) balances.set(user, (balances.get(user) as number) + 3);
    }
    file = crashed(file);
    await ledger.close();
    if (crashes % 8 === 7) assert.deepEqual(problemsOf(await auditBeside(file)), []);
  }
  await assertBalances(await openInPlace(t, file, { wall: NOON + 50 * HOUR_MS }), balances);
});

test('if credits expire while their balance is pending, the balance is still flushed correctly', async (t) => {
  const file = temporaryFile();
  const ledger = await openInPlace(t, file);
  await ledger.write([ada.add(10, 1), ada.add(20, 3)]);
  await ledger.write([ada.subtract(4), ada.add(5, 2)]);
  const wall = NOON + DAY_MS + HOUR_MS;
  ledger.wall = wall;
  assert.equal(await balanceOf(ledger, ada), 25);
  const again = await openInPlace(t, crashed(file), { wall });
  assert.equal(await balanceOf(again, ada), 25, 'the balance is recovered from a journal with expired credits');
  for (const each of [ledger, again]) {
    await each.write([ada.subtract(1)]);
    assert.equal(await balanceOf(each, ada), 24);
    assert.deepEqual(problemsOf(await each.audit()), []);
    await each.reopen();
    assert.equal(await balanceOf(each, ada), 24);
    assert.deepEqual(problemsOf(await each.audit()), []);
  }
});

test('a ledger stays correct if a batch of refused commands flushes pending balances', async (t) => {
  const random = new Random(33);
  const people = scattered(12, random);
  const file = temporaryFile();
  const ledger = await openInPlace(t, file, { cache: CACHE });
  await ledger.write(people.map((user) => user.add(5, 1)));
  for (let round = 0; round < 20; round++) {
    const [user] = scattered(1, random);
    await ledger.write([(user as EndUser).subtract(1), ...people.map((each) => each.subtract(6))]);
    if (round === 10) ledger.wall += DAY_MS;
    assert.deepEqual(problemsOf(await auditBeside(crashed(file))), []);
  }
});

test('closing a ledger flushes all pending balances', async (t) => {
  const random = new Random(34);
  const people = scattered(700, random);
  const file = temporaryFile();
  const ledger = await openInPlace(t, file);
  for (const amount of [10, 5]) for (const user of people.slice(0, 50)) await ledger.write([user.add(amount)]);
  await ledger.write(people.slice(50).map((user) => user.add(15)));
  await ledger.close();
  const writer = new Writer(file, new LedgerClock(() => NOON));
  t.after(() => writer.close());
  assert.deepEqual([writer.tick(), writer.tick()], [0, 0], 'there is nothing to flush');
  assert.deepEqual(problemsOf(await auditBeside(file)), []);
});

function writerOf(t: TestContext, cache?: CacheLimits): { writer: Writer; file: string } {
  const file = temporaryFile();
  openLedgerFile(file, false).close();
  const writer = new Writer(file, new LedgerClock(() => NOON), cache && { cache });
  t.after(() => writer.close());
  return { writer, file };
}

const FLUSHED_AT_ONCE = 10;

test('an idle writer flushes pending balances in parts until none are left, and a crash between two parts loses nothing', async (t) => {
  const random = new Random(35);
  const people = scattered(100, random);
  const { writer, file } = writerOf(t, { ...CACHE_LIMITS, endUsersMax: 64, postingsMax: 64 });
  for (const user of people) writer.write([user.add(10), user.subtract(3)]);
  let ticks = 0;
  const restingSize = () => {
    const before = statSync(`${file}-wal`).size;
    writer.tick(FLUSHED_AT_ONCE);
    ticks += 1;
    return statSync(`${file}-wal`).size === before;
  };
  for (let quiet = 0; quiet < 3; quiet = restingSize() ? quiet + 1 : 0) {
    assert(ticks < 100, 'the writer stops writing');
    assert.deepEqual(problemsOf(await auditBeside(crashed(file))), []);
  }
  assert(ticks > people.length / 64, `${ticks} ticks`);
  const again = await openInPlace(t, crashed(file));
  for (const user of people) assert.equal(await balanceOf(again, user), 7);
});

test('an idle writer continues to flush until nothing is pending, and stops as soon as a write arrives', (t) => {
  const people = scattered(30, new Random(37));
  const { writer } = writerOf(t);
  writer.write(people.map((user) => user.add(5)));
  assert.equal(writer.isFlushing, false, 'the writer is not idle');
  writer.tick();
  writer.tick(FLUSHED_AT_ONCE);
  assert.equal(writer.isFlushing, true, 'some balances are still pending');
  writer.write([(people[0] as EndUser).add(1)]);
  assert.equal(writer.isFlushing, false);
  for (let ticks = 0; ticks < 6; ticks++) writer.tick(FLUSHED_AT_ONCE);
  assert.equal(writer.isFlushing, false, 'nothing is pending');
});

test('writes succeed while pending balances are flushed in parts, and the ledger stays correct', async (t) => {
  const random = new Random(36);
  const people = scattered(60, random);
  const { writer, file } = writerOf(t, CACHE);
  const balances = new Map(people.map((user) => [user, 0]));
  for (let step = 0; step < 200; step++) {
    const user = random.pick(people);
    const { outcomes } = writer.write([user.add(2)]);
    assert.deepEqual(outcomes.map(resultOf), [ACCEPTED]);
    balances.set(user, (balances.get(user) as number) + 2);
    for (let ticks = random.below(4); ticks > 0; ticks--) writer.tick(FLUSHED_AT_ONCE);
    if (step % 40 > 0) continue;
    const again = await openInPlace(t, crashed(file));
    await assertBalances(again, balances);
    assert.deepEqual(problemsOf(await again.audit()), []);
  }
});

test('flushing a balance that was recovered from the journal does not change the balance', (t) => {
  const { writer, file } = writerOf(t);
  writer.write([ada.add(10), bob.add(20)]);
  writer.write([ada.subtract(1)]);
  const again = new Writer(crashed(file), new LedgerClock(() => NOON));
  t.after(() => again.close());
  while (again.tick() === 0);
  const { outcomes } = again.write([ada.subtract(10), bob.subtract(20), ada.subtract(9)]);
  assert.deepEqual(
    outcomes.map((outcome) => outcome?.refused),
    ['InsufficientFunds', null, null],
  );
});
