// The iterator over transactions, against a list that the test makes up: it asks for a page when it needs one, stops when
// it is told to, and takes no list that ends early or never for a whole one.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Scrip, type Transaction, UnexpectedAnswer } from '../../client/src/scrip.ts';
import { type Behaviour, dropsConnection, END_USER, HostileScrip, says } from './hostile-scrip.ts';

const PAGES = 4;

let hostile: HostileScrip;
before(async () => {
  hostile = await HostileScrip.start();
});
after(() => hostile.stop());

function page(number: number, next: string | null | undefined): Behaviour {
  const transactions = [1, 2].map((place) => ({ transaction_id: `${number}.${place}`, amount: 1 }));
  const body = { end_user_id: END_USER, transactions, ...(next === undefined ? {} : { next_cursor: next }) };
  return says(200, JSON.stringify(body), { 'content-type': 'application/json' });
}

/** Cursors have what must be escaped in an address. */
const cursorOf = (number: number): string | null => (number === PAGES ? null : `c+/=&${number}`);
const WHOLE = Array.from({ length: PAGES }, (_, index) => page(index + 1, cursorOf(index + 1)));

function scrip(): Scrip {
  return new Scrip({ apiKey: 'scrip_read_canary', baseUrl: `${hostile.url}/`, timeoutMs: 10_000 });
}

async function idsOf(transactions: AsyncIterable<Transaction>): Promise<string[]> {
  const ids: string[] = [];
  for await (const { transaction_id } of transactions) ids.push(transaction_id);
  return ids;
}

function queries(): Record<string, string>[] {
  return hostile.received.map(({ url }) => Object.fromEntries(new URL(url, hostile.url).searchParams));
}

test('all pages come one after the other, each with the cursor of the one before', async () => {
  hostile.behave(...WHOLE);
  const ids = await idsOf(scrip().transactions({ end_user_id: END_USER }, { pageSize: 2 }));
  assert.deepEqual(ids, ['1.1', '1.2', '2.1', '2.2', '3.1', '3.2', '4.1', '4.2']);
  const first = { end_user_id: END_USER, limit: '2' };
  const cursors = [1, 2, 3].map((number) => ({ ...first, cursor: cursorOf(number) }));
  assert.deepEqual(queries(), [first, ...cursors]);
});

test('from and to go with each page, as dates or as text', async () => {
  hostile.behave(...WHOLE);
  const from = new Date('2026-11-01T00:00:00.000Z');
  await idsOf(scrip().transactions({ end_user_id: END_USER, from, to: '2026-12-01T00:00:00.000Z' }));
  assert.equal(hostile.received.length, PAGES);
  for (const query of queries()) {
    assert.deepEqual([query.from, query.to], ['2026-11-01T00:00:00.000Z', '2026-12-01T00:00:00.000Z']);
    assert.equal(query.limit, '500');
  }
});

test('an instant that is none is refused, as a rejection, and nothing is sent', async () => {
  hostile.behave(...WHOLE);
  const call = scrip().getAllUserTransactions({ end_user_id: END_USER, from: new Date('soon') });
  await assert.rejects(call, RangeError);
  assert.equal(hostile.received.length, 0);
});

test('a loop that stops early asks for nothing more, and leaves no call open', async () => {
  hostile.behave(...WHOLE);
  for await (const { transaction_id } of scrip().transactions({ end_user_id: END_USER })) {
    if (transaction_id === '2.1') break;
  }
  assert.equal(hostile.received.length, 2);
  for (const { abandoned } of hostile.received)
    assert.equal(await abandoned, false, 'each answer was taken as a whole');
  const iterator = scrip().transactions({ end_user_id: END_USER });
  await iterator.return();
  assert.equal(hostile.received.length, 2, 'an iterator that was never used asks for nothing');
});

test('a page whose connection drops is asked for again, and no transaction comes twice', async () => {
  hostile.behave(page(1, 'c1'), dropsConnection, page(2, null));
  assert.deepEqual(await idsOf(scrip().transactions({ end_user_id: END_USER })), ['1.1', '1.2', '2.1', '2.2']);
});

test('a list that does not say whether it goes on, or that goes in a circle, is an error', async () => {
  const wrong: readonly (readonly Behaviour[])[] = [
    [page(1, undefined)],
    [page(1, 'c1'), page(2, 'c1')],
    [says(200, JSON.stringify({ end_user_id: END_USER, next_cursor: null }))],
  ];
  for (const behaviours of wrong) {
    hostile.behave(...behaviours);
    await assert.rejects(idsOf(scrip().transactions({ end_user_id: END_USER })), UnexpectedAnswer);
  }
});

test('a signal ends the iteration', async () => {
  hostile.behave(...WHOLE);
  const controller = new AbortController();
  const seen: string[] = [];
  const loop = async () => {
    for await (const { transaction_id } of scrip().transactions(
      { end_user_id: END_USER },
      { signal: controller.signal },
    )) {
      seen.push(transaction_id);
      controller.abort(new Error('enough'));
    }
  };
  await assert.rejects(loop, /enough/);
  assert.deepEqual(seen, ['1.1', '1.2'], 'what was there already is taken; no further page is asked for');
});
