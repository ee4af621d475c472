// Tests renewals: each period begins exactly when the previous one ends, even if no request arrives. If the clock
// jumps back, Scrip does not undo renewals or expiries.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { assertProblem, eventually, MovableClock, type Scrip, someone, startScrip } from '../running-service.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const TEN_YEARS_DAYS = 3_653;

const clock = new MovableClock('2026-11-20T08:00:00.123Z');
let scrip: Scrip;
before(async () => {
  scrip = await startScrip({ clock });
});
after(() => scrip.stop());

const timestamp = (instant: number) => new Date(instant).toISOString();
const startCycle = (user: string, amount: number, days: number) =>
  scrip.post('/start-cycle', { end_user_id: user, amount, validity_days: days });
const subtract = (user: string, amount: number) => scrip.post('/subtract', { end_user_id: user, amount });

async function renewedInBackground({ service }: Scrip): Promise<void> {
  await eventually(async () => (await service.stores.ledger.due(1)).length === 0, 'all renewals are stored');
}

test('a period is current until the last millisecond before its end, and the next period begins exactly at the end', async () => {
  const user = someone();
  const start = clock.now;
  const end = start + 30 * DAY_MS;
  await startCycle(user, 100, 30);
  await subtract(user, 40);
  const entry = async () => (await scrip.balance(user)).active_balance_by_cycle;
  const old = { amount: 60, starting_amount: 100, status: 'active', cycle_type: 'recurring' };
  clock.set(end - 1);
  assert.deepEqual(await entry(), [{ cycle_start: timestamp(start), cycle_end: timestamp(end), ...old }]);
  for (const instant of [end, end + 1, end + 30 * DAY_MS - 1]) {
    clock.set(instant);
    assert.deepEqual(await entry(), [
      { cycle_start: timestamp(end), cycle_end: timestamp(end + 30 * DAY_MS), ...old, amount: 100 },
    ]);
  }
  clock.set(end + 30 * DAY_MS);
  assert.equal((await entry())[0]?.cycle_start, timestamp(end + 30 * DAY_MS));
});

test('without a rollover, unused credits expire at the end of a period, and the next period has the full amount', async () => {
  const user = someone();
  await startCycle(user, 100, 1);
  await subtract(user, 99);
  clock.advance(DAY_MS);
  assert.equal((await scrip.balance(user)).active_balance, 100);
  assert.equal((await subtract(user, 101)).body.available, 100);
  assert.equal((await subtract(user, 100)).status, 200);
  assertProblem(await subtract(user, 1), 'InsufficientFunds', 402);
});

test('a renewal is listed with a positive amount, and its creation time is the start of the new period, even if the renewal is stored much later', async () => {
  const user = someone();
  const start = clock.now;
  await startCycle(user, 100, 1);
  clock.set(start + DAY_MS + 7 * HOUR_MS);
  await subtract(user, 5);
  const described = (await scrip.transactions(user)).map(({ transaction_id: _, ...rest }) => rest);
  const [first, second, third] = [start, start + DAY_MS, start + 2 * DAY_MS].map(timestamp);
  assert.deepEqual(described, [
    { amount: -5, created_at: timestamp(clock.now), expire_at: third },
    { amount: 100, created_at: second, expire_at: third },
    { amount: 100, created_at: first, expire_at: second },
  ]);
});

test('stopping a renewed cycle returns the current period and the creation time of the cycle', async () => {
  const user = someone();
  const start = clock.now;
  await startCycle(user, 100, 1);
  clock.set(start + 5 * DAY_MS + HOUR_MS);
  const { body } = await scrip.post('/stop-cycle', { end_user_id: user });
  assert.deepEqual(body, {
    end_user_id: user,
    amount: 100,
    created_at: timestamp(start).slice(0, -1),
    current_cycle_start: timestamp(start + 5 * DAY_MS),
    current_cycle_end: timestamp(start + 6 * DAY_MS),
    cycle_type: 'recurring',
    status: 'canceled',
  } as unknown);
});

test('starting a cycle while a renewed cycle is active is refused, and the response shows the current period', async () => {
  const user = someone();
  const start = clock.now;
  await startCycle(user, 100, 1);
  clock.set(start + 5 * DAY_MS + HOUR_MS);
  const reply = await startCycle(user, 100, 1);
  assertProblem(reply, 'CycleAlreadyActive', 409);
  assert.equal(reply.body.cycle.current_cycle_start, timestamp(start + 5 * DAY_MS));
});

test('a canceled cycle is not renewed at its end', async () => {
  const user = someone();
  await startCycle(user, 100, 1);
  const other = someone();
  await startCycle(other, 7, 1);
  await scrip.post('/stop-cycle', { end_user_id: user });
  clock.advance(3 * DAY_MS);
  await renewedInBackground(scrip);
  assert.equal((await scrip.balance(user)).active_balance, 0);
  assert.equal((await scrip.transactions(user)).length, 1);
  assert.equal((await scrip.transactions(other)).length, 4, 'other cycles are renewed');
});

test('credits that are older than the current period are spent before the credits of the period, and newer credits are spent last', async () => {
  const user = someone();
  await startCycle(user, 10, 1);
  clock.advance(HOUR_MS);
  await scrip.post('/add', { end_user_id: user, amount: 10, validity_days: 10 });
  clock.advance(DAY_MS);
  await scrip.post('/add', { end_user_id: user, amount: 10, validity_days: 10 });
  await subtract(user, 12);
  const left = (await scrip.balance(user)).active_balance_by_cycle.map(({ amount, cycle_type }) => [
    amount,
    cycle_type,
  ]);
  assert.deepEqual(left, [
    [0, 'one-time'],
    [8, 'recurring'],
    [10, 'one-time'],
  ]);
});

test('after ten years without requests, every daily renewal is listed with the time at which it was due, both before and after it is stored', async () => {
  const [asked, left] = [someone(), someone()];
  const start = clock.now;
  for (const user of [asked, left]) await startCycle(user, 10, 1);
  clock.set(start + TEN_YEARS_DAYS * DAY_MS + HOUR_MS);

  const unstored = await scrip.transactions(asked);
  const unstoredOfLeft = await scrip.transactions(left);
  assert.equal(unstored.length, TEN_YEARS_DAYS + 1);
  unstored.toReversed().forEach(({ amount, created_at, expire_at }, day) => {
    assert.deepEqual(
      [amount, created_at, expire_at],
      [10, timestamp(start + day * DAY_MS), timestamp(start + (day + 1) * DAY_MS)],
    );
  });
  const ids = unstored.map(({ transaction_id }) => transaction_id);
  assert.deepEqual(ids, ids.toSorted().reverse());
  assert.equal(new Set(ids).size, ids.length);
  const balance = await scrip.balance(asked);
  assert.equal(balance.active_balance, 10);
  assert.equal(balance.active_balance_by_cycle[0]?.cycle_start, timestamp(start + TEN_YEARS_DAYS * DAY_MS));

  assert.equal((await subtract(asked, 4)).status, 200);
  assert.equal((await scrip.balance(asked)).active_balance, 6);
  assert.deepEqual((await scrip.transactions(asked)).slice(1), unstored);

  await renewedInBackground(scrip);
  assert.deepEqual((await scrip.transactions(asked)).slice(1), unstored);
  assert.deepEqual(await scrip.transactions(left), unstoredOfLeft);
  await scrip.assertConsistent();
});

test('an end user with fifty years of overdue daily renewals does not delay other end users', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'scrip-behind-'));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, 'ledger.db');
  const [behind, neighbor] = [someone(), someone()];
  const longAgo = new MovableClock('1971-01-01T12:34:56.789Z');
  const first = await startScrip({ clock: longAgo, file });
  t.after(() => first.stop());
  await first.post('/start-cycle', { end_user_id: behind, amount: 10, validity_days: 1 });
  await first.post('/add', { end_user_id: neighbor, amount: 10, validity_days: 100_000 });
  await first.stop();

  // This service uses the system clock, because with any other clock the writer would not run in its own thread.
  const second = await startScrip({ file });
  t.after(() => second.stop());
  const order: string[] = [];
  const spend = async (name: string, user: string) => {
    const { status } = await second.post('/subtract', { end_user_id: user, amount: 4 });
    order.push(`${name} ${status}`);
  };
  await Promise.all([spend('behind', behind), spend('neighbor', neighbor)]);
  assert.deepEqual(order, ['neighbor 200', 'behind 200']);
  assert.equal((await second.balance(behind)).active_balance, 6);
  const days = Math.floor((Date.now() - longAgo.now) / DAY_MS);
  assert.equal((await second.transactions(behind)).length, days + 2);
});

test('a service that was down for ten years shows the same balances and transactions as one that was always running', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'scrip-downtime-'));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, 'ledger.db');
  const away = new MovableClock('2026-11-20T08:00:00.123Z');
  const user = someone();
  const start = away.now;
  const sleeper = await startScrip({ clock: away, file });
  t.after(() => sleeper.stop());
  await sleeper.post('/start-cycle', { end_user_id: user, amount: 10, validity_days: 31 });
  await sleeper.post('/add', { end_user_id: user, amount: 5, validity_days: 40 });
  await sleeper.stop();

  const always = new MovableClock(timestamp(start));
  const watcher = await startScrip({ clock: always });
  t.after(() => watcher.stop());
  await watcher.post('/start-cycle', { end_user_id: user, amount: 10, validity_days: 31 });
  await watcher.post('/add', { end_user_id: user, amount: 5, validity_days: 40 });
  for (let day = 0; day <= TEN_YEARS_DAYS; day += 7) {
    always.set(start + day * DAY_MS);
    await watcher.post('/subtract', { end_user_id: user, amount: 1_000 });
    await watcher.balance(user);
  }
  away.set(always.now);
  const woken = await startScrip({ clock: away, file });
  t.after(() => woken.stop());
  const withoutIds = async (service: Scrip) =>
    (await service.transactions(user)).map(({ transaction_id: _, ...rest }) => rest);
  assert.deepEqual(await withoutIds(woken), await withoutIds(watcher));
  assert.deepEqual(await woken.balance(user), await watcher.balance(user));
  for (const service of [woken, watcher]) await service.assertConsistent();
});

test('after the clock jumps back, expired credits stay expired, nothing is renewed twice, and timestamps never decrease', async () => {
  const user = someone();
  const start = clock.now;
  await scrip.post('/add', { end_user_id: user, amount: 50, validity_days: 1 });
  await startCycle(user, 10, 1);
  clock.set(start + DAY_MS);
  await subtract(user, 3);
  const before = await scrip.balance(user);
  assert.equal(before.active_balance, 7, 'the added credits have expired, and the cycle has been renewed');

  for (const instant of [start + DAY_MS - 1, start, start - 10 * DAY_MS]) {
    clock.set(instant);
    assert.deepEqual(await scrip.balance(user), before);
    assertProblem(await subtract(user, 8), 'InsufficientFunds', 402);
  }
  assert.equal((await scrip.post('/add', { end_user_id: user, amount: 1 })).status, 200, 'additions still succeed');
  assert.equal((await subtract(user, 2)).status, 200);
  const list = await scrip.transactions(user);
  assert.deepEqual(
    list.map(({ amount }) => amount),
    [-2, 1, -3, 10, 10, 50],
  );
  for (const member of ['created_at', 'transaction_id'] as const) {
    const values = list.map((transaction) => transaction[member]);
    assert.deepEqual(values, values.toSorted().reverse(), member);
  }
  clock.set(start + DAY_MS);
  await scrip.assertConsistent();
});

test('if the clock jumps back while the service is down, expired credits stay expired', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'scrip-jump-'));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, 'ledger.db');
  const jumping = new MovableClock('2026-11-20T08:00:00.123Z');
  const user = someone();
  const first = await startScrip({ clock: jumping, file });
  t.after(() => first.stop());
  await first.post('/add', { end_user_id: user, amount: 50, validity_days: 1 });
  jumping.advance(DAY_MS);
  assert.equal((await first.balance(user)).active_balance, 0, 'the credits have expired before the clock jumps back');
  await first.stop();
  jumping.advance(-HOUR_MS);
  const second = await startScrip({ clock: jumping, file });
  t.after(() => second.stop());
  assert.equal((await second.balance(user)).active_balance, 0);
  assertProblem(await second.post('/subtract', { end_user_id: user, amount: 1 }), 'InsufficientFunds', 402);
});
