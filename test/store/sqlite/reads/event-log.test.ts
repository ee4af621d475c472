// Tests the event log in a ledger file: crashes while events are derived, and how much one call reads.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deriveEvents } from '../../../../src/events/derive.ts';
import { activeBalance } from '../../../../src/ledger/balance.ts';
import { DAY_MS } from '../../../../src/ledger/instant.ts';
import { byHand, forgetEvents, readByHand } from '../../outside.ts';
import { EndUser, makeHistory, NOON, temporaryFile } from '../../temporary-ledger.ts';
import { crashed, openFor, openInPlace } from '../sqlite-ledger.ts';

const EVENTS = 'SELECT event, id, type, at, data FROM events ORDER BY event';
const WALL = NOON + 80 * DAY_MS;

test('after a crash while events are derived, the same events are derived again', async (t) => {
  const file = temporaryFile();
  await makeHistory(file);
  forgetEvents(file);
  const ledger = await openInPlace(t, file, { wall: WALL });
  const copies: string[] = [];
  await ledger.deriveEvents((input) => {
    copies.push(crashed(file));
    return deriveEvents(input);
  });
  assert(copies.length > 8);
  const events = readByHand(file, EVENTS);
  for (const copy of [copies[0], copies.at(-1), crashed(file)] as string[]) {
    const restarted = await openInPlace(t, copy, { wall: WALL });
    await restarted.deriveEvents();
    assert.deepEqual(readByHand(copy, EVENTS), events);
  }
});

test('time-driven events of an end user are derived only after all batches in flight for the end user are stored', async (t) => {
  const file = temporaryFile();
  const ledger = await openFor(t, file);
  const ada = new EndUser(1, 1);
  await ledger.write([ada.add(1_000)]);
  await ledger.deriveEvents();
  byHand(file, 'UPDATE end_user_summaries SET due_at = 1');
  const writes = Array.from({ length: 20 }, () => ledger.write([ada.subtract(1)]));
  const balances: number[] = [];
  await ledger.deriveEvents((input) => {
    const derivation = deriveEvents(input);
    const { at, state } = derivation.next;
    if (input.until !== null) balances.push(activeBalance(state.cycles, at));
    return derivation;
  });
  await Promise.all(writes);
  assert.deepEqual(balances, [980]);
});

test('time-driven events are stored once, even if several calls derive them concurrently', async (t) => {
  const file = temporaryFile();
  const before = await openInPlace(t, file);
  await before.write([new EndUser(1, 1).add(10, 1), new EndUser(1, 2).add(20, 2)]);
  await before.deriveEvents();
  await before.close();
  const ledger = await openFor(t, file);
  await Promise.all([1, 2, 3].map(() => ledger.events.deriveNext(deriveEvents)));
  await ledger.deriveEvents();
  const expired = readByHand(file, "SELECT data FROM events WHERE type = 'credits.expired' ORDER BY event");
  assert.deepEqual(
    expired.map(({ data }) => JSON.parse(String(data)).amount),
    [10, 20],
  );
});

test('for a page of events of a rare type, Scrip reads a bounded number of events, and the next page continues after the last event that was read', async (t) => {
  const file = temporaryFile();
  const ledger = await openInPlace(t, file);
  await ledger.write([new EndUser(1, 1).add(1)]);
  await ledger.deriveEvents();
  byHand(
    file,
    `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 12000)
     INSERT INTO events (account, id, type, at, data, recorded_at)
     SELECT 1, 'evt_' || n, iif(n = 11000, 'balance.low', 'credits.added'), 1, '{}', ${NOON} FROM numbers`,
  );
  const pages = [];
  for (let after: string | null = null; ; ) {
    const page = await ledger.events.page(1, { after, limit: 10, types: ['balance.low'] });
    pages.push([page.events.map(({ id }) => id), page.position, page.hasMore]);
    if (!page.hasMore) break;
    after = page.position;
  }
  assert.deepEqual(pages, [
    [[], '5000', true],
    [[], '10000', true],
    [['evt_11000'], '12001', false],
  ]);
});

test('if end users have many cycles, one call derives events for only some end users, and later calls derive events for the rest', async (t) => {
  const ledger = await openInPlace(t, temporaryFile());
  const people = Array.from({ length: 6 }, (_, index) => new EndUser(1, index));
  for (let cycles = 0; cycles < 1_000; cycles += 100)
    await ledger.write(people.flatMap((user) => Array.from({ length: 100 }, () => user.add(1, 30))));
  await ledger.deriveEvents();
  await ledger.write(people.map((user) => user.subtract(1)));
  const calls: number[] = [];
  for (let isMore: boolean | null = true; isMore; ) {
    let users = 0;
    isMore = await ledger.events.deriveNext((input) => {
      users++;
      return deriveEvents(input);
    });
    calls.push(users);
  }
  assert.deepEqual(calls, [3, 3]);
});

test('if not all due end users fit into one call, the events of those that do are derived, and later calls derive the rest', async (t) => {
  const ledger = await openInPlace(t, temporaryFile());
  const people = Array.from({ length: 4 }, (_, index) => new EndUser(1, index));
  for (let cycles = 0; cycles < 1_100; cycles += 100)
    await ledger.write(people.flatMap((user) => Array.from({ length: 100 }, () => user.add(1, 90))));
  await ledger.write(people.map((user) => user.add(1, 1)));
  await ledger.deriveEvents();
  ledger.wall += 2 * DAY_MS;
  const calls: number[] = [];
  for (let isMore: boolean | null = true; isMore && calls.length < 10; ) {
    let expired = 0;
    isMore = await ledger.events.deriveNext((input) => {
      const derivation = deriveEvents(input);
      expired += derivation.events.filter(({ type }) => type === 'credits.expired').length;
      return derivation;
    });
    calls.push(expired);
  }
  assert.deepEqual(calls, [2, 2]);
});
