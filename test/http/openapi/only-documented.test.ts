// Tests the parts of the OpenAPI document that Scrip does not use to validate requests. Each must describe exactly what
// Scrip does.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Scrip, someone, startScrip } from '../running-service.ts';
import { documentOf, isOfTestClock, type OpenApi, operationsOf, validatorsOf } from './described-service.ts';

let scrip: Scrip;
let document: OpenApi;
let validatorOf: ReturnType<typeof validatorsOf>;
before(async () => {
  scrip = await startScrip({ testClock: true });
  document = await documentOf(scrip);
  validatorOf = validatorsOf(document);
});
after(() => scrip.stop());

test('the OpenAPI document describes exactly the moves of a test clock that Scrip accepts', async () => {
  const move = document.paths['/test-clock']?.post?.requestBody?.content['application/json'] ?? assert.fail();
  const validate = validatorOf(move.schema);
  const to = '2100-01-01T00:00:00.000Z';
  for (const body of [{}, { advance_days: 1 }, { to }, { advance_days: 1, to }, { advance_days: 0 }]) {
    const isAccepted = (await scrip.post('/test-clock', body)).status === 200;
    assert.equal(validate(body), isAccepted, JSON.stringify(body));
  }
  assert.match(JSON.stringify(move.schema), /"advance_days":\{"type":"integer","format":"int64"/);
});

test('the OpenAPI document describes exactly the idempotency keys that Scrip accepts', async () => {
  const keys = operationsOf(document).flatMap(({ operation }) =>
    (operation.parameters ?? []).filter(({ name }) => name === 'Idempotency-Key'),
  );
  assert.equal(keys.length, 8);
  for (const key of ['a', '~ !', 'x'.repeat(255), 'x'.repeat(256), '', 'ü']) {
    const fields = { end_user_id: someone(), amount: 1 };
    const reply = await scrip.post('/add', fields, { headers: { 'idempotency-key': key } });
    for (const { schema } of keys) assert.equal(validatorOf(schema)(key), reply.status === 200, key);
  }
});

test('in the OpenAPI document, each response except 401 has the headers about the rate limit, as do the responses', async () => {
  for (const { path, operation } of operationsOf(document))
    for (const [status, { headers = {} }] of Object.entries(operation.responses))
      for (const name of ['RateLimit', 'RateLimit-Policy'])
        assert.equal(name in headers, status !== '401', `${name} of ${path} ${status}`);
  assert(operationsOf(document).some(isOfTestClock));
  const limited = await startScrip({ rateLimit: { perSecond: 1, burst: 3 } });
  try {
    const fields = { end_user_id: someone(), amount: 1 };
    const replies = [
      await limited.post('/add', fields),
      await limited.post('/subtract', { ...fields, amount: 9 }),
      await limited.post('/add', {}),
    ];
    while (replies.at(-1)?.status !== 429) replies.push(await limited.post('/add', {}));
    assert.deepEqual([...new Set(replies.map(({ status }) => status))], [200, 402, 422, 429]);
    for (const { headers } of replies) assert('ratelimit' in headers && 'ratelimit-policy' in headers);
  } finally {
    await limited.stop();
  }
});
