// Tests holds in PostgreSQL. Also tests that transaction IDs ascend even if the clock is set back.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { WriteCommand } from '../../../src/ledger/command.ts';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import type { EndUserState } from '../../../src/ledger/state.ts';
import { ACCEPTED, balanceOf, EndUser, NOON, problemsOf, transactionsOf } from '../temporary-ledger.ts';
import type { TestLedger } from '../test-ledger.ts';
import { openFor, openOnMovedClock } from './postgres-ledger.ts';
import { PostgresServer } from './postgres-server.ts';

const HOUR_MS = 3_600_000;
const LIMIT = { timeout: 60_000 };

const ada = new EndUser(1, 1);

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

async function transactionOf(ledger: TestLedger, command: WriteCommand): Promise<string> {
  const [outcome] = await ledger.write([command]);
  assert(outcome?.refused === null && outcome.transactionId !== null);
  return outcome.transactionId;
}

async function historyOf({ store }: TestLedger, { key }: EndUser) {
  return (await store.history(key, { from: null, limit: 100 })).transactions.toReversed();
}

const REFUSED: readonly (readonly [what: string, sql: string])[] = [
  ['more held credits than remain in a cycle', 'UPDATE scrip.cycles SET held = remaining + 1'],
  ['held credits below zero', 'UPDATE scrip.cycles SET held = -1'],
  ['spending of credits that are held', 'UPDATE scrip.cycles SET remaining = held - 1'],
  ['a hold that spends credits', `UPDATE scrip.postings SET amount = -1 WHERE kind = 'hold'`],
  ['a hold that holds nothing', `UPDATE scrip.postings SET held = 0 WHERE kind = 'hold'`],
  ['a hold that never lapses', `UPDATE scrip.postings SET hold_expires_at = NULL WHERE kind = 'hold'`],
  ['a capture that adds credits', `UPDATE scrip.postings SET amount = 1 WHERE kind = 'capture'`],
  ['a capture that holds credits', `UPDATE scrip.postings SET held = 1 WHERE kind = 'capture'`],
  ['a capture that refers to no hold', `UPDATE scrip.postings SET reference = NULL WHERE kind = 'capture'`],
  ['a release that spends credits', `UPDATE scrip.postings SET amount = -1 WHERE kind = 'release'`],
  ['a release that returns nothing', `UPDATE scrip.postings SET held = NULL WHERE kind = 'release'`],
  ['a refund that takes credits', `UPDATE scrip.postings SET amount = -1 WHERE kind = 'refund'`],
  ['a refund that refers to no transaction', `UPDATE scrip.postings SET reference = NULL WHERE kind = 'refund'`],
  ['a subtraction that holds credits', `UPDATE scrip.postings SET held = 1 WHERE kind = 'subtract'`],
  [
    'a subtraction after the end of its cycle',
    `UPDATE scrip.postings SET expires_at = created_at WHERE kind = 'subtract'`,
  ],
  ['a posting of an unknown kind', `UPDATE scrip.postings SET kind = 'gift' WHERE kind = 'add'`],
  ['two postings of a transaction with the same line number', `UPDATE scrip.postings SET line = 0 WHERE kind = 'hold'`],
  [
    'a second active recurring cycle',
    `INSERT INTO scrip.cycles
       SELECT (jsonb_populate_record(active, jsonb_build_object('cycle_id', gen_random_uuid()))).*
       FROM scrip.cycles active WHERE type = 'recurring'`,
  ],
];

test('the constraints in PostgreSQL reject invalid holds, refunds and cycles', LIMIT, async (t) => {
  const url = await server.createDatabase();
  const ledger = await openFor(t, url);
  await ledger.write([ada.add(10, 10), ada.add(50, 20)]);
  const captured = await transactionOf(ledger, ada.hold(20));
  const released = await transactionOf(ledger, ada.hold(5));
  const spent = await transactionOf(ledger, ada.subtract(3));
  await ledger.write([ada.capture(captured, 7), ada.release(released), ada.refund(spent, 2), ada.hold(1)]);
  await ledger.write([ada.startCycle(5)]);
  assert.deepEqual(problemsOf(await ledger.audit()), []);
  for (const [what, sql] of REFUSED)
    await assert.rejects(
      server.query(sql, new URL(url).pathname.slice(1)),
      (error: { code?: string }) => error.code === '23514' || error.code === '23505',
      what,
    );
});

describe('transaction IDs and instants of an end user on PostgreSQL', { concurrency: true, ...LIMIT }, () => {
  /** These commands change no cycle, because the only cycle has ended. */
  const ENDS: readonly (readonly [what: string, command: (hold: string, spent: string) => WriteCommand])[] = [
    ['a release', (hold) => ada.release(hold)],
    ['a capture', (hold) => ada.capture(hold)],
    ['a refund', (_, spent) => ada.refund(spent)],
  ];
  for (const [what, command] of ENDS) {
    test(`transaction IDs on PostgreSQL ascend after ${what} of expired credits, even if the clock is set back`, async (t) => {
      const url = await server.createDatabase();
      let wall = NOON;
      const open = () => openOnMovedClock(t, url, () => wall);
      const [ledger, other] = [await open(), await open()];
      await ledger.write([ada.add(100, 1)]);
      const hold = await transactionOf(ledger, ada.hold(40, 172_800));
      const spent = await transactionOf(ledger, ada.subtract(10));
      wall = NOON + DAY_MS + HOUR_MS;
      const end = await transactionOf(ledger, command(hold, spent));
      wall = NOON + DAY_MS - HOUR_MS;
      const next = await transactionOf(other, ada.add(1));
      assert(next > end, `${next} comes after ${end}`);
      assert.deepEqual(problemsOf(await other.audit()), []);
    });
  }

  test('transaction IDs on PostgreSQL ascend even if they are created in the same millisecond and no cycle changes', async (t) => {
    const url = await server.createDatabase();
    let wall = NOON;
    const processes = [await openOnMovedClock(t, url, () => wall), await openOnMovedClock(t, url, () => wall)] as const;
    await processes[0].write([ada.add(100, 1)]);
    const holds: string[] = [];
    for (let index = 0; index < 20; index++) holds.push(await transactionOf(processes[0], ada.hold(1, 172_800)));
    wall += DAY_MS;
    const ids: string[] = [];
    for (const [index, hold] of holds.entries())
      ids.push(await transactionOf(processes[index % 2] as TestLedger, ada.release(hold)));
    assert.deepEqual(ids, ids.toSorted());
    assert.deepEqual(problemsOf(await processes[1].audit()), []);
  });
});

test(
  "when PostgreSQL's clock jumps ahead, the next batch first stores all lapses that have become due",
  LIMIT,
  async (t) => {
    let wall = NOON;
    const ledger = await openOnMovedClock(t, await server.createDatabase(), () => wall);
    const users = Array.from({ length: 8 }, (_, index) => new EndUser(1, index));
    await ledger.write(users.flatMap((user) => [user.add(10), user.hold(4, 60), user.hold(6, 120)]));
    const refused = { refused: 'InsufficientFunds', requested: 1, available: 0 };
    wall = NOON + 59_999;
    assert.deepEqual(await ledger.results(users.map((user) => user.subtract(1))), Array(8).fill(refused));
    wall = NOON + 60_000;
    assert.deepEqual(await ledger.results(users.map((user) => user.subtract(4))), Array(8).fill(ACCEPTED));
    assert.deepEqual(await ledger.results(users.map((user) => user.subtract(1))), Array(8).fill(refused));
    wall = NOON + DAY_MS;
    // A hold command loads all holds; a subtraction loads only due holds.
    const mixed = users.map((user, index) => (index % 2 === 0 ? user.subtract(6) : user.hold(6)));
    assert((await ledger.write(mixed)).every((outcome) => outcome?.refused === null));
    for (const user of users) {
      const lapses = (await historyOf(ledger, user)).filter(({ kind }) => kind === 'lapse');
      assert.deepEqual(
        lapses.map(({ createdAt }) => createdAt - NOON),
        [60_000, 120_000],
      );
    }
    assert.deepEqual(problemsOf(await ledger.audit()), []);
  },
);

test('snapshots in PostgreSQL contain all open holds, although subtractions do not load them', LIMIT, async (t) => {
  const url = await server.createDatabase();
  const run = (sql: string) => server.query(sql, new URL(url).pathname.slice(1));
  const ledger = await openFor(t, url);
  await ledger.write([ada.add(10_000, 10), ada.add(5, 20)]);
  // Scrip stores snapshots at random. A snapshot of one of the first two transactions would contain no holds.
  await run('DELETE FROM scrip.snapshots');
  await ledger.write(Array.from({ length: 30 }, (_, index) => ada.hold(1 + index)));
  await ledger.write(Array.from({ length: 30 }, (_, index) => ada.hold(1 + index, 600 + index)));
  const seen: { readonly at: number; readonly state: EndUserState }[] = [];
  for (let batch = 0; batch < 60; batch++) await ledger.write(Array.from({ length: 25 }, () => ada.subtract(1)));
  for (let batch = 0; batch < 20; batch++) {
    await ledger.write([...Array.from({ length: 25 }, () => ada.subtract(1)), ada.hold(1)]);
    const { now, state } = await ledger.load(ada.key);
    seen.push({ at: now, state });
    while ((await ledger.load(ada.key)).now === now);
  }
  const { rows } = await run(`SELECT count(*)::integer AS count, count(*) FILTER (WHERE state LIKE '%]],[[%')::integer
    AS with_holds FROM scrip.snapshots`);
  assert(rows[0].with_holds > 0 && rows[0].count === rows[0].with_holds, JSON.stringify(rows));
  const { states } = await ledger.store.statesAt(
    ada.key,
    seen.map(({ at }) => at),
  );
  assert.deepEqual(
    states,
    seen.map(({ state }) => state),
  );
  assert.equal(await balanceOf(ledger, ada), 10_005 - 1_500 - 500 - 2 * 465 - 20);
  assert.deepEqual(problemsOf(await ledger.audit()), []);
});

test(
  'a list of transactions on PostgreSQL is complete even if its pages must skip hundreds of holds and releases',
  LIMIT,
  async (t) => {
    const ledger = await openFor(t, await server.createDatabase());
    await ledger.write([ada.add(500)]);
    for (let round = 0; round < 3; round++) {
      const outcomes = await ledger.write(Array.from({ length: 100 }, () => ada.hold(1)));
      const ids = outcomes.flatMap((outcome) => (outcome?.refused === null ? (outcome.transactionId ?? []) : []));
      await ledger.write([...ids.map((id) => ada.release(id)), ada.subtract(1 + round)]);
    }
    for (const limit of [1, 2, 3, 4, 1_000]) {
      const listed = await transactionsOf(ledger, ada, limit);
      assert.deepEqual(
        listed.map(({ amount }) => amount),
        [-3, -2, -1, 500],
      );
    }
  },
);
