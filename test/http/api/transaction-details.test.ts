// Tests the list of transactions with details, and with filters by kind and by note.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import {
  assertFieldRefused,
  MovableClock,
  type Scrip,
  someone,
  startScrip,
  type TransactionBody,
} from '../running-service.ts';

const clock = new MovableClock('2026-11-20T08:00:00.123Z');
let scrip: Scrip;
before(async () => {
  scrip = await startScrip({ clock });
});
after(() => scrip.stop());

const textOf = (instant: number) => new Date(instant).toISOString();

async function list(user: string, query: Record<string, string> = {}): Promise<readonly TransactionBody[]> {
  const { status, body, text } = await scrip.get('/get-all-user-transactions', { end_user_id: user, ...query });
  assert.equal(status, 200, text);
  return body.transactions;
}

async function pages(user: string, query: Record<string, string>): Promise<readonly TransactionBody[]> {
  const found: TransactionBody[] = [];
  for (let cursor: string | null | undefined = ''; cursor !== null; ) {
    const more = cursor === '' ? {} : { cursor };
    const fields = { end_user_id: user, ...query, ...more };
    const { body, status, text } = await scrip.get('/get-all-user-transactions', fields as Record<string, string>);
    assert.equal(status, 200, text);
    assert(body.transactions.length <= Number(query.limit));
    found.push(...body.transactions);
    cursor = body.next_cursor;
  }
  return found;
}

const plain = ({ transaction_id, amount, created_at, expire_at }: TransactionBody) => ({
  transaction_id,
  amount,
  created_at,
  expire_at,
});

async function eventful(): Promise<string> {
  const user = someone();
  const post = async (path: string, fields: Record<string, unknown>) => {
    clock.advance(1_000);
    const reply = await scrip.post(path, { end_user_id: user, ...fields });
    assert.equal(reply.status, 200, reply.text);
    return reply;
  };
  await post('/add', { amount: 100, validity_days: 20, note: 'order 1' });
  await post('/start-cycle', { amount: 1_000, validity_days: 7 });
  for (let job = 1; job <= 3; job++) {
    const { headers } = await post('/subtract', { amount: 10 * job, note: `job ${job}` });
    await post('/refund', { transaction_id: headers['transaction-id'], amount: job, note: `job ${job}: complaint` });
    const { hold_id } = (await post('/hold', { amount: 50, note: `chat ${job}` })).body;
    if (job === 1) await post('/capture', { hold_id, amount: 32, note: 'chat 1' });
    if (job === 2) await post('/release', { hold_id });
  }
  clock.advance(15 * DAY_MS);
  await post('/stop-cycle', { note: 'left' });
  await post('/add', { amount: 1 });
  return user;
}

test('a list with details contains the same transactions as a list without details, and their common fields are equal', async () => {
  const user = await eventful();
  const all = await list(user);
  assert.deepEqual(
    all.map(({ amount }) => amount),
    [1, 1_000, 1_000, 3, -30, 2, -20, -32, 1, -10, 1_000, 100],
  );
  const detailed = await list(user, { details: 'true' });
  assert.deepEqual(detailed.map(plain), all);
  assert.deepEqual(await list(user, { details: 'false' }), all);
  for (const limit of ['1', '4', '5', '100'])
    assert.deepEqual(await pages(user, { details: 'true', limit }), detailed, limit);
  const inBody = await scrip.call('GET', '/get-all-user-transactions', { body: { end_user_id: user, details: true } });
  assert.deepEqual(inBody.body.transactions, detailed);
});

test('the details of a transaction are its kind, note, actor, reference, refundable and held credits, and cycles', async () => {
  const user = someone();
  const start = clock.now;
  const post = (path: string, fields: Record<string, unknown>) => scrip.post(path, { end_user_id: user, ...fields });
  const id = async (path: string, fields: Record<string, unknown>) =>
    (await post(path, fields)).headers['transaction-id'] as string;
  const added = await id('/add', { amount: 20, validity_days: 14, note: 'order 7' });
  clock.advance(1);
  const started = await id('/start-cycle', { amount: 1_000, validity_days: 31 });
  clock.advance(1);
  const spent = await id('/subtract', { amount: 30 });
  clock.advance(1);
  const hold = await id('/hold', { amount: 50, note: 'chat 7' });
  clock.advance(1);
  const captured = await id('/capture', { hold_id: hold, amount: 32 });
  clock.advance(1);
  const refunded = await id('/refund', { transaction_id: spent, amount: 12 });
  const oneTime = {
    cycle_id: added,
    period: 0,
    cycle_type: 'one-time',
    starting_amount: 20,
    cycle_start: textOf(start),
    cycle_end: textOf(start + 14 * DAY_MS),
  };
  const recurring = {
    cycle_id: started,
    period: 0,
    cycle_type: 'recurring',
    starting_amount: 1_000,
    cycle_start: textOf(start + 1),
    cycle_end: textOf(start + 1 + 31 * DAY_MS),
  };
  const actor = 'key:1';
  const details = (await list(user, { details: 'true' })).map(
    ({ amount, created_at, expire_at, ...recorded }) => recorded,
  );
  assert.deepEqual(details, [
    {
      transaction_id: refunded,
      kind: 'refund',
      note: null,
      actor,
      reference: spent,
      cycles: [
        { ...recurring, amount: 10 },
        { ...oneTime, amount: 2 },
      ],
    },
    {
      transaction_id: captured,
      kind: 'capture',
      note: null,
      actor,
      reference: hold,
      refundable: 32,
      held: -50,
      cycles: [{ ...recurring, amount: -32, held: -50 }],
    },
    {
      transaction_id: spent,
      kind: 'subtract',
      note: null,
      actor,
      refundable: 18,
      cycles: [
        { ...oneTime, amount: -20 },
        { ...recurring, amount: -10 },
      ],
    },
    { transaction_id: started, kind: 'start-cycle', note: null, actor, cycles: [{ ...recurring, amount: 1_000 }] },
    { transaction_id: added, kind: 'add', note: 'order 7', actor, cycles: [{ ...oneTime, amount: 20 }] },
  ]);
  const [shown] = await list(user, { details: 'true', kind: 'hold' });
  const { amount, created_at, expire_at, ...held } = shown as TransactionBody;
  assert.equal(amount, 0);
  assert.deepEqual(held, {
    transaction_id: hold,
    kind: 'hold',
    note: 'chat 7',
    actor,
    held: 50,
    cycles: [{ ...recurring, amount: 0, held: 50 }],
  });
});

test('the filter by kind lists all transactions of a kind, including transactions with the amount 0', async () => {
  const user = await eventful();
  const counts = {
    add: 2,
    subtract: 3,
    refund: 3,
    'start-cycle': 1,
    renew: 2,
    'stop-cycle': 1,
    hold: 3,
    capture: 1,
    release: 1,
    lapse: 1,
  };
  for (const [kind, count] of Object.entries(counts)) {
    const found = await list(user, { kind, details: 'true' });
    assert.deepEqual(
      found.map((transaction) => transaction.kind),
      Array(count).fill(kind),
      kind,
    );
    assert.deepEqual(await list(user, { kind }), found.map(plain), 'without details');
    assert.deepEqual(await pages(user, { kind, details: 'true', limit: '1' }), found, 'in pages');
  }
});

test('the filter by note is case-sensitive, and lists the transactions whose note begins with the given text', async () => {
  const user = await eventful();
  const notesOf = async (query: Record<string, string>) =>
    (await list(user, { details: 'true', ...query })).map(({ note }) => note);
  assert.deepEqual(await notesOf({ note: 'job 2' }), ['job 2: complaint', 'job 2']);
  assert.deepEqual(await notesOf({ note: 'job', kind: 'subtract' }), ['job 3', 'job 2', 'job 1']);
  assert.deepEqual(await notesOf({ note: 'chat' }), ['chat 1']);
  assert.deepEqual(await notesOf({ note: 'chat', kind: 'hold' }), ['chat 3', 'chat 2', 'chat 1']);
  for (const note of ['Job', 'ob 1', 'job 4', '%', '_ob', 'job%']) assert.deepEqual(await notesOf({ note }), [], note);
  assert.deepEqual((await pages(user, { note: 'job', limit: '2' })).length, 6);
});

test('renewals and lapses that are due are listed in the same way before and after they are stored', async () => {
  const user = someone();
  const start = clock.now;
  await scrip.post('/start-cycle', { end_user_id: user, amount: 100, validity_days: 1 });
  const { hold_id } = (await scrip.post('/hold', { end_user_id: user, amount: 30, expires_in_seconds: 60 })).body;
  clock.advance(2 * DAY_MS);
  const due = {
    renewals: await list(user, { kind: 'renew', details: 'true' }),
    lapses: await list(user, { kind: 'lapse', details: 'true' }),
  };
  const [later, earlier] = due.renewals;
  assert.deepEqual(
    [later, earlier].map((renewal) => [renewal?.created_at, renewal?.actor, renewal?.cycles?.[0]?.period]),
    [
      [textOf(start + 2 * DAY_MS), 'renewal', 2],
      [textOf(start + DAY_MS), 'renewal', 1],
    ],
  );
  assert.deepEqual([later?.cycles?.[0]?.cycle_start, later?.cycles?.[0]?.amount], [textOf(start + 2 * DAY_MS), 100]);
  const [lapse] = due.lapses;
  assert.deepEqual(
    [lapse?.created_at, lapse?.actor, lapse?.reference, lapse?.held, lapse?.amount],
    [textOf(start + 60_000), 'lapse', hold_id, -30, 0],
  );
  await scrip.post('/add', { end_user_id: user, amount: 1 });
  assert.deepEqual(await list(user, { kind: 'renew', details: 'true' }), due.renewals);
  assert.deepEqual(await list(user, { kind: 'lapse', details: 'true' }), due.lapses);
  const between = { from: textOf(start + DAY_MS), to: textOf(start + DAY_MS + 1) };
  assert.deepEqual(await list(user, { details: 'true', ...between }), [earlier]);
});

test('a cursor is accepted only with the filters of the first page, but `details` may differ between pages', async () => {
  const user = await eventful();
  const ask = (query: Record<string, string>) =>
    scrip.get('/get-all-user-transactions', { end_user_id: user, limit: '1', ...query });
  const cursor = (await ask({ kind: 'subtract', note: 'job' })).body.next_cursor as string;
  const next = await ask({ kind: 'subtract', note: 'job', cursor });
  assert.equal(next.status, 200);
  const detailed = await ask({ kind: 'subtract', note: 'job', details: 'true', cursor });
  assert.deepEqual(detailed.body.transactions.map(plain), next.body.transactions);
  for (const other of [{}, { kind: 'subtract' }, { note: 'job' }, { kind: 'refund', note: 'job' }, { details: 'true' }])
    assertFieldRefused(await ask({ ...other, cursor }), '/cursor');
  const unfiltered = (await ask({})).body.next_cursor as string;
  assert.equal((await ask({ details: 'true', cursor: unfiltered })).status, 200);
  assertFieldRefused(await ask({ kind: 'add', cursor: unfiltered }), '/cursor');
});

test('a long list with details is complete and in order', async () => {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: 10_000 });
  const writes = Array.from({ length: 700 }, (_, index) =>
    scrip.post('/subtract', { end_user_id: user, amount: 1, note: `${index % 7} of seven` }),
  );
  await Promise.all(writes);
  const all = await list(user, { details: 'true' });
  assert.deepEqual(all.map(plain), await list(user));
  assert.deepEqual(
    await list(user, { details: 'true', note: '3 of' }),
    all.filter(({ note }) => note?.startsWith('3')),
  );
  assert.deepEqual(await pages(user, { limit: '300', details: 'true' }), all);
});

test('an invalid filter or an invalid `details` parameter is refused, and the response names the field', async () => {
  const user = someone();
  const ask = (query: Record<string, string>) =>
    scrip.get('/get-all-user-transactions', { end_user_id: user, ...query });
  for (const details of ['', '1', 'yes', 'TRUE']) assertFieldRefused(await ask({ details }), '/details');
  const kind = await ask({ kind: 'purchase' });
  assertFieldRefused(kind, '/kind');
  assert.match(kind.body.detail, /must be one of add, subtract, refund/);
  for (const note of ['', 'x'.repeat(501), 'a\0']) assertFieldRefused(await ask({ note }), '/note');
  for (const fields of [{ details: 'true' }, { kind: null }, { note: null }, { note: 5 }]) {
    const reply = await scrip.call('GET', '/get-all-user-transactions', { body: { end_user_id: user, ...fields } });
    assertFieldRefused(reply, `/${Object.keys(fields)[0]}`);
  }
});

test("a list with details or filters contains only transactions of the API key's account", async () => {
  const user = await eventful();
  const key = await scrip.createKey('Another', 'read');
  for (const query of [{ details: 'true' }, { kind: 'hold' }, { note: 'job' }]) {
    const { body } = await scrip.get('/get-all-user-transactions', { end_user_id: user, ...query }, { key });
    assert.deepEqual(body.transactions, []);
  }
});
