// Tests the optional note of a write, and the transaction ID in the response to a write.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { WRITES } from '../api-calls.ts';
import { assertFieldRefused, assertProblem, type Scrip, someone, startScrip } from '../running-service.ts';

let scrip: Scrip;
before(async () => {
  scrip = await startScrip();
});
after(async () => {
  await scrip.assertConsistent();
  await scrip.stop();
});

async function prepared(): Promise<{ user: string; fieldsOf: (path: string) => Record<string, unknown> }> {
  const user = someone();
  const post = (path: string, fields: Record<string, unknown>) => scrip.post(path, { end_user_id: user, ...fields });
  await post('/add', { amount: 100 });
  const spent = (await post('/subtract', { amount: 5 })).headers['transaction-id'];
  const [first, second] = [await post('/hold', { amount: 1 }), await post('/hold', { amount: 1 })];
  const fields: Readonly<Record<string, Record<string, unknown>>> = {
    '/add': { amount: 1 },
    '/subtract': { amount: 1 },
    '/refund': { transaction_id: spent, amount: 1 },
    '/start-cycle': { amount: 1 },
    '/stop-cycle': {},
    '/hold': { amount: 1 },
    '/capture': { hold_id: first.body.hold_id },
    '/release': { hold_id: second.body.hold_id },
  };
  return { user, fieldsOf: (path) => ({ end_user_id: user, ...fields[path] }) };
}

const listOf = async (user: string, query: Record<string, string>) =>
  (await scrip.get('/get-all-user-transactions', { end_user_id: user, ...query })).body.transactions;

const kindOf = (path: string) => path.slice(1);

test('every write accepts a note and stores the note with the transaction', async () => {
  const { user, fieldsOf } = await prepared();
  for (const path of WRITES) {
    const note = `why ${path}: "ünï\\cøde" \u{1f4a9}\n`;
    const reply = await scrip.post(path, { ...fieldsOf(path), note });
    assert.equal(reply.status, 200, reply.text);
    const [recorded] = await listOf(user, { details: 'true', kind: kindOf(path) });
    assert.deepEqual([recorded?.note, recorded?.transaction_id], [note, reply.headers['transaction-id']], path);
  }
});

test('the response to every write contains the transaction ID that the list of transactions shows', async () => {
  const { user, fieldsOf } = await prepared();
  const ids = new Set<unknown>();
  for (const path of WRITES) {
    const { headers } = await scrip.post(path, fieldsOf(path));
    const [recorded] = await listOf(user, { kind: kindOf(path) });
    assert.equal(headers['transaction-id'], recorded?.transaction_id, path);
    ids.add(headers['transaction-id']);
  }
  assert.equal(ids.size, WRITES.length);
});

test('a response has no transaction ID if nothing was recorded: after a refusal, or if the cycle was already stopped', async () => {
  const user = someone();
  await scrip.post('/start-cycle', { end_user_id: user, amount: 1 });
  const stopped = await scrip.post('/stop-cycle', { end_user_id: user });
  assert.notEqual(stopped.headers['transaction-id'], undefined);
  const again = await scrip.post('/stop-cycle', { end_user_id: user });
  assert.deepEqual([again.status, again.headers['transaction-id']], [200, undefined]);
  for (const [path, fields] of [
    ['/subtract', { amount: 2 }],
    ['/add', { amount: 0 }],
    ['/capture', { hold_id: someone() }],
    ['/refund', { transaction_id: someone() }],
  ] as const) {
    const { status, headers } = await scrip.post(path, { end_user_id: user, ...fields });
    assert.deepEqual([status >= 400, headers['transaction-id']], [true, undefined], path);
  }
});

test('if /start-cycle replaces a cycle, the response contains the transaction ID of the start, not of the stop', async () => {
  const user = someone();
  await scrip.post('/start-cycle', { end_user_id: user, amount: 1 });
  const fields = { end_user_id: user, amount: 2, on_active: 'replace', note: 'upgrade' };
  const { headers } = await scrip.post('/start-cycle', fields);
  const [started] = await listOf(user, { kind: 'start-cycle', details: 'true' });
  const [stopped] = await listOf(user, { kind: 'stop-cycle', details: 'true' });
  assert.equal(started?.transaction_id, headers['transaction-id']);
  assert.deepEqual([started?.note, stopped?.note], ['upgrade', 'upgrade']);
});

for (const [name, note] of [
  ['null', null],
  ['one character', 'x'],
  ['500 characters of two UTF-16 code units each', '\u{1f4a9}'.repeat(500)],
] as const) {
  test(`a note may be ${name}`, async () => {
    const user = someone();
    assert.equal((await scrip.post('/add', { end_user_id: user, amount: 1, note })).status, 200);
    assert.equal((await listOf(user, { details: 'true' }))[0]?.note, note);
  });
}

for (const [name, note] of [
  ['empty', ''],
  ['501 characters long', 'x'.repeat(501)],
  ['501 characters of two UTF-16 code units each', '\u{1f4a9}'.repeat(501)],
  ['a number', 5],
  ['an object', {}],
  ['text with U+0000', 'a\0b'],
  ['text with an unpaired surrogate', 'a\ud800b'],
] as const) {
  test(`every write refuses a note that is ${name}`, async () => {
    const { user, fieldsOf } = await prepared();
    const before = await scrip.balance(user);
    for (const path of WRITES) assertFieldRefused(await scrip.post(path, { ...fieldsOf(path), note }), '/note');
    assert.deepEqual(await scrip.balance(user), before);
  });
}

test('an idempotency key cannot be reused with a different note', async () => {
  const user = someone();
  const send = (note?: string) =>
    scrip.post('/add', { end_user_id: user, amount: 1, note }, { headers: { 'idempotency-key': 'k' } });
  const first = await send('a');
  assert.equal((await send('a')).headers['transaction-id'], first.headers['transaction-id']);
  assertProblem(await send('b'), 'IdempotencyKeyReused', 422);
  assertProblem(await send(), 'IdempotencyKeyReused', 422);
});

test('a long list of transactions with non-ASCII notes is sent completely', async () => {
  const user = someone();
  const notes = Array.from({ length: 100 }, (_, index) => `${index} ${'語'.repeat(490)}`);
  await Promise.all(notes.map((note) => scrip.post('/add', { end_user_id: user, amount: 1, note })));
  for (const query of [{ limit: '100' }, { limit: '20' }, {}]) {
    const listed = await listOf(user, { details: 'true', ...query });
    assert.equal(listed.length, Number(query.limit ?? 100));
    for (const { note } of listed) assert(notes.includes(note as string));
  }
});
