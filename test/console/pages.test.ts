// What the account pages show and do: forms, errors at their fields, secrets shown once, isolation of accounts.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { isWellFormed } from '../../src/accounts/api-key.ts';
import { DAY_MS } from '../../src/ledger/instant.ts';
import type { AccountTransaction } from '../../src/store/console-store.ts';
import { StoreFault } from '../../src/store/store-fault.ts';
import { MemoryConsole } from './memory-console.ts';

const USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';
const PATH = `/console/end-users/${USER}`;

function add(console: MemoryConsole, amount: number, { account = 1, endUser = USER, days = 31 } = {}): void {
  console.ledger.submit({ kind: 'add', account, endUser, actor: 'key:1', amount, validityDays: days });
}

/** What the ledger of the viewer's account has recorded, latest first. */
function transactionsOf(console: MemoryConsole): AccountTransaction[] {
  return console.ledger.transactions(1);
}

function idempotencyKeyIn(text: string, form: string): string {
  const pattern = new RegExp(`action="[^"]*/${form}"[\\s\\S]*?name="idempotency_key" value="([^"]+)"`);
  const [, key] = pattern.exec(text) ?? [];
  assert(key, `the form ${form} has an idempotency key`);
  return key;
}

test('the form to add credits records the signed-in user and the note, and redirects to the page', async () => {
  const console = await MemoryConsole.start();
  const sent = await console.post(`${PATH}/add`, {
    amount: '50',
    validity_days: '7',
    note: ' Ticket\r\n4711 <b>',
    idempotency_key: 'a',
  });
  assert.deepEqual([sent.status, sent.location], [303, `${PATH}?notice=add`]);
  const recorded = transactionsOf(console).map(({ endUser, kind, amount, actor, note, createdAt, expiresAt }) => {
    return { endUser, kind, amount, actor, note, days: (expiresAt - createdAt) / DAY_MS };
  });
  assert.deepEqual(recorded, [
    { endUser: USER, kind: 'add', amount: 50, actor: 'user:u1', note: 'Ticket 4711 <b>', days: 7 },
  ]);
  const { text } = await console.get(`${PATH}?notice=add`);
  assert.match(text, /role="status">Credits added\.</);
  assert.match(text, /<p class="value"><span class="large-number">50</);
  assert.match(text, /owner1@example\.com[\s\S]*Ticket 4711 &#60;b&#62;/);
});

test('a form that is sent twice by a double click takes effect once', async () => {
  const console = await MemoryConsole.start();
  const form = { amount: '50', idempotency_key: idempotencyKeyIn((await console.get(PATH)).text, 'add') };
  const [first, second] = await Promise.all([console.post(`${PATH}/add`, form), console.post(`${PATH}/add`, form)]);
  assert.deepEqual([first.status, first.location], [second.status, second.location]);
  assert.equal(transactionsOf(console).length, 1);
  await console.post(`${PATH}/add`, {
    amount: '50',
    idempotency_key: idempotencyKeyIn((await console.get(PATH)).text, 'add'),
  });
  assert.equal(transactionsOf(console).length, 2, 'a form that was loaded again takes effect again');
});

test('a form with errors is shown again with its input and the errors at their fields, and changes nothing', async () => {
  const console = await MemoryConsole.start();
  const { status, text } = await console.post(`${PATH}/add`, {
    amount: '1,000',
    validity_days: '0',
    note: 'Why "not"',
    idempotency_key: 'a',
  });
  // Browsers log pages with an error status as errors.
  assert.equal(status, 200);
  assert.match(text, /value="1,000"[^>]*aria-invalid="true"/);
  assert.match(text, /id="add-amount-error">Enter digits only, without separators: 1000\.</);
  assert.match(text, /id="add-validity_days-error">Must be at least 1 day\.</);
  assert.match(text, /value="Why &#34;not&#34;"/);
  assert.match(text, /<details class="action" name="adjust" open><summary>Add credits</);
  assert.deepEqual(transactionsOf(console), []);
});

test('a subtraction beyond the balance is refused and names the balance', async () => {
  const console = await MemoryConsole.start();
  add(console, 12);
  const { status, text } = await console.post(`${PATH}/subtract`, { amount: '13', idempotency_key: 'a' });
  assert.equal(status, 200);
  assert.match(text, /The balance is 12 credits, less than the 13 requested\. Nothing was subtracted\./);
  assert.equal((await console.post(`${PATH}/subtract`, { amount: '12', idempotency_key: 'b' })).status, 303);
});

test('errors about the balance are grammatical for no credits and for one credit', async () => {
  const console = await MemoryConsole.start();
  const errorFor = async (form: string, amount: number) => {
    const { text } = await console.post(`${PATH}/${form}`, { amount: String(amount), idempotency_key: randomUUID() });
    return /id="[a-z-]+-amount-error">([^<]+)</.exec(text)?.[1];
  };
  assert.equal(
    await errorFor('subtract', 5),
    'The balance is 0 credits, less than the 5 requested. Nothing was subtracted.',
  );
  add(console, 1);
  assert.equal(
    await errorFor('subtract', 5),
    'The balance is 1 credit, less than the 5 requested. Nothing was subtracted.',
  );
  add(console, Number.MAX_SAFE_INTEGER - 2);
  assert.match(
    (await errorFor('add', 5)) ?? '',
    /^This end user can hold 1 more credit, .* less than the 5 requested\. Nothing was added\.$/,
  );
  add(console, 1);
  assert.equal(await errorFor('add', 5), 'This end user has reached the maximum balance. Nothing was added.');
});

test('the forms of an end user start one cycle and stop it', async () => {
  const console = await MemoryConsole.start();
  assert.doesNotMatch((await console.get(PATH)).text, /Stop the cycle/);
  assert.equal((await console.post(`${PATH}/start-cycle`, { amount: '1000', idempotency_key: 'a' })).status, 303);
  const started = (await console.get(PATH)).text;
  assert.match(started, /Renews to 1,000/);
  assert.doesNotMatch(started, /<summary>Start a cycle</);
  assert.match(
    (await console.post(`${PATH}/start-cycle`, { amount: '5', idempotency_key: 'b' })).text,
    /A cycle is already active\. Stop it before you start another\./,
  );
  assert.equal((await console.post(`${PATH}/stop-cycle`, { note: 'Canceled', idempotency_key: 'c' })).status, 303);
  const stopped = (await console.get(PATH)).text;
  assert.match(stopped, /recurring, stopped/);
  assert.match(stopped, /Cycle stopped[\s\S]*“Canceled”/);
});

test('after an unknown outcome, the form is shown again with its input and the same idempotency key', async () => {
  const console = await MemoryConsole.start();
  console.fault = new StoreFault('OutcomeUnknown', 'secret reason');
  const { text } = await console.post(`${PATH}/add`, { amount: '77', idempotency_key: 'a' });
  assert.match(text, /confirm this\. Resubmit unchanged/);
  assert.match(text, /value="77"/);
  assert.equal(idempotencyKeyIn(text, 'add'), 'a', 'the form sent again takes effect once');
  assert.doesNotMatch(text, /secret reason/);
});

test('the page of an end user lists all transactions, a page at a time, with the cycles that each drew on', async () => {
  const console = await MemoryConsole.start();
  add(console, 30);
  console.advance(DAY_MS);
  add(console, 100);
  console.ledger.submit({ kind: 'subtract', account: 1, endUser: USER, actor: 'key:1', amount: 40 });
  const { text } = await console.get(PATH);
  assert.match(text, /−40[\s\S]*−30<\/span>[\s\S]*−10<\/span>/);
  for (let made = 0; made < 60; made++) {
    console.advance(1_000);
    add(console, 1);
  }
  const first = (await console.get(PATH)).text;
  const [, older] = /href="([^"]+)"[^>]*>Older</.exec(first) ?? [];
  assert(older, 'there is a link to older transactions');
  const second = (await console.get(older.replace('#transactions', '').replaceAll('&#61;', '='))).text;
  assert.match(second, /Older transactions/);
  assert.match(second, /−40/);
  assert.doesNotMatch(second, />Older</);
  assert.deepEqual((await console.get(`${PATH}?from=invented`)).location, PATH);
});

test('the page of an end user lists renewals that are due but not stored', async () => {
  const console = await MemoryConsole.start();
  console.ledger.submit({
    kind: 'start-cycle',
    account: 1,
    endUser: USER,
    actor: 'key:1',
    amount: 1_000,
    validityDays: 7,
    onActive: 'refuse',
  });
  console.advance(15 * DAY_MS);
  const { text } = await console.get(PATH);
  assert.equal(text.match(/Cycle renewed/g)?.length, 2);
  assert.match(text, /period 3/);
  console.advance(3_650 * DAY_MS);
  assert.equal((await console.get(PATH)).status, 200);
});

test('searching for a UUID opens its page, for a prefix lists matches, and for anything else explains the format', async () => {
  const console = await MemoryConsole.start();
  add(console, 5);
  add(console, 5, { endUser: '91c4f0aa-7d52-4b0e-8a3d-2f6b1e9c5d70' });
  assert.equal((await console.get(`/console/end-users?search=%20${USER.toUpperCase()}`)).location, PATH);
  assert.equal((await console.get(`/console/end-users?search=${USER.replaceAll('-', '')}`)).location, PATH);
  const found = (await console.get('/console/end-users?search=5F2B')).text;
  assert.match(found, new RegExp(USER));
  assert.doesNotMatch(found, /91c4f0aa/);
  assert.match((await console.get('/console/end-users?search=abc')).text, /No UUID begins with abc/);
  assert.match(
    (await console.get('/console/end-users?search=bob%3Cb%3E')).text,
    /value="bob&#60;b&#62;"[\s\S]*A UUID contains only/,
  );
  assert.equal((await console.get('/console/end-users?after=invented')).location, '/console/end-users');
  assert.equal((await console.get('/console/end-users/bob')).status, 404);
  assert.equal((await console.get(`/console/end-users/${USER.toUpperCase()}`)).status, 200);
});

test('recently active end users are listed once each, newest first', async () => {
  const console = await MemoryConsole.start();
  const [early, late] = ['f0000000-3a70-4d2e-9b61-0c8f4e7a1d23', 'e0000000-3a70-4d2e-9b61-0c8f4e7a1d23'];
  for (const endUser of [early, USER, late, late]) {
    console.advance(1_000);
    add(console, 1, { endUser });
  }
  const { text } = await console.get('/console/end-users');
  const [recent = ''] = text.match(/Recently active<[\s\S]*?<\/section>/) ?? [];
  assert.deepEqual(recent.match(/(?<=end-users\/)[0-9a-f-]{36}/g), [late, USER, early]);
  assert.doesNotMatch((await console.get('/console/end-users?search=e')).text, /Recently active/);
});

test('the list of end users continues on the next page', async () => {
  const console = await MemoryConsole.start();
  for (let made = 0; made < 51; made++) add(console, 1, { endUser: randomUUID() });
  const first = (await console.get('/console/end-users')).text;
  const [, next] = /href="([^"]+)" rel="next"/.exec(first) ?? [];
  assert(next, 'there is a next page');
  const second = (await console.get(next.replaceAll('&#61;', '=').replaceAll('&#38;', '&'))).text;
  const shown = (text: string) => text.match(/href="\/console\/end-users\/[0-9a-f-]{36}"/g) ?? [];
  assert.equal(new Set([...shown(first), ...shown(second)]).size, 51);
});

test('the secret of a new API key is shown once, also when its form is sent twice', async () => {
  const console = await MemoryConsole.start();
  const form = {
    name: 'Production <i>',
    scope: 'write',
    idempotency_key: idempotencyKeyIn((await console.get('/console/api-keys')).text, 'api-keys'),
  };
  const { status, text } = await console.post('/console/api-keys', form);
  assert.equal(status, 200);
  const secret = console.keys[0]?.secret ?? '';
  assert(isWellFormed(secret));
  assert(text.includes(`id="secret" role="group" aria-labelledby="secret-label">${secret}</code>`));
  assert(text.includes(`Bearer ${secret}`), 'the page has a command with the key');
  assert.equal((await console.post('/console/api-keys', form)).location, '/console/api-keys?notice=created');
  assert.equal(console.keys.length, 1);
  for (const path of [
    '/console/api-keys',
    '/console/api-keys?notice=created',
    '/console/api-keys/1/revoke',
    '/console/overview',
  ])
    assert(!(await console.get(path)).text.includes(secret.slice(-30)), `no secret on ${path}`);
  assert.match((await console.get('/console/api-keys')).text, /Production &#60;i&#62;/);
});

test('a form for a new API key creates one key when it is sent twice at once, and can be sent again after a failure', async () => {
  const console = await MemoryConsole.start();
  const send = (idempotency_key: string) =>
    console.post('/console/api-keys', { name: 'Backend', scope: 'write', idempotency_key });
  const replies = await Promise.all([send('x'), send('x')]);
  assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 303]);
  await send('y');
  await send('');
  await send('');
  assert.equal(console.keys.length, 4, 'forms with other keys or without one create keys of their own');
  console.fault = new StoreFault('StoreUnavailable', 'away');
  assert.equal((await send('z')).status, 500);
  assert.equal((await send('z')).status, 200);
});

test('an API key without a name or with an unknown scope is not created', async () => {
  const console = await MemoryConsole.start();
  assert.match((await console.post('/console/api-keys', { name: ' ', scope: 'write' })).text, /Enter a name\./);
  assert.match((await console.post('/console/api-keys', { name: 'x', scope: 'admin' })).text, /Choose a scope\./);
  assert.equal(console.keys.length, 0);
});

test('an API key is revoked after confirmation and stays in the list as revoked', async () => {
  const console = await MemoryConsole.start();
  await console.post('/console/api-keys', { name: 'Old', scope: 'read' });
  assert.match(
    (await console.get('/console/api-keys/1/revoke')).text,
    /<button class="button danger" type="submit">Revoke key</,
  );
  assert.equal(console.keys[0]?.revokedAt, null, 'opening the page does not revoke the key');
  assert.equal((await console.post('/console/api-keys/1/revoke', {})).location, '/console/api-keys?notice=revoked');
  assert.notEqual(console.keys[0]?.revokedAt, null);
  assert.match((await console.get('/console/api-keys?notice=revoked')).text, /Key revoked[\s\S]*class="revoked"/);
  assert.equal((await console.get('/console/api-keys/1/revoke')).location, '/console/api-keys');
});

test('a notice is never taken from the URL', async () => {
  const console = await MemoryConsole.start();
  for (const path of [PATH, '/console/api-keys']) {
    const { text } = await console.get(`${path}?notice=Your+account+is+closed`);
    assert.doesNotMatch(text, /Your account is closed|class="notice"/);
  }
});

test('another account sees no data and cannot revoke keys', async () => {
  const console = await MemoryConsole.start();
  add(console, 4_242);
  await console.post('/console/api-keys', { name: 'Victim', scope: 'write' });
  for (const path of ['/console/overview', '/console/end-users', PATH, '/console/api-keys']) {
    const { text } = await console.get(path, 2);
    assert.doesNotMatch(text, /4,242|Victim/, path);
  }
  assert.doesNotMatch((await console.get('/console/end-users', 2)).text, new RegExp(USER));
  assert.equal((await console.get('/console/api-keys/1/revoke', 2)).status, 404);
  assert.equal((await console.post('/console/api-keys/1/revoke', {}, 2)).status, 404);
  assert.equal(console.keys[0]?.revokedAt, null);
});
