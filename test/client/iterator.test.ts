// Tests when the client's transactions iterator requests pages, when it stops, and which pages it rejects.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Scrip, type Transaction, UnexpectedAnswer } from '../../client/src/scrip.ts';
import { type Behavior, dropsConnection, END_USER, HostileScrip, sends } from './hostile-scrip.ts';

const PAGES = 4;

let hostile: HostileScrip;
before(async () => {
  hostile = await HostileScrip.start();
});
after(() => hostile.stop());

function page(number: number, next: string | null | undefined): Behavior {
  const transactions = [1, 2].map((position) => ({ transaction_id: `${number}.${position}`, amount: 1 }));
  const body = { end_user_id: END_USER, transactions, ...(next === undefined ? {} : { next_cursor: next }) };
  return sends(200, JSON.stringify(body), { 'content-type': 'application/json' });
}

const cursorOf = (number: number): string | null => (number === PAGES ? null : `c+/=&${number}`);
const ALL_PAGES = Array.from({ length: PAGES }, (_, index) => page(index + 1, cursorOf(index + 1)));

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

test('the transactions iterator requests all pages, each with the cursor of the previous one', async () => {
  hostile.behave(...ALL_PAGES);
  const ids = await idsOf(scrip().transactions({ end_user_id: END_USER }, { pageSize: 2 }));
  assert.deepEqual(ids, ['1.1', '1.2', '2.1', '2.2', '3.1', '3.2', '4.1', '4.2']);
  const first = { end_user_id: END_USER, limit: '2' };
  const cursors = [1, 2, 3].map((number) => ({ ...first, cursor: cursorOf(number) }));
  assert.deepEqual(queries(), [first, ...cursors]);
});

test('the transactions iterator sends `from` and `to` with each request for a page, and accepts a Date or a string for each of them', async () => {
  hostile.behave(...ALL_PAGES);
  const from = new Date('2026-11-01T00:00:00.000Z');
  await idsOf(scrip().transactions({ end_user_id: END_USER, from, to: '2026-12-01T00:00:00.000Z' }));
  assert.equal(hostile.received.length, PAGES);
  for (const query of queries()) {
    assert.deepEqual([query.from, query.to], ['2026-11-01T00:00:00.000Z', '2026-12-01T00:00:00.000Z']);
    assert.equal(query.limit, '500');
  }
});

test('a client call with an invalid Date rejects and sends no request', async () => {
  hostile.behave(...ALL_PAGES);
  const call = scrip().getAllUserTransactions({ end_user_id: END_USER, from: new Date('soon') });
  await assert.rejects(call, RangeError);
  assert.equal(hostile.received.length, 0);
});

test('if a loop over transactions ends early, the iterator requests no more pages and leaves no request open', async () => {
  hostile.behave(...ALL_PAGES);
  for await (const { transaction_id } of scrip().transactions({ end_user_id: END_USER })) {
    if (transaction_id === '2.1') break;
  }
  assert.equal(hostile.received.length, 2);
  for (const { canceled } of hostile.received)
    assert.equal(await canceled, false, 'the client received each response completely');
  const iterator = scrip().transactions({ end_user_id: END_USER });
  await iterator.return();
  assert.equal(hostile.received.length, 2, 'a transactions iterator that is never used sends no request');
});

test('if the connection drops, the transactions iterator requests the page again and returns no transaction twice', async () => {
  hostile.behave(page(1, 'c1'), dropsConnection, page(2, null));
  assert.deepEqual(await idsOf(scrip().transactions({ end_user_id: END_USER })), ['1.1', '1.2', '2.1', '2.2']);
});

test('the transactions iterator throws if a page has no next_cursor, repeats a cursor or has no transactions array', async () => {
  const invalid: readonly (readonly Behavior[])[] = [
    [page(1, undefined)],
    [page(1, 'c1'), page(2, 'c1')],
    [sends(200, JSON.stringify({ end_user_id: END_USER, next_cursor: null }))],
  ];
  for (const behaviors of invalid) {
    hostile.behave(...behaviors);
    await assert.rejects(idsOf(scrip().transactions({ end_user_id: END_USER })), UnexpectedAnswer);
  }
});

test('if the signal is aborted, the transactions iterator returns the rest of the current page, and then throws', async () => {
  hostile.behave(...ALL_PAGES);
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
  assert.deepEqual(seen, ['1.1', '1.2'], 'the iterator finishes the current page and requests no further page');
});
