// Tests how one process delivers events to endpoints: in which order, what it stores, and what it never logs.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { DeliveryQueue } from '../../src/events/webhooks/delivery-queue.ts';
import { WebhookRequests } from '../../src/events/webhooks/request.ts';
import { SecretBox } from '../../src/events/webhooks/secrets.ts';
import { eventBody } from '../../src/store/event-log.ts';
import {
  ACCOUNT,
  addEndpoint,
  pendingIds,
  Receiver,
  RULES,
  receivedOf,
  storedPosition,
  ticks,
  until,
  webhookSetting,
  withStatus,
} from './webhook-fixture.ts';

test('an endpoint receives events as signed requests, and its position in the event log is stored', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  const { events } = setting;
  const ids = events.add('u1', 3);
  const { id, secret } = await addEndpoint(setting, receiver.url('/hook'));
  const job = setting.job();
  await until(async () => (await storedPosition(setting, id)) === 3, job);
  assert.deepEqual(receiver.ids, ids);
  for (const [index, { body, headers }] of receiver.received.entries()) {
    new Webhook(secret).verify(body, headers as Record<string, string>);
    assert.equal(body, eventBody(events.events[index] as (typeof events.events)[0]));
    assert.equal(headers['user-agent'], 'Scrip/test');
  }
  assert.deepEqual(job.attempts, { delivered: 3, failed: 0 });
  const { deliveries } = await setting.endpoints.deliveries(ACCOUNT, id, { before: null, limit: 10 });
  assert.deepEqual(deliveries.map(({ eventId }) => eventId).sort(), ids);
});

test('an idle job reads no pages of the event log, and a failed read is repeated', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  const { events } = setting;
  await addEndpoint(setting, receiver.url());
  events.add('u1');
  const job = setting.job();
  await until(() => receiver.received.length === 1, job);
  await ticks(3, job);
  const { pagesRead } = events;
  await ticks(5, job);
  assert.equal(events.pagesRead, pagesRead);
  const failing = t.mock.method(events, 'page', () => Promise.reject(new Error('the read failed')));
  events.add('u1');
  await ticks(2, job);
  assert(failing.mock.callCount() > 0);
  failing.mock.restore();
  await until(() => receiver.received.length === 2, job);
});

test('an endpoint with a list of event types receives only events of these types', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  setting.events.add('u1', 500);
  const wanted = setting.events.add('u1', 2, 'balance.low');
  setting.events.add('u2', 300);
  const { id } = await addEndpoint(setting, receiver.url(), ['balance.low']);
  const job = setting.job();
  await until(async () => (await storedPosition(setting, id)) === 802, job);
  assert.deepEqual(receiver.ids, wanted);
});

test('up to ten webhooks are sent to an endpoint at once, but the webhooks of one end user are sent in order and one at a time', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  const users = Array.from({ length: 20 }, (_, index) => `u${index}`);
  const expected = new Map(users.map((user) => [user, [] as string[]]));
  for (let count = 0; count < 10; count++)
    for (const user of users) expected.get(user)?.push(...setting.events.add(user));
  const open = new Map<string, number>();
  let openMax = 0;
  const answers: (() => void)[] = [];
  receiver.answer = ({ body }, response) => {
    const user = JSON.parse(body).data.end_user_id;
    assert(!open.has(user), 'two requests for one end user at once');
    open.set(user, 1);
    openMax = Math.max(openMax, open.size);
    answers.push(() => {
      open.delete(user);
      response.end();
    });
    if (openMax === 10) for (const answer of answers.splice(0)) answer();
  };
  const { id } = await addEndpoint(setting, receiver.url());
  const job = setting.job();
  await until(async () => (await storedPosition(setting, id)) === 200, job);
  for (const [user, ids] of expected) assert.deepEqual(receivedOf(receiver, user), ids);
  assert.equal(openMax, 10);
});

test('a failed event and later events of the same end user stay pending, and events of other end users are delivered', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  const [first, ...others] = setting.events.add('u1', 4);
  const free = setting.events.add('u2', 4);
  let isBroken = true;
  receiver.answer = ({ id }, response) => withStatus(isBroken && id === first ? 500 : 200)({} as never, response);
  const { id } = await addEndpoint(setting, receiver.url());
  const job = setting.job({ retryDelay: () => (isBroken ? 3_600_000 : 0) });
  await until(async () => (await storedPosition(setting, id)) === 8, job);
  assert.deepEqual(await pendingIds(setting, id), [first, ...others]);
  assert.deepEqual(receivedOf(receiver, 'u1'), [first]);
  assert.deepEqual(receivedOf(receiver, 'u2'), free);
  const summary = await setting.endpoints.summary(ACCOUNT, id);
  assert.equal(summary.pending, 4);
  assert(summary.oldestPendingAt !== null && summary.lastDeliveredAt !== null);
  const age = job.oldestAgeMs();
  assert(age > 0 && age < 60_000, 'the age counts from when Scrip read the event, although it happened in 1970');

  const [late] = setting.events.add('u1');
  await until(async () => (await storedPosition(setting, id)) === 9, job);
  isBroken = false;
  await setting.endpoints.resend(ACCOUNT, id, first as string);
  await until(async () => (await pendingIds(setting, id)).length === 0, job);
  assert.deepEqual(receivedOf(receiver, 'u1'), [first, first, ...others, late]);
  assert.equal(job.oldestAgeMs(), 0);
});

test('despite many failures, an endpoint receives all events of each end user in order', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  const users = ['u1', 'u2', 'u3', 'u4'];
  const expected = new Map(users.map((user) => [user, [] as string[]]));
  const delivered = new Map(users.map((user) => [user, [] as string[]]));
  let answers = 0;
  receiver.answer = ({ id, body }, response) => {
    answers += 1;
    const isFailure = answers % 3 === 0 || (answers > 40 && answers < 60);
    if (!isFailure) delivered.get(JSON.parse(body).data.end_user_id)?.push(id);
    withStatus(isFailure ? 503 : 200)({} as never, response);
  };
  const { id } = await addEndpoint(setting, receiver.url());
  const job = setting.job({ retryDelay: () => 0 });
  for (let round = 0; round < 30; round++) {
    for (const user of users) expected.get(user)?.push(...setting.events.add(user, 2));
    await job.tick();
  }
  await until(
    async () => (await storedPosition(setting, id)) === 240 && (await pendingIds(setting, id)).length === 0,
    job,
  );
  assert.deepEqual(delivered, expected);
  assert(job.attempts.failed > 50);
});

test('an endpoint that does not respond does not delay other endpoints', async (t) => {
  await using hanging = await Receiver.start();
  await using healthy = await Receiver.start();
  hanging.answer = () => {};
  const setting = await webhookSetting(t);
  for (let user = 0; user < 300; user++) setting.events.add(`u${user}`);
  await addEndpoint(setting, hanging.url());
  const { id } = await addEndpoint(setting, healthy.url());
  const job = setting.job();
  await until(async () => (await storedPosition(setting, id)) === 300, job);
  assert.equal(hanging.received.length, 10);
});

test('webhooks that get no response do not delay events of other end users', async (t) => {
  await using receiver = await Receiver.start();
  receiver.answer = ({ body }, response) => void (body.includes('"stuck"') || response.end());
  const setting = await webhookSetting(t);
  setting.events.add('stuck', 3);
  const ids = Array.from({ length: 50 }, (_, user) => setting.events.add(`u${user}`)).flat();
  const { id } = await addEndpoint(setting, receiver.url());
  const requests = new WebhookRequests({ rules: RULES, userAgent: 'Scrip/test', timeoutMs: 1_500 });
  t.after(() => requests.close());
  const job = setting.job({ request: (each) => requests.send(each), retryDelay: () => 3_600_000 });
  await until(() => receiver.ids.length === 51, job);
  assert.deepEqual(receiver.ids.slice(1).sort(), ids);
  await until(async () => (await storedPosition(setting, id)) === 53, job);
  assert.equal((await pendingIds(setting, id)).length, 3);
});

async function storesTooEarly(t: Parameters<typeof webhookSetting>[0]): Promise<boolean> {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  const answers: (() => void)[] = [];
  receiver.answer = (_request, response) => void answers.push(() => response.end());
  const [first, second] = [setting.events.add('u1'), setting.events.add('u2', 2)];
  assert.equal(first.length + second.length, 3);
  const { id } = await addEndpoint(setting, receiver.url());
  const job = setting.job();
  await until(() => answers.length === 2, job);
  await ticks(5, job);
  const isTooEarly = (await storedPosition(setting, id)) > 0;
  for (let answered = 0; answered < 3; answered++) {
    await until(() => answers.length > 0, job);
    answers.shift()?.();
  }
  await until(async () => (await storedPosition(setting, id)) === 3, job);
  return isTooEarly;
}

test('the stored position of an endpoint in the event log never moves past an event whose request is in flight', async (t) => {
  assert.equal(await storesTooEarly(t), false);
});

test('control: the delivery test detects a delivery queue that moves the stored position past events whose requests are in flight', async (t) => {
  const { passed } = DeliveryQueue.prototype;
  t.mock.method(DeliveryQueue.prototype, 'passed', function broken(this: DeliveryQueue, isEnding: boolean) {
    return { ...passed.call(this, isEnding), position: '3' };
  });
  assert.equal(await storesTooEarly(t), true);
});

test('after a crash, the next process delivers all events that the crashed process did not deliver', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  const ids = Array.from({ length: 30 }, (_, user) => setting.events.add(`u${user % 7}`)).flat();
  let answered = 0;
  receiver.answer = (_request, response) => void (answered++ < 11 && response.end());
  const { id } = await addEndpoint(setting, receiver.url());
  const crashing = setting.job();
  await until(() => answered > 12, crashing);
  // From here on, the test does not run `crashing`, to simulate a crash of its process.
  receiver.answer = withStatus(200);
  const job = setting.job();
  await until(async () => (await storedPosition(setting, id)) === 30, job);
  assert.deepEqual(receiver.ids.sort(), ids);
});

test('an endpoint whose secret was encrypted with another key is paused, and other endpoints still work', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  setting.events.add('u1');
  await addEndpoint(setting, receiver.url('/unreadable'));
  const sealed = new SecretBox('1'.repeat(64)).seal('whsec_AAAA');
  await setting.database.queries.updateTable('webhook_endpoints').set({ secret: sealed }).execute();
  await addEndpoint(setting, receiver.url('/readable'));
  const job = setting.job();
  await until(() => receiver.received.length === 1, job);
  await ticks(5, job);
  assert.deepEqual(
    receiver.received.map(({ path }) => path),
    ['/readable'],
  );
  assert.equal(job.pausedEndpoints, 1);
  assert.match((await setting.endpoints.find(ACCOUNT, 1))?.paused?.because ?? '', /cannot be decrypted.*WEBHOOK_KEY/);
  assert.equal(setting.log.length, 1);
  assert.match(setting.log[0] ?? '', /WEBHOOK_KEY/);
  // Scrip still cannot decrypt the previous secret, so it signs webhooks only with the new secret.
  await setting.endpoints.rotate(ACCOUNT, 1);
  await setting.endpoints.resume(ACCOUNT, 1);
  await until(() => receiver.received.length === 2, job);
});

test('no secret, request body or response body is logged, and secrets are stored only in encrypted form', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  setting.events.add('user-in-body', 3);
  receiver.answer = withStatus(410, 'answer-of-endpoint');
  const { id, secret } = await addEndpoint(setting, receiver.url());
  const rotated = (await setting.endpoints.rotate(ACCOUNT, id)) as string;
  const job = setting.job();
  await until(async () => (await setting.endpoints.find(ACCOUNT, id))?.paused != null, job);
  const rows = JSON.stringify(await setting.database.queries.selectFrom('webhook_endpoints').selectAll().execute());
  const log = setting.log.join('\n');
  assert.match(log, /was paused/);
  for (const each of [secret, rotated])
    for (const text of [each, each.slice('whsec_'.length)]) assert(!rows.includes(text) && !log.includes(text));
  assert(!log.includes('user-in-body') && !log.includes('answer-of-endpoint'));
});

test('a process with no events to deliver writes nothing to the database', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  setting.events.add('u1', 2);
  const { id } = await addEndpoint(setting, receiver.url());
  const job = setting.job();
  await until(async () => (await storedPosition(setting, id)) === 2, job);
  await ticks(3, job);
  const changes = async () =>
    JSON.stringify(await setting.database.queries.selectFrom('webhook_endpoints').selectAll().execute());
  const before = await changes();
  const transaction = t.mock.method(setting.database.queries, 'transaction');
  const update = t.mock.method(setting.database.queries, 'updateTable');
  await ticks(10, job);
  assert.deepEqual([transaction.mock.callCount(), update.mock.callCount()], [0, 0]);
  assert.equal(await changes(), before);
});
