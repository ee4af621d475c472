// Tests that the client reads and moves the test clock of the real service.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Forbidden, InvalidField, NotFound, Scrip } from '../../client/src/scrip.ts';
import { DAY_MS } from '../../src/ledger/instant.ts';
import { type Scrip as Service, someone, startScrip } from '../http/running-service.ts';
import { dropsConnection, HostileScrip, sends } from './hostile-scrip.ts';

let service: Service;
let scrip: Scrip;
before(async () => {
  service = await startScrip({ testClock: true });
  scrip = new Scrip({ apiKey: service.writeKey, baseUrl: service.url });
});
after(() => service.stop());

test('the client reads the test clock and moves it by days or to an instant', async () => {
  const began = await scrip.testClock.now();
  const later = (days: number) => new Date(began.getTime() + days * DAY_MS);
  assert.deepEqual(await scrip.testClock.now(), began);
  assert.deepEqual(await scrip.testClock.advance({ days: 31 }), later(31));
  assert.deepEqual(await scrip.testClock.advance({ to: later(40) }), later(40));
  assert.deepEqual(await scrip.testClock.advance({ to: later(41).toISOString() }), later(41));
  const cycle = await scrip.startCycle({ end_user_id: someone(), amount: 1 });
  assert.equal(cycle.current_cycle_start, later(41).toISOString());
});

test('an invalid or forbidden move of the test clock throws an error and does not move the clock', async () => {
  const began = await scrip.testClock.now();
  await assert.rejects(scrip.testClock.advance({ to: new Date(began.getTime() - 1) }), InvalidField);
  for (const days of [0, -1, 1.5, Number.NaN, 2 ** 60])
    await assert.rejects(scrip.testClock.advance({ days }), TypeError);
  const reader = new Scrip({ apiKey: service.readKey, baseUrl: service.url });
  assert.deepEqual(await reader.testClock.now(), began);
  await assert.rejects(reader.testClock.advance({ days: 1 }), Forbidden);
  assert.deepEqual(await scrip.testClock.now(), began);
});

test('on a ledger without a test clock, the client throws a NotFound error that names --test-clock', async () => {
  const real = await startScrip();
  try {
    const { testClock } = new Scrip({ apiKey: real.writeKey, baseUrl: real.url });
    for (const call of [() => testClock.now(), () => testClock.advance({ to: '2100-01-01T00:00:00Z' })])
      await assert.rejects(call, (error) => error instanceof NotFound && error.detail.includes('--test-clock'));
  } finally {
    await real.stop();
  }
});

test('if the client retries `advance({ days })`, the retry sends the same instant again, so the clock moves only once', async () => {
  const hostile = await HostileScrip.start();
  try {
    const now = sends(200, '{"now":"2026-11-20T08:00:00.123Z"}', { 'content-type': 'application/json' });
    hostile.behave(now, dropsConnection, now);
    const { testClock } = new Scrip({ apiKey: 'scrip_write_canary', baseUrl: hostile.url });
    await testClock.advance({ days: 2 });
    const sent = hostile.received.map(({ method, body }) => [method, body]);
    const move = ['POST', { to: '2026-11-22T08:00:00.123Z' }];
    assert.deepEqual(sent, [['GET', null], move, move]);
  } finally {
    await hostile.stop();
  }
});

test('calls that read or move the test clock can be aborted', async () => {
  const signal = AbortSignal.abort(new Error('stop'));
  await assert.rejects(scrip.testClock.now({ signal }), /stop/);
  await assert.rejects(scrip.testClock.advance({ days: 1 }, { signal }), /stop/);
});
