// Tests how the client reads events page by page and with an iterator.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Event, InvalidField, Scrip, UnexpectedAnswer } from '../../client/src/scrip.ts';
import { eventsOf } from '../http/read-events.ts';
import { type Scrip as Service, someone, startScrip } from '../http/running-service.ts';
import { HostileScrip, sends } from './hostile-scrip.ts';

let service: Service;
let hostile: HostileScrip;
let scrip: Scrip;
before(async () => {
  service = await startScrip();
  hostile = await HostileScrip.start();
  scrip = new Scrip({ apiKey: service.writeKey, baseUrl: service.url });
  for (let amount = 1; amount <= 5; amount++) {
    await scrip.add({ end_user_id: someone(), amount });
  }
  await eventsOf(service, 5);
});
after(async () => {
  await service.stop();
  await hostile.stop();
});

async function collected(events: AsyncIterable<Event>): Promise<Event[]> {
  const all: Event[] = [];
  for await (const event of events) all.push(event);
  return all;
}

test('the client returns pages of events, and continues with the cursor of the previous page', async () => {
  const first = await scrip.getEvents({ limit: 3, types: ['credits.added', 'balance.low'] });
  assert.deepEqual([first.events.length, first.has_more], [3, true]);
  const { events, next_cursor, has_more } = await scrip.getEvents({ after: first.next_cursor });
  assert.deepEqual([events.length, has_more], [2, false]);
  const amounts = [...first.events, ...events].map(({ type, data }) => [type, data.balance]);
  assert.deepEqual(
    amounts,
    [1, 2, 3, 4, 5].map((amount) => ['credits.added', amount]),
  );
  assert.deepEqual((await scrip.getEvents({ after: next_cursor })).events, []);
  await assert.rejects(scrip.getEvents({ after: 'x' }), InvalidField);
});

test('for every page size, the events iterator returns all events up to now, and can start after a cursor and filter by event type', async () => {
  const { events } = await scrip.getEvents();
  for (const pageSize of [1, 2, 5, 1_000]) assert.deepEqual(await collected(scrip.events({}, { pageSize })), events);
  const { next_cursor: after } = await scrip.getEvents({ limit: 2 });
  assert.deepEqual(await collected(scrip.events({ after }, { pageSize: 2 })), events.slice(2));
  assert.deepEqual(await collected(scrip.events({ types: ['hold.lapsed'] })), []);
});

test('the events iterator sends the selected event types with each request, and rejects a page without a valid cursor', async () => {
  const client = new Scrip({ apiKey: 'scrip_read_canary', baseUrl: hostile.url, retries: 0 });
  const page = (body: object) => sends(200, JSON.stringify(body), { 'content-type': 'application/json' });
  hostile.behave(
    page({ events: [], next_cursor: 'c+/=&1', has_more: true }),
    page({ events: [], next_cursor: 'c2', has_more: false }),
  );
  await collected(client.events({ after: 'c0', types: ['credits.added', 'balance.low'] }));
  assert.deepEqual(
    hostile.received.map(({ url }) => Object.fromEntries(new URL(url, hostile.url).searchParams)),
    ['c0', 'c+/=&1'].map((after) => ({ after, types: 'credits.added,balance.low', limit: '500' })),
  );
  for (const invalid of [
    { events: [], has_more: true },
    { events: [], next_cursor: null, has_more: true },
    { events: [], next_cursor: 'c0', has_more: true },
    { events: [], next_cursor: 'c1' },
    { next_cursor: 'c1', has_more: false },
  ]) {
    hostile.behave(page(invalid));
    await assert.rejects(collected(client.events({ after: 'c0' })), UnexpectedAnswer, JSON.stringify(invalid));
  }
});
