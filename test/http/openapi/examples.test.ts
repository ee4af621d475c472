// The examples of the OpenAPI document: there is one of each request, answer and error, each matches its schema, and the
// service accepts and answers what they show.

import assert from 'node:assert/strict';
import { after, before, mock, test } from 'node:test';
import { PROBLEMS, type ProblemCode } from '../../../src/http/problems.ts';
import { type FaultCode, StoreFault } from '../../../src/store/store-fault.ts';
import { type Scrip, someone, startScrip } from '../running-service.ts';
import { documentOf, errorsOf, type OpenApi, operationsOf, validatorsOf } from './described-service.ts';

let scrip: Scrip;
let document: OpenApi;
before(async () => {
  scrip = await startScrip();
  document = await documentOf(scrip);
});
after(() => scrip.stop());

/** Requests with these errors reach no operation. */
const BEFORE_ANY_OPERATION: readonly ProblemCode[] = ['NotFound', 'MethodNotAllowed', 'ExpectationFailed'];

function assertFits(schema: unknown, example: unknown, what: string): void {
  const validate = validatorsOf(document)(schema);
  assert(validate(example), `${what}: ${JSON.stringify(validate.errors)}`);
}

test('each operation has an example of its request and its answer, which match their schemas', () => {
  for (const { path, operation } of operationsOf(document)) {
    const body = operation.requestBody?.content['application/json'];
    if (body) assertFits(body.schema, body.example, `the request of ${path}`);
    for (const { name, schema, example } of operation.parameters ?? [])
      if (name === 'end_user_id') assertFits(schema, example, `${name} of ${path}`);
    assert(body || operation.parameters?.some(({ name }) => name === 'end_user_id'), `${path} shows what it takes`);
    const answer = operation.responses[200]?.content['application/json'];
    const shown = answer?.examples ? Object.values(answer.examples).map(({ value }) => value) : [answer?.example];
    for (const example of shown) {
      assert(example, `${path} shows what it answers`);
      assertFits(answer?.schema, example, `the answer of ${path}`);
    }
  }
});

test('each operation has an example of each of its errors, which matches its schema and status', () => {
  for (const { path, operation } of operationsOf(document)) {
    for (const [status, { content }] of Object.entries(operation.responses)) {
      if (status === '200') continue;
      const { schema, examples = {} } = content['application/problem+json'] ?? assert.fail(`${path} ${status}`);
      assert.notDeepEqual(Object.keys(examples), [], `${path} shows what ${status} is`);
      for (const [error, { value }] of Object.entries(examples)) {
        assertFits(schema, value, `${error} of ${path}`);
        const { title } = PROBLEMS[error as ProblemCode];
        const { detail, ...shown } = value as Record<string, unknown>;
        assert.notEqual(detail, '');
        const members = { error, status: shown.status, title: shown.title, type: shown.type };
        assert.deepEqual(members, { error, status: Number(status), title, type: `/problems/${error}` });
      }
    }
  }
});

test('each error is shown by some operation, except those of requests that reach none', () => {
  const shown = new Set([...errorsOf(document).keys(), ...BEFORE_ANY_OPERATION]);
  assert.deepEqual([...shown].sort(), Object.keys(PROBLEMS).sort());
});

test('the service accepts the example requests, and answers as the examples show', async () => {
  const mask = (text: string, endUser: string) =>
    text.replaceAll(endUser, '<end user>').replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z?/g, '<instant>');
  const shownUser = (text: string) => text.replaceAll('5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23', '<end user>');
  const endUser = someone();
  await scrip.post('/add', { end_user_id: endUser, amount: 30 });
  for (const path of ['/add', '/subtract', '/start-cycle', '/stop-cycle']) {
    const operation = document.paths[path]?.post ?? assert.fail(`${path} is described`);
    const request = operation.requestBody?.content['application/json']?.example as Record<string, unknown>;
    const reply = await scrip.post(path, { ...request, end_user_id: endUser });
    assert.equal(reply.status, 200, reply.text);
    const shown = JSON.stringify(operation.responses[200]?.content['application/json']?.example);
    assert.equal(mask(reply.text, endUser), shownUser(mask(shown, endUser)), path);
  }
});

test('the reads are described with a query string and without a body, since many tools cannot send one', () => {
  for (const { method, path, operation } of operationsOf(document).filter(({ method }) => method === 'get')) {
    assert.equal(operation.requestBody, undefined, `${method} ${path}`);
    assert.equal(operation.parameters?.find(({ name }) => name === 'end_user_id')?.in, 'query');
  }
});

test('answers have the headers that the document describes', async () => {
  const headersOf = (path: string, status: number) =>
    Object.keys(document.paths[path]?.post?.responses[status]?.headers ?? {});
  const fields = { end_user_id: someone(), amount: 1 };
  const unauthorized = await scrip.post('/add', fields, { key: null });
  assert.deepEqual([unauthorized.status, headersOf('/add', 401)], [401, ['WWW-Authenticate']]);
  assert.match(unauthorized.headers['www-authenticate'] ?? '', /^Bearer /);
  assert.deepEqual(headersOf('/add', 503), ['Retry-After']);
  for (const code of ['StoreUnavailable', 'OutcomeUnknown'] satisfies FaultCode[]) {
    mock.method(scrip.service.stores.ledger, 'write', () => Promise.reject(new StoreFault(code, 'for the test')));
    const away = await scrip.post('/add', fields);
    mock.restoreAll();
    assert.equal(away.status, 503);
    assert.equal(/^\d+$/.test(away.headers['retry-after'] ?? ''), code !== 'OutcomeUnknown', code);
  }
});
