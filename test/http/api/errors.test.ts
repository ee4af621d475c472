// Tests the names, statuses and members of errors. The expected values are literals in the tests, because clients
// depend on these values.

import assert from 'node:assert/strict';
import { after, before, mock, test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { type FaultCode, StoreFault } from '../../../src/store/store-fault.ts';
import { fieldsOf, READS, WRITES } from '../api-calls.ts';
import { postText, sendRaw } from '../raw-connection.ts';
import {
  assertFieldRefused,
  assertProblem,
  MovableClock,
  type Scrip,
  someone,
  startScrip,
} from '../running-service.ts';

const MOST = Number.MAX_SAFE_INTEGER;

const clock = new MovableClock('2026-11-20T08:00:00.123Z');
let scrip: Scrip;
before(async () => {
  scrip = await startScrip({ clock });
});
after(() => scrip.stop());

test('a subtraction beyond the balance gets 402 InsufficientFunds with the credits requested, available and missing', async () => {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: 30 });
  const reply = await scrip.post('/subtract', { end_user_id: user, amount: 100 });
  assertProblem(reply, 'InsufficientFunds', 402);
  const { requested, available, shortfall } = reply.body;
  assert.deepEqual({ requested, available, shortfall }, { requested: 100, available: 30, shortfall: 70 });
});

test('an addition beyond the maximum balance gets 422 BalanceTooLarge with the credits that can still be added', async () => {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: MOST - 10 });
  for (const path of ['/add', '/start-cycle']) {
    const reply = await scrip.post(path, { end_user_id: user, amount: 11 });
    assertProblem(reply, 'BalanceTooLarge', 422);
    assert.deepEqual([reply.body.requested, reply.body.available], [11, 10]);
  }
  assert.equal((await scrip.balance(user)).active_balance, MOST - 10);
  assert.equal((await scrip.post('/add', { end_user_id: user, amount: 10 })).status, 200);
  assert.equal((await scrip.balance(user)).active_balance, MOST);
});

test('an addition gets BalanceTooLarge if the balance after the next renewal would exceed the maximum', async () => {
  const user = someone();
  await scrip.post('/start-cycle', { end_user_id: user, amount: MOST - 10, validity_days: 1 });
  await scrip.post('/subtract', { end_user_id: user, amount: 1_000 });
  const reply = await scrip.post('/add', { end_user_id: user, amount: 11, validity_days: 2 });
  assertProblem(reply, 'BalanceTooLarge', 422);
  assert.equal(reply.body.available, 10);
  assert.equal((await scrip.post('/add', { end_user_id: user, amount: 11, validity_days: 1 })).status, 200);
});

test('for each read, the response to HEAD has the same status and content type as the response to GET, and no body', async () => {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: 30 });
  for (const path of READS) {
    const get = await scrip.call('GET', `${path}?end_user_id=${user}`);
    const head = await scrip.call('HEAD', `${path}?end_user_id=${user}`);
    assert.deepEqual([head.status, head.text], [200, '']);
    assert.equal(head.headers['content-type'], get.headers['content-type']);
    assert.equal((await scrip.call('HEAD', path)).status, 422);
  }
});

test('a request to /stop-cycle without an active cycle gets 404 CycleNotFound', async () => {
  assertProblem(await scrip.post('/stop-cycle', { end_user_id: someone() }), 'CycleNotFound', 404);
});

test('a request to /start-cycle while a cycle is active gets 409 CycleAlreadyActive with the active cycle', async () => {
  const user = someone();
  const { body } = await scrip.post('/start-cycle', { end_user_id: user, amount: 5 });
  const reply = await scrip.post('/start-cycle', { end_user_id: user, amount: 5 });
  assertProblem(reply, 'CycleAlreadyActive', 409);
  assert.deepEqual(reply.body.cycle, body);
});

for (const path of ['/v1', '/v2/add', '/nothing', '/add/more', '/problems/Nothing', '/problems/constructor']) {
  test(`a request for the unknown path ${path} gets 404 NotFound`, async () => {
    assertProblem(await scrip.call('GET', path), 'NotFound', 404);
    assertProblem(await scrip.call('POST', path, { body: {} }), 'NotFound', 404);
  });
}

for (const prefix of ['', '/v1']) {
  for (const path of [...WRITES, ...READS]) {
    test(`a request for ${prefix}${path} with an unsupported method gets 405 MethodNotAllowed, and the Allow header lists the allowed methods`, async () => {
      const taken = WRITES.includes(path) ? 'POST' : 'GET';
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'QUERY']) {
        if (method === taken) continue;
        const reply = await scrip.call(method, prefix + path);
        assertProblem(reply, 'MethodNotAllowed', 405);
        assert.equal(reply.headers.allow, taken === 'GET' ? 'GET, HEAD' : taken, method);
      }
      if (taken === 'GET') return;
      const head = await scrip.call('HEAD', prefix + path);
      assert.deepEqual([head.status, head.headers.allow, head.text], [405, taken, '']);
    });
  }
}

test('a DELETE request to a route for operators gets 405 MethodNotAllowed', async () => {
  for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json', '/problems/Internal']) {
    const reply = await scrip.call('DELETE', path);
    assertProblem(reply, 'MethodNotAllowed', 405);
    assert.equal(reply.headers.allow, 'GET, HEAD');
  }
});

for (const path of WRITES) {
  const fields = Object.keys(fieldsOf(path, ''));
  test(`a request to ${path} without the required fields gets 422 InvalidField, and the error names each missing field`, async () => {
    const reply = await scrip.post(path, {});
    for (const field of fields) assertFieldRefused(reply, `/${field}`);
    assert.equal(reply.body.errors.length, fields.length);
  });

  test(`a request to ${path} with an unknown field gets 422 InvalidField, and the error names the field`, async () => {
    const user = someone();
    const known = fieldsOf(path, user);
    for (const unknown of ['validity_day', 'Amount', 'account', '', 'constructor', 'toString', 'hasOwnProperty']) {
      const reply = await scrip.post(path, { ...known, [unknown]: 1 });
      assertFieldRefused(reply, `/${unknown}`);
      assert.equal(reply.body.errors.length, 1);
    }
    assert.equal((await scrip.transactions(user)).length, 0, 'nothing changed');
  });

  test(`a request to ${path} with fields in the query string gets 422 InvalidField`, async () => {
    const known = fieldsOf(path, someone());
    assertFieldRefused(await scrip.post(`${path}?trace=1`, known), '/trace');
    assertFieldRefused(await scrip.post(`${path}?amount=5`, known), '/amount');
    assertProblem(await scrip.post(`${path}?end_user_id=${known.end_user_id}`, {}), 'InvalidField', 422);
  });
}

test('the error InvalidField names every invalid field, not only the first', async () => {
  const reply = await scrip.post('/start-cycle', { end_user_id: 'x', amount: 0, validity_days: 0, on_active: 'stop' });
  for (const field of ['end_user_id', 'amount', 'validity_days', 'on_active']) assertFieldRefused(reply, `/${field}`);
});

test('a body with thousands of unknown fields is refused with a short response', async () => {
  const fields = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`f${index}`, 1]));
  const reply = await scrip.post('/stop-cycle', fields);
  assertProblem(reply, 'InvalidField', 422);
  assert(reply.text.length < 8_192, `${reply.text.length} characters`);
});

const OTHER_TYPES = [
  'text/plain',
  'text/json',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/xml',
  'application/jsonp',
  'application/problem+json',
  'application/json-patch+json',
  'application',
  'json',
  ';;',
];

for (const path of WRITES) {
  test(`a request to ${path} with no content type, two content types, or a type other than application/json gets 415 UnsupportedMediaType`, async () => {
    const user = someone();
    const body = JSON.stringify(fieldsOf(path, user));
    for (const type of OTHER_TYPES) {
      const reply = await scrip.call('POST', path, { body, headers: { 'content-type': type } });
      assert.equal(reply.status, 415, `${type}: ${reply.text}`);
      assertProblem(reply, 'UnsupportedMediaType', 415);
    }
    for (const types of ['', 'Content-Type: application/json\r\nContent-Type: text/plain\r\n']) {
      const request = postText(scrip, path, body).replace('Content-Type: application/json\r\n', types);
      const reply = await sendRaw(scrip, request);
      assert.deepEqual([reply.status, reply.body.error], [415, 'UnsupportedMediaType'], types);
    }
    assert.equal((await scrip.transactions(user)).length, 0, 'nothing changed');
  });
}

test('a compressed body gets 415 UnsupportedMediaType', async () => {
  const user = someone();
  const plain = JSON.stringify({ end_user_id: user, amount: 5 });
  for (const [encoding, body] of [
    ['gzip', gzipSync(plain)],
    ['deflate', deflateSync(plain)],
    ['br', brotliCompressSync(plain)],
    ['gzip', plain],
    ['gzip, br', plain],
  ] as const) {
    const reply = await scrip.call('POST', '/add', { body, headers: { 'content-encoding': encoding } });
    assertProblem(reply, 'UnsupportedMediaType', 415);
  }
  assert.equal((await scrip.transactions(user)).length, 0);
  const identity = await scrip.call('POST', '/add', { body: plain, headers: { 'content-encoding': 'Identity' } });
  assert.equal(identity.status, 200, 'identity means no compression');
});

test('the content type application/json may be in any case and have parameters', async () => {
  const user = someone();
  for (const type of ['application/json; charset=utf-8', 'APPLICATION/JSON', 'application/json;charset="UTF-8"']) {
    const call = { body: JSON.stringify({ end_user_id: user, amount: 5 }), headers: { 'content-type': type } };
    assert.equal((await scrip.call('POST', '/add', call)).status, 200, type);
  }
});

test('the type of each problem is the URL of a page that explains the problem and what to do', async () => {
  const user = someone();
  const replies = [
    await scrip.post('/subtract', { end_user_id: user, amount: 1 }),
    await scrip.post('/v1/stop-cycle', { end_user_id: user }),
    await scrip.post('/add', {}),
    await scrip.call('POST', '/add', { body: '{' }),
    await scrip.call('POST', '/add', { key: null }),
    await scrip.call('GET', '/nothing'),
    await scrip.call('GET', '/add'),
    await scrip.call('POST', '/add', { body: 'x', headers: { 'content-type': 'text/plain' } }),
    await scrip.call('GET', '/%zz'),
  ];
  for (const { body, status, url } of replies.map((reply) => ({
    ...reply,
    url: new URL(reply.body.type, scrip.url),
  }))) {
    const page = await scrip.call('GET', url.pathname, { key: null });
    assert.equal(page.status, 200, url.pathname);
    const { remedy, ...meaning } = page.body as unknown as Record<string, unknown>;
    assert.deepEqual(meaning, { error: body.error, status, title: body.title });
    assert.match(String(remedy), /^[A-Z].*\.$/s);
  }
});

test('every published error has a page under /problems', async () => {
  const published = {
    InvalidJson: 400,
    Unauthorized: 401,
    InsufficientFunds: 402,
    Forbidden: 403,
    CycleNotFound: 404,
    HoldNotFound: 404,
    TransactionNotFound: 404,
    NotFound: 404,
    MethodNotAllowed: 405,
    CycleAlreadyActive: 409,
    TooManyHolds: 409,
    NotRefundable: 409,
    RefundTooLarge: 409,
    PayloadTooLarge: 413,
    UnsupportedMediaType: 415,
    InvalidField: 422,
    BalanceTooLarge: 422,
    Internal: 500,
    Overloaded: 503,
    StoreUnavailable: 503,
    OutcomeUnknown: 503,
  };
  for (const [error, status] of Object.entries(published)) {
    const page = await scrip.call('GET', `/problems/${error}`, { key: null });
    assert.deepEqual([page.status, page.body.error, page.body.status], [200, error, status]);
  }
});

test('each problem document has a unique request ID', async () => {
  const replies = await Promise.all(Array.from({ length: 50 }, () => scrip.call('GET', '/nothing')));
  assert.equal(new Set(replies.map(({ body }) => body.request_id)).size, 50);
});

const FAULTS: readonly (readonly [code: FaultCode, status: number])[] = [
  ['StoreUnavailable', 503],
  ['OutcomeUnknown', 503],
  ['Internal', 500],
];

for (const [code, status] of FAULTS) {
  test(`if the store fails with ${code}, every write returns ${status} without the reason; Scrip logs the reason once, and logs the request ID only for Internal`, async () => {
    const reason = `disk 7 of ${someone()} is on fire`;
    const write = mock.method(scrip.service.stores.ledger, 'write', () => Promise.reject(new StoreFault(code, reason)));
    try {
      for (const path of WRITES) {
        const reply = await scrip.post(path, fieldsOf(path, someone()));
        assertProblem(reply, code, status);
        const invites = status === 503 && code !== 'OutcomeUnknown';
        assert.equal(
          reply.headers['retry-after'],
          invites ? '1' : undefined,
          'no Retry-After if a retry could execute the write twice',
        );
        assert(!reply.text.includes(reason), reply.text);
        const isLogged = scrip.log.some((line) => line.includes(`"request_id":"${reply.body.request_id}"`));
        assert.equal(isLogged, code === 'Internal', 'only the text of Internal refers to the log');
      }
    } finally {
      write.mock.restore();
    }
    assert.equal(
      (await scrip.post('/add', { end_user_id: someone(), amount: 1 })).status,
      200,
      'writes succeed after the fault',
    );
    assert.equal(
      scrip.log.filter((line) => line.includes(reason)).length,
      1,
      'the reason is logged once, not for each request',
    );
    assert(
      scrip.log.some((line) => line.includes('writes are succeeding again')),
      'the end of the fault is logged',
    );
  });
}

test('a read gets 503 StoreUnavailable if the store fails, or if looking up the API key fails', async () => {
  const unread = () => Promise.reject(new StoreFault('StoreUnavailable', 'no such disk'));
  const { ledger, keys } = scrip.service.stores;
  const newKey = await scrip.createKey('Acme', 'write');
  for (const method of ['load', 'transactions', 'history', 'statesAt'] as const) mock.method(ledger, method, unread);
  mock.method(keys, 'find', unread);
  try {
    for (const path of READS) {
      const fields = { end_user_id: someone() };
      for (const key of [scrip.writeKey, newKey]) {
        const reply = await scrip.get(path, fields, { key });
        assertProblem(reply, 'StoreUnavailable', 503);
        assert.equal(reply.headers['retry-after'], '1');
      }
    }
  } finally {
    mock.restoreAll();
  }
  assert.equal((await scrip.get(READS[0] as string, { end_user_id: someone() }, { key: newKey })).status, 200);
});

test('a request that causes an unexpected error gets Internal, and the message of the error appears only in the log', async () => {
  const broken = mock.method(scrip.service.stores.ledger, 'load', () =>
    Promise.reject(new TypeError('x is not a function')),
  );
  try {
    const reply = await scrip.get('/get-active-balance', { end_user_id: someone() });
    assertProblem(reply, 'Internal', 500);
    assert(!reply.text.includes('x is not a function'));
    assert(scrip.log.some((line) => line.includes(reply.body.request_id) && line.includes('x is not a function')));
  } finally {
    broken.mock.restore();
  }
});
