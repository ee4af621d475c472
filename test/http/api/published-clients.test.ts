// Tests what published clients rely on: the error codes, the notations of whole numbers that JSON Schema allows, and
// a read with the end user ID in both the query string and the body.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertFieldRefused, type Scrip, someone, startScrip } from '../running-service.ts';

let scrip: Scrip;
before(async () => {
  scrip = await startScrip();
});
after(() => scrip.stop());

test('each error has the error_code that published clients expect, and the time of the request', async () => {
  const user = someone();
  const before = Date.now();
  const replies = [
    await scrip.post('/subtract', { end_user_id: user, amount: 1 }),
    await scrip.post('/stop-cycle', { end_user_id: user }),
    await scrip.call('GET', '/nothing'),
    await scrip.post('/add', { end_user_id: user, amount: 'x' }),
  ];
  await scrip.post('/start-cycle', { end_user_id: user, amount: 1 });
  replies.push(await scrip.post('/start-cycle', { end_user_id: user, amount: 1 }));
  for (const path of ['/add', '/subtract', '/start-cycle'])
    for (const amount of [0, -5]) replies.push(await scrip.post(path, { end_user_id: user, amount }));
  assert.deepEqual(
    replies.map(({ body }) => body.error_code),
    [
      'INSUFFICIENT_FUNDS',
      'NO_ACTIVE_CYCLE',
      'NOT_FOUND',
      'INVALID_FIELD',
      'ACTIVE_CYCLE_EXISTS',
      ...Array(6).fill('AMOUNT_NEGATIVE'),
    ],
  );
  for (const { body } of replies) {
    const at = Date.parse(body.timestamp);
    assert(at >= before && at <= Date.now(), body.timestamp);
  }
});

test('amounts such as 1.0 and 1e2 are accepted as whole numbers, and fractions, negative numbers and numbers beyond the maximum are refused', async () => {
  const user = someone();
  const add = (amount: string) =>
    scrip.call('POST', '/add', {
      body: `{"end_user_id":"${user}","amount":${amount}}`,
      headers: { 'content-type': 'application/json' },
    });
  for (const amount of ['1.0', '1e0', '10e-1', '0.1e1', '1.00E+0'])
    assert.equal((await add(amount)).status, 200, amount);
  assert.equal((await add('1e2')).body.amount, 100);
  assert.equal((await scrip.balance(user)).active_balance, 105);
  for (const amount of ['1.5', '1e-1', '1.0000000000000000001', '9007199254740991.5', '1e16', '1e400'])
    assertFieldRefused(await add(amount), '/amount');
  for (const amount of ['-1e400', '-9007199254740993', '-0.0', '-0.5', '-1e-1'])
    assert.equal((await add(amount)).body.error_code, 'AMOUNT_NEGATIVE', amount);
});

test('a read accepts the same UUID in upper case in the query string and in lower case in the body, and refuses a duplicate parameter', async () => {
  const user = someone();
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ end_user_id: user });
  const path = `/get-active-balance?end_user_id=${user.toUpperCase()}`;
  assert.equal((await scrip.call('GET', path, { body, headers })).status, 200);
  const twice = await scrip.call('GET', `/get-active-balance?end_user_id=${user}&end_user_id=${user}`);
  assertFieldRefused(twice, '/end_user_id');
  assert.match(twice.body.detail, /more than once/);
});
