// Tests that the service has every route in the OpenAPI document, and that responses match the schemas in the document.

import assert from 'node:assert/strict';
import { after, before, mock, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { type FaultCode, StoreFault } from '../../../src/store/store-fault.ts';
import { fieldsOf, WRITES } from '../api-calls.ts';
import { MovableClock, type Reply, type Scrip, someone, startScrip } from '../running-service.ts';

interface Schema {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, unknown>>;
}

interface Media {
  readonly schema: Schema;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, { schema: Schema }>> };
  readonly security?: unknown;
  readonly responses: Readonly<
    Record<
      string,
      {
        readonly description: string;
        readonly headers?: Readonly<Record<string, unknown>>;
        readonly content: Readonly<Record<string, Media>>;
      }
    >
  >;
}

interface OpenApi {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly securitySchemes: Readonly<Record<string, unknown>>;
  };
  readonly security: readonly Readonly<Record<string, unknown>>[];
}

const METHODS: Readonly<Record<string, string>> = {
  '/add': 'post',
  '/subtract': 'post',
  '/refund': 'post',
  '/start-cycle': 'post',
  '/stop-cycle': 'post',
  '/preview-change': 'post',
  '/hold': 'post',
  '/get-holds': 'get',
  '/capture': 'post',
  '/release': 'post',
  '/get-active-balance': 'get',
  '/get-balance-history': 'get',
  '/get-all-user-transactions': 'get',
  '/get-events': 'get',
};

const clock = new MovableClock('2026-11-20T08:00:00.123Z');
let scrip: Scrip;
let document: OpenApi;
const ajv = new Ajv2020({ strict: false, allErrors: true });

before(async () => {
  scrip = await startScrip({ clock });
  const reply = await scrip.call('GET', '/openapi.json', { key: null });
  assert.equal(reply.status, 200);
  assert.match(reply.headers['content-type'] ?? '', /^application\/json/);
  document = JSON.parse(reply.text);
  ajv.addFormat('int64', true);
  ajv.addFormat('uuid', /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i);
  ajv.addFormat(
    'date-time',
    (text) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text) && !Number.isNaN(Date.parse(text)),
  );
  ajv.addFormat('uri-reference', (text) => URL.canParse(text, 'http://scrip'));
  ajv.addSchema({ ...document, $id: 'openapi' });
});
after(() => scrip.stop());

function operation(path: string): Operation {
  const found = document.paths[path]?.[METHODS[path] as string];
  assert(found, `the OpenAPI document does not describe ${path}`);
  return found;
}

function pointedAt(ref: string): unknown {
  assert(ref.startsWith('#/'), `${ref} points outside the document`);
  return ref
    .slice(2)
    .split('/')
    .reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], document);
}

function* refsIn(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    if (name === '$ref') yield member as string;
    else yield* refsIn(member);
  }
}

test('the OpenAPI document is version 3.1, and describes one method for each path, except that /test-clock has two', () => {
  assert.match(document.openapi, /^3\.1\.\d+$/);
  assert.equal(document.info.title, 'Scrip');
  assert.match(document.info.version, /^\d+\.\d+\.\d+/);
  const methods = Object.entries(document.paths).map(([path, operations]) => [path, Object.keys(operations).join()]);
  assert.deepEqual(Object.fromEntries(methods), { ...METHODS, '/test-clock': 'get,post' });
});

test('each operation in the OpenAPI document has a unique ID and a summary, and requires an API key as a bearer token', () => {
  const operations = Object.keys(METHODS).map(operation);
  assert.equal(new Set(operations.map(({ operationId }) => operationId)).size, operations.length);
  for (const { operationId, summary, security } of operations) {
    assert.notEqual(summary, '', operationId);
    assert.equal(security, undefined, 'no operation overrides the security of the document');
  }
  assert.equal(document.security.length, 1);
  const [scheme] = Object.keys(document.security[0] ?? {});
  const described = document.components.securitySchemes[scheme as string] as Record<string, unknown>;
  assert.deepEqual([described.type, described.scheme], ['http', 'bearer']);
});

test('every reference in the OpenAPI document resolves', () => {
  const refs = new Set(refsIn(document));
  assert(refs.size >= 8, `${refs.size} references`);
  for (const ref of refs) assert.notEqual(pointedAt(ref), undefined, ref);
});

const EVERYWHERE: Readonly<Record<string, number>> = {
  InvalidJson: 400,
  Unauthorized: 401,
  PayloadTooLarge: 413,
  UnsupportedMediaType: 415,
  ExpectationFailed: 417,
  InvalidField: 422,
  Internal: 500,
  Overloaded: 503,
  StoreUnavailable: 503,
};
const ON_SOME: readonly (readonly [error: string, status: number, paths: readonly string[]])[] = [
  ['InsufficientFunds', 402, ['/subtract', '/hold', '/capture']],
  ['CycleNotFound', 404, ['/stop-cycle']],
  ['HoldNotFound', 404, ['/capture', '/release']],
  ['TransactionNotFound', 404, ['/refund']],
  ['CycleAlreadyActive', 409, ['/start-cycle', '/preview-change']],
  ['TooManyHolds', 409, ['/hold']],
  ['NotRefundable', 409, ['/refund']],
  ['RefundTooLarge', 409, ['/refund']],
  ['BalanceTooLarge', 422, ['/add', '/start-cycle', '/preview-change', '/hold', '/refund']],
  ['Forbidden', 403, WRITES],
  ['OutcomeUnknown', 503, WRITES],
];

test('each operation in the OpenAPI document lists the errors that it returns, by name and status', () => {
  for (const path of Object.keys(METHODS)) {
    const { responses } = operation(path);
    const named = (error: string, status: number) => responses[status]?.description.includes(`\`${error}\``) ?? false;
    for (const [error, status] of Object.entries(EVERYWHERE))
      assert(named(error, status), `${path} does not list ${error}`);
    for (const [error, status, paths] of ON_SOME)
      assert.equal(named(error, status), paths.includes(path), `${path} and ${error}`);
    for (const [status, { content }] of Object.entries(responses)) {
      const type = status === '200' ? 'application/json' : 'application/problem+json';
      assert.deepEqual(Object.keys(content), [type], `${path} ${status}`);
    }
  }
});

test('for each response that can be replayed, the OpenAPI document lists the Idempotent-Replayed header', async () => {
  const headers = { 'idempotency-key': 'once' };
  const refusedBy = new Set<string>();
  for (const path of WRITES) {
    const fields = fieldsOf(path, someone());
    await scrip.post(path, fields, { headers });
    const replayed = await scrip.post(path, fields, { headers });
    assert.equal(replayed.headers['idempotent-replayed'], 'true', path);
    const { responses } = operation(path);
    assert(responses[replayed.status]?.headers?.['Idempotent-Replayed'], `${path} ${replayed.status}`);
    assert(
      !('Idempotent-Replayed' in (responses[400]?.headers ?? {})),
      'a response to an invalid request is never replayed',
    );
    refusedBy.add(String(replayed.status));
  }
  assert.deepEqual([...refusedBy].sort(), ['200', '402', '404']);
});

function assertAsDescribed(path: string, reply: Reply): void {
  const [type = ''] = (reply.headers['content-type'] ?? '').split(';');
  const schema = operation(path).responses[reply.status]?.content[type]?.schema;
  assert(schema?.$ref, `${path} does not describe ${reply.status} as ${type}: ${reply.text}`);
  const validate = ajv.compile({ $ref: `openapi${schema.$ref}` });
  assert(validate(reply.body), `${path} ${reply.status}: ${ajv.errorsText(validate.errors)} in ${reply.text}`);
  const described = Object.keys((pointedAt(schema.$ref) as Schema).properties ?? {});
  for (const member of Object.keys(reply.body))
    assert(described.includes(member), `${path} does not describe ${member}`);
}

test('successful responses match their schemas in the OpenAPI document', async () => {
  const fields = { end_user_id: someone() };
  assertAsDescribed('/get-active-balance', await scrip.get('/get-active-balance', fields));
  assertAsDescribed('/get-all-user-transactions', await scrip.get('/get-all-user-transactions', fields));
  assertAsDescribed('/get-events', await scrip.get('/get-events'));
  assertAsDescribed('/add', await scrip.post('/add', { ...fields, amount: 5 }));
  assertAsDescribed('/subtract', await scrip.post('/subtract', { ...fields, amount: 5 }));
  assertAsDescribed('/start-cycle', await scrip.post('/start-cycle', { ...fields, amount: 5 }));
  assertAsDescribed('/stop-cycle', await scrip.post('/stop-cycle', fields));
  await scrip.call('POST', '/add', {
    body: `{"end_user_id":"${fields.end_user_id}","amount":9,"validity_days":1${'0'.repeat(30)}}`,
  });
  const balance = await scrip.get('/get-active-balance', fields);
  assert.equal(balance.body.active_balance_by_cycle.length, 3);
  assertAsDescribed('/get-active-balance', balance);
  const list = await scrip.get('/get-all-user-transactions', fields);
  assert.equal(list.body.transactions.length, 4);
  assertAsDescribed('/get-all-user-transactions', list);
});

test('responses to requests for holds, refunds and past balances match their schemas in the OpenAPI document', async () => {
  const fields = { end_user_id: someone() };
  await scrip.post('/add', { ...fields, amount: 100 });
  const [first, second, third] = await Promise.all(
    [1, 2, 3].map((amount) => scrip.post('/hold', { ...fields, amount })),
  );
  assert(first && second && third);
  assertAsDescribed('/hold', first);
  assertAsDescribed('/get-holds', await scrip.get('/get-holds', fields));
  const capture = await scrip.post('/capture', { ...fields, hold_id: first.body.hold_id, amount: 9, note: 'a job' });
  assertAsDescribed('/capture', capture);
  assertAsDescribed('/release', await scrip.post('/release', { ...fields, hold_id: second.body.hold_id }));
  const refund = { ...fields, transaction_id: capture.headers['transaction-id'] };
  assertAsDescribed('/refund', await scrip.post('/refund', { ...refund, amount: 4 }));
  assertAsDescribed('/get-active-balance', await scrip.get('/get-active-balance', fields));
  assertAsDescribed('/get-balance-history', await scrip.get('/get-balance-history', { ...fields, interval: 'hour' }));
  for (const kind of ['', 'hold', 'capture', 'release', 'refund', 'add'])
    assertAsDescribed(
      '/get-all-user-transactions',
      await scrip.get('/get-all-user-transactions', { ...fields, details: 'true', ...(kind === '' ? {} : { kind }) }),
    );
  assertAsDescribed('/refund', await scrip.post('/refund', { ...refund, amount: 6 }));
  assertAsDescribed('/refund', await scrip.post('/refund', { ...refund, transaction_id: third.body.hold_id }));
  assertAsDescribed('/capture', await scrip.post('/capture', { ...fields, hold_id: third.body.hold_id, amount: 999 }));
});

test('problem documents match their schemas in the OpenAPI document', async () => {
  const fields = { end_user_id: someone() };
  const most = Number.MAX_SAFE_INTEGER;
  await scrip.post('/start-cycle', { ...fields, amount: most });
  const wrong: readonly (readonly [path: string, status: number, reply: Reply])[] = [
    ['/add', 422, await scrip.post('/add', { ...fields, amount: 1 })],
    ['/start-cycle', 409, await scrip.post('/start-cycle', { ...fields, amount: 1 })],
    ['/start-cycle', 422, await scrip.post('/start-cycle', { ...fields, amount: 1, on_active: 'replace' })],
    ['/subtract', 402, await scrip.post('/subtract', { end_user_id: someone(), amount: most })],
    ['/stop-cycle', 404, await scrip.post('/stop-cycle', { end_user_id: someone() })],
    ['/add', 400, await scrip.call('POST', '/add', { body: '{' })],
    ['/add', 401, await scrip.post('/add', fields, { key: null })],
    ['/add', 403, await scrip.post('/add', fields, { key: scrip.readKey })],
    ['/add', 413, await scrip.call('POST', '/add', { body: 'x'.repeat(70_000) })],
    ['/add', 415, await scrip.call('POST', '/add', { body: 'x', headers: { 'content-type': 'text/plain' } })],
    ['/add', 422, await scrip.post('/add', { nothing: 1 })],
    ['/get-active-balance', 422, await scrip.get('/get-active-balance')],
    ['/get-all-user-transactions', 401, await scrip.get('/get-all-user-transactions', fields, { key: null })],
  ];
  for (const [path, status, reply] of wrong) {
    assert.equal(reply.status, status, `${path}: ${reply.text}`);
    assertAsDescribed(path, reply);
  }
});

test('if the store fails, responses still match their schemas in the OpenAPI document', async () => {
  for (const code of ['StoreUnavailable', 'OutcomeUnknown', 'Internal'] satisfies FaultCode[]) {
    mock.method(scrip.service.stores.ledger, 'write', () => Promise.reject(new StoreFault(code, 'for the test')));
    for (const path of WRITES) {
      const reply = await scrip.post(path, fieldsOf(path, someone()));
      assert(reply.status >= 500);
      assertAsDescribed(path, reply);
    }
    mock.restoreAll();
  }
});

test('the service accepts exactly the requests that match the OpenAPI document', async () => {
  const end_user_id = someone();
  await scrip.post('/add', { end_user_id, amount: 100 });
  const spent = (await scrip.post('/subtract', { end_user_id, amount: 5 })).headers['transaction-id'];
  const holds: string[] = [];
  for (const amount of [1, 2]) holds.push((await scrip.post('/hold', { end_user_id, amount })).body.hold_id);
  const requests: readonly (readonly [path: string, fields: Record<string, unknown>])[] = [
    ['/add', { end_user_id, amount: 5 }],
    ['/add', { end_user_id, amount: 5, validity_days: null }],
    ['/add', { end_user_id, amount: 5, validity_days: 0 }],
    ['/add', { end_user_id, amount: 5, validity_days: 5, validity_months: 5 }],
    ['/add', { end_user_id, amount: 5, validity_days: null, validity_months: 5 }],
    ['/add', { end_user_id, amount: 5, validity_days: null, validity_months: null }],
    ['/add', { end_user_id, amount: 0 }],
    ['/add', { end_user_id, amount: '5' }],
    ['/add', { end_user_id, amount: Number.MAX_SAFE_INTEGER + 1 }],
    ['/add', { end_user_id, amount: 5, validity_day: 5 }],
    ['/add', { end_user_id }],
    ['/subtract', { end_user_id, amount: 5 }],
    ['/subtract', { end_user_id, amount: 5, validity_days: 5 }],
    ['/subtract', { amount: 5 }],
    ['/start-cycle', { end_user_id, amount: 5, on_active: 'replace' }],
    ['/start-cycle', { end_user_id, amount: 5, on_active: 'refuse' }],
    ['/start-cycle', { end_user_id, amount: 5, validity_days: 1.5, on_active: 'replace' }],
    ['/start-cycle', { end_user_id, amount: 5, validity_days: 5, validity_months: 5 }],
    ['/preview-change', { end_user_id, amount: 5, validity_days: 5, validity_months: 5 }],
    ['/preview-change', { end_user_id, amount: 5, validity_months: 5, on_active: 'replace' }],
    ['/stop-cycle', { end_user_id }],
    ['/stop-cycle', { end_user_id, amount: 5 }],
    ['/stop-cycle', { end_user_id, note: 'why' }],
    ['/add', { end_user_id, amount: 5, note: null }],
    ['/add', { end_user_id, amount: 5, note: '' }],
    ['/add', { end_user_id, amount: 5, note: '\u{1f4a9}'.repeat(500) }],
    ['/add', { end_user_id, amount: 5, note: 'x'.repeat(501) }],
    ['/hold', { end_user_id, amount: 1 }],
    ['/hold', { end_user_id, amount: 1, expires_in_seconds: null }],
    ['/hold', { end_user_id, amount: 1, expires_in_seconds: 2_592_000 }],
    ['/hold', { end_user_id, amount: 1, expires_in_seconds: 2_592_001 }],
    ['/hold', { end_user_id, amount: 1, expires_in_seconds: 0 }],
    ['/hold', { end_user_id, amount: 0 }],
    ['/capture', { end_user_id, hold_id: holds[0], amount: 0 }],
    ['/capture', { end_user_id, hold_id: holds[0], amount: null }],
    ['/capture', { end_user_id, hold_id: 'x' }],
    ['/capture', { end_user_id }],
    ['/capture', { end_user_id, hold_id: holds[0], amount: 1 }],
    ['/release', { end_user_id, hold_id: holds[1], amount: 1 }],
    ['/release', { end_user_id, hold_id: holds[1] }],
    ['/refund', { end_user_id, transaction_id: spent, amount: 0 }],
    ['/refund', { end_user_id, transaction_id: spent, amount: null }],
    ['/refund', { end_user_id, transaction_id: spent, amount: 1, validity_days: 0 }],
    ['/refund', { end_user_id, transaction_id: spent, amount: 1, validity_days: 3 }],
    ['/refund', { end_user_id, transaction_id: spent, validity_days: null }],
    ['/refund', { end_user_id }],
  ];
  const seen = new Set<boolean>();
  for (const [path, fields] of requests) {
    const { requestBody } = operation(path);
    assert(requestBody?.required, `${path} requires a body`);
    const validate = ajv.compile(requestBody.content['application/json']?.schema ?? false);
    const isTaken = (await scrip.post(path, fields)).status === 200;
    assert.equal(validate(fields), isTaken, `${path} ${JSON.stringify(fields)}`);
    seen.add(isTaken);
  }
  assert.equal(seen.size, 2, 'some requests are accepted and some are refused');
});

test('the OpenAPI document describes the fields of each read as query parameters', () => {
  const fields = {
    '/get-active-balance': ['end_user_id', 'at'],
    '/get-holds': ['end_user_id'],
    '/get-balance-history': ['end_user_id', 'from', 'to', 'interval'],
    '/get-all-user-transactions': ['end_user_id', 'limit', 'cursor', 'from', 'to', 'details', 'kind', 'note'],
    '/get-events': ['after', 'types', 'limit'],
  };
  for (const [path, names] of Object.entries(fields)) {
    const parameters = operation(path).parameters ?? [];
    assert.deepEqual(
      parameters.map((parameter) => [parameter.name, parameter.in, parameter.required ?? false]),
      names.map((name) => [name, 'query', name === 'end_user_id']),
    );
  }
});

test('for the list of transactions, the OpenAPI document has examples of a page, a whole list and a list with details, and the examples and the responses match the schema', async () => {
  const { examples } = operation('/get-all-user-transactions').responses[200]?.content['application/json'] ?? {};
  assert.deepEqual(Object.keys(examples ?? {}), ['page', 'all', 'details']);
  const validate = ajv.compile({ $ref: 'openapi#/components/schemas/TransactionList' });
  for (const { value } of Object.values(examples ?? {})) assert(validate(value), ajv.errorsText(validate.errors));
  const end_user_id = someone();
  for (const amount of [1, 2]) await scrip.post('/add', { end_user_id, amount });
  for (const limit of ['1', '2']) {
    const page = await scrip.get('/get-all-user-transactions', { end_user_id, limit });
    assert.equal(page.status, 200);
    assertAsDescribed('/get-all-user-transactions', page);
  }
});
