// Tests tracing with an OpenTelemetry collector that runs in the test.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { describe, mock, type TestContext, test } from 'node:test';
import { InvalidSetting, readConfig, SETTING_NAMES } from '../../src/config.ts';
import { type Service, startService } from '../../src/service.ts';
import { createApiKey } from '../../src/store/key-store.ts';
import { StoreFault } from '../../src/store/store-fault.ts';
import { type Span, SpanExporter } from '../../src/tracing/span-exporter.ts';
import { parentOf } from '../../src/tracing/trace-context.ts';
import { Tracer } from '../../src/tracing/tracer.ts';
import { someone } from '../http/running-service.ts';
import { temporaryFolder } from '../store/temporary-ledger.ts';

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: string };
}

interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
  readonly status?: { readonly code: number };
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
}

interface Received {
  readonly path: string;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly resource: Readonly<Record<string, string>>;
  readonly spans: readonly ReceivedSpan[];
  readonly text: string;
}

const valuesOf = (attributes: readonly Attribute[]): Record<string, string> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? '']));

class Collector {
  readonly received: Received[] = [];
  status = 200;
  url = '';

  static async start(t: TestContext): Promise<Collector> {
    const collector = new Collector();
    const server = createServer(async (request, response) => {
      const body = (await json(request)) as {
        resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: ReceivedSpan[] }[] }[];
      };
      const [{ resource, scopeSpans } = assert.fail()] = body.resourceSpans;
      collector.received.push({
        path: request.url ?? '',
        headers: request.headers,
        resource: valuesOf(resource.attributes),
        spans: scopeSpans.flatMap(({ spans }) => spans),
        text: JSON.stringify(body),
      });
      response.writeHead(collector.status, { 'content-type': 'application/json' }).end('{}');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => {
      server.close();
      server.closeAllConnections();
    });
    collector.url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
    return collector;
  }

  get spans(): ReceivedSpan[] {
    return this.received.flatMap(({ spans }) => spans);
  }
}

interface Traced {
  readonly service: Service;
  readonly log: string[];
  post(path: string, fields: unknown, headers?: Record<string, string>): Promise<Response>;
}

async function start(t: TestContext, environment: Record<string, string>): Promise<Traced> {
  const log: string[] = [];
  const config = { ...readConfig(environment), port: 0, logLevel: 'trace' };
  const database = { kind: 'file', path: join(temporaryFolder(), 'scrip.db') } as const;
  const service = await startService(
    { ...config, database },
    { log: { write: (line: string) => void log.push(line) } },
  );
  t.after(() => service.stop());
  const secret = await createApiKey(service.stores.keys, { accountName: 'Acme', scope: 'write' });
  const post = (path: string, fields: unknown, headers = {}) =>
    fetch(service.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(fields),
    });
  return { service, log, post };
}

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';

describe('tracing', { timeout: 60_000 }, () => {
  test('Scrip sends a span for each request and each batch, and the span of a request links to the span of its batch', async (t) => {
    const collector = await Collector.start(t);
    const { service, post } = await start(t, {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-team=credits%20team,authorization=Basic abc=',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test',
    });
    const before = Date.now();
    await post('/add', { end_user_id: someone(), amount: 1 });
    const refused = await post('/v1/subtract', { end_user_id: someone(), amount: 1 });
    const { request_id: id } = (await refused.json()) as { request_id: string };
    await fetch(`${service.url}/nothing/secret`);
    await service.stop();
    const requests = collector.spans.filter(({ kind }) => kind === 2);
    const batches = collector.spans.filter(({ name }) => name === 'batch');
    assert.deepEqual(
      requests.map(({ name }) => name),
      ['POST /add', 'POST /v1/subtract', 'GET'],
    );
    assert.equal(batches.length, 2);
    for (const [index, batch] of batches.entries()) {
      assert.deepEqual(requests[index]?.links, [{ traceId: batch.traceId, spanId: batch.spanId }]);
      assert.deepEqual(valuesOf(batch.attributes), { 'scrip.batch.commands': '1' });
    }
    assert.deepEqual(valuesOf((requests[1] as ReceivedSpan).attributes), {
      'http.request.method': 'POST',
      'http.route': '/v1/subtract',
      'http.response.status_code': '402',
      'scrip.request_id': id,
    });
    for (const { traceId, spanId, startTimeUnixNano: from, endTimeUnixNano: to } of collector.spans) {
      assert.match(traceId, /^[0-9a-f]{32}$/);
      assert.match(spanId, /^[0-9a-f]{16}$/);
      assert(BigInt(from) <= BigInt(to));
      const ms = Number(BigInt(from) / 1_000_000n);
      assert(ms >= before - 1_000 && ms <= Date.now() + 1_000, 'span times are wall-clock times');
    }
    const [{ path, headers, resource } = assert.fail()] = collector.received;
    assert.deepEqual(
      [path, headers['content-type'], headers['x-team'], headers.authorization],
      ['/v1/traces', 'application/json', 'credits team', 'Basic abc='],
    );
    assert.deepEqual(
      [resource['service.name'], resource['deployment.environment'], resource['process.pid']],
      ['scrip', 'test', String(process.pid)],
    );
  });

  test('a traceparent header determines the trace and the parent of the request span, and whether the span is sampled', async (t) => {
    const collector = await Collector.start(t);
    const { service, post } = await start(t, { OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/` });
    const fields = { end_user_id: someone(), amount: 1 };
    await post('/add', fields, { traceparent: `00-${TRACE}-${PARENT}-01` });
    await post('/subtract', fields, { traceparent: `00-${TRACE}-${PARENT}-00` });
    await service.stop();
    const requests = collector.spans.filter(({ kind }) => kind === 2);
    assert.deepEqual(
      requests.map(({ name, traceId, parentSpanId }) => [name, traceId, parentSpanId]),
      [['POST /add', TRACE, PARENT]],
    );
    assert.notEqual(requests[0]?.spanId, PARENT);
  });

  test('the span of a failed batch and the spans of its requests have the status "error"', async (t) => {
    const collector = await Collector.start(t);
    const { service, post } = await start(t, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/own` });
    mock.method(service.stores.ledger, 'write', () =>
      Promise.reject(new StoreFault('OutcomeUnknown', 'the disk is full')),
    );
    await post('/add', { end_user_id: someone(), amount: 1 });
    mock.restoreAll();
    await service.stop();
    const [batch, request] = collector.spans;
    assert.deepEqual([batch?.status, request?.status], [{ code: 2 }, { code: 2 }]);
    assert.equal(valuesOf(batch?.attributes ?? [])['error.type'], 'OutcomeUnknown');
    assert.equal(collector.received[0]?.path, '/own');
  });

  test('no span contains text from a request', async (t) => {
    const collector = await Collector.start(t);
    const { service, post } = await start(t, { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    const canary = 'canary-7f3a91';
    const user = someone();
    const headers = { cookie: canary, tracestate: `x=${canary}`, baggage: `x=${canary}`, 'user-agent': canary };
    await post(`/add?${canary}=1`, { end_user_id: user, amount: 1 }, headers);
    await post('/add', { end_user_id: user, amount: 1 }, { ...headers, traceparent: canary });
    await post(`/${canary}`, { [canary]: canary }, headers);
    await fetch(`${service.url}/problems/${canary}?x=${canary}`, { headers: { authorization: `Bearer ${canary}` } });
    await service.stop();
    assert(collector.spans.length >= 5);
    for (const { text } of collector.received) {
      assert(!text.includes(canary), text);
      assert(!text.includes(user), text);
    }
  });

  test('if the collector is down or rejects spans, requests still succeed, and Scrip logs one line', async (t) => {
    const collector = await Collector.start(t);
    collector.status = 503;
    for (const url of ['http://127.0.0.1:1', collector.url]) {
      const { service, log, post } = await start(t, { OTEL_EXPORTER_OTLP_ENDPOINT: url });
      for (let count = 0; count < 3; count++)
        assert.equal((await post('/add', { end_user_id: someone(), amount: 1 })).status, 200);
      await service.stop();
      assert.equal(log.filter((line) => line.includes('cannot send traces')).length, 1, log.join(''));
    }
  });

  test('with a trace sampling ratio, the trace ID of the caller decides whether a request is recorded', () => {
    const tracer = new Tracer(
      { endpoint: 'http://127.0.0.1:1/', headers: {}, resource: {}, ratio: 0.5, followsParent: false },
      () => {},
    );
    const isRecorded = (traceId: string) => tracer.beginRequest(`00-${traceId}-00f067aa0ba902b7-00`) !== null;
    for (let repeated = 0; repeated < 10; repeated++) {
      assert(isRecorded(`ffffffffffffffffff${'7f'.repeat(7)}`));
      assert(!isRecorded(`000000000000000000${'81'.repeat(7)}`));
    }
  });

  test('with a trace sampling ratio of 0, no span is sent', async (t) => {
    const collector = await Collector.start(t);
    const { service, post } = await start(t, {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_TRACES_SAMPLER: 'traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0',
    });
    await post('/add', { end_user_id: someone(), amount: 1 }, { traceparent: `00-${TRACE}-${PARENT}-01` });
    await service.stop();
    assert.deepEqual(collector.received, []);
  });
});

const SPAN: Span = {
  traceId: TRACE,
  spanId: PARENT,
  parentSpanId: null,
  name: 'x',
  kind: 'server',
  start: 0,
  end: 1,
  attributes: {},
  isError: false,
  links: [],
};

test('the span queue is bounded: spans beyond the bound are dropped', async (t) => {
  const collector = await Collector.start(t);
  const settings = { endpoint: collector.url, headers: {}, resource: {} };
  const exporter = new SpanExporter(settings, () => {});
  for (let count = 0; count < 10_000; count++) exporter.add(SPAN);
  await exporter.stop();
  const sent = collector.spans.length;
  assert(sent >= 2_048 && sent < 3_000, `${sent} of 10,000 spans were sent`);
  assert(collector.received.every(({ spans }) => spans.length <= 512));
});

test('a collector that does not respond delays the stop by at most five seconds, however many spans are queued', async (t) => {
  const server = createServer(() => {}).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const endpoint = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  const failures: string[] = [];
  const exporter = new SpanExporter({ endpoint, headers: {}, resource: {} }, (reason) => failures.push(reason));
  for (let count = 0; count < 2_000; count++) exporter.add(SPAN);
  const start = performance.now();
  await exporter.stop();
  const ms = performance.now() - start;
  assert(ms < 8_000, `the stop took ${ms} ms`);
  assert.deepEqual(failures, ['the collector did not accept all spans before Scrip stopped']);
});

const HEADERS: readonly (readonly [header: string | undefined, isParent: boolean])[] = [
  [`00-${TRACE}-${PARENT}-01`, true],
  [`00-${TRACE}-${PARENT}-00`, true],
  [`01-${TRACE}-${PARENT}-01-more`, true],
  [undefined, false],
  ['', false],
  [`ff-${TRACE}-${PARENT}-01`, false],
  [`00-${TRACE}-${PARENT}-01-more`, false],
  [`00-${'0'.repeat(32)}-${PARENT}-01`, false],
  [`00-${TRACE}-${'0'.repeat(16)}-01`, false],
  [`00-${TRACE.toUpperCase()}-${PARENT}-01`, false],
  [`00-${TRACE}-${PARENT}-01, 00-${TRACE}-${PARENT}-01`, false],
];
for (const [header, isParent] of HEADERS)
  test(`a request with traceparent ${header} ${isParent ? 'continues the trace' : 'starts a new trace'}`, () =>
    assert.equal(parentOf(header) !== null, isParent));

test('tracing is off unless the endpoint of a collector is set', () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };
  assert.equal(readConfig({}).tracing, null);
  assert.equal(readConfig({ OTEL_SERVICE_NAME: 'x' }).tracing, null);
  assert.equal(readConfig({ ...endpoint, OTEL_SDK_DISABLED: 'true' }).tracing, null);
  assert.equal(readConfig({ ...endpoint, OTEL_TRACES_EXPORTER: 'none' }).tracing, null);
  const { tracing } = readConfig({ ...endpoint, OTEL_SERVICE_NAME: 'credits' });
  assert.deepEqual(tracing, {
    endpoint: 'http://collector:4318/v1/traces',
    headers: {},
    resource: { 'service.name': 'credits' },
    ratio: 1,
    followsParent: true,
  });
});

test('an unknown trace sampler is rejected with an error that quotes the sampler and lists every supported sampler', () => {
  const kinds = 'always_on, always_off, traceidratio';
  const parentBased = 'parentbased_always_on, parentbased_always_off, parentbased_traceidratio';
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', OTEL_TRACES_SAMPLER: 'parentbased_some' };
  assert.throws(() => readConfig(environment), {
    message: `OTEL_TRACES_SAMPLER is "parentbased_some"; it must be one of ${kinds}, ${parentBased}.`,
  });
});

test('an empty tracing setting has the same effect as an unset setting', () => {
  const empty = Object.fromEntries(SETTING_NAMES.map((name) => [name, '']));
  const traced = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', OTEL_TRACES_SAMPLER: 'traceidratio' };
  for (const set of [{}, traced]) assert.deepEqual(readConfig({ ...empty, ...set }), readConfig(set));
});

const WRONG: readonly (readonly [name: string, value: string])[] = [
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
  ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'collector:4318/v1/traces'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://user:hunter2@collector:4318'],
  ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'https://hunter2@collector:4318/v1/traces'],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
  ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'grpc'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'hunter2'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'key=%hunter2'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'authorization=Bearer hunter2%0A-more'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'authorization=Bearer hunter2%E2%82%AC'],
  ['OTEL_EXPORTER_OTLP_TRACES_HEADERS', 'hunter2'],
  ['OTEL_EXPORTER_OTLP_TRACES_HEADERS', 'api(key)=hunter2'],
  ['OTEL_TRACES_SAMPLER', 'sometimes'],
  ['OTEL_TRACES_SAMPLER_ARG', '2'],
];
for (const [name, value] of WRONG) {
  test(`the setting ${name}=${value} is rejected with an error that names the variable`, () => {
    const others = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', OTEL_TRACES_SAMPLER: 'traceidratio' };
    assert.throws(
      () => readConfig({ ...others, [name]: value }),
      (error: Error) =>
        error instanceof InvalidSetting && error.message.includes(name) && !/hunter2/.test(error.message),
    );
  });
}
