// What the pages of an account show and do: forms, refusals at their fields, secrets once, and nothing of another account.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { isWellFormed } from '../../src/accounts/api-key.ts';
import { DAY_MS } from '../../src/ledger/instant.ts';
import { StoreFault } from '../../src/store/store.ts';
import { MemoryConsole } from './memory-console.ts';

const USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';
const PATH = `/console/end-users/${USER}`;

function add(console: MemoryConsole, amount: number, { account = 1, endUser = USER, days = 31 } = {}): void {
  console.submit({ kind: 'add', account, endUser, actor: 'key:1', amount, validityDays: days });
}

function onceIn(text: string, form: string): string {
  const [, once] = new RegExp(`action="[^"]*/${form}"[\\s\\S]*?name="once" value="([^"]+)"`).exec(text) ?? [];
  assert(once, `the form ${form} carries a value that is done once`);
  return once;
}

test('credits are added with a note by whoever is signed in, and the browser is sent back to the page', async () => {
  const console = await MemoryConsole.start();
  const sent = await console.post(`${PATH}/add`, {
    amount: '50',
    validity_days: '7',
    note: ' Ticket\r\n4711 <b>',
    once: 'a',
  });
  assert.deepEqual([sent.status, sent.location], [303, `${PATH}?done=add`]);
  assert.deepEqual(console.commands, [
    { kind: 'add', account: 1, endUser: USER, actor: 'user:u1', amount: 50, validityDays: 7, note: 'Ticket 4711 <b>' },
  ]);
  const { text } = await console.get(`${PATH}?done=add`);
  assert.match(text, /role="status">The credits were added\.</);
  assert.match(text, /<p class="value"><span class="large-figure">50</);
  assert.match(text, /owner1@example\.com[\s\S]*Ticket 4711 &#60;b&#62;/);
});

test('what is sent twice by a double click is done once', async () => {
  const console = await MemoryConsole.start();
  const once = onceIn((await console.get(PATH)).text, 'add');
  const form = { amount: '50', once };
  const [first, second] = await Promise.all([console.post(`${PATH}/add`, form), console.post(`${PATH}/add`, form)]);
  assert.deepEqual([first.status, first.location], [second.status, second.location]);
  assert.equal(console.commands.length, 1);
  await console.post(`${PATH}/add`, { amount: '50', once: onceIn((await console.get(PATH)).text, 'add') });
  assert.equal(console.commands.length, 2, 'a form that was loaded again is another');
});

test('what is refused is said at its field, with all that was typed still there, and nothing is written', async () => {
  const console = await MemoryConsole.start();
  const { status, text } = await console.post(`${PATH}/add`, {
    amount: '1,000',
    validity_days: '0',
    note: 'Why "not"',
    once: 'a',
  });
  // Browsers log pages of any other status as errors.
  assert.equal(status, 200);
  assert.match(text, /value="1,000"[^>]*aria-invalid="true"/);
  assert.match(text, /id="add-amount-error">Write digits only, without separators: 1000\.</);
  assert.match(text, /id="add-validity-error">At least 1 day\.</);
  assert.match(text, /value="Why &#34;not&#34;"/);
  assert.match(text, /<details class="action" name="adjust" open><summary>Add credits</);
  assert.deepEqual(console.commands, []);
});

test('a subtraction that the balance does not cover is refused with what there is', async () => {
  const console = await MemoryConsole.start();
  add(console, 12);
  const { status, text } = await console.post(`${PATH}/subtract`, { amount: '13', once: 'a' });
  assert.equal(status, 200);
  assert.match(text, /There are only 12 credits\. Nothing was subtracted\./);
  assert.equal((await console.post(`${PATH}/subtract`, { amount: '12', once: 'b' })).status, 303);
});

test('what there is, and what there is room for, is said in words that fit none and one', async () => {
  const console = await MemoryConsole.start();
  const said = async (form: string, amount: number) => {
    const { text } = await console.post(`${PATH}/${form}`, { amount: String(amount), once: randomUUID() });
    return /id="[a-z-]+-amount-error">([^<]+)</.exec(text)?.[1];
  };
  assert.equal(await said('subtract', 5), 'There are no credits. Nothing was subtracted.');
  add(console, 1);
  assert.equal(await said('subtract', 5), 'There is only 1 credit. Nothing was subtracted.');
  add(console, Number.MAX_SAFE_INTEGER - 2);
  assert.equal(await said('add', 5), 'There is room for 1 credit more. Nothing was added.');
  add(console, 1);
  assert.equal(await said('add', 5), 'There is room for no more credits. Nothing was added.');
});

test('a cycle is started, cannot be started twice, and is stopped', async () => {
  const console = await MemoryConsole.start();
  assert.doesNotMatch((await console.get(PATH)).text, /Stop the cycle/);
  assert.equal((await console.post(`${PATH}/start-cycle`, { amount: '1000', once: 'a' })).status, 303);
  const started = (await console.get(PATH)).text;
  assert.match(started, /Renews to 1,000/);
  assert.doesNotMatch(started, /<summary>Start a cycle</);
  assert.match(
    (await console.post(`${PATH}/start-cycle`, { amount: '5', once: 'b' })).text,
    /A cycle is active already/,
  );
  assert.equal((await console.post(`${PATH}/stop-cycle`, { note: 'Canceled', once: 'c' })).status, 303);
  const stopped = (await console.get(PATH)).text;
  assert.match(stopped, /recurring, stopped/);
  assert.match(stopped, /Cycle stopped[\s\S]*“Canceled”/);
});

test('a fault of the store is said in words, with the form still filled', async () => {
  const console = await MemoryConsole.start();
  console.fault = new StoreFault('OutcomeUnknown', 'secret reason');
  const { text } = await console.post(`${PATH}/add`, { amount: '77', once: 'a' });
  assert.match(text, /It is not known whether this happened/);
  assert.match(text, /value="77"/);
  assert.equal(onceIn(text, 'add'), 'a', 'sent again as it is, it is done once');
  assert.doesNotMatch(text, /secret reason/);
});

test('all transactions are there, a page at a time, with the cycles that each drew on', async () => {
  const console = await MemoryConsole.start();
  add(console, 30);
  console.now += DAY_MS;
  add(console, 100);
  console.submit({ kind: 'subtract', account: 1, endUser: USER, actor: 'key:1', amount: 40 });
  const { text } = await console.get(PATH);
  assert.match(text, /−40[\s\S]*−30<\/span>[\s\S]*−10<\/span>/);
  for (let made = 0; made < 60; made++) {
    console.now += 1_000;
    add(console, 1);
  }
  const first = (await console.get(PATH)).text;
  const [, older] = /href="([^"]+)"[^>]*>Older</.exec(first) ?? [];
  assert(older, 'there is a link to the older ones');
  const second = (await console.get(older.replace('#transactions', '').replaceAll('&#61;', '='))).text;
  assert.match(second, /Older transactions/);
  assert.match(second, /−40/);
  assert.doesNotMatch(second, />Older</);
  assert.deepEqual((await console.get(`${PATH}?from=invented`)).location, PATH);
});

test('renewals that are due are among the transactions before they are stored', async () => {
  const console = await MemoryConsole.start();
  console.submit({
    kind: 'start-cycle',
    account: 1,
    endUser: USER,
    actor: 'key:1',
    amount: 1_000,
    validityDays: 7,
    onActive: 'refuse',
  });
  console.now += 15 * DAY_MS;
  const { text } = await console.get(PATH);
  assert.equal(text.match(/Cycle renewed/g)?.length, 2);
  assert.match(text, /period 3/);
  console.now += 3_650 * DAY_MS;
  assert.equal((await console.get(PATH)).status, 200);
});

test('a UUID leads to its page, its beginning to a list, anything else to an explanation', async () => {
  const console = await MemoryConsole.start();
  add(console, 5);
  add(console, 5, { endUser: '91c4f0aa-7d52-4b0e-8a3d-2f6b1e9c5d70' });
  assert.equal((await console.get(`/console/end-users?search=%20${USER.toUpperCase()}`)).location, PATH);
  assert.equal((await console.get(`/console/end-users?search=${USER.replaceAll('-', '')}`)).location, PATH);
  const found = (await console.get('/console/end-users?search=5F2B')).text;
  assert.match(found, new RegExp(USER));
  assert.doesNotMatch(found, /91c4f0aa/);
  assert.match((await console.get('/console/end-users?search=abc')).text, /No end user begins with abc/);
  assert.match(
    (await console.get('/console/end-users?search=bob%3Cb%3E')).text,
    /value="bob&#60;b&#62;"[\s\S]*A UUID has the digits/,
  );
  assert.equal((await console.get('/console/end-users?after=invented')).location, '/console/end-users');
  assert.equal((await console.get('/console/end-users/bob')).status, 404);
  assert.equal((await console.get(`/console/end-users/${USER.toUpperCase()}`)).status, 200);
});

test('those to whom something happened last come first, each once', async () => {
  const console = await MemoryConsole.start();
  const [early, late] = ['f0000000-3a70-4d2e-9b61-0c8f4e7a1d23', 'e0000000-3a70-4d2e-9b61-0c8f4e7a1d23'];
  for (const endUser of [early, USER, late, late]) {
    console.now += 1_000;
    add(console, 1, { endUser });
  }
  const { text } = await console.get('/console/end-users');
  const [recent = ''] = text.match(/Recently active<[\s\S]*?<\/section>/) ?? [];
  assert.deepEqual(recent.match(/(?<=end-users\/)[0-9a-f-]{36}/g), [late, USER, early]);
  assert.doesNotMatch((await console.get('/console/end-users?search=e')).text, /Recently active/);
});

test('the list of end users goes on with Next', async () => {
  const console = await MemoryConsole.start();
  for (let made = 0; made < 51; made++) add(console, 1, { endUser: randomUUID() });
  const first = (await console.get('/console/end-users')).text;
  const [, next] = /href="([^"]+)" rel="next"/.exec(first) ?? [];
  assert(next, 'there is a next page');
  const second = (await console.get(next.replaceAll('&#61;', '=').replaceAll('&#38;', '&'))).text;
  const shown = (text: string) => text.match(/href="\/console\/end-users\/[0-9a-f-]{36}"/g) ?? [];
  assert.equal(new Set([...shown(first), ...shown(second)]).size, 51);
});

test('a new key is shown once, also when its form is sent twice', async () => {
  const console = await MemoryConsole.start();
  const form = {
    name: 'Production <i>',
    scope: 'write',
    once: onceIn((await console.get('/console/api-keys')).text, 'api-keys'),
  };
  const { status, text } = await console.post('/console/api-keys', form);
  assert.equal(status, 200);
  const secret = console.keys[0]?.secret ?? '';
  assert(isWellFormed(secret));
  assert(text.includes(`id="secret" role="group" aria-labelledby="secret-label">${secret}</code>`));
  assert(text.includes(`Bearer ${secret}`), 'a line is ready to paste');
  assert.equal((await console.post('/console/api-keys', form)).location, '/console/api-keys?done=created');
  assert.equal(console.keys.length, 1);
  for (const path of [
    '/console/api-keys',
    '/console/api-keys?done=created',
    '/console/api-keys/1/revoke',
    '/console/overview',
  ])
    assert(!(await console.get(path)).text.includes(secret.slice(-30)), `no secret on ${path}`);
  assert.match((await console.get('/console/api-keys')).text, /Production &#60;i&#62;/);
});

test('a key without a name, or of an unknown scope, is not made', async () => {
  const console = await MemoryConsole.start();
  assert.match((await console.post('/console/api-keys', { name: ' ', scope: 'write' })).text, /Give the key a name\./);
  assert.match(
    (await console.post('/console/api-keys', { name: 'x', scope: 'admin' })).text,
    /Choose what the key may do\./,
  );
  assert.equal(console.keys.length, 0);
});

test('a key is revoked after a question, and then is grey', async () => {
  const console = await MemoryConsole.start();
  await console.post('/console/api-keys', { name: 'Old', scope: 'read' });
  assert.match(
    (await console.get('/console/api-keys/1/revoke')).text,
    /<button class="button danger" type="submit">Revoke</,
  );
  assert.equal(console.keys[0]?.revokedAt, null, 'looking revokes nothing');
  assert.equal((await console.post('/console/api-keys/1/revoke', {})).location, '/console/api-keys?done=revoked');
  assert.notEqual(console.keys[0]?.revokedAt, null);
  assert.match((await console.get('/console/api-keys?done=revoked')).text, /The key was revoked[\s\S]*class="gone"/);
  assert.equal((await console.get('/console/api-keys/1/revoke')).location, '/console/api-keys');
});

test('what a link says was done never comes from the link', async () => {
  const console = await MemoryConsole.start();
  for (const path of [PATH, '/console/api-keys']) {
    const { text } = await console.get(`${path}?done=Your+account+is+closed`);
    assert.doesNotMatch(text, /Your account is closed|class="notice"/);
  }
});

test('another account sees nothing, and cannot revoke', async () => {
  const console = await MemoryConsole.start();
  add(console, 4_242);
  await console.post('/console/api-keys', { name: 'Ours', scope: 'write' });
  for (const path of ['/console/overview', '/console/end-users', PATH, '/console/api-keys']) {
    const { text } = await console.get(path, 2);
    assert.doesNotMatch(text, /4,242|Ours/, path);
  }
  assert.doesNotMatch((await console.get('/console/end-users', 2)).text, new RegExp(USER));
  assert.equal((await console.get('/console/api-keys/1/revoke', 2)).status, 404);
  assert.equal((await console.post('/console/api-keys/1/revoke', {}, 2)).status, 404);
  assert.equal(console.keys[0]?.revokedAt, null);
});
