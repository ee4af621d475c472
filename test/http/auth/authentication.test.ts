// Tests authentication: invalid keys, scopes and the isolation of accounts. Also tests that neither the log nor the
// list of API keys contains the secret of a key.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, mock, test } from 'node:test';
import { apiKeySecret, hashOf, SECRET_BYTES } from '../../../src/accounts/api-key.ts';
import { StoreFault } from '../../../src/store/store-fault.ts';
import { fieldsOf, READS, WRITES } from '../api-calls.ts';
import { RawConnection, sendRaw } from '../raw-connection.ts';
import { assertProblem, eventually, type Scrip, someone, startScrip } from '../running-service.ts';

let scrip: Scrip;
before(async () => {
  scrip = await startScrip();
});
after(() => scrip.stop());

async function revoke(secret: string): Promise<void> {
  const { keys: apiKeys } = scrip.service.stores;
  const key = await apiKeys.find(hashOf(secret));
  assert(key && (await apiKeys.revoke(key.id)), 'the key exists and is revoked');
}

async function unauthorized(): Promise<[name: string, headers: string][]> {
  const key = scrip.writeKey;
  const revoked = await scrip.createKey('Acme', 'write');
  await revoke(revoked);
  return [
    ['nothing', ''],
    ['an empty header', 'Authorization: \r\n'],
    ['no key', 'Authorization: Bearer\r\n'],
    ['no scheme', `Authorization: ${key}\r\n`],
    ['another scheme', `Authorization: Basic ${Buffer.from(`${key}:`).toString('base64')}\r\n`],
    ['a scheme that begins with Bearer', `Authorization: BearerX ${key}\r\n`],
    ['text after the key', `Authorization: Bearer ${key} x\r\n`],
    ['two keys in one header', `Authorization: Bearer ${key}, Bearer ${key}\r\n`],
    ['the same header twice', `Authorization: Bearer ${key}\r\nAuthorization: Bearer ${key}\r\n`],
    ['a second header of another key', `Authorization: Bearer ${key}\r\naUTHORIZATION: Bearer x\r\n`],
    ['a key that was never created', `Authorization: Bearer ${apiKeySecret('write', randomBytes(SECRET_BYTES))}\r\n`],
    ['a mistyped key', `Authorization: Bearer ${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}\r\n`],
    ['a key in the wrong case', `Authorization: Bearer ${key.toUpperCase()}\r\n`],
    ['half a key', `Authorization: Bearer ${key.slice(0, 20)}\r\n`],
    ['a very long key', `Authorization: Bearer ${'x'.repeat(8_000)}\r\n`],
    ['a key with characters beyond ASCII', 'Authorization: Bearer sch\u00fcssel\r\n'],
    ['a revoked key', `Authorization: Bearer ${revoked}\r\n`],
    ['a key in another header', `X-Api-Key: ${key}\r\n`],
  ];
}

test('every request with an invalid API key gets the same response, so that an attacker does not learn why the key is invalid', async () => {
  const user = someone();
  const bodies = new Set<string>();
  const body = JSON.stringify({ end_user_id: user, amount: 5 });
  for (const [name, headers] of await unauthorized()) {
    const reply = await sendRaw(
      scrip,
      `POST /add HTTP/1.1\r\nHost: scrip\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n${headers}\r\n${body}`,
    );
    const wrapped = { ...reply, headers: Object.fromEntries(reply.headers) };
    assertProblem(wrapped, 'Unauthorized', 401);
    assert.match(reply.headers.get('www-authenticate') ?? '', /^Bearer\b/, name);
    const { request_id, timestamp, ...rest } = reply.body;
    assert(request_id !== undefined && timestamp !== undefined);
    bodies.add(JSON.stringify([rest, [...reply.headers.keys()].sort()]));
  }
  assert.equal(bodies.size, 1, [...bodies].join('\n'));
  assert.equal((await scrip.transactions(user)).length, 0);
});

test('every route of the API requires an API key, with and without /v1', async () => {
  for (const prefix of ['', '/v1']) {
    for (const path of WRITES)
      assertProblem(await scrip.post(prefix + path, fieldsOf(path, someone()), { key: null }), 'Unauthorized', 401);
    for (const path of READS)
      assertProblem(await scrip.get(prefix + path, { end_user_id: someone() }, { key: null }), 'Unauthorized', 401);
  }
});

test('a request without an API key gets Unauthorized, even if the request has other errors', async () => {
  for (const [body, type] of [
    ['{', 'application/json'],
    ['{"x":1}', 'application/json'],
    ['x', 'text/plain'],
    ['x'.repeat(70_000), 'application/json'],
  ] as const) {
    const call = { body, key: null, headers: { 'content-type': type } };
    assertProblem(await scrip.call('POST', '/add', call), 'Unauthorized', 401);
  }
});

test('an API key in the query string or in the body is not accepted', async () => {
  const user = someone();
  const key = scrip.writeKey;
  for (const query of [`api_key=${key}`, `authorization=Bearer%20${key}`, `access_token=${key}`]) {
    const reply = await scrip.call('GET', `/get-active-balance?end_user_id=${user}&${query}`, { key: null });
    assertProblem(reply, 'Unauthorized', 401);
  }
  const fields = { end_user_id: user, amount: 5, authorization: `Bearer ${key}` };
  assertProblem(await scrip.post('/add', fields, { key: null }), 'Unauthorized', 401);
});

test('the authentication scheme Bearer is case-insensitive (RFC 9110)', async () => {
  for (const scheme of ['bearer', 'BEARER', 'Bearer ']) {
    const headers = { authorization: `${scheme} ${scrip.writeKey}` };
    const reply = await scrip.get('/get-active-balance', { end_user_id: someone() }, { key: null, headers });
    assert.equal(reply.status, 200, scheme);
  }
});

test('an API key with the `read` scope can read but not write', async () => {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: 10 });
  await scrip.post('/start-cycle', { end_user_id: user, amount: 10 });
  const before = [await scrip.balance(user), await scrip.transactions(user)];
  const key = scrip.readKey;
  for (const prefix of ['', '/v1']) {
    for (const path of WRITES) {
      const reply = await scrip.post(prefix + path, fieldsOf(path, user), { key });
      assertProblem(reply, 'Forbidden', 403);
    }
    for (const path of READS)
      assert.equal((await scrip.get(prefix + path, { end_user_id: user }, { key })).status, 200);
  }
  assert.deepEqual([await scrip.balance(user), await scrip.transactions(user)], before);
});

test('an account cannot see or change the credits and cycles of another account, even for an end user with the same UUID', async () => {
  const user = someone();
  const ours = { key: scrip.writeKey };
  const theirs = { key: await scrip.createKey('Globex', 'write') };
  await scrip.post('/add', { end_user_id: user, amount: 100 }, ours);
  await scrip.post('/start-cycle', { end_user_id: user, amount: 50 }, ours);
  const before = [await scrip.balance(user), await scrip.transactions(user)];

  const seen = await scrip.get('/get-active-balance', { end_user_id: user }, theirs);
  assert.deepEqual(seen.body, { end_user_id: user, active_balance_by_cycle: [], active_balance: 0 } as unknown);
  const listed = await scrip.get('/get-all-user-transactions', { end_user_id: user }, theirs);
  assert.deepEqual(listed.body.transactions, []);
  const spent = await scrip.post('/subtract', { end_user_id: user, amount: 1 }, theirs);
  assertProblem(spent, 'InsufficientFunds', 402);
  assert.equal(spent.body.available, 0);
  assertProblem(await scrip.post('/stop-cycle', { end_user_id: user }, theirs), 'CycleNotFound', 404);
  const started = await scrip.post('/start-cycle', { end_user_id: user, amount: 7 }, theirs);
  assert.equal(started.status, 200);
  assert.equal((await scrip.post('/stop-cycle', { end_user_id: user }, theirs)).body.amount, 7);

  assert.deepEqual([await scrip.balance(user), await scrip.transactions(user)], before);
});

test('all API keys of an account see the same end users', async () => {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: 100 });
  const second = await scrip.createKey('Acme', 'write');
  const seen = await scrip.get('/get-active-balance', { end_user_id: user }, { key: second });
  assert.equal(seen.body.active_balance, 100);
});

test('an API key works as soon as it is created, and a key in use is refused within a second of its revocation', async () => {
  const key = await scrip.createKey('Acme', 'read');
  const use = () => scrip.get('/get-active-balance', { end_user_id: someone() }, { key });
  assert.equal((await use()).status, 200);
  await revoke(key);
  await eventually(async () => (await use()).status === 401, 'the revoked key is refused', 1_000);
  for (let time = 0; time < 3; time++) assertProblem(await use(), 'Unauthorized', 401);
  assert.equal(
    (await scrip.get('/get-active-balance', { end_user_id: someone() })).status,
    200,
    'other keys still work',
  );
});

test('an API key in constant use keeps working when its cache entry expires and Scrip looks up the key again', async () => {
  const until = performance.now() + 800;
  while (performance.now() < until)
    assert.equal((await scrip.get('/get-active-balance', { end_user_id: someone() })).status, 200);
});

test('the routes for operators need no API key', async () => {
  for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs', '/problems/Forbidden'])
    assert.equal((await scrip.call('GET', path, { key: null })).status, 200, path);
});

async function scatter(key: string): Promise<void> {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: 5 }, { key });
  await scrip.post('/add', { end_user_id: user, amount: 5, key }, { key });
  await scrip.post('/add', { end_user_id: key, amount: key, [key]: key }, { key });
  await scrip.call('POST', '/add', { key, body: `{"${key}` });
  await scrip.call('POST', '/add', { key, body: key, headers: { 'content-type': key } });
  await scrip.call('POST', `/add?${key}=${key}`, { key, body: { end_user_id: user, amount: 5 } });
  await scrip.call('GET', `/get-active-balance?end_user_id=${user}&key=${key}`);
  await scrip.call('GET', `/${key}`, { key });
  await scrip.call('GET', `/%zz/${key}`, { key });
  await scrip.call('PATCH', '/add', { key });
  for (const headers of [`Bearer${key}`, `Basic ${key}`, key, `Bearer ${key}x`].map((authorization) => ({
    authorization,
  })))
    await scrip.get('/get-active-balance', { end_user_id: user }, { key: null, headers });
  await sendRaw(scrip, `${key}\r\n\r\n`);
  await sendRaw(
    scrip,
    `GET / HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${key}\r\nX-${'x'.repeat(20_000)}: 1\r\n\r\n`,
  );
}

async function breakThings(key: string): Promise<void> {
  const { ledger: store } = scrip.service.stores;
  const failing = () => Promise.reject(new StoreFault('Internal', 'broken for the test'));
  for (const method of ['write', 'load', 'transactions', 'statesAt'] as const) mock.method(store, method, failing);
  for (const path of WRITES) await scrip.post(path, fieldsOf(path, someone()), { key });
  for (const path of READS) await scrip.get(path, { end_user_id: someone() }, { key });
  mock.restoreAll();
  const leaving = await RawConnection.open(scrip);
  leaving.send(
    `POST /add HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{`,
  );
  await new Promise((resolve) => setTimeout(resolve, 30));
  leaving.socket.destroy();
}

test('no log line at any level contains an API key, wherever in a request the key was sent, and even if the request failed', async () => {
  const key = await scrip.createKey('Acme', 'write');
  await scatter(key);
  await breakThings(key);
  await scrip.call('GET', '/healthz', { key });
  const text = scrip.log.join('');
  assert.match(text, /broken for the test/, 'the log is captured');
  const random = key.split('_')[2] as string;
  for (const part of [key, random, random.slice(0, 16), random.slice(-16)]) assert(!text.includes(part));
});

test('the list of API keys does not contain their secrets', async () => {
  const listed = JSON.stringify(await scrip.service.stores.keys.list());
  for (const key of [scrip.writeKey, scrip.readKey]) assert(!listed.includes((key.split('_')[2] as string).slice(8)));
});
