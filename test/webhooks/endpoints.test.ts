// Tests the operations that manage endpoints, and how the webhook job applies the changes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { Thresholds } from '../../src/events/thresholds.ts';
import { DELIVERIES_PER_ENDPOINT_MAX, newDeliveryId } from '../../src/events/webhooks/deliveries.ts';
import { ENDPOINTS_MAX, InvalidEndpoint, RESENT_MAX } from '../../src/events/webhooks/endpoints.ts';
import { DAY_MS, HOUR_MS } from '../../src/ledger/instant.ts';
import { THRESHOLDS_MAX } from '../../src/store/event-log.ts';
import {
  ACCOUNT,
  addEndpoint,
  Receiver,
  type Setting,
  ticks,
  until,
  webhookSetting,
  withStatus,
} from './webhook-fixture.ts';

const OTHER = 2;

async function twoAccounts(t: Parameters<typeof webhookSetting>[0], now?: () => number): Promise<Setting> {
  const setting = await webhookSetting(t, now);
  await setting.database.queries
    .insertInto('accounts')
    .values({ account: OTHER, name: 'Beta', created_at: 0 })
    .execute();
  return setting;
}

test('the endpoints of one account or of all accounts can be listed, without their secrets', async (t) => {
  const { endpoints } = await twoAccounts(t, () => 1_000);
  const types = ['balance.low', 'credits.added'] as const;
  const added = await endpoints.add({ account: ACCOUNT, url: 'https://a.example.com', types, createdBy: 'user:1' });
  await endpoints.add({ account: OTHER, url: 'https://b.example.com/x', types: [], createdBy: 'operator' });
  const expected = {
    ...{
      id: 1,
      account: ACCOUNT,
      url: 'https://a.example.com/',
      types: [...types],
      createdAt: 1_000,
      createdBy: 'user:1',
    },
    ...{ paused: null, previousSecretUntil: null },
  };
  assert.deepEqual(added?.endpoint, expected);
  assert.match(added.secret, /^whsec_/);
  assert.deepEqual(await endpoints.list(ACCOUNT), [{ ...expected, accountName: 'Acme' }]);
  assert.deepEqual(
    (await endpoints.list(null)).map(({ id, accountName }) => [id, accountName]),
    [
      [1, 'Acme'],
      [2, 'Beta'],
    ],
  );
  assert.deepEqual(await endpoints.find(ACCOUNT, 1), expected);
  assert.deepEqual(await endpoints.find(null, 1), expected);
});

test('an endpoint with a URL that is not allowed is refused', async (t) => {
  const { endpoints } = await webhookSetting(t);
  for (const url of ['http://example.com', 'https://a:b@example.com', 'https://10.0.0.1', 'x'])
    await assert.rejects(endpoints.add({ account: ACCOUNT, url, types: [], createdBy: 'operator' }), InvalidEndpoint);
  assert.deepEqual(await endpoints.list(null), []);
});

test('the limit on the number of endpoints applies to each account separately', async (t) => {
  const { endpoints } = await twoAccounts(t);
  const add = (account: number) =>
    endpoints.add({ account, url: 'https://example.com', types: [], createdBy: 'operator' });
  await add(OTHER);
  for (let count = 0; count < ENDPOINTS_MAX; count++) await add(ACCOUNT);
  await assert.rejects(add(ACCOUNT), InvalidEndpoint);
  await endpoints.remove(ACCOUNT, 2);
  await add(ACCOUNT);
});

test('no method reads or changes an endpoint of another account', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await twoAccounts(t);
  const { endpoints } = setting;
  setting.events.add('u1');
  const { id } = await addEndpoint(setting, receiver.url());
  const job = setting.job();
  const page = { before: null, limit: 10 };
  await until(async () => (await endpoints.deliveries(ACCOUNT, id, page)).deliveries.length === 1, job);
  const [delivery] = (await endpoints.deliveries(ACCOUNT, id, page)).deliveries;
  const before = JSON.stringify(await endpoints.list(null));
  assert(delivery !== undefined);
  const results = [
    await endpoints.find(OTHER, id),
    await endpoints.rotate(OTHER, id),
    await endpoints.delivery(OTHER, id, delivery.id),
    (await endpoints.setTypes(OTHER, id, ['balance.low'])) || null,
    (await endpoints.remove(OTHER, id)) || null,
    (await endpoints.pause(OTHER, id)) || null,
    (await endpoints.resume(OTHER, id)) || null,
    (await endpoints.sendTest(OTHER, id)) || null,
    (await endpoints.resend(OTHER, id, delivery.eventId)) || null,
    (await endpoints.resendRange(OTHER, id, 0, Date.now())) || null,
    (await endpoints.summary(OTHER, id)).lastDeliveredAt,
    (await endpoints.deliveries(OTHER, id, page)).deliveries[0] ?? null,
  ];
  assert(
    results.every((result) => result === null),
    JSON.stringify(results),
  );
  assert.equal(JSON.stringify(await endpoints.list(null)), before);
  assert.deepEqual(await endpoints.delivery(ACCOUNT, id, delivery.id), delivery);
});

test('for 24 hours after a rotation, each webhook is signed with both secrets, and later only with the new secret', async (t) => {
  await using receiver = await Receiver.start();
  let now = Date.now();
  const setting = await webhookSetting(t, () => now);
  const { id, secret } = await addEndpoint(setting, receiver.url());
  const job = setting.job();
  await ticks(2, job);
  const rotated = (await setting.endpoints.rotate(ACCOUNT, id)) as string;
  assert.equal((await setting.endpoints.find(ACCOUNT, id))?.previousSecretUntil, now + 24 * HOUR_MS);
  await ticks(2, job);
  const signatures = async (): Promise<string> => {
    const { length } = receiver.received;
    setting.events.add('u1');
    await until(() => receiver.received.length > length, job);
    return String(receiver.received.at(-1)?.headers['webhook-signature']);
  };
  assert.equal((await signatures()).split(' ').length, 2);
  const { body, headers } = receiver.received[0] as (typeof receiver.received)[0];
  for (const each of [secret, rotated]) new Webhook(each).verify(body, headers as Record<string, string>);
  now += 24 * HOUR_MS - 1;
  assert.equal((await signatures()).split(' ').length, 2);
  now += 1;
  assert.equal((await signatures()).split(' ').length, 1);
  assert.equal((await setting.endpoints.find(ACCOUNT, id))?.previousSecretUntil, null);
});

test('if a secret is rotated again within 24 hours, webhooks are still signed with each earlier secret for its 24 hours', async (t) => {
  await using receiver = await Receiver.start();
  let now = Date.now();
  const setting = await webhookSetting(t, () => now);
  const { id, secret } = await addEndpoint(setting, receiver.url());
  const rotate = async () => (await setting.endpoints.rotate(ACCOUNT, id)) as string;
  const second = await rotate();
  now += 60_000;
  const third = await rotate();
  assert.equal((await setting.endpoints.find(ACCOUNT, id))?.previousSecretUntil, now + 24 * HOUR_MS);
  const job = setting.job();
  const accepted = async () => {
    const { length } = receiver.received;
    setting.events.add('u1');
    await until(() => receiver.received.length > length, job);
    const { body, headers } = receiver.received.at(-1) as (typeof receiver.received)[0];
    const verifies = (each: string) => {
      try {
        return new Webhook(each).verify(body, headers as Record<string, string>) !== undefined;
      } catch {
        return false;
      }
    };
    return [secret, second, third].map(verifies);
  };
  assert.deepEqual(await accepted(), [true, true, true]);
  for (let count = 0; count < 9; count++) await rotate();
  await ticks(2, job);
  await accepted();
  assert.equal(String(receiver.received.at(-1)?.headers['webhook-signature']).split(' ').length, 5);
});

test('an endpoint that receives only some types of events can receive a test event', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t, () => Date.UTC(2026, 0, 31));
  const { id } = await addEndpoint(setting, receiver.url(), ['balance.low']);
  const job = setting.job();
  await ticks(2, job);
  assert.equal(await setting.endpoints.sendTest(ACCOUNT, id), true);
  assert.equal(await setting.endpoints.sendTest(ACCOUNT, id + 1), false);
  await until(() => receiver.received.length === 1, job);
  const { body, id: eventId } = receiver.received[0] as (typeof receiver.received)[0];
  const timestamp = '2026-01-31T00:00:00.000Z';
  assert.deepEqual(JSON.parse(body), { id: eventId, type: 'webhook.test', timestamp, data: { endpoint_id: id } });
  await ticks(3, job);
  assert.equal((await setting.endpoints.summary(ACCOUNT, id)).pending, 0);
});

test('a paused endpoint receives nothing, and when it is resumed, it receives all events that happened during the pause', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  const { id } = await addEndpoint(setting, receiver.url());
  const job = setting.job();
  await ticks(2, job);
  assert.equal(await setting.endpoints.pause(ACCOUNT, id), true);
  assert.equal(
    (await setting.endpoints.find(ACCOUNT, id))?.paused?.because,
    'The endpoint was paused in the console or on the command line.',
  );
  await ticks(2, job);
  const ids = setting.events.add('u1', 3);
  await ticks(5, job);
  assert.deepEqual(receiver.ids, []);
  await setting.endpoints.resume(ACCOUNT, id);
  await until(() => receiver.ids.length === 3, job);
  assert.deepEqual(receiver.ids, ids);
});

test('a change to the event types of an endpoint applies to all later events', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  const { id } = await addEndpoint(setting, receiver.url(), ['balance.low']);
  const job = setting.job();
  await ticks(2, job);
  await setting.endpoints.setTypes(ACCOUNT, id, []);
  assert.deepEqual((await setting.endpoints.find(ACCOUNT, id))?.types, []);
  await ticks(2, job);
  const ids = setting.events.add('u1');
  await until(() => receiver.ids.length === 1, job);
  assert.deepEqual(receiver.ids, ids);
});

test('a removed endpoint receives nothing more, and its ID is not given to a new endpoint of any account', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await twoAccounts(t);
  const { endpoints } = setting;
  receiver.answer = withStatus(500);
  setting.events.add('u1', 3);
  const { id } = await addEndpoint(setting, receiver.url('/old'));
  const job = setting.job();
  await until(async () => (await setting.endpoints.summary(ACCOUNT, id)).pending === 3, job);
  await endpoints.remove(ACCOUNT, id);
  receiver.answer = withStatus(200);
  const ofOther = await endpoints.add({ account: OTHER, url: 'https://b.example', types: [], createdBy: 'operator' });
  assert.equal(ofOther?.endpoint.id, id + 1);
  await endpoints.remove(OTHER, id + 1);
  assert.equal((await addEndpoint(setting, receiver.url('/new'))).id, id + 2);
  await until(() => receiver.received.filter(({ path }) => path === '/new').length === 3, job);
  assert.equal(receiver.received.filter(({ path }) => path === '/old').length, 1);
});

test('a delivered event can be sent again, with the same ID and body', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  const [eventId] = setting.events.add('u1') as [string];
  const { id } = await addEndpoint(setting, receiver.url());
  const job = setting.job();
  const page = { before: null, limit: 10 };
  await until(async () => (await setting.endpoints.deliveries(ACCOUNT, id, page)).deliveries.length === 1, job);
  assert.equal(await setting.endpoints.resend(ACCOUNT, id, 'evt_unknown'), false);
  assert.equal(await setting.endpoints.resend(null, id, eventId), true);
  await until(() => receiver.received.length === 2, job);
  const [first, second] = receiver.received;
  assert.deepEqual([first?.id, first?.body], [second?.id, second?.body]);
});

async function insertEvents({ database }: Setting, count: number, type = 'credits.added'): Promise<void> {
  for (let start = 0; start < count; start += 1_000) {
    const rows = Array.from({ length: Math.min(1_000, count - start) }, (_, index) => ({
      ...{ account: ACCOUNT, id: `evt_${type}_${start + index}`, type, at: start + index, recorded_at: 0 },
      data: `{"end_user_id":"u${index % 3}","balance":1}`,
    }));
    await database.queries.insertInto('events').values(rows).execute();
  }
}

test('the events of a time range can be sent again, except events of types that the endpoint does not receive', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  await insertEvents(setting, 20);
  await insertEvents(setting, 20, 'balance.low');
  const { id } = await addEndpoint(setting, receiver.url(), ['credits.added']);
  const job = setting.job();
  assert.equal(await setting.endpoints.resendRange(ACCOUNT, id, 5, 8), 3);
  await until(() => receiver.received.length === 3, job);
  assert.deepEqual(
    receiver.ids.sort(),
    [5, 6, 7].map((number) => `evt_credits.added_${number}`),
  );
  assert.equal(
    receiver.received.find(({ id }) => id.endsWith('_5'))?.body,
    '{"id":"evt_credits.added_5","type":"credits.added","timestamp":"1970-01-01T00:00:00.005Z","data":{"end_user_id":"u2","balance":1}}',
  );
});

test('when the events of a time range are sent again, the retries of pending events start from the beginning, and each event is sent once, in order', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  await insertEvents(setting, 6);
  const { id } = await addEndpoint(setting, receiver.url());
  const job = setting.job({ retryDelay: () => 3_600_000 });
  await setting.endpoints.resendRange(ACCOUNT, id, 0, 6);
  receiver.answer = withStatus(500);
  await until(() => receiver.received.length === 3, job);
  await ticks(3, job);
  receiver.answer = withStatus(200);
  assert.equal(await setting.endpoints.resendRange(ACCOUNT, id, 0, 6), 6);
  assert.equal((await setting.endpoints.summary(ACCOUNT, id)).pending, 6);
  await until(async () => (await setting.endpoints.summary(ACCOUNT, id)).pending === 0, job);
  const again = receiver.received.slice(3).map((each) => Number(each.id.at(-1)));
  assert.deepEqual(again.toSorted(), [0, 1, 2, 3, 4, 5]);
  for (const user of [0, 1, 2]) assert(again.indexOf(user) < again.indexOf(user + 3));
});

test('the events of a time range cannot be sent again if there are too many of them', async (t) => {
  const setting = await webhookSetting(t);
  await insertEvents(setting, RESENT_MAX + 1);
  const { id } = await addEndpoint(setting, 'https://example.com');
  await assert.rejects(setting.endpoints.resendRange(ACCOUNT, id, 0, RESENT_MAX + 1), InvalidEndpoint);
  assert.equal(await setting.endpoints.resendRange(ACCOUNT, id, 0, RESENT_MAX), RESENT_MAX);
  assert.equal((await setting.endpoints.summary(ACCOUNT, id)).pending, RESENT_MAX);
});

test('webhook deliveries are listed in pages, latest first', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  setting.events.add('u1', 25);
  const { id } = await addEndpoint(setting, receiver.url());
  const job = setting.job();
  await until(
    async () => (await setting.endpoints.deliveries(ACCOUNT, id, { before: null, limit: 50 })).deliveries.length === 25,
    job,
  );
  const seen: string[] = [];
  const sizes: number[] = [];
  let before: string | null = null;
  do {
    const page = await setting.endpoints.deliveries(ACCOUNT, id, { before, limit: 10 });
    seen.push(...page.deliveries.map((delivery) => delivery.id));
    sizes.push(page.deliveries.length);
    before = page.next;
  } while (before !== null);
  assert.deepEqual(sizes, [10, 10, 5]);
  assert.deepEqual(seen, [...new Set(seen)].sort().reverse());
  assert.deepEqual(await setting.endpoints.deliveries(ACCOUNT, id, { before: 'nonsense', limit: 10 }), {
    deliveries: [],
    next: null,
  });
});

test('webhook deliveries are kept for seven days, up to a maximum number for each endpoint', async (t) => {
  const now = Date.now();
  const setting = await webhookSetting(t, () => now);
  const { id } = await addEndpoint(setting, 'https://example.com');
  await setting.endpoints.pause(ACCOUNT, id);
  const add = async (count: number, at: (index: number) => number) => {
    const row = (instant: number) => ({
      ...{ delivery_id: newDeliveryId(instant), endpoint_id: id, event_id: 'evt_1', type: 'credits.added', body: '{}' },
      ...{ attempt: 1, at: instant, duration_ms: 1, status: 200, error: null, answer: '' },
    });
    for (let start = 0; start < count; start += 1_000) {
      const rows = Array.from({ length: Math.min(1_000, count - start) }, (_, index) => row(at(start + index)));
      await setting.database.queries.insertInto('webhook_deliveries').values(rows).execute();
    }
  };
  const instants = async () =>
    (await setting.database.queries.selectFrom('webhook_deliveries').select('at').orderBy('at').execute()).map(
      ({ at }) => at,
    );
  const job = setting.job();
  await add(2, (index) => now - 7 * DAY_MS - index);
  await ticks(2, job);
  assert.deepEqual(await instants(), [now - 7 * DAY_MS]);
  await add(DELIVERIES_PER_ENDPOINT_MAX + 600, (index) => now - index);
  await ticks(4, job);
  const kept = await instants();
  assert.deepEqual([kept.length, kept[0]], [DELIVERIES_PER_ENDPOINT_MAX, now - DELIVERIES_PER_ENDPOINT_MAX + 1]);
});

test('an account has a maximum number of thresholds, and adding an existing threshold changes nothing', async (t) => {
  const { database } = await twoAccounts(t);
  const thresholds = new Thresholds(database, () => 5);
  assert.equal(await thresholds.add(ACCOUNT, { credits: 20 }), 'added');
  assert.equal(await thresholds.add(ACCOUNT, { credits: 20 }), 'exists');
  assert.equal(await thresholds.add(ACCOUNT, { percent: 20 }), 'added');
  assert.equal(await thresholds.add(OTHER, { credits: 20 }), 'added');
  const listed = [
    { account: ACCOUNT, accountName: 'Acme', below: '20', createdAt: 5 },
    { account: ACCOUNT, accountName: 'Acme', below: '20%', createdAt: 5 },
  ];
  const list = async (account: number | null) => (await thresholds.list(account)).map((each) => ({ ...each }));
  assert.deepEqual(await list(ACCOUNT), listed);
  assert.deepEqual(await list(null), [...listed, { account: OTHER, accountName: 'Beta', below: '20', createdAt: 5 }]);
  for (let credits = 100; credits < 98 + THRESHOLDS_MAX; credits++)
    assert.equal(await thresholds.add(ACCOUNT, { credits }), 'added');
  assert.equal(await thresholds.add(ACCOUNT, { credits: 1 }), 'too-many');
  assert.equal(await thresholds.remove(ACCOUNT, { percent: 20 }), true);
  assert.equal(await thresholds.remove(ACCOUNT, { percent: 20 }), false);
  assert.equal(await thresholds.add(ACCOUNT, { credits: 1 }), 'added');
});

test('each account can set the number of days between a credits.expiring event and the expiry', async (t) => {
  const { database } = await twoAccounts(t);
  const thresholds = new Thresholds(database, () => 5);
  await thresholds.setExpiringDays(ACCOUNT, 30);
  assert.deepEqual([await thresholds.expiringDays(ACCOUNT), await thresholds.expiringDays(OTHER)], [30, 7]);
});
