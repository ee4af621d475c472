// Tests how long the service keeps idempotency records.

import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { InvalidSetting, readConfig } from '../../src/config.ts';
import { DAY_MS, HOUR_MS } from '../../src/ledger/instant.ts';
import { eventually, MovableClock, type Scrip, someone, startScrip } from '../http/running-service.ts';

test('IDEMPOTENCY_GRANT_DAYS sets the retention of the idempotency records of grants, unless IDEMPOTENCY_HOURS is longer', () => {
  const retention = (days: string, hours = '24') =>
    readConfig({ IDEMPOTENCY_GRANT_DAYS: days, IDEMPOTENCY_HOURS: hours }).idempotency;
  assert.deepEqual(retention('90'), { grantsMs: 90 * DAY_MS, othersMs: 24 * HOUR_MS });
  assert.deepEqual(retention('2', '49'), { grantsMs: 49 * HOUR_MS, othersMs: 49 * HOUR_MS });
  assert.deepEqual(retention('2', '47'), { grantsMs: 2 * DAY_MS, othersMs: 47 * HOUR_MS });
});

test('IDEMPOTENCY_GRANT_DAYS must be from 1 to 3650', () => {
  const read = (days: string) => readConfig({ IDEMPOTENCY_GRANT_DAYS: days }).idempotency.grantsMs;
  for (const days of ['1', '3650']) assert.equal(read(days), Number(days) * DAY_MS);
  const message = /^IDEMPOTENCY_GRANT_DAYS is "\d+"; it must be a whole number from 1 to 3650\.$/;
  for (const days of ['0', '3651']) assert.throws(() => read(days), { name: InvalidSetting.name, message });
});

async function moveTo(scrip: Scrip, clock: MovableClock, instant: number): Promise<void> {
  const sweep = mock.method(scrip.service.stores.ledger, 'deleteExpiredRecords');
  clock.set(instant);
  // The test waits for two sweeps, because the first may have begun before the clock moved.
  await eventually(() => sweep.mock.callCount() >= 2, 'two sweeps');
  sweep.mock.restore();
}

test('by default, the idempotency record of a grant is kept for 30 days, and the record of any other write for 24 hours', async (t) => {
  assert.deepEqual(readConfig({}).idempotency, { grantsMs: 30 * DAY_MS, othersMs: 24 * HOUR_MS });
  const clock = new MovableClock('2026-02-27T22:30:00Z');
  const start = clock.now;
  const scrip = await startScrip({ clock });
  t.after(() => scrip.stop());
  const user = someone();
  const send = async (path: string, key: string, amount: number) => {
    const fields = path === '/subtract' ? { amount } : { amount, validity_days: 400 };
    const options = { headers: { 'idempotency-key': key } };
    const { status, headers } = await scrip.post(path, { end_user_id: user, ...fields }, options);
    assert.equal(status, 200);
    return headers['idempotent-replayed'] === 'true' ? 'replayed' : 'done';
  };
  const balance = async () => (await scrip.balance(user)).active_balance;

  assert.equal(await send('/add', 'grant', 1_000), 'done');
  assert.equal(await send('/start-cycle', 'subscription', 500), 'done');
  assert.equal(await send('/subtract', 'spending', 7), 'done');
  assert.equal(await balance(), 1_493);

  await moveTo(scrip, clock, start + 24 * HOUR_MS - 60_000);
  assert.equal(await send('/subtract', 'spending', 7), 'replayed');

  await moveTo(scrip, clock, start + 26 * HOUR_MS);
  assert.equal(await send('/add', 'grant', 1_000), 'replayed');
  assert.equal(await send('/start-cycle', 'subscription', 500), 'replayed');
  assert.equal(await balance(), 1_493);
  assert.equal(await send('/subtract', 'spending', 7), 'done', 'the idempotency record has expired');
  assert.equal(await balance(), 1_486);

  await moveTo(scrip, clock, start + 29 * DAY_MS);
  assert.equal(await send('/add', 'grant', 1_000), 'replayed');
  assert.equal(await send('/start-cycle', 'subscription', 500), 'replayed');
  assert.equal(await balance(), 1_486);

  await moveTo(scrip, clock, start + 31 * DAY_MS);
  assert.equal(await send('/add', 'grant', 1_000), 'done', 'the idempotency record has expired');
  assert.equal(await balance(), 2_486);
  await scrip.assertConsistent();
});
