// Tests failed deliveries: when they are retried, when an endpoint is paused, and when Scrip gives up on an event.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { Leases } from '../../src/events/webhooks/leases.ts';
import { RETRIED_MS, RETRY_DELAYS_MS, retryDelayMs } from '../../src/events/webhooks/retry-schedule.ts';
import type { WebhookJob } from '../../src/events/webhooks/webhook-job.ts';
import { testResending } from './resend-cases.ts';
import {
  ACCOUNT,
  type Answer,
  addEndpoint,
  pendingIds,
  Receiver,
  receivedOf,
  storedPosition,
  ticks,
  until,
  webhookSetting,
  withStatus,
} from './webhook-fixture.ts';

test('if a crash of the database undoes the latest changes of a sender, no event is lost', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  const { database, events } = setting;
  const { id } = await addEndpoint(setting, receiver.url());
  const [first] = events.add('u1');
  let now = Date.now();
  const job = setting.job({ now: () => now, retryDelay: () => 60_000 });
  await until(async () => (await storedPosition(setting, id)) === 1, job);
  receiver.answer = withStatus(500);
  const [second] = events.add('u1');
  await until(async () => (await storedPosition(setting, id)) === 2, job);
  assert.deepEqual(await pendingIds(setting, id), [second]);
  await database.queries.deleteFrom('webhook_pending').execute();
  await database.queries.updateTable('webhook_endpoints').set({ position: '1', changes: 1 }).execute();
  receiver.answer = withStatus(200);
  now += 60_000;
  await until(async () => (await storedPosition(setting, id)) === 2, job);
  assert.deepEqual(
    receiver.received.map((request) => request.id),
    [first, second, second],
  );
});

test('a sender stores no changes if the database has lost its earlier changes', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  const { database, events } = setting;
  const { id } = await addEndpoint(setting, receiver.url());
  events.add('u1');
  const job = setting.job();
  await until(async () => (await storedPosition(setting, id)) === 1, job);
  const look = Leases.prototype.look;
  // The database loses the changes after the job has read their number.
  t.mock.method(Leases.prototype, 'look', async function (this: Leases) {
    const seen = await look.call(this);
    await database.queries.updateTable('webhook_endpoints').set({ position: '0', changes: 0 }).execute();
    return seen;
  });
  events.add('u1');
  job.nudge();
  await until(() => receiver.received.length === 2);
  await job.tick();
  assert.equal(await storedPosition(setting, id), 0);
});

test('an endpoint that fails five times in a row gets no new events for five minutes, unless a retry succeeds', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  receiver.answer = withStatus(500);
  for (let user = 0; user < 100; user++) setting.events.add(`u${user}`);
  const { id } = await addEndpoint(setting, receiver.url());
  let now = Date.now();
  const job = setting.job({ now: () => now, retryDelay: (failures) => failures * 1_000 });
  await until(() => receiver.received.length >= 10, job);
  await ticks(10, job);
  // Scrip sends ten requests at once, and one more after each of the first four failures.
  const tried = receiver.received.length;
  assert(tried <= 14, `${tried} were sent`);
  const { pagesRead } = setting.events;
  setting.events.add('u200', 100);
  let openMax = 0;
  let open = 0;
  receiver.answer = (_request, response) => {
    open += 1;
    openMax = Math.max(openMax, open);
    void setTimeout(1).then(() => {
      open -= 1;
      withStatus(500)({} as never, response);
    });
  };
  now += 1_000;
  await until(() => receiver.received.length === 2 * tried, job);
  await ticks(10, job);
  assert.equal(receiver.received.length, 2 * tried, 'only the events that have failed are tried again');
  assert.equal(openMax, 1, 'the retries are sent one at a time');
  assert.equal(setting.events.pagesRead, pagesRead, 'no further events are read');

  receiver.answer = withStatus(200);
  now += 2_000;
  await until(async () => (await storedPosition(setting, id)) === 200, job);
  assert.equal(receiver.ids.length, 200);
  assert.equal((await pendingIds(setting, id)).length, 0);
});

const refusingLapses: Answer = (request, response) =>
  withStatus(request.body.includes('hold.lapsed') ? 400 : 200)(request, response);

test('five events that a receiver cannot process do not stop the events of other end users', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  receiver.answer = refusingLapses;
  for (let user = 0; user < 12; user++) setting.events.add(`u${user}`, 1, 'hold.lapsed');
  await addEndpoint(setting, receiver.url());
  let now = Date.now();
  const job = setting.job({ now: () => now, retryDelay: () => 86_400_000 });
  await until(() => job.attempts.failed >= 12, job);
  for (let user = 12; user < 20; user++) setting.events.add(`u${user}`);
  await ticks(5, job);
  const before = receiver.ids.length;
  now += 5 * 60_000;
  await until(() => receiver.ids.length === before + 8, job);
});

test('events that a receiver cannot process are not retried again and again because other deliveries succeed', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  receiver.answer = refusingLapses;
  for (let user = 0; user < 8; user++) setting.events.add(`u${user}`, 1, 'hold.lapsed');
  await addEndpoint(setting, receiver.url());
  let now = Date.now();
  const job = setting.job({ now: () => now, retryDelay: () => 86_400_000 });
  await until(() => job.attempts.failed === 8, job);
  for (let round = 0; round < 5; round++) {
    setting.events.add(`round ${round}`);
    now += 5 * 60_000;
    // After the first recovery, all retries are due.
    await until(() => job.attempts.failed === 16 && job.attempts.delivered > round, job);
    await ticks(5, job);
  }
  assert.deepEqual(job.attempts, { delivered: 5, failed: 16 });
});

test('when a delivery to a failing endpoint succeeds, all other retries to this endpoint become due immediately', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  receiver.answer = withStatus(500);
  for (let user = 0; user < 8; user++) setting.events.add(`u${user}`);
  const { id } = await addEndpoint(setting, receiver.url());
  let now = Date.now();
  let delay = 1_000;
  const job = setting.job({ now: () => now, retryDelay: () => (delay += 1_000_000) });
  await until(async () => (await pendingIds(setting, id)).length === 8, job);
  receiver.answer = withStatus(200);
  now += 1_002_000;
  await until(async () => (await pendingIds(setting, id)).length === 0, job);
});

test('when a delivery to a failing endpoint succeeds after a restart or a change to the endpoint, all other retries become due immediately', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  const { id } = await addEndpoint(setting, receiver.url());
  const restarts = [
    async (job: WebhookJob) => {
      await job.stop();
      return setting.job(options);
    },
    async (job: WebhookJob) => {
      await setting.endpoints.sendTest(ACCOUNT, id);
      return job;
    },
  ];
  const options = { retryDelay: () => 3_600_000 };
  let job = setting.job(options);
  for (const [index, restart] of restarts.entries()) {
    receiver.answer = withStatus(500);
    for (let user = 0; user < 8; user++) setting.events.add(`u${user}`);
    await until(async () => (await pendingIds(setting, id)).length === 8, job);
    receiver.answer = withStatus(200);
    job = await restart(job);
    setting.events.add('another user');
    await until(async () => (await pendingIds(setting, id)).length === 0, job);
    await until(async () => (await storedPosition(setting, id)) === 9 * (index + 1), job);
  }
});

test('the retries of a webhook are spread over about three days', () => {
  const delays = RETRY_DELAYS_MS.map((_, index) => retryDelayMs(index + 1, 0, 0.5));
  assert.deepEqual(
    delays,
    [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400].map((s) => s * 1_000),
  );
  assert.equal(retryDelayMs(10, RETRIED_MS, 0.5), null);
  assert.equal(retryDelayMs(9, RETRIED_MS, 0.5), RETRY_DELAYS_MS.at(-1));
  assert.equal(retryDelayMs(30, RETRIED_MS - 1, 0.5), RETRY_DELAYS_MS.at(-1), 'additional attempts are not the last');
  assert.deepEqual([retryDelayMs(1, 0, 0), retryDelayMs(1, 0, 0.999_999)], [4_000, 6_000]);
  const total = RETRY_DELAYS_MS.reduce((sum, delay) => sum + delay);
  assert(total > 72 * 3_600_000 && total < 80 * 3_600_000);
});

test('if all deliveries to an endpoint fail, including the last retry, the endpoint is paused and loses no event', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  receiver.answer = withStatus(500);
  const ids = setting.events.add('u1', 3);
  const { id } = await addEndpoint(setting, receiver.url());
  let now = Date.now();
  const job = setting.job({ now: () => now, retryDelay: (failures, elapsed) => retryDelayMs(failures, elapsed, 0.5) });
  for (let attempt = 1; attempt <= 10; attempt++) {
    await until(() => receiver.received.length === attempt, job);
    await ticks(3, job);
    assert.equal((await setting.endpoints.find(ACCOUNT, id))?.paused === null, attempt < 10, `attempt ${attempt}`);
    now += RETRY_DELAYS_MS[attempt - 1] ?? 0;
  }
  const paused = (await setting.endpoints.find(ACCOUNT, id))?.paused;
  const sentence =
    'All deliveries failed for about three days. The last error: The endpoint responded with status 500.';
  assert.equal(paused?.because, sentence);
  await ticks(5, job);
  assert.equal(job.pausedEndpoints, 1);
  assert.deepEqual(receivedOf(receiver, 'u1'), Array(10).fill(ids[0]));

  receiver.answer = withStatus(200);
  const later = setting.events.add('u2', 2);
  await setting.endpoints.resume(ACCOUNT, id);
  await until(async () => (await storedPosition(setting, id)) === 5, job);
  assert.deepEqual(receivedOf(receiver, 'u1').slice(10), ids);
  assert.deepEqual(receivedOf(receiver, 'u2'), later);
  assert.equal(job.pausedEndpoints, 0);
});

test('an event that a user resends many times is not given up, and its endpoint is not paused', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  const [first] = setting.events.add('u1');
  receiver.answer = ({ id }, response) => withStatus(id === first ? 503 : 200)({} as never, response);
  const { id } = await addEndpoint(setting, receiver.url());
  const job = setting.job({ retryDelay: (failures, elapsed) => retryDelayMs(failures, elapsed, 0.5) });
  for (let attempt = 1; attempt <= 12; attempt++) {
    await until(() => receiver.received.filter((each) => each.id === first).length === attempt, job);
    await ticks(3, job);
    await setting.endpoints.resend(ACCOUNT, id, first as string);
  }
  setting.events.add('u2');
  await until(async () => (await storedPosition(setting, id)) === 2, job);
  assert.deepEqual(await pendingIds(setting, id), [first]);
  assert.equal((await setting.endpoints.find(ACCOUNT, id))?.paused, null);
});

testResending(test, webhookSetting);

test('a test event does not wait for the retry of an earlier test event', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  receiver.answer = withStatus(500);
  const { id } = await addEndpoint(setting, receiver.url());
  const job = setting.job({ retryDelay: () => 3_600_000 });
  await setting.endpoints.sendTest(ACCOUNT, id);
  await until(() => receiver.received.length === 1, job);
  receiver.answer = withStatus(200);
  await setting.endpoints.sendTest(ACCOUNT, id);
  await until(() => receiver.ids.length === 2, job);
});

test('if only one event fails, Scrip gives up on it after the last retry, and delivers the later events', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  const [first, ...others] = setting.events.add('u1', 3);
  setting.events.add('u2');
  receiver.answer = ({ id }, response) => withStatus(id === first ? 422 : 200)({} as never, response);
  const { id } = await addEndpoint(setting, receiver.url());
  const job = setting.job({ retryDelay: (failures) => (failures < 3 ? 0 : null) });
  await until(() => receiver.received.length === 6, job);
  await until(async () => (await pendingIds(setting, id)).length === 0, job);
  assert.deepEqual(receivedOf(receiver, 'u1'), [first, first, first, ...others]);
  assert.equal((await setting.endpoints.find(ACCOUNT, id))?.paused, null);
  const { deliveries } = await setting.endpoints.deliveries(ACCOUNT, id, { before: null, limit: 10 });
  const failed = deliveries.filter(({ error }) => error !== null);
  assert.deepEqual(failed.map(({ attempt }) => attempt).sort(), [1, 2, 3]);
  receiver.answer = withStatus(200);
  assert.equal(await setting.endpoints.resend(ACCOUNT, id, first as string), true);
  await until(() => receiver.received.length === 7, job);
});

test('an endpoint that responds with status 410 is paused immediately', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  receiver.answer = withStatus(410);
  const ids = setting.events.add('u1', 2);
  const { id } = await addEndpoint(setting, receiver.url());
  const job = setting.job();
  await until(async () => (await setting.endpoints.find(ACCOUNT, id))?.paused != null, job);
  assert.equal(receiver.received.length, 1);
  assert.deepEqual(await pendingIds(setting, id), ids);
});
