// Tests the metrics and the request log. Neither may contain client input.

import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { mock, type TestContext, test } from 'node:test';
import { type Config, readConfig } from '../../../src/config.ts';
import { type Service, startService } from '../../../src/service.ts';
import { createApiKey } from '../../../src/store/key-store.ts';
import { StoreFault } from '../../../src/store/store-fault.ts';
import { VERSION } from '../../../src/version.ts';
import { temporaryFolder } from '../../store/temporary-ledger.ts';
import { eventually, someone } from '../running-service.ts';

interface Running {
  readonly service: Service;
  readonly secret: string;
  readonly log: string[];
}

async function start(t: TestContext, settings: Partial<Config> = {}): Promise<Running> {
  const log: string[] = [];
  const config: Config = {
    ...readConfig({}),
    host: '127.0.0.1',
    port: 0,
    database: { kind: 'file', path: join(temporaryFolder(), 'scrip.db') },
    logLevel: 'trace',
    ...settings,
  };
  const service = await startService(config, { log: { write: (line: string) => void log.push(line) } });
  t.after(() => service.stop());
  return { service, secret: await createApiKey(service.stores.keys, { accountName: 'Acme', scope: 'write' }), log };
}

async function scrape(url: string): Promise<Map<string, number>> {
  const text = await (await fetch(url)).text();
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(samples.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]));
}

function post({ service, secret }: Running, path: string, fields: unknown, headers = {}): Promise<Response> {
  return fetch(service.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(fields),
  });
}

test('/metrics counts each request once, by route and status', async (t) => {
  const running = await start(t);
  const { url } = running.service;
  const user = someone();
  for (const amount of [5, 5, 0]) await post(running, '/add', { end_user_id: user, amount });
  await post(running, '/v1/subtract', { end_user_id: user, amount: 11 });
  await fetch(`${url}/get-active-balance?end_user_id=${user}`);
  await fetch(`${url}/nothing/${user}`);
  await fetch(`${url}/add`);
  for (const method of ['GET', 'HEAD']) await fetch(`${url}/healthz`, { method });
  const metrics = await scrape(`${url}/metrics`);
  const requests = [...metrics].filter(([name, value]) => name.startsWith('scrip_requests_total') && value > 0);
  assert.deepEqual(Object.fromEntries(requests), {
    'scrip_requests_total{route="none",status="404"}': 1,
    'scrip_requests_total{route="none",status="405"}': 1,
    'scrip_requests_total{route="/healthz",status="200"}': 2,
    'scrip_requests_total{route="/add",status="200"}': 2,
    'scrip_requests_total{route="/add",status="422"}': 1,
    'scrip_requests_total{route="/v1/subtract",status="402"}': 1,
    'scrip_requests_total{route="/get-active-balance",status="401"}': 1,
  });
  assert.equal(metrics.get('scrip_problems_total{error="InsufficientFunds"}'), 1);
  assert.equal(metrics.get('scrip_problems_total{error="InvalidField"}'), 1);
  assert.equal(metrics.get('scrip_problems_total{error="Unauthorized"}'), 1);
  assert.equal(metrics.get('scrip_request_duration_seconds_count{route="/add"}'), 3);
  assert.equal(metrics.get('scrip_request_duration_seconds_bucket{le="+Inf",route="/add"}'), 3);
  const seconds = metrics.get('scrip_request_duration_seconds_sum{route="/add"}') ?? 0;
  assert(seconds > 0 && seconds < 5, `three requests took ${seconds} s`);
});

test('/metrics contains the version of Scrip', async (t) => {
  const metrics = await scrape(`${(await start(t)).service.url}/metrics`);
  assert.equal(metrics.get(`scrip_build_info{version="${VERSION}"}`), 1);
});

test('/metrics counts the credits of accepted requests by account, API key and kind of request, and counts them only once if a request is repeated with its idempotency key', async (t) => {
  const running = await start(t);
  const { keys } = running.service.stores;
  const other = { ...running, secret: await createApiKey(keys, { accountName: 'Bell', scope: 'write' }) };
  const second = { ...running, secret: await createApiKey(keys, { accountName: 'Acme', scope: 'write' }) };
  const user = someone();
  const once = { 'idempotency-key': 'payment 1' };
  for (let times = 0; times < 2; times++)
    assert.equal((await post(running, '/add', { end_user_id: user, amount: 100 }, once)).status, 200);
  assert.equal((await post(running, '/subtract', { end_user_id: user, amount: 130 })).status, 402);
  await post(second, '/start-cycle', { end_user_id: user, amount: 1_000 });
  await post(second, '/subtract', { end_user_id: user, amount: 130 });
  await post(other, '/add', { end_user_id: user, amount: 7 });
  const held = await post(second, '/hold', { end_user_id: user, amount: 50 });
  const { hold_id } = (await held.json()) as { hold_id: string };
  const captured = await post(second, '/capture', { end_user_id: user, hold_id, amount: 32 });
  const transaction_id = captured.headers.get('transaction-id');
  await post(running, '/refund', { end_user_id: user, transaction_id, amount: 10 });
  const counted = [...(await scrape(`${running.service.url}/metrics`))].filter(
    ([name, value]) => name.startsWith('scrip_cred') && value > 0,
  );
  assert.deepEqual(Object.fromEntries(counted), {
    'scrip_credits_granted_total{account="1",key="1",kind="add"}': 100,
    'scrip_credits_granted_total{account="1",key="1",kind="refund"}': 10,
    'scrip_credits_granted_total{account="1",key="3",kind="start-cycle"}': 1_000,
    'scrip_credits_granted_total{account="2",key="2",kind="add"}': 7,
    'scrip_credits_spent_total{account="1",key="3",kind="subtract"}': 130,
    'scrip_credits_spent_total{account="1",key="3",kind="capture"}': 32,
  });
});

test('the histograms of batch size and commit duration in /metrics have cumulative buckets', async (t) => {
  const running = await start(t);
  const together = Array.from({ length: 40 }, () => post(running, '/add', { end_user_id: someone(), amount: 1 }));
  await Promise.all(together);
  const metrics = await scrape(`${running.service.url}/metrics`);
  for (const name of ['scrip_batch_commands', 'scrip_commit_duration_seconds']) {
    const buckets = [...metrics].filter(([sample]) => sample.startsWith(`${name}_bucket`)).map(([, value]) => value);
    assert(buckets.length > 8);
    assert.deepEqual(
      buckets,
      buckets.toSorted((a, b) => a - b),
    );
    assert.equal(buckets.at(-1), metrics.get(`${name}_count`));
  }
  assert.equal(metrics.get('scrip_batch_commands_sum'), 40);
  assert.equal(metrics.get('scrip_batch_commands_count'), metrics.get('scrip_commit_duration_seconds_count'));
});

test('/metrics counts failed batches by kind of store error', async (t) => {
  const running = await start(t);
  const { ledger: store } = running.service.stores;
  for (const kind of ['StoreUnavailable', 'OutcomeUnknown', 'OutcomeUnknown'] as const) {
    mock.method(store, 'write', () => Promise.reject(new StoreFault(kind, 'the disk is full')));
    assert.equal((await post(running, '/add', { end_user_id: someone(), amount: 1 })).status, 503);
    mock.restoreAll();
  }
  const metrics = await scrape(`${running.service.url}/metrics`);
  assert.equal(metrics.get('scrip_store_errors_total{kind="StoreUnavailable"}'), 1);
  assert.equal(metrics.get('scrip_store_errors_total{kind="OutcomeUnknown"}'), 2);
  assert.equal(metrics.get('scrip_store_errors_total{kind="Internal"}'), 0);
  assert.equal(metrics.get('scrip_problems_total{error="OutcomeUnknown"}'), 2);
});

test('scrip_renewal_lag_seconds grows while renewals fail, and resets when no renewal is due', async (t) => {
  const { service } = await start(t);
  const lag = async () => (await scrape(`${service.url}/metrics`)).get('scrip_renewal_lag_seconds') as number;
  await eventually(async () => (await lag()) < 2, 'the lag is short once the job has run');
  const user = { account: 1, endUser: someone() };
  mock.method(service.stores.ledger, 'due', async () => [user]);
  mock.method(service.stores.ledger, 'write', () =>
    Promise.reject(new StoreFault('StoreUnavailable', 'the disk is full')),
  );
  t.after(() => mock.restoreAll());
  await eventually(async () => (await lag()) > 2.5, 'the lag grows');
  assert.equal((await scrape(`${service.url}/metrics`)).get('scrip_renewals_due'), 1);
  mock.restoreAll();
  await eventually(async () => (await lag()) < 1.5, 'the lag resets');
});

test('with METRICS_PORT, /metrics is served only on that port, and that port serves nothing else', async (t) => {
  const { service } = await start(t, { metricsPort: 0 });
  const { metricsUrl, url } = service;
  assert(metricsUrl);
  assert.equal((await scrape(metricsUrl)).get('scrip_store_ready'), 1);
  assert.equal((await fetch(`${url}/metrics`)).status, 404);
  for (const path of ['/healthz', '/add', '/', '/metrics/x'])
    assert.equal((await fetch(new URL(path, metricsUrl))).status, 404, path);
  assert.equal((await fetch(metricsUrl, { method: 'POST' })).status, 405);
  await service.stop();
  await assert.rejects(fetch(metricsUrl));
});

test('if the metrics port is in use, the service fails to start and closes the ledger', async (t) => {
  const { service } = await start(t);
  const path = join(temporaryFolder(), 'scrip.db');
  const taken = Number(new URL(service.url).port);
  await assert.rejects(start(t, { metricsPort: taken, database: { kind: 'file', path } }), { code: 'EADDRINUSE' });
  await start(t, { database: { kind: 'file', path } });
});

test('METRICS_PORT and REQUEST_LOG are read from the environment', () => {
  assert.equal(readConfig({}).metricsPort, null);
  assert.equal(readConfig({ METRICS_PORT: '9090' }).metricsPort, 9_090);
  assert.throws(() => readConfig({ METRICS_PORT: 'x' }), /METRICS_PORT is "x"; it must be a whole number/);
  assert.equal(readConfig({}).logRequests, false);
  assert.equal(readConfig({ REQUEST_LOG: 'yes' }).logRequests, true);
  assert.throws(() => readConfig({ REQUEST_LOG: '1' }), /REQUEST_LOG is "1"; it must be one of yes, no/);
});

test('with REQUEST_LOG, Scrip logs one line for each request, and the line of a refused request has the request_id of the problem document', async (t) => {
  const quiet = await start(t);
  await post(quiet, '/add', { end_user_id: someone(), amount: 1 });
  assert(!quiet.log.some((line) => line.includes('"route"')));
  const running = await start(t, { logRequests: true });
  await post(running, '/add', { end_user_id: someone(), amount: 1 });
  const refused = await post(running, '/v1/subtract', { end_user_id: someone(), amount: 1 });
  const { request_id: id } = (await refused.json()) as { request_id: string };
  await fetch(`${running.service.url}/nothing`);
  const lines = running.log.map((line) => JSON.parse(line)).filter(({ route }) => route !== undefined);
  assert.deepEqual(
    lines.map(({ route, status, msg }) => [route, status, msg]),
    [
      ['/add', 200, 'request'],
      ['/v1/subtract', 402, 'request'],
      ['none', 404, 'request'],
    ],
  );
  assert.equal(lines[1].request_id, id);
  for (const { ms } of lines) assert(ms >= 0 && ms < 5_000);
});

const CANARY = 'canary-7f3a91';
const NOTED_USER = '7f3a9100-0000-4000-8000-000000000000';

test('the log and the metrics contain no client input', async (t) => {
  const running = await start(t, { logRequests: true });
  const { service, secret, log } = running;
  const send = (method: string, path: string, headers: Record<string, string>, body?: string) =>
    new Promise<void>((resolve) => {
      const outgoing = httpRequest(service.url + path, { method, headers }, (response) => {
        response.resume().once('end', resolve);
      });
      outgoing.once('error', () => resolve());
      outgoing.end(body);
    });
  const json = { 'content-type': 'application/json' };
  const authorized = { authorization: `Bearer ${secret}`, ...json };
  const everywhere = {
    authorization: `Bearer ${CANARY}`,
    cookie: `session=${CANARY}`,
    'x-api-key': CANARY,
    'x-request-id': CANARY,
    'request-id': CANARY,
    traceparent: CANARY,
    'idempotency-key': CANARY,
    'user-agent': CANARY,
    referer: `http://${CANARY}`,
    'x-forwarded-for': CANARY,
  };
  const body = JSON.stringify({ end_user_id: CANARY, amount: CANARY, [CANARY]: CANARY });
  for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS']) {
    for (const path of ['/add', '/get-active-balance', `/${CANARY}`, '/healthz', `/problems/${CANARY}`, '/metrics']) {
      await send(method, `${path}?end_user_id=${CANARY}&${CANARY}=1`, { ...everywhere, ...json }, body);
      await send(method, `${path}?${CANARY}`, { ...everywhere, ...authorized }, body);
    }
  }
  await send('POST', '/add', { ...everywhere, ...authorized }, `{"${CANARY}`);
  await send('POST', '/add', { ...authorized, 'content-type': CANARY }, body);
  await send('POST', '/add', { ...authorized, expect: CANARY }, body);
  await send('POST', `/%${CANARY}`, authorized, body);
  const noted = { end_user_id: NOTED_USER, amount: 1, note: CANARY };
  await send('POST', '/add', authorized, JSON.stringify(noted));
  mock.method(service.stores.ledger, 'write', () => Promise.reject(new Error('the disk failed')));
  await send('POST', '/add', { ...everywhere, ...authorized }, JSON.stringify({ end_user_id: someone(), amount: 1 }));
  mock.method(service.stores.ledger, 'load', () => Promise.reject(new Error('the disk failed')));
  await send('GET', `/get-active-balance?end_user_id=${someone()}`, { ...everywhere, ...authorized });
  mock.restoreAll();
  const metrics = await (await fetch(`${service.url}/metrics`)).text();
  assert(log.length > 60, 'the requests are logged');
  for (const text of [...log, metrics]) {
    assert(!text.toLowerCase().includes(CANARY), text);
    assert(!text.includes(NOTED_USER), text);
    assert(!text.includes(secret), text);
  }
});
