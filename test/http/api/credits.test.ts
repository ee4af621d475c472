// Tests how clients add, spend and read credits: fields, formats, defaults and spending order.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertProblem, MovableClock, type Scrip, someone, startScrip } from '../running-service.ts';

const DAY_MS = 86_400_000;
const MORNING = '2026-11-20T08:00:00.123Z';
const LAST_INSTANT = '9999-12-31T23:59:59.999Z';

const clock = new MovableClock(MORNING);
let scrip: Scrip;
before(async () => {
  scrip = await startScrip({ clock });
});
after(() => scrip.stop());

const later = (milliseconds: number) => clock.set(clock.now + milliseconds);
const timestamp = (instant: number) => new Date(instant).toISOString();

test('an addition returns 200 with only the end user and the added credits', async () => {
  const user = someone();
  const reply = await scrip.post('/add', { end_user_id: user, amount: 100, validity_days: 7 });
  assert.equal(reply.status, 200);
  assert.match(reply.headers['content-type'] ?? '', /^application\/json/);
  assert.deepEqual(reply.body, { end_user_id: user, amount: 100 });
});

test('a subtraction returns 200 with only the end user and the subtracted credits', async () => {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: 100 });
  const reply = await scrip.post('/subtract', { end_user_id: user, amount: 30 });
  assert.equal(reply.status, 200);
  assert.match(reply.headers['content-type'] ?? '', /^application\/json/);
  assert.deepEqual(reply.body, { end_user_id: user, amount: 30 });
  assert.equal((await scrip.balance(user)).active_balance, 70);
});

test('a balance contains the end user, each cycle and the sum of all credits, and its timestamps are in UTC with milliseconds', async () => {
  const user = someone();
  clock.set('2026-11-21T08:00:00.000Z');
  await scrip.post('/add', { end_user_id: user, amount: 100, validity_days: 7 });
  await scrip.post('/subtract', { end_user_id: user, amount: 30 });
  const reply = await scrip.get('/get-active-balance', { end_user_id: user });
  assert.equal(reply.status, 200);
  assert.match(reply.headers['content-type'] ?? '', /^application\/json/);
  assert.deepEqual(reply.body, {
    end_user_id: user,
    active_balance_by_cycle: [
      {
        cycle_start: '2026-11-21T08:00:00.000Z',
        cycle_end: '2026-11-28T08:00:00.000Z',
        amount: 70,
        starting_amount: 100,
        status: 'active',
        cycle_type: 'one-time',
      },
    ],
    active_balance: 70,
  });
});

test('transactions are listed newest first, with positive amounts for grants and negative amounts for subtractions', async () => {
  const user = someone();
  clock.set('2026-11-22T08:00:00.123Z');
  await scrip.post('/add', { end_user_id: user, amount: 100, validity_days: 7 });
  later(1_000);
  await scrip.post('/subtract', { end_user_id: user, amount: 30 });
  later(1_000);
  await scrip.post('/start-cycle', { end_user_id: user, amount: 50 });
  const reply = await scrip.get('/get-all-user-transactions', { end_user_id: user });
  assert.equal(reply.status, 200);
  assert.match(reply.headers['content-type'] ?? '', /^application\/json/);
  const withoutIds = reply.body.transactions.map(({ transaction_id: _, ...rest }) => rest);
  assert.deepEqual(withoutIds, [
    { amount: 50, created_at: '2026-11-22T08:00:02.123Z', expire_at: '2026-12-23T08:00:02.123Z' },
    { amount: -30, created_at: '2026-11-22T08:00:01.123Z', expire_at: '2026-11-29T08:00:00.123Z' },
    { amount: 100, created_at: '2026-11-22T08:00:00.123Z', expire_at: '2026-11-29T08:00:00.123Z' },
  ]);
  assert.deepEqual(Object.keys(reply.body), ['end_user_id', 'transactions']);
  assert.equal(reply.body.end_user_id, user);
});

test('transaction IDs are version 4 UUIDs that sort in order of creation, even within one millisecond', async () => {
  const user = someone();
  for (let count = 0; count < 10; count++) {
    await scrip.post('/add', { end_user_id: user, amount: 10 });
    await scrip.post('/subtract', { end_user_id: user, amount: 1 + count });
    if (count % 3 === 2) later(1);
  }
  const ids = (await scrip.transactions(user)).map(({ transaction_id }) => transaction_id);
  assert.equal(ids.length, 20);
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(new Set(ids).size, 20);
  assert.deepEqual(ids, ids.toSorted().reverse());
});

test('credits are valid for 31 days when validity_days is absent or null', async () => {
  for (const fields of [{}, { validity_days: null }, { validity_days: 31 }]) {
    const user = someone();
    const reply = await scrip.post('/add', { end_user_id: user, amount: 1, ...fields });
    assert.equal(reply.status, 200, JSON.stringify(fields));
    const [entry] = (await scrip.balance(user)).active_balance_by_cycle;
    assert.equal(entry?.cycle_end, timestamp(clock.now + 31 * DAY_MS), JSON.stringify(fields));
  }
});

for (const [name, days] of [
  ['a validity beyond the year 9999', '2912400'],
  ['2^53 days', '9007199254740992'],
  ['10^30 days', `1${'0'.repeat(30)}`],
  ['a number of 400 digits', '9'.repeat(400)],
] as const) {
  test(`validity_days has no upper limit: with ${name}, credits expire at the last instant that a timestamp can represent`, async () => {
    const user = someone();
    const reply = await scrip.call('POST', '/add', {
      body: `{"end_user_id":"${user}","amount":5,"validity_days":${days}}`,
    });
    assert.equal(reply.status, 200, reply.text);
    const { active_balance, active_balance_by_cycle } = await scrip.balance(user);
    assert.equal(active_balance, 5);
    assert.equal(active_balance_by_cycle[0]?.cycle_end, LAST_INSTANT);
    assert.equal((await scrip.transactions(user))[0]?.expire_at, LAST_INSTANT);
  });
}

test('validity_days is applied exactly if the credits expire on the last day of the year 9999', async () => {
  const user = someone();
  const days = Math.floor((Date.parse(LAST_INSTANT) - clock.now) / DAY_MS);
  await scrip.post('/add', { end_user_id: user, amount: 5, validity_days: days });
  const [entry] = (await scrip.balance(user)).active_balance_by_cycle;
  assert.equal(entry?.cycle_end, timestamp(clock.now + days * DAY_MS));
});

test('all routes of the API also work under /v1, on the same ledger', async () => {
  const user = someone();
  const fields = { end_user_id: user };
  assert.equal((await scrip.post('/v1/add', { ...fields, amount: 10 })).status, 200);
  assert.equal((await scrip.post('/v1/subtract', { ...fields, amount: 4 })).status, 200);
  assert.equal((await scrip.post('/v1/start-cycle', { ...fields, amount: 20 })).body.cycle_type, 'recurring');
  assert.equal((await scrip.post('/v1/stop-cycle', fields)).body.status, 'canceled');
  assert.deepEqual((await scrip.get('/v1/get-active-balance', fields)).body, await scrip.balance(user));
  assert.deepEqual(
    (await scrip.get('/v1/get-all-user-transactions', fields)).body.transactions,
    await scrip.transactions(user),
  );
  assert.equal((await scrip.balance(user)).active_balance, 26);
  const spent = await scrip.post('/v1/subtract', { ...fields, amount: 6 });
  const transaction_id = spent.headers['transaction-id'];
  assert.equal((await scrip.post('/v1/refund', { ...fields, transaction_id, amount: 2 })).body.amount, 2);
  const [first, second] = [1, 2].map((amount) => scrip.post('/v1/hold', { ...fields, amount }));
  const { hold_id } = (await first)?.body ?? assert.fail();
  const other = (await second)?.body.hold_id;
  assert.equal((await scrip.get('/v1/get-holds', fields)).body.holds.length, 2);
  assert.equal((await scrip.post('/v1/capture', { ...fields, hold_id })).body.amount, 1);
  assert.equal((await scrip.post('/v1/release', { ...fields, hold_id: other })).body.returned, 2);
  const { points } = (await scrip.get('/v1/get-balance-history', fields)).body;
  assert.equal(points.at(-1)?.active_balance, 21);
});

test('a UUID in upper case identifies the same end user as the UUID in lower case', async () => {
  const user = someone();
  await scrip.post('/add', { end_user_id: user.toUpperCase(), amount: 10 });
  await scrip.post('/subtract', { end_user_id: user, amount: 4 });
  const upper = await scrip.get('/get-active-balance', { end_user_id: user.toUpperCase() });
  assert.equal(upper.body.active_balance, 6);
  assert.equal((await scrip.balance(user)).active_balance, 6);
  assert.equal(
    (await scrip.get('/get-all-user-transactions', { end_user_id: user.toUpperCase() })).body.transactions.length,
    2,
  );
});

test('the ID of an end user may be a UUID of any version', async () => {
  for (const user of ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff']) {
    assert.equal((await scrip.post('/add', { end_user_id: user, amount: 3 })).status, 200);
    assert.equal((await scrip.balance(user)).active_balance, 3);
  }
});

test('an unknown end user has no credits and no transactions, and neither reads nor refused writes store the end user', async () => {
  const user = someone();
  const known = (await scrip.audit()).endUsers;
  for (let time = 0; time < 2; time++) {
    assert.deepEqual(await scrip.balance(user), {
      end_user_id: user,
      active_balance_by_cycle: [],
      active_balance: 0,
    });
    const list = await scrip.get('/get-all-user-transactions', { end_user_id: user });
    assert.deepEqual(list.body, { end_user_id: user, transactions: [] });
    const spent = await scrip.post('/subtract', { end_user_id: user, amount: 1 });
    assertProblem(spent, 'InsufficientFunds', 402);
    assert.equal(spent.body.available, 0);
    assertProblem(await scrip.post('/stop-cycle', { end_user_id: user }), 'CycleNotFound', 404);
  }
  assert.equal((await scrip.audit()).endUsers, known);
});

test('the oldest credits are spent first, even if newer credits expire sooner', async () => {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: 10, validity_days: 90 });
  later(1);
  await scrip.post('/add', { end_user_id: user, amount: 20, validity_days: 1 });
  later(1);
  await scrip.post('/start-cycle', { end_user_id: user, amount: 30, validity_days: 2 });
  const left = async () =>
    (await scrip.balance(user)).active_balance_by_cycle.map(({ amount, starting_amount }) => [amount, starting_amount]);
  await scrip.post('/subtract', { end_user_id: user, amount: 9 });
  assert.deepEqual(await left(), [
    [1, 10],
    [20, 20],
    [30, 30],
  ]);
  await scrip.post('/subtract', { end_user_id: user, amount: 22 });
  assert.deepEqual(await left(), [
    [0, 10],
    [0, 20],
    [29, 30],
  ]);
});

test('a balance lists its cycles oldest first, regardless of when they end', async () => {
  const user = someone();
  const starts: string[] = [];
  for (const days of [5, 90, 1, 31]) {
    starts.push(timestamp(clock.now));
    await scrip.post('/add', { end_user_id: user, amount: 1, validity_days: days });
    later(1);
  }
  const listed = (await scrip.balance(user)).active_balance_by_cycle.map(({ cycle_start }) => cycle_start);
  assert.deepEqual(listed, starts);
});

test('credits added within one millisecond are spent in the order in which they were added', async () => {
  const user = someone();
  for (const amount of [1, 2, 3]) await scrip.post('/add', { end_user_id: user, amount, validity_days: amount });
  await scrip.post('/subtract', { end_user_id: user, amount: 2 });
  const left = (await scrip.balance(user)).active_balance_by_cycle.map(({ amount }) => amount);
  assert.deepEqual(left, [0, 1, 3]);
});

test('a subtraction from several cycles is one transaction, whose expire_at is the latest end of these cycles', async () => {
  const user = someone();
  const start = clock.now;
  for (const days of [10, 30, 20, 40]) {
    await scrip.post('/add', { end_user_id: user, amount: 10, validity_days: days });
    later(1);
  }
  await scrip.post('/subtract', { end_user_id: user, amount: 25 });
  const [spent, ...additions] = await scrip.transactions(user);
  assert.equal(additions.length, 4);
  assert.equal(spent?.amount, -25);
  assert.equal(spent?.expire_at, timestamp(start + 1 + 30 * DAY_MS));
});

test('a subtraction of the whole balance is accepted, and a subtraction of one credit more is refused and changes nothing', async () => {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: 10 });
  await scrip.post('/add', { end_user_id: user, amount: 5 });
  assertProblem(await scrip.post('/subtract', { end_user_id: user, amount: 16 }), 'InsufficientFunds', 402);
  assert.equal((await scrip.balance(user)).active_balance, 15);
  assert.equal((await scrip.transactions(user)).length, 2);
  assert.equal((await scrip.post('/subtract', { end_user_id: user, amount: 15 })).status, 200);
  assert.equal((await scrip.balance(user)).active_balance, 0);
});

test('credits can be spent until the last millisecond before their cycle ends, but not at the end', async () => {
  const user = someone();
  const end = clock.now + DAY_MS;
  await scrip.post('/add', { end_user_id: user, amount: 10, validity_days: 1 });
  clock.set(end - 1);
  assert.equal((await scrip.balance(user)).active_balance, 10);
  assert.equal((await scrip.post('/subtract', { end_user_id: user, amount: 1 })).status, 200);
  clock.set(end);
  assert.deepEqual((await scrip.balance(user)).active_balance_by_cycle, []);
  const spent = await scrip.post('/subtract', { end_user_id: user, amount: 1 });
  assertProblem(spent, 'InsufficientFunds', 402);
  assert.equal(spent.body.available, 0);
});

test('a used-up cycle stays in the balance until its end, and the transactions of an ended cycle stay in the list', async () => {
  const user = someone();
  const start = clock.now;
  await scrip.post('/add', { end_user_id: user, amount: 5, validity_days: 1 });
  later(1);
  await scrip.post('/add', { end_user_id: user, amount: 7, validity_days: 2 });
  await scrip.post('/subtract', { end_user_id: user, amount: 5 });
  const entries = async () =>
    (await scrip.balance(user)).active_balance_by_cycle.map(({ amount, starting_amount, status }) => [
      amount,
      starting_amount,
      status,
    ]);
  assert.deepEqual(await entries(), [
    [0, 5, 'active'],
    [7, 7, 'active'],
  ]);
  clock.set(start + DAY_MS);
  assert.deepEqual(await entries(), [[7, 7, 'active']]);
  assert.deepEqual(
    (await scrip.transactions(user)).map(({ amount }) => amount),
    [-5, 7, 5],
  );
});

test('an end user can have exactly 2^53−1 credits', async () => {
  const user = someone();
  const most = Number.MAX_SAFE_INTEGER;
  const reply = await scrip.post('/add', { end_user_id: user, amount: most });
  assert.equal(reply.text, `{"end_user_id":"${user}","amount":9007199254740991}`);
  await scrip.post('/subtract', { end_user_id: user, amount: 1 });
  assert.equal((await scrip.balance(user)).active_balance, most - 1);
  await scrip.post('/subtract', { end_user_id: user, amount: most - 1 });
  assert.equal((await scrip.balance(user)).active_balance, 0);
});
