// Tests the messages for invalid fields. The messages are for people, so they are plain sentences.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertProblem, type Scrip, someone, startScrip } from '../running-service.ts';

let scrip: Scrip;
before(async () => {
  scrip = await startScrip();
});
after(() => scrip.stop());

const MESSAGES: readonly (readonly [field: string, values: readonly unknown[], message: string])[] = [
  ['amount', ['5', null, [5], 1.5, '1e400'], 'must be a whole number'],
  ['amount', [0, -1], 'must be at least 1'],
  ['validity_months', [121], 'must be at most 120'],
  ['validity_months', ['1', true], 'must be a whole number or null'],
  ['rollover_max', [-1], 'must be at least 0'],
  ['end_user_id', [5, null], 'must be a string'],
  ['end_user_id', ['x'], 'must be a UUID'],
  ['on_active', ['stop'], 'must be one of replace, at_period_end'],
  ['note', [5, {}], 'must be a string or null'],
  ['note', [''], 'must have at least 1 character'],
  ['note', ['x'.repeat(501)], 'must have at most 500 characters'],
];

for (const [field, values, message] of MESSAGES) {
  test(`the error for ${JSON.stringify(values).slice(0, 40)} as \`${field}\` says that the field ${message}`, async () => {
    for (const value of values) {
      const reply = await scrip.post('/start-cycle', { end_user_id: someone(), amount: 5, [field]: value });
      assertProblem(reply, 'InvalidField', 422);
      assert.deepEqual(reply.body.errors, [{ path: `/${field}`, message }]);
    }
  });
}

test('the error for a body that is not an object says that the body must be a JSON object', async () => {
  for (const body of ['[]', '5', 'null', '"x"'])
    for (const [method, path] of [
      ['POST', '/add'],
      ['GET', '/get-holds'],
    ] as const) {
      const reply = await scrip.call(method, path, { body });
      assert.deepEqual(reply.body.errors, [{ path: '', message: 'must be a JSON object' }], `${method} ${body}`);
    }
});

test('the error for a query field that is not a number or not true or false says so', async () => {
  const query = { end_user_id: someone(), limit: 'five', details: 'yes' };
  assert.deepEqual((await scrip.get('/get-all-user-transactions', query)).body.errors, [
    { path: '/limit', message: 'must be a whole number' },
    { path: '/details', message: 'must be true or false' },
  ]);
});
