// Tests balance histories: which points a history has, and the balance at each point.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { DAY_MS, HOUR_MS } from '../../../src/ledger/instant.ts';
import { assertFieldRefused, MovableClock, type Scrip, someone, startScrip } from '../running-service.ts';

const clock = new MovableClock('2026-01-31T08:00:00.123Z');
let scrip: Scrip;
before(async () => {
  scrip = await startScrip({ clock });
});
after(() => scrip.stop());

const textOf = (instant: number) => new Date(instant).toISOString();

async function history(user: string, query: Record<string, string> = {}) {
  const { status, body, text } = await scrip.get('/get-balance-history', { end_user_id: user, ...query });
  assert.equal(status, 200, text);
  return body.points;
}

const instantsOf = async (query: Record<string, string>) => (await history(someone(), query)).map(({ at }) => at);

test('each point of a balance history has the balance and the held credits that /get-active-balance returns for the same instant', async () => {
  const user = someone();
  const begin = clock.now;
  await scrip.post('/start-cycle', { end_user_id: user, amount: 100, validity_days: 2 });
  for (let hour = 0; hour < 60; hour += 7) {
    clock.set(begin + hour * HOUR_MS + 1_234);
    await scrip.post('/subtract', { end_user_id: user, amount: 3 });
    await scrip.post('/hold', { end_user_id: user, amount: 5, expires_in_seconds: 4 * 3_600 });
  }
  const points = await history(user, {
    interval: 'hour',
    from: textOf(begin - 2 * HOUR_MS),
    to: textOf(begin + 120 * HOUR_MS),
  });
  assert.equal(points.length, 123);
  for (const [index, { at, active_balance, held }] of points.entries()) {
    assert.equal(at, textOf(begin + (index - 2) * HOUR_MS));
    const { body } = await scrip.get('/get-active-balance', { end_user_id: user, at });
    assert.deepEqual([active_balance, held], [body.active_balance, body.held], at);
  }
  assert(points.some(({ held }) => held === 5));
  assert(points.some(({ held }) => held === undefined));
  assert(
    points.slice(80).some(({ active_balance }) => active_balance === 100),
    'future renewals are included',
  );
});

test('the points of a history begin at `from`, are one interval apart, and end at or before `to`', async () => {
  assert.deepEqual(await instantsOf({ interval: 'hour', from: '2026-03-01T00:30:00Z', to: '2026-03-01T02:30:00Z' }), [
    '2026-03-01T00:30:00.000Z',
    '2026-03-01T01:30:00.000Z',
    '2026-03-01T02:30:00.000Z',
  ]);
  assert.deepEqual(
    await instantsOf({ interval: 'day', from: '2026-03-28T00:00:00+01:00', to: '2026-03-30T00:00:00+02:00' }),
    ['2026-03-27T23:00:00.000Z', '2026-03-28T23:00:00.000Z'],
    'days have 24 hours',
  );
  assert.deepEqual(
    await instantsOf({ interval: 'month', from: '2027-10-31T12:00:00Z', to: '2028-02-29T12:00:00Z' }),
    ['10-31', '11-30', '12-31']
      .map((day) => `2027-${day}T12:00:00.000Z`)
      .concat(['01-31', '02-29'].map((day) => `2028-${day}T12:00:00.000Z`)),
    'each point is on the same day of the month as `from`, or on the last day of a shorter month',
  );
  const instant = '2026-03-01T00:30:00.000Z';
  assert.deepEqual(await instantsOf({ from: instant, to: instant }), [instant]);
});

test('by default, a history has one point for each of the last 30 days and one point for now', async () => {
  const now = clock.now;
  const points = await history(someone());
  assert.deepEqual(
    points.map(({ at, active_balance }) => [Date.parse(at), active_balance]),
    Array.from({ length: 31 }, (_, index) => [now - (30 - index) * DAY_MS, 0]),
  );
});

for (const [interval, count, first] of [
  ['hour', 25, '2026-06-14T18:00:00.000Z'],
  ['day', 31, '2026-05-16T18:00:00.000Z'],
  ['month', 13, '2025-06-15T18:00:00.000Z'],
] as const) {
  test(`without \`from\`, a history with the interval ${interval} that ends at 2026-06-15T18:00:00Z begins at ${first}`, async () => {
    const instants = await instantsOf({ interval, to: '2026-06-15T18:00:00Z' });
    assert.deepEqual([instants.length, instants[0], instants.at(-1)], [count, first, '2026-06-15T18:00:00.000Z']);
  });
}

test('a history of more than 1,000 points is refused, and the response states the limit', async () => {
  const query = (hours: number) => ({
    end_user_id: someone(),
    interval: 'hour',
    from: textOf(clock.now - hours * HOUR_MS),
    to: textOf(clock.now),
  });
  const most = await scrip.get('/get-balance-history', query(999));
  assert.equal(most.body.points.length, 1_000);
  const tooMany = await scrip.get('/get-balance-history', query(1_000));
  assertFieldRefused(tooMany, '/interval');
  assert.match(tooMany.body.detail, /more than 1000 points/);
});

test('a history is refused if `from` or `to` is not an instant, `from` is later than `to`, or the interval is unknown', async () => {
  const user = someone();
  const ask = (query: Record<string, string>) => scrip.get('/get-balance-history', { end_user_id: user, ...query });
  assertFieldRefused(await ask({ from: '2026-03-02T00:00:00Z', to: '2026-03-01T00:00:00Z' }), '/from');
  const inFuture = await ask({ from: textOf(clock.now + 1) });
  assertFieldRefused(inFuture, '/from');
  assert.match(inFuture.body.detail, /which defaults to now/);
  for (const interval of ['', 'week', 'Day', 'days']) assertFieldRefused(await ask({ interval }), '/interval');
  for (const name of ['from', 'to']) assertFieldRefused(await ask({ [name]: 'yesterday' }), `/${name}`);
});

test('a history is refused if `from` or `to` is before 1970 or after the year 9999; a history without `from` never begins before 1970', async () => {
  const ask = (query: Record<string, string>) =>
    scrip.get('/get-balance-history', { end_user_id: someone(), interval: 'month', ...query });
  const first = '1970-01-01T00:00:00.000Z';
  for (const from of ['1960-01-01T00:00:00Z', '1969-12-31T23:59:59.999999Z', '1970-01-01T00:00:00+00:01'])
    assertFieldRefused(await ask({ from, to: '1970-03-01T00:00:00Z' }), '/from');
  assertFieldRefused(await ask({ to: '1969-12-31T23:59:59.999Z' }), '/to');
  assertFieldRefused(await ask({ to: '9999-12-31T23:59:59.999-00:01' }), '/to');
  assert.deepEqual(await instantsOf({ from: first, to: first }), [first]);
  assert.deepEqual(await instantsOf({ interval: 'month', to: '1970-02-15T00:00:00Z' }), [
    first,
    '1970-02-01T00:00:00.000Z',
  ]);
});

test('the fields of a request for a balance history may be sent in a JSON body', async () => {
  const fields = { end_user_id: someone(), from: '2026-03-01T00:00:00Z', to: '2026-03-05T00:00:00Z', interval: 'day' };
  const inBody = await scrip.call('GET', '/get-balance-history', { body: fields });
  assert.equal(inBody.body.points.length, 5);
  assert.equal(inBody.text, (await scrip.get('/get-balance-history', fields)).text);
});

test('the history of an end user with thousands of cycles is correct, and computing it does not block other requests', async () => {
  const user = someone();
  const begin = clock.now;
  for (let added = 0; added < 3_000; added += 500)
    await Promise.all(Array.from({ length: 500 }, () => scrip.post('/add', { end_user_id: user, amount: 1 })));
  const query = { interval: 'hour', from: textOf(begin - HOUR_MS), to: textOf(begin + 900 * HOUR_MS) };
  let answered = 0;
  let isDone = false;
  const others = (async () => {
    while (!isDone) {
      await scrip.call('GET', '/healthz', { key: null });
      answered += 1;
    }
  })();
  const points = await history(user, query);
  isDone = true;
  await others;
  assert.deepEqual(
    [points[0], points[1], points.at(-1)].map((point) => point?.active_balance),
    [0, 3_000, 0],
  );
  // The computation yields after a fixed number of cycles, so this count does not depend on the speed of the machine: it
  // was 227 in all runs, and 2 in a run in which the computation never yielded.
  assert(answered >= 50, `only ${answered} other requests were answered during the computation`);
});
