// Tests the list of events on PostgreSQL, with several lanes that write postings at the same time.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PostgresServer } from '../../store/postgres/postgres-server.ts';
import { newDatabaseOn } from '../../store/postgres/scrip-on-postgres.ts';
import { type EventBody, type EventListBody, eventsOf } from '../read-events.ts';
import { assertFieldRefused, type Scrip, someone, startScrip } from '../running-service.ts';

const USERS = 20;

let server: PostgresServer;
let scrip: Scrip;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
  scrip = await startScrip({ database: await newDatabaseOn(server, { lanes: 3 }) });
});
after(async () => {
  await scrip.stop();
  await server.remove();
});

async function page(fields: Readonly<Record<string, string>>): Promise<EventListBody> {
  const { status, text } = await scrip.get('/get-events', fields);
  assert.equal(status, 200, text);
  return JSON.parse(text) as EventListBody;
}

/** Causes three events for each new end user: credits.added, credits.subtracted and balance.exhausted. */
async function spend(): Promise<void> {
  await Promise.all(
    Array.from({ length: USERS }, someone).map(async (end_user_id) => {
      for (const path of ['/add', '/subtract']) await scrip.post(path, { end_user_id, amount: 5 });
    }),
  );
}

function idsOf(events: readonly EventBody[]): string[] {
  return events.map(({ id }) => id);
}

test('on PostgreSQL, pages of any size return each event once, the events of an end user are in order, and a request with the last cursor returns the later events', async () => {
  await spend();
  const all = await eventsOf(scrip, 3 * USERS);
  assert.equal(new Set(idsOf(all)).size, 3 * USERS);
  for (const user of new Set(all.map(({ data }) => data.end_user_id))) {
    const types = all.filter(({ data }) => data.end_user_id === user).map(({ type }) => type);
    assert.deepEqual(types, ['credits.added', 'credits.subtracted', 'balance.exhausted']);
  }
  let cursor = '';
  for (const limit of ['1', '7', '1000']) {
    const seen: EventBody[] = [];
    let current = await page({ limit });
    seen.push(...current.events);
    while (current.has_more) {
      current = await page({ limit, after: current.next_cursor });
      seen.push(...current.events);
    }
    assert.deepEqual(idsOf(seen).sort(), idsOf(all).sort(), `limit ${limit}`);
    cursor = current.next_cursor;
  }
  assert.deepEqual((await page({ after: cursor })).events, []);
  await spend();
  const known = new Set(idsOf(all));
  const later = (await eventsOf(scrip, 6 * USERS)).filter(({ id }) => !known.has(id));
  assert.deepEqual(idsOf((await page({ after: cursor })).events).sort(), idsOf(later).sort());
});

test('on PostgreSQL, a modified cursor of the list of events is refused', async () => {
  const { next_cursor: cursor } = await page({});
  assertFieldRefused(await scrip.get('/get-events', { after: `${cursor}AA` }), '/after');
});
