// Tests the pages of the list of transactions, and the filter by time.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  assertFieldRefused,
  type Body,
  MovableClock,
  type Reply,
  type Scrip,
  someone,
  startScrip,
  type TransactionBody,
} from '../running-service.ts';

const PATH = '/get-all-user-transactions';
const BEGIN = '2026-11-20T08:00:00.123Z';
const DAY = 86_400_000;

const clock = new MovableClock(BEGIN);
let scrip: Scrip;
const user = someone();
let all: readonly TransactionBody[];

before(async () => {
  scrip = await startScrip({ clock });
  for (let amount = 1; amount <= 10; amount++) {
    await scrip.post('/add', { end_user_id: user, amount });
    clock.advance(DAY / 24);
  }
  all = await scrip.transactions(user);
  assert.equal(all.length, 10);
});
after(() => scrip.stop());

type Page = Body & { readonly next_cursor?: string | null };

const ask = (fields: Readonly<Record<string, string>>) => scrip.get(PATH, { end_user_id: user, ...fields });

async function page(fields: Readonly<Record<string, string>>): Promise<Page> {
  const reply = await ask(fields);
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
}

async function cursorAfter(limit: number, fields: Readonly<Record<string, string>> = {}): Promise<string> {
  const { next_cursor: cursor } = await page({ ...fields, limit: String(limit) });
  assert(typeof cursor === 'string');
  return cursor;
}

async function walk(fields: Readonly<Record<string, string>>): Promise<TransactionBody[]> {
  const { limit = '1' } = fields;
  const seen: TransactionBody[] = [];
  for (let { transactions, next_cursor: cursor } = await page(fields); ; ) {
    seen.push(...transactions);
    if (cursor === null) return seen;
    ({ transactions, next_cursor: cursor } = await page({ limit, cursor: cursor as string }));
  }
}

describe('the limit of a page of transactions', () => {
  for (const limit of [1, 3, 5, 9, 10, 11, 1_000]) {
    test(`with a limit of ${limit}, the pages of a list of transactions together contain the whole list`, async () => {
      assert.deepEqual(await walk({ limit: String(limit) }), all);
    });
  }

  test('each page of transactions has next_cursor, which is null on the last page, and a list that is not divided into pages has no next_cursor', async () => {
    assert.deepEqual(Object.keys(await page({ limit: '9' })), ['end_user_id', 'transactions', 'next_cursor']);
    assert.equal(typeof (await page({ limit: '9' })).next_cursor, 'string');
    for (const limit of ['10', '11']) assert.equal((await page({ limit })).next_cursor, null);
    for (const fields of [{}, { from: BEGIN }, { to: BEGIN }])
      assert.deepEqual(Object.keys(await page(fields)), ['end_user_id', 'transactions']);
  });

  test("the first page of an unknown end user's transactions is empty, and no page follows it", async () => {
    const end_user_id = someone();
    const { body } = await scrip.get(PATH, { end_user_id, limit: '5' });
    assert.deepEqual(body, { end_user_id, transactions: [], next_cursor: null });
  });

  test('a limit in the query string must be a whole number from 1 to 1,000 and contain only digits', async () => {
    const wrong = ['0', '1001', '-1', '1.5', '1e2', '', ' 5', '+5', '0x5', '٥', 'five', 'null', 'NaN', '9'.repeat(400)];
    for (const limit of wrong) assertFieldRefused(await ask({ limit }), '/limit');
    for (const limit of ['0', '-1']) assert.match((await ask({ limit })).body.detail, /must be at least 1/);
    assertFieldRefused(await scrip.call('GET', `${PATH}?end_user_id=${user}&limit=5&limit=5`), '/limit');
  });

  test('a limit in a JSON body must be a whole number from 1 to 1,000', async () => {
    const body = (limit: unknown) => scrip.call('GET', PATH, { body: { end_user_id: user, limit } });
    assert.equal((await body(3)).body.transactions.length, 3);
    for (const limit of ['3', null, true, [3], {}, 0, 1001, 2.5, -3]) assertFieldRefused(await body(limit), '/limit');
    for (const text of ['3.5', '3e-1', '1e400', '-0'])
      assertFieldRefused(
        await scrip.call('GET', PATH, { body: `{"end_user_id":"${user}","limit":${text}}` }),
        '/limit',
      );
  });

  test('a request with limits both in the query string and in the body is refused unless the limits are equal', async () => {
    const both = (limit: unknown) => scrip.call('GET', `${PATH}?limit=3`, { body: { end_user_id: user, limit } });
    assert.equal((await both(3)).body.transactions.length, 3);
    for (const limit of [4, '3', null]) assertFieldRefused(await both(limit), '/limit');
  });

  test('a balance request with `limit`, `cursor`, `from` or `to` is refused', async () => {
    for (const field of ['limit', 'cursor', 'from', 'to'])
      assertFieldRefused(await scrip.get('/get-active-balance', { end_user_id: user, [field]: '1' }), `/${field}`);
  });
});

describe('the cursor of a list of transactions', () => {
  test('a page that is requested with a cursor and no limit has up to 100 transactions', async () => {
    const [many, amount] = [someone(), 1];
    await Promise.all(Array.from({ length: 150 }, () => scrip.post('/add', { end_user_id: many, amount })));
    const list = await scrip.transactions(many);
    const { body } = await scrip.get(PATH, { end_user_id: many, limit: '20' });
    const next = await scrip.get(PATH, { end_user_id: many, cursor: (body as Page).next_cursor as string });
    assert.deepEqual(next.body.transactions, list.slice(20, 120));
    const rest = await scrip.get(PATH, { end_user_id: many, cursor: (next.body as Page).next_cursor as string });
    assert.deepEqual(rest.body.transactions, list.slice(120));
    assert.equal((rest.body as Page).next_cursor, null);
  });

  test('a cursor can be used more than once, and works in a body, with the UUID in upper case, under /v1, and with every API key of the account', async () => {
    const cursor = await cursorAfter(4);
    const replies = [
      await ask({ cursor }),
      await scrip.call('GET', PATH, { body: { end_user_id: user, cursor } }),
      await scrip.call('GET', `/v1${PATH}?cursor=${cursor}`, { body: { end_user_id: user.toUpperCase(), cursor } }),
      await scrip.get(PATH, { end_user_id: user, cursor }, { key: scrip.readKey }),
    ];
    for (const { status, body } of replies) assert.deepEqual([status, body.transactions], [200, all.slice(4)]);
  });

  test('transactions that are stored between the requests for two pages do not shift the second page', async () => {
    const busy = someone();
    for (let amount = 1; amount <= 4; amount++) await scrip.post('/add', { end_user_id: busy, amount });
    const { body } = await scrip.get(PATH, { end_user_id: busy, limit: '2' });
    await scrip.post('/subtract', { end_user_id: busy, amount: 3 });
    const next = await scrip.get(PATH, { end_user_id: busy, cursor: (body as Page).next_cursor as string });
    assert.deepEqual(
      [...body.transactions, ...next.body.transactions].map(({ amount }) => amount),
      [4, 3, 2, 1],
    );
  });

  test('a renewal that is stored between the requests for two pages is listed only once', async () => {
    const subscriber = someone();
    await scrip.post('/start-cycle', { end_user_id: subscriber, amount: 7, validity_days: 1 });
    clock.advance(5 * DAY);
    const list = await scrip.transactions(subscriber);
    assert.equal(list.length, 6);
    const { body } = await scrip.get(PATH, { end_user_id: subscriber, limit: '3' });
    await scrip.post('/subtract', { end_user_id: subscriber, amount: 1 });
    const next = await scrip.get(PATH, { end_user_id: subscriber, cursor: (body as Page).next_cursor as string });
    assert.deepEqual([...body.transactions, ...next.body.transactions], list);
  });

  const refused = (reply: Reply) => assertFieldRefused(reply, '/cursor');

  test('a cursor that Scrip did not issue is refused', async () => {
    const cursor = await cursorAfter(4);
    const bytes = Buffer.from(cursor, 'base64url');
    const wrong = [
      '',
      'x',
      '0',
      'null',
      cursor.slice(1),
      cursor.slice(0, -1),
      `${cursor}A`,
      `${cursor}=`,
      ` ${cursor}`,
    ];
    wrong.push(
      'A'.repeat(cursor.length),
      'é'.repeat(20),
      '\0',
      '../../etc',
      'A'.repeat(5_000),
      `${all[4]?.transaction_id}`,
    );
    for (const each of wrong) refused(await ask({ cursor: each }));
    for (let at = 0; at < bytes.length; at++) {
      const flipped = Buffer.from(bytes);
      flipped[at] = (flipped[at] as number) ^ 1;
      refused(await ask({ cursor: flipped.toString('base64url') }));
    }
    for (const each of [5, null, true, [cursor], { cursor }])
      refused(await scrip.call('GET', PATH, { body: { end_user_id: user, cursor: each } }));
    refused(await scrip.call('GET', `${PATH}?end_user_id=${user}&cursor=${cursor}&cursor=${cursor}`));
  });

  test('a cursor of another end user, or of the same UUID in another account, is refused', async () => {
    const cursor = await cursorAfter(4);
    const other = someone();
    await scrip.post('/add', { end_user_id: other, amount: 5 });
    refused(await scrip.get(PATH, { end_user_id: other, cursor }));
    refused(await scrip.get(PATH, { end_user_id: someone(), cursor }));
    const key = await scrip.createKey('Another', 'write');
    await scrip.post('/add', { end_user_id: user, amount: 5 }, { key });
    refused(await scrip.get(PATH, { end_user_id: user, cursor }, { key }));
  });

  test('a cursor of another ledger is refused', async (t) => {
    const elsewhere = await startScrip({ clock: new MovableClock(BEGIN) });
    t.after(() => elsewhere.stop());
    for (let amount = 1; amount <= 3; amount++) await elsewhere.post('/add', { end_user_id: user, amount });
    refused(await elsewhere.get(PATH, { end_user_id: user, cursor: await cursorAfter(4) }));
  });
});

describe('the time range of a list of transactions', () => {
  const at = (index: number) => all[index]?.created_at as string;
  const moved = (timestamp: string, ms: number) => new Date(Date.parse(timestamp) + ms).toISOString();

  test('in the list of transactions, `from` is inclusive and `to` is exclusive', async () => {
    const cases: readonly (readonly [fields: Record<string, string>, first: number, end: number])[] = [
      [{ from: at(3) }, 0, 4],
      [{ from: moved(at(3), 1) }, 0, 3],
      [{ from: moved(at(3), -1) }, 0, 4],
      [{ to: at(3) }, 4, 10],
      [{ to: moved(at(3), 1) }, 3, 10],
      [{ from: at(6), to: at(3) }, 4, 7],
      [{ from: at(3), to: at(3) }, 0, 0],
      [{ from: at(3), to: moved(at(3), 1) }, 3, 4],
      [{ from: '0000-01-01T00:00:00Z', to: '9999-12-31T23:59:59.999Z' }, 0, 10],
      [{ to: '1970-01-01T00:00:00Z' }, 0, 0],
      [{ from: '9999-12-31T23:59:59.999999Z' }, 0, 0],
    ];
    for (const [fields, first, end] of cases) {
      const expected = all.slice(first, end);
      assert.deepEqual((await page(fields)).transactions, expected, JSON.stringify(fields));
      assert.deepEqual(await walk({ ...fields, limit: '2' }), expected, JSON.stringify(fields));
      const { body } = await scrip.call('GET', PATH, { body: { end_user_id: user, ...fields } });
      assert.deepEqual(body.transactions, expected, 'the same fields in a body');
    }
  });

  test('`from` and `to` may have any UTC offset, omit the seconds, or be more precise than a millisecond', async () => {
    const same = [
      '2026-11-20T10:00Z',
      '2026-11-20T10:00:00Z',
      '2026-11-20T12:30:00+02:30',
      '2026-11-20T05:00:00.0-05:00',
    ];
    for (const from of [...same, '2026-11-20T09:59:59.999000001Z', '2026-11-21T00:00:00.000+14:00'])
      assert.deepEqual((await page({ from })).transactions, all.slice(0, 8), from);
    const micro = (digits: string) => at(3).replace('Z', `${digits}Z`);
    assert.deepEqual((await page({ from: micro('000') })).transactions, all.slice(0, 4));
    assert.deepEqual((await page({ from: micro('001') })).transactions, all.slice(0, 3));
    assert.deepEqual((await page({ to: micro('001') })).transactions, all.slice(3));
  });

  test('`from` and `to` select both stored renewals and renewals that are due but not yet stored', async () => {
    const subscriber = someone();
    await scrip.post('/start-cycle', { end_user_id: subscriber, amount: 7, validity_days: 1 });
    clock.advance(6 * DAY);
    const list = await scrip.transactions(subscriber);
    const fields = { from: list[4]?.created_at as string, to: list[1]?.created_at as string };
    for (const more of [{}, { limit: '3' }, { limit: '100' }]) {
      const { body } = await scrip.get(PATH, { end_user_id: subscriber, ...fields, ...more });
      assert.deepEqual(body.transactions, list.slice(2, 5));
    }
  });

  test('a `from` or `to` that is not an instant with a time zone is refused, and the response names the field', async () => {
    const wrong = [
      '',
      '5',
      'now',
      '2026-11-20',
      '2026-11-20T08:00:00',
      '2026-11-20T08:00:00 02:00',
      '2026-11-20 08:00:00Z',
    ];
    wrong.push(
      '2026-13-01T00:00:00Z',
      '2026-02-29T00:00:00Z',
      '2026-11-20T24:00:00Z',
      '2026-11-20T08:60:00Z',
      '1763625600',
    );
    wrong.push(
      '2026-11-20T08:00:60Z',
      '2026-11-20T08:00:00+24:00',
      '2026-11-20T08:00:00.Z',
      '2026-11-20T08:00:00Zz',
      '-000001-01-01T00:00:00Z',
    );
    for (const text of wrong) {
      assertFieldRefused(await ask({ from: text }), '/from');
      assertFieldRefused(await ask({ to: text, limit: '5' }), '/to');
      assertFieldRefused(await scrip.call('GET', PATH, { body: { end_user_id: user, to: text } }), '/to');
    }
    for (const each of [5, null, [BEGIN]])
      assertFieldRefused(await scrip.call('GET', PATH, { body: { end_user_id: user, from: each } }), '/from');
    const both = await ask({ from: 'x', to: 'y' });
    assert.deepEqual(
      both.body.errors.map(({ path }) => path),
      ['/from', '/to'],
    );
    const lost = await scrip.call('GET', `${PATH}?end_user_id=${user}&from=2026-11-20T08:00:00+02:00`);
    assert.match(lost.body.detail, /%2B/, 'the problem explains a plus sign that was decoded as a space');
  });

  test('a `from` that is later than `to` is refused', async () => {
    const reply = await ask({ from: at(3), to: at(4) });
    assertFieldRefused(reply, '/from');
    assert.match(reply.body.detail, /`to`/);
  });

  test('a cursor is accepted with the same `from` and `to` or without them, and refused with different values', async () => {
    const bounds = { from: at(8), to: at(1) };
    const cursor = await cursorAfter(3, bounds);
    const expected = all.slice(5, 9);
    const zoned = `${moved(bounds.from, (2 * DAY) / 24).slice(0, -1)}+02:00`;
    for (const again of [{}, bounds, { from: bounds.from }, { to: bounds.to }, { from: zoned }])
      assert.deepEqual((await page({ cursor, ...again })).transactions, expected, JSON.stringify(again));
    for (const other of [{ from: at(9) }, { to: at(2) }, { ...bounds, to: moved(bounds.to, 1) }])
      assertFieldRefused(await ask({ cursor, ...other }), '/cursor');
    assertFieldRefused(await ask({ cursor: await cursorAfter(3), to: at(1) }), '/cursor');
  });
});
