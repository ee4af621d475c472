// Tests the list of events: pages, filters by type, and cursors from earlier responses.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { writeEventCursor } from '../../../src/http/api/event-cursor.ts';
import { EVENT_TYPES } from '../../../src/store/event-log.ts';
import { type EventListBody, eventsOf } from '../read-events.ts';
import { assertFieldRefused, assertProblem, type Reply, type Scrip, someone, startScrip } from '../running-service.ts';

const PATH = '/get-events';

let scrip: Scrip;
before(async () => {
  scrip = await startScrip();
});
after(() => scrip.stop());

async function newAccount(name: string) {
  const [key, readKey] = [await scrip.createKey(name, 'write'), await scrip.createKey(name, 'read')];
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: 50 }, { key });
  for (const amount of [20, 30]) await scrip.post('/subtract', { end_user_id: user, amount }, { key });
  return { key, readKey, user, events: await eventsOf(scrip, 4, key) };
}

function listOf({ status, text }: Reply): EventListBody {
  assert.equal(status, 200, text);
  return JSON.parse(text) as EventListBody;
}

test('an event has an ID, a type, a timestamp and data, in this order and with the field names of the API', async () => {
  const { key, user, events } = await newAccount('shape');
  const { transactions } = (await scrip.get('/get-all-user-transactions', { end_user_id: user }, { key })).body;
  const [last, , addition] = transactions;
  assert.deepEqual(
    events.map(({ type }) => type),
    ['credits.added', 'credits.subtracted', 'credits.subtracted', 'balance.exhausted'],
  );
  assert.deepEqual(events[0], {
    id: events[0]?.id,
    type: 'credits.added',
    timestamp: addition?.created_at,
    data: {
      end_user_id: user,
      transaction_id: addition?.transaction_id,
      amount: 50,
      expire_at: addition?.expire_at,
      balance: 50,
    },
  });
  assert.deepEqual(events[3]?.data, {
    end_user_id: user,
    previous_balance: 30,
    transaction_id: last?.transaction_id,
    balance: 0,
  });
  for (const event of events) {
    assert.deepEqual(Object.keys(event), ['id', 'type', 'timestamp', 'data']);
    assert.match(event.id, /^evt_[0-9a-f]{32}$/);
    assert.deepEqual([Object.keys(event.data)[0], Object.keys(event.data).at(-1)], ['end_user_id', 'balance']);
  }
});

test('pages of events have a cursor for the next page, and has_more is false on the last page', async () => {
  const { key, events } = await newAccount('pages');
  const first = listOf(await scrip.get(PATH, { limit: '3' }, { key }));
  assert.deepEqual([first.events, first.has_more], [events.slice(0, 3), true]);
  const second = listOf(await scrip.get(PATH, { limit: '3', after: first.next_cursor }, { key }));
  assert.deepEqual([second.events, second.has_more], [events.slice(3), false]);
  const again = listOf(await scrip.get(PATH, { limit: '3', after: first.next_cursor }, { key }));
  assert.deepEqual(again, second);
});

test('a request with the cursor of an empty page returns the events that happened since that page was read', async () => {
  const key = await scrip.createKey('polling', 'write');
  const empty = listOf(await scrip.get(PATH, {}, { key }));
  assert.deepEqual([empty.events, empty.has_more, typeof empty.next_cursor], [[], false, 'string']);
  await scrip.post('/add', { end_user_id: someone(), amount: 5 }, { key });
  const events = await eventsOf(scrip, 1, key);
  const later = listOf(await scrip.get(PATH, { after: empty.next_cursor }, { key }));
  assert.deepEqual(later.events, events);
  const end = listOf(await scrip.get(PATH, { after: later.next_cursor }, { key }));
  assert.deepEqual([end.events, end.has_more], [[], false]);
});

test('events can be filtered by several types, and next_cursor moves past the events of other types', async () => {
  const { key, events } = await newAccount('types');
  const types = 'balance.exhausted,credits.added';
  const all = listOf(await scrip.get(PATH, { types }, { key }));
  assert.deepEqual(all.events, [events[0], events[3]]);
  const one = listOf(await scrip.get(PATH, { types, limit: '1' }, { key }));
  assert.deepEqual([one.events, one.has_more], [[events[0]], true]);
  const next = listOf(await scrip.get(PATH, { types, limit: '1', after: one.next_cursor }, { key }));
  assert.deepEqual([next.events, next.has_more], [[events[3]], false]);
  const none = listOf(await scrip.get(PATH, { types: 'hold.lapsed' }, { key }));
  assert.deepEqual([none.events, none.has_more, none.next_cursor], [[], false, all.next_cursor]);
});

test('events can be read by a key with the `read` scope, with the fields in a JSON body, and under /v1', async () => {
  const { key, readKey } = await newAccount('ways');
  const { text } = await scrip.get(PATH, { limit: '2', types: 'credits.subtracted' }, { key });
  const body = { limit: 2, types: 'credits.subtracted' };
  for (const reply of [
    await scrip.get(PATH, { limit: '2', types: 'credits.subtracted' }, { key: readKey }),
    await scrip.call('GET', PATH, { body, key }),
    await scrip.call('GET', `/v1${PATH}?limit=2`, { body, key }),
  ])
    assert.deepEqual([reply.status, reply.text], [200, text]);
  assertProblem(await scrip.get(PATH, {}, { key: null }), 'Unauthorized', 401);
});

test('an API key reads only the events of its own account', async () => {
  const [mine, others] = [await newAccount('mine'), await newAccount('others')];
  for (const { key, user } of [mine, others]) {
    const { events } = listOf(await scrip.get(PATH, {}, { key }));
    assert.deepEqual(new Set(events.map(({ data }) => data.end_user_id)), new Set([user]));
  }
});

test('an unknown event type is refused with a list of all types, and an invalid limit or an unknown field is refused', async () => {
  for (const types of ['balance.lower', 'credits.added,webhook.test', 'credits.added,', 'credits.added, balance.low']) {
    const reply = await scrip.get(PATH, { types });
    assertFieldRefused(reply, '/types');
    for (const type of EVENT_TYPES) assert(reply.body.detail.includes(type), type);
  }
  for (const limit of ['0', '1001', 'all', '1.5']) assertFieldRefused(await scrip.get(PATH, { limit }), '/limit');
  assertFieldRefused(await scrip.get(PATH, { end_user_id: someone() }), '/end_user_id');
});

test('the list of events refuses a modified cursor, a cursor of another account, a cursor of a list of transactions and a cursor after the last event, and the response says how to continue', async () => {
  const { key, user } = await newAccount('cursors');
  const { next_cursor: cursor } = listOf(await scrip.get(PATH, {}, { key }));
  const list = await scrip.get('/get-all-user-transactions', { end_user_id: user, limit: '1' }, { key });
  const changed = `${cursor.slice(0, 4)}${cursor[4] === 'A' ? 'B' : 'A'}${cursor.slice(5)}`;
  const account = await accountOf('cursors');
  const { epoch } = scrip.service.stores.events;
  const beyond = ['999999999', 'latest', '1.2.3'].map((position) => writeEventCursor(position, { account, epoch }));
  beyond.push(writeEventCursor('0', { account, epoch: 'of another event log' }));
  for (const after of [changed, `${cursor}=`, 'x', String(list.body.next_cursor), ...beyond]) {
    const reply = await scrip.get(PATH, { after }, { key });
    assertFieldRefused(reply, '/after');
    assert.match(reply.body.detail, /to read from the oldest event, omit `after`/);
  }
  assertFieldRefused(await scrip.get(PATH, { after: cursor }), '/after');
  assert.equal((await scrip.get(PATH, { after: cursor }, { key })).status, 200);
});

async function accountOf(name: string): Promise<number> {
  const accounts = await scrip.service.stores.keys.list();
  const key = accounts.find(({ accountName }) => accountName === name);
  assert(key);
  return key.account;
}

test('a page of 1,000 events is complete, and its text is JSON without whitespace', async () => {
  const key = await scrip.createKey('many', 'write');
  const users = Array.from({ length: 1_001 }, someone);
  await Promise.all(users.map((end_user_id) => scrip.post('/add', { end_user_id, amount: 1 }, { key })));
  const events = await eventsOf(scrip, users.length, key);
  const { text, headers } = await scrip.get(PATH, { limit: '1000' }, { key });
  const page = JSON.parse(text) as EventListBody;
  assert.deepEqual([page.events, page.has_more], [events.slice(0, 1_000), true]);
  assert.equal(text, JSON.stringify(page));
  assert.equal(headers['content-length'], String(Buffer.byteLength(text)));
  assert.equal(new Set(events.map(({ data }) => data.end_user_id)).size, users.length);
});
