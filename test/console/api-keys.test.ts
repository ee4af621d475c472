// Tests the API key pages: a secret is shown once, a form that is sent twice creates one key, and a revocation needs a
// confirmation.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isWellFormed } from '../../src/accounts/api-key.ts';
import { DAY_MS } from '../../src/ledger/instant.ts';
import { StoreFault } from '../../src/store/store-fault.ts';
import { END_USER, MemoryConsole } from './memory-console.ts';

function idempotencyKeyIn(text: string, form: string): string {
  const pattern = new RegExp(`action="[^"]*/${form}"[\\s\\S]*?name="idempotency_key" value="([^"]+)"`);
  const [, key] = pattern.exec(text) ?? [];
  assert(key, `the form ${form} has an idempotency key`);
  return key;
}

test('the secret of a new API key is shown once, even if the form is sent twice', async () => {
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
  assert(text.includes(`Bearer ${secret}`), 'the page shows a command with the key');
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

test('two concurrent requests from the same form create only one API key, and the form can be sent again after a failure', async () => {
  const console = await MemoryConsole.start();
  const send = (idempotency_key: string) =>
    console.post('/console/api-keys', { name: 'Backend', scope: 'write', idempotency_key });
  const replies = await Promise.all([send('x'), send('x')]);
  assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 303]);
  await send('y');
  await send('');
  await send('');
  assert.equal(console.keys.length, 4, 'forms with other idempotency keys or none create further keys');
  console.fault = new StoreFault('StoreUnavailable', 'away');
  const { status, text } = await send('z');
  assert.equal(status, 503);
  assert.match(text, /may or may not have been made[\s\S]*value="z"><button class="button" type="submit">Submit again/);
  assert.equal((await send('z')).status, 200);
});

test('the log of API keys shows who created and revoked each key, and the list shows the age and the usage of each key', async () => {
  const console = await MemoryConsole.start();
  await console.post('/console/api-keys', { name: 'Backend', scope: 'write' });
  await console.post('/console/api-keys', { name: 'Old', scope: 'read' });
  console.advance(60_000);
  await console.post('/console/api-keys/2/revoke', {});
  const key = { account: 1, endUser: '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23', actor: 'key:1' } as const;
  console.ledger.submit({ ...key, kind: 'add', amount: 1_500, validityDays: 31 });
  console.ledger.submit({ ...key, kind: 'subtract', amount: 40 });
  console.advance(2 * DAY_MS);
  const { text } = await console.get('/console/api-keys');
  const rows = (label: string) =>
    [
      ...(text.split(`aria-label="${label}"`)[1]?.split('</table>')[0] ?? '').matchAll(
        /<tr role="row"[^>]*>([\s\S]*?)<\/tr>/g,
      ),
    ].map(([, row]) =>
      (row as string)
        .replaceAll(/<[^>]*>|\s+/g, ' ')
        .replaceAll(/\s+/g, ' ')
        .trim(),
    );
  assert.equal(rows('Keys')[0], 'Name Scope Transactions Granted Spent Created Last used Status');
  assert.match(rows('Keys')[1] ?? '', /^Backend \S+ write 2 1,500 40 2 days ago never Revoke$/);
  assert.match(rows('Keys')[2] ?? '', /^Old \S+ read 0 0 0 2 days ago never Revoked$/);
  const [, revoked, ...created] = rows('Log');
  assert.match(revoked ?? '', /14:06:31 Revoked Old \S+ owner1@example\.com$/);
  assert.deepEqual(
    created.map((row) => row.includes('Created') && row.endsWith('owner1@example.com')),
    [true, true],
  );
});

test('a name or a note with characters that change the direction of text does not reorder the text around it', async () => {
  const console = await MemoryConsole.start();
  const name = '\u202eevil';
  await console.post('/console/api-keys', { name, scope: 'write' });
  const note = 'Ticket \u202e1174';
  const id = console.run({ kind: 'add', amount: 5, validityDays: 31, note });
  const endUser = `/console/end-users/${END_USER}`;
  const paths = ['/console/api-keys', '/console/api-keys/1/revoke', '/console/overview', '/console/overview?by=key:1'];
  for (const path of [...paths, endUser]) {
    const { text } = await console.get(path);
    // The browser isolates the text of a title and an option anyway.
    const others = text.replaceAll(/<(bdi|title|option)[^>]*>[^<]*<\/\1>|\u2068[^<]*\u2069/g, '');
    assert(text.includes('\u202e') && !others.includes('\u202e'), path);
  }
  assert.match((await console.get(`${endUser}/transactions/${id}`)).text, /<dd><bdi>“Ticket \u202e1174”<\/bdi><\/dd>/);
  assert.match(
    (await console.post('/console/api-keys', { name, scope: 'read' })).text,
    /<bdi>\u202eevil<\/bdi> \(read\)/,
  );
});

test('an API key without a name or with an unknown scope is not created', async () => {
  const console = await MemoryConsole.start();
  for (const name of [' ', '\u200b\u2060'])
    assert.match((await console.post('/console/api-keys', { name, scope: 'write' })).text, /Enter a name\./);
  assert.match((await console.post('/console/api-keys', { name: 'x', scope: 'admin' })).text, /Choose a scope\./);
  assert.equal(console.keys.length, 0);
});

test('an API key is revoked only after a confirmation, and stays in the list as revoked', async () => {
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
