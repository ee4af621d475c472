// Tests that each request, response and error in the OpenAPI document has a valid example, and that the service accepts
// the example requests and returns the example responses.

import assert from 'node:assert/strict';
import { after, before, mock, test } from 'node:test';
import { EXAMPLE_USER } from '../../../src/http/api/calls/fields.ts';
import { PROBLEMS, type ProblemCode } from '../../../src/http/problems.ts';
import { EVENT_TYPES } from '../../../src/store/event-log.ts';
import { type FaultCode, StoreFault } from '../../../src/store/store-fault.ts';
import { eventsOf } from '../read-events.ts';
import { MovableClock, type Scrip, someone, startScrip } from '../running-service.ts';
import { documentOf, errorsOf, isOfTestClock, type OpenApi, operationsOf, validatorsOf } from './described-service.ts';
import { masked, parametersOf, Story } from './story.ts';

let scrip: Scrip;
let document: OpenApi;
let validatorOf: ReturnType<typeof validatorsOf>;
before(async () => {
  scrip = await startScrip();
  document = await documentOf(scrip);
  validatorOf = validatorsOf(document);
});
after(() => scrip.stop());

const BEFORE_ANY_OPERATION: readonly ProblemCode[] = ['NotFound', 'MethodNotAllowed', 'ExpectationFailed'];

/** Each of these six example requests causes one event: add, subtract, refund, start-cycle, stop-cycle and capture. */
const EVENTS_OF_STORY = 6;

function assertFits(schema: unknown, example: unknown, what: string): void {
  const validate = validatorOf(schema);
  assert(validate(example), `${what}: ${JSON.stringify(validate.errors)}`);
}

test('in the OpenAPI document, each operation has examples of its request and its response, and the examples match their schemas', () => {
  for (const described of operationsOf(document)) {
    const { path, operation } = described;
    const body = operation.requestBody?.content['application/json'];
    const requests = body?.examples ? Object.values(body.examples).map(({ value }) => value) : [body?.example];
    for (const example of requests) if (body) assertFits(body.schema, example, `the request of ${path}`);
    const parameters = (operation.parameters ?? []).filter(({ example }) => example !== undefined);
    for (const { name, schema, example } of parameters) assertFits(schema, example, `${name} of ${path}`);
    assert(body || isOfTestClock(described) || parameters.length > 0, `${path} has an example of its request`);
    const answer = operation.responses[200]?.content['application/json'];
    const shown = answer?.examples ? Object.values(answer.examples).map(({ value }) => value) : [answer?.example];
    for (const example of shown) {
      assert(example, `${path} has an example of its response`);
      assertFits(answer?.schema, example, `the response of ${path}`);
    }
  }
});

test('in the OpenAPI document, the webhook has an example of each type of event, and the examples match the schema', () => {
  const { post: webhook = assert.fail() } = document.webhooks.event ?? {};
  const { schema, examples = {} } = webhook.requestBody?.content['application/json'] ?? assert.fail();
  assert.deepEqual(Object.keys(examples).sort(), [...EVENT_TYPES, 'webhook.test'].sort());
  for (const [type, { value }] of Object.entries(examples)) {
    assert.equal((value as { type: string }).type, type);
    assertFits(schema, value, type);
  }
  assert.deepEqual(Object.keys(parametersOf(webhook, 'header')), [
    'webhook-id',
    'webhook-timestamp',
    'webhook-signature',
  ]);
});

test('in the OpenAPI document, each operation has an example of each of its errors, and the examples match the schema and the status', () => {
  for (const { path, operation } of operationsOf(document)) {
    for (const [status, { content }] of Object.entries(operation.responses)) {
      if (status === '200') continue;
      const { schema, examples = {} } = content['application/problem+json'] ?? assert.fail(`${path} ${status}`);
      assert.notDeepEqual(Object.keys(examples), [], `${path} has an example for ${status}`);
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

test('in the OpenAPI document, each error has an example in at least one operation, except the errors of requests that do not reach an operation', () => {
  const shown = new Set([...errorsOf(document).keys(), ...BEFORE_ANY_OPERATION]);
  assert.deepEqual([...shown].sort(), Object.keys(PROBLEMS).sort());
});

test('the example requests of the OpenAPI document, sent in order to a new ledger, get exactly the example responses', async () => {
  const clock = new MovableClock('2026-11-20T08:00:00.123Z');
  const fresh = await startScrip({ clock });
  const story = new Story();
  try {
    for (const described of operationsOf(document).filter((one) => !isOfTestClock(one))) {
      for (const { path, shown, send } of story.examplesOf(described)) {
        if (path === '/get-events') await eventsOf(fresh, EVENTS_OF_STORY);
        const reply = await send(fresh);
        assert.equal(reply.status, 200, `${path}: ${reply.text}`);
        assert.equal(story.asShown(reply.text), masked(JSON.stringify(shown)), path);
        clock.advance(1_000);
      }
    }
    const { examples = {} } =
      document.paths['/get-all-user-transactions']?.get?.responses[200]?.content['application/json'] ?? {};
    const lists = { all: {}, details: { details: 'true', note: 'image 4711' } } as const;
    for (const [name, query] of Object.entries(lists)) {
      const list = await fresh.get('/get-all-user-transactions', { end_user_id: EXAMPLE_USER, ...query });
      assert.equal(story.asShown(list.text), JSON.stringify(examples[name]?.value), name);
    }
  } finally {
    await fresh.stop();
  }
});

test('the example requests for the test clock, sent in order to a new ledger with a test clock, get exactly the example responses', async () => {
  const clock = new MovableClock('2026-11-20T08:00:00.123Z');
  const fresh = await startScrip({ clock, testClock: true });
  try {
    const operations = operationsOf(document).filter(isOfTestClock);
    assert.deepEqual(
      operations.map(({ method }) => method),
      ['get', 'post'],
    );
    for (const { method, path, operation } of operations) {
      const { example, examples } = operation.responses[200]?.content['application/json'] ?? {};
      const bodies = operation.requestBody?.content['application/json']?.examples ?? { '': { value: undefined } };
      for (const [name, { value: body }] of Object.entries(bodies)) {
        const reply = await fresh.call(method.toUpperCase(), path, body === undefined ? {} : { body });
        assert.equal(reply.status, 200, reply.text);
        assert.deepEqual(reply.body, examples?.[name]?.value ?? example, name);
        clock.advance(1_000);
      }
    }
  } finally {
    await fresh.stop();
  }
});

test('whatever the date, the example requests of the OpenAPI document succeed on a new ledger, even if they are sent twice', async () => {
  const fresh = await startScrip();
  const story = new Story();
  try {
    for (const round of [1, 2])
      for (const described of operationsOf(document).filter((one) => !isOfTestClock(one)))
        for (const { path, send } of story.examplesOf(described)) {
          const reply = await send(fresh);
          assert.equal(reply.status, 200, `${path} in round ${round}: ${reply.text}`);
        }
  } finally {
    await fresh.stop();
  }
});

test('a request for the list of transactions can contain any combination of the optional example parameters in the OpenAPI document', async () => {
  const { get = assert.fail() } = document.paths['/get-all-user-transactions'] ?? {};
  const { end_user_id = '', ...optional } = parametersOf(get, 'query');
  assert.deepEqual(
    Object.keys(optional),
    ['limit', 'from', 'to'],
    'cursor has no example, because no other ledger would accept the cursor',
  );
  for (let chosen = 0; chosen < 2 ** 3; chosen++) {
    const some = Object.entries(optional).filter((_, index) => chosen & (1 << index));
    const reply = await scrip.get('/get-all-user-transactions', { end_user_id, ...Object.fromEntries(some) });
    assert.equal(reply.status, 200, reply.text);
  }
});

test('in the OpenAPI document, each example of a write has its own idempotency key', () => {
  const keys = operationsOf(document)
    .filter(({ operation }) => operation.responses[200]?.headers?.['Transaction-Id'] !== undefined)
    .flatMap(({ operation }) => {
      const { examples } = operation.requestBody?.content['application/json'] ?? {};
      const names = examples === undefined ? [''] : Object.keys(examples);
      return names.map((name) => parametersOf(operation, 'header', name)['Idempotency-Key']);
    });
  assert.equal(new Set(keys).size, 9);
  assert(!keys.includes(undefined));
});

test("the OpenAPI document's example parameters for a balance history are accepted, even without `from` or `interval`", async () => {
  const { get = assert.fail() } = document.paths['/get-balance-history'] ?? {};
  const { end_user_id = '', ...optional } = parametersOf(get, 'query');
  assert.deepEqual(Object.keys(optional), ['from', 'to', 'interval']);
  for (const left of Object.keys(optional).filter((name) => name !== 'to')) {
    const { [left]: _, ...others } = optional;
    const reply = await scrip.get('/get-balance-history', { end_user_id, ...others });
    assert.equal(reply.status, 200, reply.text);
  }
});

test('the servers in the OpenAPI document have descriptions, and absolute URLs if PUBLIC_URL is set', async () => {
  const relative = [
    { url: '/', description: 'Scrip' },
    { url: '/v1', description: 'The same API, with its version in the path' },
  ];
  assert.deepEqual(document.servers, relative);
  const published = await startScrip({ console: { publicUrl: 'https://credits.example' } });
  try {
    const urls = (await documentOf(published)).servers.map(({ url }) => url);
    assert.deepEqual(urls, ['https://credits.example', 'https://credits.example/v1']);
  } finally {
    await published.stop();
  }
});

test('in the OpenAPI document, reads have no body and take their parameters from the query string, because many tools cannot send a body with a GET request', () => {
  for (const { method, path, operation } of operationsOf(document).filter(({ method }) => method === 'get')) {
    assert.equal(operation.requestBody, undefined, `${method} ${path}`);
    const places = new Set((operation.parameters ?? []).map((parameter) => parameter.in));
    assert.deepEqual([...places], isOfTestClock({ method, path, operation }) ? [] : ['query'], path);
  }
});

test('responses have the headers that the OpenAPI document describes', async () => {
  const headersOf = (path: string, status: number) =>
    Object.keys(document.paths[path]?.post?.responses[status]?.headers ?? {}).filter(
      (name) => !/^RateLimit/.test(name),
    );
  const fields = { end_user_id: someone(), amount: 1 };
  const unauthorized = await scrip.post('/add', fields, { key: null });
  assert.deepEqual([unauthorized.status, headersOf('/add', 401)], [401, ['WWW-Authenticate']]);
  assert.match(unauthorized.headers['www-authenticate'] ?? '', /^Bearer /);
  assert.deepEqual(headersOf('/add', 503), ['Retry-After']);
  assert.deepEqual(headersOf('/add', 200), ['Transaction-Id', 'Idempotent-Replayed']);
  for (const code of ['StoreUnavailable', 'OutcomeUnknown'] satisfies FaultCode[]) {
    mock.method(scrip.service.stores.ledger, 'write', () => Promise.reject(new StoreFault(code, 'for the test')));
    const away = await scrip.post('/add', fields);
    mock.restoreAll();
    assert.equal(away.status, 503);
    assert.equal(/^\d+$/.test(away.headers['retry-after'] ?? ''), code !== 'OutcomeUnknown', code);
  }
});
