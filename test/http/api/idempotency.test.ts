// Tests idempotency keys through the API: a repeated request takes effect once and gets the same response, byte for
// byte.

import assert from 'node:assert/strict';
import { after, before, mock, test } from 'node:test';
import { type FaultCode, StoreFault } from '../../../src/store/store-fault.ts';
import { sendRaw } from '../raw-connection.ts';
import { assertFieldRefused, assertProblem, type Reply, type Scrip, someone, startScrip } from '../running-service.ts';

let scrip: Scrip;
before(async () => {
  scrip = await startScrip();
});
after(() => scrip.stop());

const send = (path: string, key: string, fields: Record<string, unknown>): Promise<Reply> =>
  scrip.post(path, fields, { headers: { 'idempotency-key': key } });

function assertReplayed(reply: Reply, first: Reply): void {
  assert.equal(reply.status, first.status);
  assert.equal(reply.text, first.text, 'the responses are the same, byte for byte');
  assert.equal(reply.headers['content-type'], first.headers['content-type']);
  assert.equal(reply.headers['transaction-id'], first.headers['transaction-id']);
  assert.equal(reply.headers['idempotent-replayed'], 'true');
  assert.equal(first.headers['idempotent-replayed'], undefined, 'the first response is not a replay');
}

const ACCEPTED: readonly (readonly [path: string, fields: Record<string, unknown>])[] = [
  ['/add', { amount: 10 }],
  ['/add', { amount: 10, validity_days: 3 }],
  ['/subtract', { amount: 3 }],
  ['/start-cycle', { amount: 10, validity_days: 7 }],
  ['/start-cycle', { amount: 10, on_active: 'replace' }],
  ['/stop-cycle', {}],
  ['/hold', { amount: 3, expires_in_seconds: 60, note: 'a job' }],
  ['/capture', { amount: 1 }],
  ['/release', {}],
  ['/refund', { amount: 2 }],
];

async function referencesOf(path: string, user: string): Promise<Record<string, unknown>> {
  const { body, headers } = await scrip.post(path === '/refund' ? '/subtract' : '/hold', {
    end_user_id: user,
    amount: 5,
  });
  if (path === '/refund') return { transaction_id: headers['transaction-id'] };
  return path === '/capture' || path === '/release' ? { hold_id: body.hold_id } : {};
}

for (const prefix of ['', '/v1']) {
  for (const [path, fields] of ACCEPTED) {
    test(`${prefix}${path} ${JSON.stringify(fields)} with an idempotency key takes effect once, and a repeated request gets the same response`, async () => {
      const user = someone();
      await scrip.post('/start-cycle', { end_user_id: user, amount: 100 });
      if (path === '/start-cycle' && fields.on_active === undefined)
        await scrip.post('/stop-cycle', { end_user_id: user });
      const all = { ...fields, ...(await referencesOf(path, user)) };
      const first = await send(prefix + path, 'k', { end_user_id: user, ...all });
      assert.equal(first.status, 200, first.text);
      const then = await scrip.balance(user);
      for (let time = 0; time < 3; time++)
        assertReplayed(await send(path, 'k', { ...all, end_user_id: user.toUpperCase() }), first);
      assert.deepEqual(await scrip.balance(user), then);
    });
  }
}

test('repeating a refused request with its idempotency key returns the same refusal and request_id, even if the request would now be accepted', async () => {
  const user = someone();
  const first = await send('/subtract', 'k', { end_user_id: user, amount: 5 });
  assertProblem(first, 'InsufficientFunds', 402);
  await scrip.post('/add', { end_user_id: user, amount: 50 });
  assertReplayed(await send('/subtract', 'k', { end_user_id: user, amount: 5 }), first);
  const stop = await send('/stop-cycle', 'stop', { end_user_id: user });
  assertProblem(stop, 'CycleNotFound', 404);
  const cycle = await scrip.post('/start-cycle', { end_user_id: user, amount: 5 });
  assertReplayed(await send('/stop-cycle', 'stop', { end_user_id: user }), stop);
  const active = await send('/start-cycle', 'start', { end_user_id: user, amount: 5 });
  assert.deepEqual(active.body.cycle, cycle.body);
  await scrip.post('/stop-cycle', { end_user_id: user });
  assertReplayed(await send('/start-cycle', 'start', { end_user_id: user, amount: 5 }), active);
  const tooLarge = await send('/add', 'large', { end_user_id: user, amount: Number.MAX_SAFE_INTEGER });
  assertProblem(tooLarge, 'BalanceTooLarge', 422);
  assertReplayed(await send('/add', 'large', { end_user_id: user, amount: Number.MAX_SAFE_INTEGER }), tooLarge);
  assert.equal((await scrip.balance(user)).active_balance, 55);
});

test('reusing an idempotency key for a different request is refused and changes nothing, and the first request can still be repeated', async () => {
  const user = someone();
  const first = await send('/add', 'k', { end_user_id: user, amount: 10 });
  for (const [path, fields] of [
    ['/add', { amount: 11 }],
    ['/add', { amount: 10, validity_days: 30 }],
    ['/subtract', { amount: 10 }],
    ['/start-cycle', { amount: 10 }],
    ['/stop-cycle', {}],
    ['/hold', { amount: 10 }],
    ['/add', { amount: 10, note: 'another' }],
  ] as const)
    assertProblem(await send(path, 'k', { end_user_id: user, ...fields }), 'IdempotencyKeyReused', 422);
  // The default validity is 31 days, so these requests are the same as the first.
  assertReplayed(await send('/add', 'k', { end_user_id: user, amount: 10, validity_days: 31 }), first);
  assertReplayed(await send('/add', 'k', { end_user_id: user, amount: 10, validity_days: null }), first);
  assert.equal((await scrip.transactions(user)).length, 1);
});

test('requests with the same idempotency key for different end users, or from different accounts, are different writes', async () => {
  const [user, other] = [someone(), someone()];
  const key = await scrip.createKey('Another', 'write');
  for (const [endUser, apiKey] of [
    [user, scrip.writeKey],
    [other, scrip.writeKey],
    [user, key],
  ] as const) {
    const reply = await scrip.post(
      '/add',
      { end_user_id: endUser, amount: 10 },
      { key: apiKey, headers: { 'idempotency-key': 'shared' } },
    );
    assert.equal(reply.status, 200);
    assert.equal(reply.headers['idempotent-replayed'], undefined);
  }
});

test('an invalid or failed request stores no idempotency record, so the idempotency key can be used again', async () => {
  const user = someone();
  assertFieldRefused(await send('/add', 'k', { end_user_id: user, amount: 0 }), '/amount');
  assertProblem(await scrip.post('/add', '{', { headers: { 'idempotency-key': 'k' } }), 'InvalidJson', 400);
  const unauthorized = { key: scrip.readKey, headers: { 'idempotency-key': 'k' } };
  assertProblem(await scrip.post('/add', { end_user_id: user, amount: 1 }, unauthorized), 'Forbidden', 403);
  for (const code of ['StoreUnavailable', 'OutcomeUnknown'] satisfies FaultCode[]) {
    const write = mock.method(scrip.service.stores.ledger, 'write', () =>
      Promise.reject(new StoreFault(code, 'a fault')),
    );
    const reply = await send('/add', 'k', { end_user_id: user, amount: 1 });
    write.mock.restore();
    assertProblem(reply, code, 503);
    assert.equal(reply.headers['retry-after'], '1', 'a request with an idempotency key can always be retried');
  }
  const reply = await send('/add', 'k', { end_user_id: user, amount: 1 });
  assert.deepEqual([reply.status, reply.headers['idempotent-replayed']], [200, undefined]);
});

test('an invalid idempotency key is refused, and the response names the header', async () => {
  const user = someone();
  for (const key of ['', 'x'.repeat(256), 'tab\there', 'é'])
    assertFieldRefused(await send('/add', key, { end_user_id: user, amount: 1 }), 'Idempotency-Key');
  for (const key of ['x', 'x'.repeat(255), '"quoted"', 'with spaces, and a comma'])
    assert.equal((await send('/add', key, { end_user_id: user, amount: 1 })).status, 200, key);
  assert.equal((await scrip.balance(user)).active_balance, 4);
});

test('a request with two Idempotency-Key headers is refused, even if the case of the header names differs', async () => {
  const user = someone();
  const body = JSON.stringify({ end_user_id: user, amount: 1 });
  const reply = await sendRaw(
    scrip,
    `POST /add HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${scrip.writeKey}\r\nContent-Type: application/json\r\n` +
      `Idempotency-Key: a\r\nidempotency-KEY: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  assert.equal(reply.status, 422);
  assert.deepEqual(reply.body.errors, [{ path: 'Idempotency-Key', message: 'occurs more than once in the request' }]);
  assert.equal((await scrip.balance(user)).active_balance, 0);
});

test('100 concurrent requests with the same idempotency key take effect once and get the same response', async () => {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: 1000 });
  const replies = await Promise.all(
    Array.from({ length: 100 }, () => send('/subtract', 'k', { end_user_id: user, amount: 7 })),
  );
  assert.deepEqual(new Set(replies.map(({ status, text }) => `${status} ${text}`)).size, 1);
  assert.equal(replies.filter(({ headers }) => headers['idempotent-replayed'] === undefined).length, 1);
  assert.equal((await scrip.balance(user)).active_balance, 993);
});

test('reads ignore an idempotency key', async () => {
  const user = someone();
  const read = () => scrip.get('/get-active-balance', { end_user_id: user }, { headers: { 'idempotency-key': 'k' } });
  assert.equal((await read()).body.active_balance, 0);
  await scrip.post('/add', { end_user_id: user, amount: 3 });
  assert.equal((await read()).body.active_balance, 3);
});
