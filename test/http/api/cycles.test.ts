// Tests recurring cycles through the API: how they start, stop and are replaced, and which credits remain afterwards.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertProblem, MovableClock, type Scrip, someone, startScrip } from '../running-service.ts';

const DAY_MS = 86_400_000;

const clock = new MovableClock('2026-11-20T08:00:00.123Z');
let scrip: Scrip;
before(async () => {
  scrip = await startScrip({ clock });
});
after(() => scrip.stop());

const timestamp = (instant: number) => new Date(instant).toISOString();
const start = (user: string, amount: number, more: Record<string, unknown> = {}) =>
  scrip.post('/start-cycle', { end_user_id: user, amount, ...more });
const stop = (user: string) => scrip.post('/stop-cycle', { end_user_id: user });

async function cyclesOf(user: string): Promise<string[]> {
  const { active_balance_by_cycle } = await scrip.balance(user);
  return active_balance_by_cycle.map((entry) => `${entry.amount} ${entry.cycle_type} ${entry.status}`);
}

test('starting a cycle returns 200 with all fields of the cycle, and only created_at has no time zone suffix', async () => {
  const user = someone();
  clock.set('2026-11-20T08:00:00.123Z');
  const reply = await start(user, 500, { validity_days: 30 });
  assert.equal(reply.status, 200);
  assert.match(reply.headers['content-type'] ?? '', /^application\/json/);
  assert.deepEqual(reply.body, {
    end_user_id: user,
    amount: 500,
    created_at: '2026-11-20T08:00:00.123',
    current_cycle_start: '2026-11-20T08:00:00.123Z',
    current_cycle_end: '2026-12-20T08:00:00.123Z',
    cycle_type: 'recurring',
    status: 'active',
  });
});

test('the timestamps of a cycle always have three digits of milliseconds', async () => {
  const user = someone();
  clock.set('2026-11-21T08:00:00.000Z');
  const { body } = await start(user, 500);
  assert.equal(body.created_at, '2026-11-21T08:00:00.000');
  assert.equal(body.current_cycle_start, '2026-11-21T08:00:00.000Z');
});

test('the period of a recurring cycle is 31 days if validity_days is absent or null', async () => {
  for (const more of [{}, { validity_days: null }]) {
    const { body } = await start(someone(), 1, more);
    assert.equal(body.current_cycle_end, timestamp(clock.now + 31 * DAY_MS), JSON.stringify(more));
  }
});

test('a cycle with a validity of 10^30 days ends at the last instant that a timestamp can represent, and can be stopped', async () => {
  const user = someone();
  const reply = await scrip.call('POST', '/start-cycle', {
    body: `{"end_user_id":"${user}","amount":5,"validity_days":1${'0'.repeat(30)}}`,
  });
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.body.current_cycle_end, '9999-12-31T23:59:59.999Z');
  assert.equal((await stop(user)).body.status, 'canceled');
});

test('a balance shows the start, end, amounts, status and type of an active cycle', async () => {
  const user = someone();
  const { body } = await start(user, 50);
  assert.deepEqual((await scrip.balance(user)).active_balance_by_cycle, [
    {
      cycle_start: body.current_cycle_start,
      cycle_end: body.current_cycle_end,
      amount: 50,
      starting_amount: 50,
      status: 'active',
      cycle_type: 'recurring',
    },
  ]);
});

test('starting a cycle while another cycle is active is refused, grants no credits, and returns the active cycle', async () => {
  const user = someone();
  const first = await start(user, 50);
  clock.advance(5);
  const second = await start(user, 70, { validity_days: 3 });
  assertProblem(second, 'CycleAlreadyActive', 409);
  assert.deepEqual(second.body.cycle, first.body);
  assert.deepEqual(await cyclesOf(user), ['50 recurring active']);
  assert.equal((await scrip.transactions(user)).length, 1);
});

test('stopping a cycle returns the cycle as canceled, and its credits stay usable until it ends', async () => {
  const user = someone();
  const started = await start(user, 50, { validity_days: 1 });
  clock.advance(1_000);
  const stopped = await stop(user);
  assert.equal(stopped.status, 200);
  assert.deepEqual(stopped.body, { ...started.body, status: 'canceled' });
  assert.deepEqual(await cyclesOf(user), ['50 recurring canceled']);
  assert.equal((await scrip.post('/subtract', { end_user_id: user, amount: 20 })).status, 200);
  clock.set(Date.parse(started.body.current_cycle_end) - 1);
  assert.equal((await scrip.post('/subtract', { end_user_id: user, amount: 20 })).status, 200);
  assert.deepEqual(await cyclesOf(user), ['10 recurring canceled']);
  clock.advance(1);
  assert.deepEqual(await cyclesOf(user), []);
  assertProblem(await scrip.post('/subtract', { end_user_id: user, amount: 1 }), 'InsufficientFunds', 402);
  assert.equal((await scrip.transactions(user)).length, 3);
});

test('a stop moves no credits, and the unfiltered list of transactions does not contain the stop', async () => {
  const user = someone();
  await start(user, 50);
  const before = await scrip.transactions(user);
  await stop(user);
  assert.deepEqual(await scrip.transactions(user), before);
});

test('stopping a cycle again returns the same response until the cycle ends', async () => {
  const user = someone();
  const { body } = await start(user, 50, { validity_days: 1 });
  const first = await stop(user);
  clock.advance(1_000);
  const second = await stop(user);
  assert.deepEqual([second.status, second.body], [first.status, first.body]);
  clock.set(Date.parse(body.current_cycle_end) - 1);
  assert.deepEqual((await stop(user)).body, first.body);
  clock.advance(1);
  assertProblem(await stop(user), 'CycleNotFound', 404);
});

test('a cycle from /add cannot be stopped, because it does not renew', async () => {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: 10 });
  assertProblem(await stop(user), 'CycleNotFound', 404);
  assert.deepEqual(await cyclesOf(user), ['10 one-time active']);
});

test('after a stop, a new cycle can start immediately, and the remaining credits of the old cycle stay usable', async () => {
  const user = someone();
  await start(user, 50);
  await scrip.post('/subtract', { end_user_id: user, amount: 20 });
  await stop(user);
  clock.advance(1);
  const again = await start(user, 70);
  assert.equal(again.status, 200);
  assert.equal(again.body.status, 'active');
  assert.deepEqual(await cyclesOf(user), ['30 recurring canceled', '70 recurring active']);
  await scrip.post('/subtract', { end_user_id: user, amount: 40 });
  assert.deepEqual(await cyclesOf(user), ['0 recurring canceled', '60 recurring active']);
});

test('/start-cycle with on_active=replace cancels the active cycle and starts a new cycle in one request', async () => {
  const user = someone();
  const old = await start(user, 50, { validity_days: 10 });
  await scrip.post('/subtract', { end_user_id: user, amount: 20 });
  clock.advance(1);
  const reply = await start(user, 70, { validity_days: 5, on_active: 'replace' });
  assert.equal(reply.status, 200);
  assert.deepEqual(reply.body, {
    end_user_id: user,
    amount: 70,
    created_at: timestamp(clock.now).slice(0, -1),
    current_cycle_start: timestamp(clock.now),
    current_cycle_end: timestamp(clock.now + 5 * DAY_MS),
    cycle_type: 'recurring',
    status: 'active',
  });
  assert.deepEqual(await cyclesOf(user), ['30 recurring canceled', '70 recurring active']);
  assert.deepEqual(
    (await scrip.transactions(user)).map(({ amount }) => amount),
    [70, -20, 50],
  );
  clock.set(Date.parse(old.body.current_cycle_end));
  assert.deepEqual(await cyclesOf(user), ['70 recurring active'], 'the old cycle has ended and is not renewed');
});

test('/start-cycle with on_active=replace also starts a cycle if no cycle is active', async () => {
  const user = someone();
  assert.equal((await start(user, 50, { on_active: 'replace' })).status, 200);
  assert.deepEqual(await cyclesOf(user), ['50 recurring active']);
});

test('if the replacement of a cycle is refused, the old cycle stays active', async () => {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: Number.MAX_SAFE_INTEGER - 50 });
  await start(user, 50);
  assertProblem(await start(user, 1, { on_active: 'replace' }), 'BalanceTooLarge', 422);
  assert.deepEqual((await cyclesOf(user)).at(-1), '50 recurring active');
});

test('a stop cancels the active cycle, not an older cycle that is already canceled', async () => {
  const user = someone();
  await start(user, 50);
  await start(user, 70, { on_active: 'replace' });
  const stopped = await stop(user);
  assert.deepEqual([stopped.body.amount, stopped.body.status], [70, 'canceled']);
  assert.deepEqual(await cyclesOf(user), ['50 recurring canceled', '70 recurring canceled']);
  assert.deepEqual((await stop(user)).body, stopped.body);
});

test('a balance shows the type and the status of each cycle', async () => {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: 10 });
  await start(user, 50);
  await start(user, 70, { on_active: 'replace' });
  await scrip.post('/subtract', { end_user_id: user, amount: 15 });
  assert.deepEqual(await cyclesOf(user), ['0 one-time active', '45 recurring canceled', '70 recurring active']);
});
