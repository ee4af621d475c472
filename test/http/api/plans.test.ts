// Tests plans through the API: calendar months, rollover, changes of plan at the end of a period, and previews.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { assertProblem, MovableClock, type Scrip, someone, startScrip } from '../running-service.ts';

const DAY_MS = 86_400_000;
const BEGIN = '2027-01-31T10:00:00.000Z';

let clock: MovableClock;
let scrip: Scrip;
beforeEach(async () => {
  clock = new MovableClock(BEGIN);
  scrip = await startScrip({ clock });
});
afterEach(() => scrip.stop());

const post = (path: string, user: string, fields: Record<string, unknown> = {}) =>
  scrip.post(path, { end_user_id: user, ...fields });
const start = (user: string, fields: Record<string, unknown>) => post('/start-cycle', user, fields);

async function activeEntry(user: string) {
  const { active_balance_by_cycle } = await scrip.balance(user);
  return active_balance_by_cycle.find((entry) => entry.cycle_type === 'recurring' && entry.status === 'active');
}

async function renewals(user: string): Promise<[created: string, amount: number][]> {
  const { body } = await scrip.get('/get-all-user-transactions', { end_user_id: user });
  return body.transactions.map(({ created_at, amount }): [string, number] => [created_at, amount]).toReversed();
}

test('a monthly cycle that starts on 31 January renews on the last day of February and on 31 March', async () => {
  const user = someone();
  const { body } = await start(user, { amount: 100, validity_months: 1 });
  assert.deepEqual([body.current_cycle_end, body.validity_months], ['2027-02-28T10:00:00.000Z', 1]);
  clock.set('2027-04-30T10:00:00.000Z');
  assert.deepEqual(await renewals(user), [
    ['2027-01-31T10:00:00.000Z', 100],
    ['2027-02-28T10:00:00.000Z', 100],
    ['2027-03-31T10:00:00.000Z', 100],
    ['2027-04-30T10:00:00.000Z', 100],
  ]);
  const entry = await activeEntry(user);
  assert.deepEqual([entry?.cycle_start, entry?.cycle_end], ['2027-04-30T10:00:00.000Z', '2027-05-31T10:00:00.000Z']);
});

test('credits with validity_months expire on the same day of a later month, or on the last day of that month if it is too short', async () => {
  const user = someone();
  clock.set('2027-11-30T10:00:00.000Z');
  await post('/add', user, { amount: 5, validity_months: 3 });
  const [entry] = (await scrip.balance(user)).active_balance_by_cycle;
  assert.deepEqual([entry?.cycle_end, entry?.validity_months], ['2028-02-29T10:00:00.000Z', 3]);
});

test('a request with both validity_days and validity_months is refused, and null counts as absent', async () => {
  const user = someone();
  for (const path of ['/add', '/start-cycle']) {
    const reply = await post(path, user, { amount: 1, validity_days: 31, validity_months: 1 });
    assertProblem(reply, 'InvalidField', 422);
    assert.deepEqual(reply.body.errors, [
      {
        path: '/validity_months',
        message: 'must not be sent together with validity_days; send only one of the two',
      },
    ]);
    const ok = await post(path, someone(), { amount: 1, validity_days: null, validity_months: 1 });
    assert.equal(ok.status, 200, ok.text);
  }
  assert.equal((await scrip.balance(user)).active_balance, 0);
});

test('invalid values of validity_months, rollover_max and on_active are refused, and the response names the field', async () => {
  const invalid: [field: string, value: unknown][] = [
    ...[0, 121, 1.5, '1', true].map((value): [string, unknown] => ['validity_months', value]),
    ...[-1, 1.5, '1', true, null].map((value): [string, unknown] => ['rollover_max', value]),
    ...['refuse', 'now', null, 1].map((value): [string, unknown] => ['on_active', value]),
  ];
  for (const [field, value] of invalid) {
    const reply = await start(someone(), { amount: 1, [field]: value });
    assertProblem(reply, 'InvalidField', 422);
    assert.equal(reply.body.errors?.[0]?.path, `/${field}`, JSON.stringify(value));
  }
  const added = await post('/add', someone(), { amount: 1, rollover_max: 1 });
  assertProblem(added, 'InvalidField', 422);
});

test('at a renewal, at most rollover_max unused credits roll over, and starting_amount, the renewal transaction and the response to a later /stop-cycle include these credits', async () => {
  const user = someone();
  await start(user, { amount: 100, validity_days: 1, rollover_max: 30 });
  await post('/subtract', user, { amount: 80 });
  clock.advance(DAY_MS);
  const entry = await activeEntry(user);
  assert.deepEqual([entry?.amount, entry?.starting_amount, entry?.rollover_max], [120, 120, 30]);
  await post('/subtract', user, { amount: 1 });
  clock.advance(DAY_MS);
  assert.equal((await scrip.balance(user)).active_balance, 130);
  assert.deepEqual(
    (await renewals(user)).map(([, amount]) => amount),
    [100, -80, 120, -1, 130],
  );
  const { body, text } = await post('/stop-cycle', user);
  assert.deepEqual([body.amount, body.status], [130, 'canceled']);
  assert.match(text, /"rollover_max":30/);
});

test('a scheduled plan is shown as next_cycle and starts exactly at the end of the period, even if no request arrives for months', async () => {
  const user = someone();
  await start(user, { amount: 1000, validity_months: 1 });
  const scheduled = await start(user, {
    amount: 300,
    validity_months: 2,
    rollover_max: 50,
    on_active: 'at_period_end',
  });
  assert.equal(scheduled.status, 200, scheduled.text);
  assert.match(String(scheduled.headers['transaction-id']), /^[0-9a-f-]{36}$/);
  const next = { starts_at: '2027-02-28T10:00:00.000Z', amount: 300, validity_months: 2, rollover_max: 50 };
  assert.deepEqual([scheduled.body.amount, scheduled.body.status, scheduled.body.next_cycle], [1000, 'active', next]);
  assert.deepEqual((await activeEntry(user))?.next_cycle, next);
  clock.set('2027-06-30T10:00:00.000Z');
  assert.deepEqual(await renewals(user), [
    ['2027-01-31T10:00:00.000Z', 1000],
    ['2027-02-28T10:00:00.000Z', 300],
    ['2027-04-28T10:00:00.000Z', 350],
    ['2027-06-28T10:00:00.000Z', 350],
  ]);
  const entry = await activeEntry(user);
  assert.deepEqual([entry?.amount, entry?.next_cycle], [350, undefined]);
  const details = await scrip.get('/get-all-user-transactions', { end_user_id: user, details: 'true' });
  const change = details.body.transactions.find(({ kind }) => kind === 'change-plan');
  assert.deepEqual(
    [change?.created_at, change?.actor, change?.reference],
    ['2027-02-28T10:00:00.000Z', 'change', scheduled.headers['transaction-id']],
  );
});

test('a scheduled plan is canceled if another plan is scheduled, or if the cycle is stopped or replaced', async () => {
  const later = { amount: 2, on_active: 'at_period_end' };
  const ways: [act: (user: string) => Promise<unknown>, after: number][] = [
    [(user) => start(user, { amount: 3, on_active: 'at_period_end' }), 3],
    [(user) => post('/stop-cycle', user), 0],
    [(user) => start(user, { amount: 4, validity_days: 31, on_active: 'replace' }), 4],
  ];
  for (const [act, expected] of ways) {
    const user = someone();
    await start(user, { amount: 1 });
    await start(user, later);
    await act(user);
    clock.advance(31 * DAY_MS);
    assert.equal((await scrip.balance(user)).active_balance, expected);
  }
});

test('without an active cycle, at_period_end starts the new cycle immediately', async () => {
  const user = someone();
  const { body } = await start(user, { amount: 7, on_active: 'at_period_end' });
  assert.deepEqual([body.amount, body.status, body.next_cycle], [7, 'active', undefined]);
  await post('/stop-cycle', user);
  await start(user, { amount: 8, on_active: 'at_period_end' });
  assert.equal((await scrip.balance(user)).active_balance, 15);
});

test('if a request that schedules a plan is repeated with its idempotency key, the response is replayed, and reusing the key for another plan is refused', async () => {
  const user = someone();
  await start(user, { amount: 1 });
  const headers = { 'idempotency-key': 'downgrade-1' };
  const fields = { end_user_id: user, amount: 2, validity_months: 1, on_active: 'at_period_end' };
  const first = await scrip.post('/start-cycle', fields, { headers });
  const second = await scrip.post('/start-cycle', fields, { headers });
  assert.equal(second.text, first.text);
  assert.equal(second.headers['idempotent-replayed'], 'true');
  const other = await scrip.post('/start-cycle', { ...fields, rollover_max: 1 }, { headers });
  assertProblem(other, 'IdempotencyKeyReused', 422);
});

test('a preview returns the effects that /start-cycle would have, and changes nothing', async () => {
  for (const [index, on_active] of ['replace', 'at_period_end'].entries()) {
    const user = someone();
    clock.set(Date.parse(BEGIN) + index * 365 * DAY_MS);
    await post('/add', user, { amount: 10, validity_days: 60 });
    await start(user, { amount: 100, validity_months: 1 });
    await post('/subtract', user, { amount: 30 });
    const fields = { amount: 500, validity_months: 1, rollover_max: 5, on_active };
    const before = await scrip.balance(user);
    const { body: preview, headers } = await post('/preview-change', user, fields);
    assert.equal(headers['transaction-id'], undefined);
    assert.deepEqual(await scrip.balance(user), before);
    await start(user, fields);
    const { active_balance, active_balance_by_cycle } = await scrip.balance(user);
    assert.deepEqual(
      [preview.active_balance, preview.active_balance_by_cycle],
      [active_balance, active_balance_by_cycle],
    );
    clock.set(preview.starts_at);
    assert.equal(preview.active_balance_at_start, (await scrip.balance(user)).active_balance, on_active);
    assert.equal(preview.expiring, on_active === 'replace' ? 0 : 80, on_active);
  }
});

test('a preview is refused for the same reasons as /start-cycle, and requires only the `read` scope', async () => {
  const user = someone();
  const fields = { end_user_id: user, amount: 1 };
  const allowed = await scrip.post('/preview-change', fields, { key: scrip.readKey });
  assert.equal(allowed.status, 200, allowed.text);
  await start(user, { amount: 1 });
  assertProblem(await scrip.post('/preview-change', fields), 'CycleAlreadyActive', 409);
  const tooLarge = { ...fields, amount: Number.MAX_SAFE_INTEGER, rollover_max: 1, on_active: 'replace' };
  assertProblem(await scrip.post('/preview-change', tooLarge), 'BalanceTooLarge', 422);
});
