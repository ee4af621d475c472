// Tests a ledger with a test clock on both stores. Credits follow the test clock; API keys and idempotency keys do not.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { DAY_MS } from '../../src/ledger/instant.ts';
import { StoreFault } from '../../src/store/store-fault.ts';
import {
  assertFieldRefused,
  assertProblem,
  eventually,
  MovableClock,
  type Scrip,
  someone,
  startScrip,
} from '../http/running-service.ts';
import { PostgresServer } from '../store/postgres/postgres-server.ts';
import { newDatabaseOn } from '../store/postgres/scrip-on-postgres.ts';

const RETENTION = { grantsMs: 30 * DAY_MS, othersMs: DAY_MS };

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

async function now(scrip: Scrip): Promise<number> {
  const reply = await scrip.get('/test-clock');
  assert.equal(reply.status, 200, reply.text);
  return Date.parse(reply.body.now);
}

async function move(scrip: Scrip, fields: object): Promise<number> {
  const reply = await scrip.post('/test-clock', fields);
  assert.equal(reply.status, 200, reply.text);
  return Date.parse(reply.body.now);
}

const iso = (instant: number) => new Date(instant).toISOString();

for (const [store, start] of [
  ['SQLite', () => startScrip({ testClock: true })],
  ['PostgreSQL', async () => startScrip({ testClock: true, database: await newDatabaseOn(server, { lanes: 2 }) })],
] as const) {
  describe(`the test clock (${store})`, () => {
    let scrip: Scrip;
    before(async () => {
      scrip = await start();
    });
    after(async () => {
      await scrip.assertConsistent();
      await scrip.stop();
    });

    test("the test clock of a new ledger starts at the machine's time and stands still", async () => {
      const fresh = await start();
      try {
        const began = await now(fresh);
        assert(Math.abs(Date.now() - began) < 60_000, iso(began));
        await new Promise((resolve) => setTimeout(resolve, 1_500));
        const { body } = await fresh.post('/start-cycle', { end_user_id: someone(), amount: 1 });
        assert.deepEqual([await now(fresh), body.current_cycle_start], [began, iso(began)]);
      } finally {
        await fresh.stop();
      }
    });

    test('if it is unknown whether the test clock was moved, the response does not invite a retry, even with an idempotency key', async (t) => {
      const { testClock } = scrip.service.stores;
      assert(testClock);
      const lost = new StoreFault('OutcomeUnknown', 'for the test');
      t.mock.method(testClock, 'move', () => Promise.reject(lost), { times: 1 });
      const reply = await scrip.post('/test-clock', { advance_days: 1 }, { headers: { 'idempotency-key': 'move' } });
      assertProblem(reply, 'OutcomeUnknown', 503);
      assert.equal(reply.headers['retry-after'], undefined);
    });

    test('an API call moves the test clock by a number of days or to an instant, with or without /v1 in the path; a read key can read the clock but not move it', async () => {
      const began = await now(scrip);
      assert.equal(await move(scrip, { advance_days: 3 }), began + 3 * DAY_MS);
      assert.equal(await move(scrip, { to: iso(began + 4 * DAY_MS) }), began + 4 * DAY_MS);
      const zoned = `${iso(began + 4 * DAY_MS + 3_600_000 + 1).slice(0, -1)}+01:00`;
      assert.equal(await move(scrip, { to: zoned }), began + 4 * DAY_MS + 1);
      const { status, body } = await scrip.post('/v1/test-clock', { advance_days: 1 });
      assert.deepEqual([status, body], [200, { now: iso(began + 5 * DAY_MS + 1) }]);
      assert.equal((await scrip.get('/v1/test-clock', {}, { key: scrip.readKey })).body.now, body.now);
      assertProblem(await scrip.post('/test-clock', { advance_days: 1 }, { key: scrip.readKey }), 'Forbidden', 403);
      assertProblem(await scrip.get('/test-clock', {}, { key: null }), 'Unauthorized', 401);
      assert.equal(await now(scrip), began + 5 * DAY_MS + 1, 'a refused request does not move the clock');
    });

    test('a request for the time of the test clock is refused if the query string or the body contains fields, or if the body is not an object', async () => {
      const ask = (query: string, body?: unknown) =>
        scrip.call('GET', `/test-clock${query}`, body === undefined ? {} : { body });
      assertFieldRefused(await ask('?a=1'), '/a');
      assertFieldRefused(await ask('', { a: 1 }), '/a');
      for (const body of ['[]', '5', 'null']) assertFieldRefused(await ask('', body), '');
      assert.equal((await ask('', {})).status, 200);
    });

    test('the test clock cannot be moved backwards, or to the end of the year 9999 or later; an invalid move changes nothing, and the error names the field', async () => {
      const began = await now(scrip);
      assert.equal(
        await move(scrip, { to: iso(began) }),
        began,
        'a move to the present instant succeeds and changes nothing',
      );
      for (const [fields, path] of [
        [{ to: iso(began - 1) }, '/to'],
        [{ to: '9999-12-31T23:59:59.999Z' }, '/to'],
        [{ to: 'tomorrow' }, '/to'],
        [{ to: '2027-01-01' }, '/to'],
        [{ to: 4_102_444_800_000 }, '/to'],
        [{ advance_days: 3_000_000 }, '/advance_days'],
        [{ advance_days: Number.MAX_SAFE_INTEGER }, '/advance_days'],
        [{ advance_days: 0 }, '/advance_days'],
        [{ advance_days: 1.5 }, '/advance_days'],
        [{ advance_days: '1' }, '/advance_days'],
        [{ advance_days: null }, '/advance_days'],
        [{ advance_days: 1, to: iso(began + DAY_MS) }, ''],
        [{}, ''],
        [[], ''],
        [{ advance_day: 1 }, '/advance_day'],
      ] as const)
        assertFieldRefused(await scrip.post('/test-clock', fields), path);
      assert.equal(await now(scrip), began);
    });

    test('if several requests move the test clock at the same time, the clock moves by the sum of all moves', async () => {
      const began = await now(scrip);
      const moved = await Promise.all(Array.from({ length: 10 }, () => move(scrip, { advance_days: 1 })));
      const expected = Array.from({ length: 10 }, (_, index) => began + (index + 1) * DAY_MS);
      assert.deepEqual(moved.toSorted(), expected);
      assert.equal(await now(scrip), began + 10 * DAY_MS);
    });

    test('after a move of the test clock, reads immediately show renewals, expired credits and lapsed holds', async () => {
      const end_user_id = someone();
      const began = await now(scrip);
      await scrip.post('/add', { end_user_id, amount: 100, validity_days: 10 });
      await scrip.post('/start-cycle', { end_user_id, amount: 50, validity_days: 5 });
      await scrip.post('/hold', { end_user_id, amount: 30, expires_in_seconds: 86_400 });
      assert.deepEqual(
        [(await scrip.balance(end_user_id)).active_balance, (await scrip.balance(end_user_id)).held],
        [120, 30],
      );
      await move(scrip, { to: iso(began + DAY_MS - 1) });
      assert.equal((await scrip.balance(end_user_id)).held, 30);
      await move(scrip, { to: iso(began + DAY_MS) });
      const lapsed = await scrip.balance(end_user_id);
      assert.deepEqual([lapsed.active_balance, lapsed.held], [150, undefined]);
      await move(scrip, { advance_days: 9 });
      const { active_balance, active_balance_by_cycle: cycles } = await scrip.balance(end_user_id);
      assert.deepEqual(
        [active_balance, cycles.map(({ cycle_start }) => cycle_start)],
        [50, [iso(began + 10 * DAY_MS)]],
      );
      const starts = (await scrip.transactions(end_user_id)).map(({ created_at }) => created_at);
      assert.deepEqual(
        starts,
        [10, 5, 0, 0].map((days) => iso(began + days * DAY_MS)),
      );
      const { points } = (await scrip.get('/get-balance-history', { end_user_id, from: iso(began) })).body;
      assert.deepEqual(
        [points.length, points.at(-1)?.active_balance],
        [11, 50],
        'the history ends at the time of the test clock',
      );
    });

    test('renewals that become due when the test clock moves are stored soon after the move', async () => {
      const end_user_id = someone();
      await scrip.post('/start-cycle', { end_user_id, amount: 50, validity_days: 1 });
      await move(scrip, { advance_days: 400 });
      const { ledger } = scrip.service.stores;
      await eventually(async () => {
        const { state } = await ledger.load({ account: 1, endUser: end_user_id });
        return state.cycles[0]?.period === 400 && (await ledger.due(1)).length === 0;
      }, 'the renewals are stored');
    });

    test('transactions at the same instant of the test clock are listed in reverse order of creation, on one page or several, and a refund of one of them returns its amount', async () => {
      const end_user_id = someone();
      await scrip.post('/add', { end_user_id, amount: 10_000 });
      const amounts = Array.from({ length: 120 }, (_, index) => index + 1);
      const ids: string[] = [];
      for (const amount of amounts) {
        const { headers } = await scrip.post('/subtract', { end_user_id, amount });
        ids.push(headers['transaction-id'] as string);
      }
      assert.deepEqual(ids.toSorted(), ids, 'the IDs ascend');
      const all = await scrip.transactions(end_user_id);
      assert.deepEqual(
        all.map(({ amount }) => amount),
        [...amounts.map((amount) => -amount).reverse(), 10_000],
      );
      assert.equal(new Set(all.map(({ created_at }) => created_at)).size, 1);
      const paged: number[] = [];
      let cursor: Record<string, string> = {};
      for (;;) {
        const { body } = await scrip.get('/get-all-user-transactions', { end_user_id, limit: '50', ...cursor });
        paged.push(...body.transactions.map(({ amount }) => amount));
        if (!body.next_cursor) break;
        cursor = { cursor: body.next_cursor };
      }
      assert.deepEqual(
        paged,
        all.map(({ amount }) => amount),
      );
      const refund = await scrip.post('/refund', { end_user_id, transaction_id: ids[7] });
      assert.deepEqual([refund.status, refund.body.amount], [200, 8]);
    });

    test('an idempotency key does not expire when the test clock moves by years', async () => {
      const end_user_id = someone();
      const headers = { 'idempotency-key': randomUUID() };
      const first = await scrip.post('/add', { end_user_id, amount: 5, validity_days: 20_000 }, { headers });
      await move(scrip, { advance_days: 4_000 });
      for (let step = 0; step < 64; step++) await scrip.service.stores.ledger.deleteExpiredRecords(RETENTION);
      const again = await scrip.post('/add', { end_user_id, amount: 5, validity_days: 20_000 }, { headers });
      assert.deepEqual([again.headers['idempotent-replayed'], again.text], ['true', first.text]);
      assert.equal((await scrip.balance(end_user_id)).active_balance, 5);
    });

    test("the times at which an API key was created and last used follow the machine's clock, not the test clock", async () => {
      await scrip.createKey('Acme', 'read');
      const keys = await scrip.service.stores.keys.list();
      for (const { createdAt } of keys) assert(Math.abs(Date.now() - createdAt) < 3_600_000, iso(createdAt));
      await eventually(
        async () => (await scrip.service.stores.keys.list()).some(({ lastUsedAt }) => lastUsedAt !== null),
        'the use of a key is recorded',
      );
      for (const { lastUsedAt } of await scrip.service.stores.keys.list())
        assert(lastUsedAt === null || Math.abs(Date.now() - lastUsedAt) < 3_600_000);
    });

    test('the totals and the lists of end users in the console follow the test clock', async () => {
      const end_user_id = someone();
      await scrip.post('/add', { end_user_id, amount: 7, validity_days: 2 });
      await move(scrip, { advance_days: 2 });
      const { console } = scrip.service.stores;
      const at = await now(scrip);
      await eventually(async () => {
        const { asOf } = await console.overview(1, { days: 7 });
        const { endUsers } = await console.endUsers(1, { list: { by: 'activity' }, after: null, limit: 50 });
        const listed = endUsers.find(({ endUser }) => endUser === end_user_id);
        return asOf === at && listed?.balance === 0 && listed.latestActivity === at - 2 * DAY_MS;
      }, 'the console has caught up');
    });
  });
}

describe('the retention of idempotency keys on a ledger with a test clock', () => {
  async function isReplayed(scrip: Scrip, end_user_id: string): Promise<boolean> {
    const headers = { 'idempotency-key': 'once' };
    const { status, text, headers: got } = await scrip.post('/subtract', { end_user_id, amount: 1 }, { headers });
    assert.equal(status, 200, text);
    return got['idempotent-replayed'] === 'true';
  }

  test("on SQLite, an idempotency key expires by the machine's clock, not by the test clock", async (t) => {
    const clock = new MovableClock('2026-11-20T08:00:00.123Z');
    const scrip = await startScrip({ clock, testClock: true });
    t.after(() => scrip.stop());
    const end_user_id = someone();
    await scrip.post('/add', { end_user_id, amount: 100, validity_days: 1_000 });
    await move(scrip, { advance_days: 300 });
    assert.equal(await isReplayed(scrip, end_user_id), false);
    await move(scrip, { advance_days: 200 });
    clock.advance(DAY_MS - 1);
    await scrip.service.stores.ledger.deleteExpiredRecords(RETENTION);
    assert.equal(await isReplayed(scrip, end_user_id), true);
    clock.advance(2);
    await scrip.service.stores.ledger.deleteExpiredRecords(RETENTION);
    assert.equal(await isReplayed(scrip, end_user_id), false);
    assert.equal((await scrip.balance(end_user_id)).active_balance, 98);
    await scrip.assertConsistent();
  });

  test("on PostgreSQL, an idempotency key expires by the database's clock, not by the test clock", async (t) => {
    const database = await newDatabaseOn(server, { lanes: 2 });
    const scrip = await startScrip({ testClock: true, database });
    t.after(() => scrip.stop());
    const end_user_id = someone();
    await scrip.post('/add', { end_user_id, amount: 100, validity_days: 1_000 });
    await move(scrip, { advance_days: 300 });
    assert.equal(await isReplayed(scrip, end_user_id), false);
    await move(scrip, { advance_days: 200 });
    const { url } = database as { url: string };
    const { rows } = await server.query(
      'SELECT recorded_at FROM scrip.idempotency_records',
      new URL(url).pathname.slice(1),
    );
    assert(Math.abs(Number(rows[0]?.recorded_at) - Date.now()) < 60_000, 'the time of the database is recorded');
    const age = (ms: number) =>
      server.query(
        `UPDATE scrip.idempotency_records SET recorded_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint - ${ms}`,
        new URL(url).pathname.slice(1),
      );
    const sweep = async () => {
      for (let step = 0; step < 64; step++) await scrip.service.stores.ledger.deleteExpiredRecords(RETENTION);
    };
    await age(DAY_MS - 600_000);
    await sweep();
    assert.equal(await isReplayed(scrip, end_user_id), true);
    await age(DAY_MS + 1);
    await sweep();
    assert.equal(await isReplayed(scrip, end_user_id), false);
    assert.equal((await scrip.balance(end_user_id)).active_balance, 98);
  });
});
