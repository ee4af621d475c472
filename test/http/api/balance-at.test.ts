// Tests balances at past and future instants, to the millisecond.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import { assertFieldRefused, MovableClock, type Scrip, someone, startScrip } from '../running-service.ts';

const BEGIN = '2026-11-20T08:00:00.123Z';
const clock = new MovableClock(BEGIN);
let scrip: Scrip;
before(async () => {
  scrip = await startScrip({ clock });
});
after(() => scrip.stop());

const textOf = (instant: number) => new Date(instant).toISOString();

async function balanceAt(user: string, at: number): Promise<readonly [balance: number, held: number | undefined]> {
  const { status, body, text } = await scrip.get('/get-active-balance', { end_user_id: user, at: textOf(at) });
  assert.equal(status, 200, text);
  return [body.active_balance, body.held];
}

test('a balance at a past instant includes all writes up to and including the millisecond of that instant', async () => {
  const user = someone();
  const expected: (readonly [at: number, balance: number, held: number | undefined])[] = [];
  const note = async (balance: number, held?: number) => {
    expected.push([clock.now, balance, held]);
    clock.advance(1_000);
  };
  const post = (path: string, fields: Record<string, unknown>) => scrip.post(path, { end_user_id: user, ...fields });
  await post('/add', { amount: 100 });
  await note(100);
  const { headers } = await post('/subtract', { amount: 30 });
  await note(70);
  const { hold_id } = (await post('/hold', { amount: 50 })).body;
  await note(20, 50);
  await post('/capture', { hold_id, amount: 32 });
  await note(38);
  await post('/refund', { transaction_id: headers['transaction-id'], amount: 10 });
  await note(48);
  await post('/start-cycle', { amount: 1_000 });
  await note(1_048);
  let previous: readonly [number, number | undefined] = [0, undefined];
  for (const [at, balance, held] of expected) {
    assert.deepEqual(await balanceAt(user, at - 1), previous, `before ${textOf(at)}`);
    previous = [balance, held];
    for (const later of [at, at + 1, at + 999]) assert.deepEqual(await balanceAt(user, later), previous, textOf(later));
  }
});

test('a balance at a past instant shows the amounts and statuses that the cycles had at that instant', async () => {
  const user = someone();
  await scrip.post('/start-cycle', { end_user_id: user, amount: 1_000, validity_days: 31 });
  const before = await scrip.balance(user);
  const at = clock.now;
  clock.advance(1);
  await scrip.post('/subtract', { end_user_id: user, amount: 10 });
  await scrip.post('/stop-cycle', { end_user_id: user });
  const { body } = await scrip.get('/get-active-balance', { end_user_id: user, at: textOf(at) });
  assert.deepEqual(body, before);
  assert.deepEqual(
    body.active_balance_by_cycle.map(({ status, amount }) => [status, amount]),
    [['active', 1_000]],
  );
});

test('a balance at a future instant includes all renewals and lapses until then, and excludes cycles that have ended by then', async () => {
  const user = someone();
  const start = clock.now;
  await scrip.post('/start-cycle', { end_user_id: user, amount: 1_000, validity_days: 31 });
  await scrip.post('/add', { end_user_id: user, amount: 100, validity_days: 40 });
  await scrip.post('/subtract', { end_user_id: user, amount: 400 });
  await scrip.post('/hold', { end_user_id: user, amount: 50, expires_in_seconds: 60 });
  const renewal = start + 31 * DAY_MS;
  const expiry = start + 40 * DAY_MS;
  for (const [at, balance, held] of [
    [start, 650, 50],
    [start + 59_999, 650, 50],
    [start + 60_000, 700, undefined],
    [renewal - 1, 700, undefined],
    [renewal, 1_100, undefined],
    [expiry - 1, 1_100, undefined],
    [expiry, 1_000, undefined],
    [start + 3_650 * DAY_MS, 1_000, undefined],
    [Date.parse('9999-12-31T23:59:59.998Z'), 1_000, undefined],
  ] as const)
    assert.deepEqual(await balanceAt(user, at), [balance, held], textOf(at));
  const { body } = await scrip.get('/get-active-balance', { end_user_id: user, at: textOf(renewal) });
  assert.deepEqual(
    body.active_balance_by_cycle.map(({ cycle_start, amount }) => [cycle_start, amount]),
    [
      [textOf(start), 100],
      [textOf(renewal), 1_000],
    ],
  );
});

test('a balance at a past instant equals the balance that Scrip returned at that instant, even after later writes', async () => {
  const user = someone();
  await scrip.post('/start-cycle', { end_user_id: user, amount: 100, validity_days: 1 });
  const seen: (readonly [at: number, text: string])[] = [];
  const look = async () => {
    seen.push([clock.now, (await scrip.get('/get-active-balance', { end_user_id: user })).text]);
    clock.advance(1);
  };
  for (let round = 0; round < 5; round++) {
    await look();
    await scrip.post('/hold', { end_user_id: user, amount: 10 + round, expires_in_seconds: 3_600 });
    await look();
    clock.advance(3_600_000);
    await look();
    await scrip.post('/subtract', { end_user_id: user, amount: 5 });
    await look();
    clock.advance(20 * 3_600_000);
  }
  for (const [at, text] of seen) {
    const then = await scrip.get('/get-active-balance', { end_user_id: user, at: textOf(at) });
    assert.equal(then.text, text, textOf(at));
  }
});

test('the `at` of a balance request may have any UTC offset, and is rounded down to the millisecond', async () => {
  const user = someone();
  clock.set('2026-12-24T08:00:00.500Z');
  await scrip.post('/add', { end_user_id: user, amount: 7 });
  for (const [at, balance] of [
    ['2026-12-24T08:00:00.499Z', 0],
    ['2026-12-24T08:00:00.499999999Z', 0],
    ['2026-12-24T08:00:00.5Z', 7],
    ['2026-12-24T08:00:00.500000001Z', 7],
    ['2026-12-24T10:00:00.500+02:00', 7],
    ['2026-12-24T03:00:00.499-0500', 0],
    ['1960-01-01T00:00:00Z', 0],
  ] as const) {
    const inQuery = await scrip.get('/get-active-balance', { end_user_id: user, at });
    assert.equal(inQuery.body.active_balance, balance, at);
    const inBody = await scrip.call('GET', '/get-active-balance', { body: { end_user_id: user, at } });
    assert.equal(inBody.text, inQuery.text);
  }
});

test('an `at` that is not an instant with a time zone is refused, and the response names the field', async () => {
  const user = someone();
  for (const at of ['', 'now', '2026-12-24', '2026-12-24T08:00:00', '2026-02-30T08:00:00Z', '1763625600123'])
    assertFieldRefused(await scrip.get('/get-active-balance', { end_user_id: user, at }), '/at');
  for (const at of [null, 5, true, []])
    assertFieldRefused(await scrip.call('GET', '/get-active-balance', { body: { end_user_id: user, at } }), '/at');
  const lost = await scrip.call('GET', `/get-active-balance?end_user_id=${user}&at=2026-12-24T10:00:00+02:00`);
  assertFieldRefused(lost, '/at');
  assert.match(lost.body.detail, /write \+ as %2B/);
});

test('an unknown end user has no credits in the past, now or in the future', async () => {
  const user = someone();
  for (const at of [0, clock.now, clock.now + DAY_MS]) {
    const { body } = await scrip.get('/get-active-balance', { end_user_id: user, at: textOf(at) });
    assert.deepEqual(body, { end_user_id: user, active_balance_by_cycle: [], active_balance: 0 });
  }
});
