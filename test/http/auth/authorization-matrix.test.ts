// Tests every route with every kind of API key. Each route must have a row in ROWS, the authorization matrix.
// test/console/permissions.test.ts tests what members and owners may do in the console.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, afterEach, before, mock, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ApiKey, apiKeySecret, hashOf, type Scope, SECRET_BYTES } from '../../../src/accounts/api-key.ts';
import { readConfig } from '../../../src/config.ts';
import { PERMISSIONS, type Access as Who } from '../../../src/console/permissions.ts';
import { Authenticator, type LatestKey } from '../../../src/http/auth/authenticator.ts';
import { startService } from '../../../src/service.ts';
import { temporaryFile } from '../../store/temporary-ledger.ts';
import * as calls from '../api-calls.ts';
import { type Call, type Reply, type Scrip, someone, startScrip } from '../running-service.ts';

const BOTH = (paths: readonly string[]) => ['', '/v1'].flatMap((prefix) => paths.map((path) => prefix + path));
const WRITES = BOTH(calls.WRITES);
const END_USER_READS = BOTH(calls.READS);
const ACCOUNT_READS = BOTH(calls.ACCOUNT_READS);
const READS = [...END_USER_READS, ...ACCOUNT_READS];
const PREVIEWS = BOTH(calls.PREVIEWS);
const TEST_CLOCK = BOTH(['/test-clock']);
const OPERATORS = ['/healthz', '/readyz', '/metrics', '/openapi.json', '/problems/:error'];

const ROWS = new Map<string, Scope | Who>([
  ...WRITES.map((path) => [`POST ${path}`, 'write'] as const),
  ...READS.flatMap((path) => [`GET ${path}`, `HEAD ${path}`].map((name) => [name, 'read'] as const)),
  ...PREVIEWS.map((path) => [`POST ${path}`, 'read'] as const),
  ...TEST_CLOCK.flatMap((path) => [
    [`GET ${path}`, 'read'] as const,
    [`HEAD ${path}`, 'read'] as const,
    [`POST ${path}`, 'write'] as const,
  ]),
  ...OPERATORS.flatMap((path) => [`GET ${path}`, `HEAD ${path}`].map((name) => [name, 'anyone'] as const)),
  ...Object.entries(PERMISSIONS).flatMap(([name, who]) =>
    [name, name.replace(/^GET/, 'HEAD')].map((each) => [each, who] as const),
  ),
]);

const KINDS: readonly (readonly [kind: string, read: number, write: number])[] = [
  ['none', 401, 401],
  ['malformed', 401, 401],
  ['unknown', 401, 401],
  ['revoked read', 401, 401],
  ['revoked write', 401, 401],
  ['read', 200, 403],
  ['read of another', 200, 403],
];

/** Some routes exist only if a mail server is configured. */
const WITH_MAIL = { mail: { smtpUrl: 'smtp://127.0.0.1:1', from: 'scrip@example.com' } };

let scrip: Scrip;
const user = someone();
const keys = new Map<string, string | null>();
/** The timing test changes the first or the last of these bytes to make a wrong key. */
const secretBytes = randomBytes(SECRET_BYTES);

before(async () => {
  scrip = await startScrip({ console: WITH_MAIL, testClock: true });
  await scrip.post('/add', { end_user_id: user, amount: 100 });
  await scrip.post('/start-cycle', { end_user_id: user, amount: 50 });
  const { keys: apiKeys } = scrip.service.stores;
  const revoked = async (scope: Scope) => {
    const secret = await scrip.createKey('Acme', scope);
    assert.equal((await scrip.get('/get-active-balance', { end_user_id: user }, { key: secret })).status, 200);
    await apiKeys.revoke((await apiKeys.find(hashOf(secret)))?.id ?? 0);
    return secret;
  };
  const write = apiKeySecret('write', secretBytes);
  await apiKeys.create({ accountName: 'Acme', scope: 'write', secret: write, name: '' });
  keys.set('none', null);
  keys.set('malformed', `${write}x`);
  keys.set('unknown', apiKeySecret('write', randomBytes(SECRET_BYTES)));
  keys.set('revoked read', await revoked('read'));
  keys.set('revoked write', await revoked('write'));
  keys.set('read', scrip.readKey);
  keys.set('write', write);
  keys.set('read of another', await scrip.createKey('Other Ltd', 'read'));
  keys.set('write of another', await scrip.createKey('Other Ltd', 'write'));
  // A revoked key that is in use may work for up to one more second.
  await sleep(1_100);
});
afterEach(() => mock.restoreAll());
after(() => scrip.stop());

function withAuthenticator(change: (found: ApiKey | null, authorization?: string) => ApiKey | null): void {
  const { authenticate } = Authenticator.prototype;
  mock.method(Authenticator.prototype, 'authenticate', async function (this: Authenticator, authorization?: string) {
    const unknown: LatestKey = { authorization: '', hash: '', account: 0 };
    const found = change(await authenticate.call(this, authorization, unknown), authorization);
    return found && { ...found, actor: `key:${found.id}` };
  });
}

const acme = async () => (await scrip.service.stores.keys.find(hashOf(keys.get('write') as string))) as ApiKey;

function ask(path: string, key: string | null, endUser = user): Promise<Reply> {
  if (ACCOUNT_READS.includes(path)) return scrip.get(path, {}, { key });
  if (END_USER_READS.includes(path)) return scrip.get(path, { end_user_id: endUser }, { key });
  return scrip.post(path, calls.fieldsOf(path, endUser), { key });
}

function askRoute(name: string, call: Call): Promise<Reply> {
  const [method, path] = name.split(' ') as [string, string];
  return scrip.call(method, path.replaceAll(/:\w+/g, 'nothing').replace('*', 'nothing'), call);
}

async function stateOf(endUser: string): Promise<string> {
  const reads = ['/get-active-balance', '/get-holds', '/get-all-user-transactions'];
  const replies = await Promise.all(reads.map((path) => ask(path, keys.get('write') as string, endUser)));
  return replies.map(({ text }) => text).join(' ');
}

function unmatched(routes: readonly string[]): string[] {
  return [...routes.filter((name) => !ROWS.has(name)), ...[...ROWS.keys()].filter((name) => !routes.includes(name))];
}

test('every route of the server has a row in the authorization matrix, and every row has a route', () => {
  const { routes } = scrip.service;
  assert(routes.length > 60, 'the list of routes is complete');
  assert.deepEqual(unmatched(routes), []);
  for (const added of ['GET /accounts', 'POST /metrics', 'DELETE /add', 'GET /console/everything', 'GET /v2/add'])
    assert.deepEqual(unmatched([...routes, added]), [added], 'a new route without a row is found');
  assert.deepEqual(unmatched(routes.slice(1)), [routes[0]], 'a row without a route is found');
});

async function deviations(): Promise<string[]> {
  const found: string[] = [];
  const before = await stateOf(user);
  for (const [kind, read, write] of KINDS) {
    for (const path of [...WRITES, ...READS, ...PREVIEWS]) {
      const { status } = await ask(path, keys.get(kind) ?? null);
      if (status !== (WRITES.includes(path) ? write : read)) found.push(`${kind}: ${path} ${status}`);
    }
  }
  for (const [kind, read, write] of KINDS) {
    for (const path of TEST_CLOCK) {
      const call = { key: keys.get(kind) ?? null };
      const statuses = [await scrip.get(path, {}, call), await scrip.post(path, { advance_days: 1 }, call)];
      const [got, posted] = statuses.map(({ status }) => status);
      if (got !== read || posted !== write) found.push(`${kind}: ${path} ${got} ${posted}`);
    }
  }
  if ((await stateOf(user)) !== before) found.push('the credits changed');
  return found;
}

test('each route of the API accepts only keys whose scope allows the request', async () => {
  assert.deepEqual(await deviations(), []);
});

test('control: the authorization test catches a service that ignores scopes or accepts any key', async () => {
  const someKey = await acme();
  withAuthenticator((found) => found && { ...found, scope: 'write' });
  const unscoped = await deviations();
  for (const path of WRITES)
    assert(
      unscoped.some((each) => each.startsWith(`read: ${path} `)),
      `${path}: ${unscoped}`,
    );
  mock.restoreAll();
  withAuthenticator((found) => found ?? someKey);
  assert((await deviations()).some((each) => each.startsWith('none: ')));
  mock.restoreAll();
  const revoked = keys.get('revoked write') as string;
  withAuthenticator((found, authorization) => (authorization === `Bearer ${revoked}` ? someKey : found));
  assert((await deviations()).some((each) => each.startsWith('revoked write: ')));
});

async function leaks(): Promise<string[]> {
  const found: string[] = [];
  const endUser = someone();
  const mine = { key: keys.get('write') as string };
  await scrip.post('/add', { end_user_id: endUser, amount: 10 }, mine);
  await ask('/start-cycle', mine.key, endUser);
  const spent = await ask('/subtract', mine.key, endUser);
  const [first, second] = [await ask('/hold', mine.key, endUser), await ask('/hold', mine.key, endUser)];
  const before = await stateOf(endUser);
  const other = keys.get('write of another') as string;
  for (const key of [other, keys.get('read of another') as string]) {
    for (const path of [...END_USER_READS, ...PREVIEWS]) {
      const unknown = someone();
      const [shown, ofUnknown] = [await ask(path, key, endUser), await ask(path, key, unknown)];
      if (withoutTimes(shown) !== withoutTimes(ofUnknown).replaceAll(unknown, endUser))
        found.push(`${path} shows the credits`);
    }
  }
  const refused = await ask('/subtract', other, endUser);
  if (refused.body.available !== 0) found.push('/subtract reveals the balance');
  if ((await ask('/stop-cycle', other, endUser)).status !== 404) found.push('/stop-cycle finds the cycle');
  for (const [path, of] of [
    ['/refund', { transaction_id: spent.headers['transaction-id'] }],
    ['/capture', { hold_id: first.body.hold_id }],
    ['/release', { hold_id: second.body.hold_id }],
  ] as const) {
    const { status } = await scrip.post(path, { end_user_id: endUser, ...of }, { key: other });
    if (status !== 404) found.push(`${path} does not return 404`);
  }
  for (const path of BOTH(['/add', '/add', '/subtract', '/start-cycle', '/hold'])) {
    const { status } = await ask(path, other, endUser);
    if (status !== 200 && status !== 409) found.push(`${path} returned ${status} in its own account`);
  }
  if ((await stateOf(endUser)) !== before) found.push('the credits changed');
  return found;
}

/** Masks timestamps: those of balance histories and previews depend on the time of the request. */
function withoutTimes({ text }: Reply): string {
  return text.replaceAll(/"(at|starts_at|cycle_start|cycle_end)":"[^"]+"/g, '"$1":"…"');
}

test('an API key gives access to the end users of its own account, but not to the end users of another account', async () => {
  assert.deepEqual(await leaks(), []);
});

test('control: the authorization test catches a service that ignores the account of a key', async () => {
  const { account } = await acme();
  withAuthenticator((found) => found && { ...found, account });
  const found = await leaks();
  for (const each of [
    '/get-active-balance shows the credits',
    '/subtract reveals the balance',
    '/stop-cycle finds the cycle',
    '/get-holds shows the credits',
    '/get-balance-history shows the credits',
    '/refund does not return 404',
    '/capture does not return 404',
    '/release does not return 404',
    'the credits changed',
  ])
    assert(found.includes(each), `${each}: ${found}`);
});

test('no API key gives access to a console page, and public pages need no key', async () => {
  for (const [name, who] of ROWS) {
    if (who === 'read' || who === 'write') continue;
    const statuses = new Set<number>();
    for (const key of keys.values()) statuses.add((await askRoute(name, { key })).status);
    assert.equal(statuses.size, 1, `${name} returns the same status for every key: ${[...statuses]}`);
    const [status = 0] = statuses;
    assert.notEqual(status, 401, name);
    assert(status < 500, `${name}: ${status}`);
    if (who !== 'anyone') assert(status === 303 || status === 403, `${name}: ${status}`);
  }
});

test('a separate metrics port requires no API key and serves only the metrics', async (t) => {
  const { console: settings, ...config } = readConfig({});
  const service = await startService({
    ...config,
    console: { ...settings, ...WITH_MAIL },
    database: { kind: 'file', path: temporaryFile() },
    logLevel: 'silent',
    port: 0,
    metricsPort: 0,
  });
  t.after(() => service.stop());
  assert.deepEqual(unmatched(service.routes), ['GET /metrics', 'HEAD /metrics'], 'the main port has all other routes');
  for (const name of scrip.service.routes) {
    const [method = '', path = ''] = name.split(' ');
    for (const key of ['write', 'unknown'].map((kind) => keys.get(kind))) {
      const reply = await fetch(new URL(path, service.metricsUrl ?? ''), {
        method,
        headers: { authorization: `Bearer ${key}` },
      });
      assert.equal(reply.status, path === '/metrics' ? 200 : 404, name);
      await reply.text();
    }
  }
});

test('every response forbids MIME sniffing, and no response names the server software', async () => {
  const replies = new Map<string, Reply>();
  for (const name of scrip.service.routes) replies.set(name, await askRoute(name, {}));
  replies.set('nowhere', await scrip.call('GET', '/nowhere'));
  replies.set('another method', await scrip.call('DELETE', '/add'));
  replies.set('no JSON', await scrip.call('POST', '/add', { body: '{' }));
  replies.set('too much', await scrip.call('POST', '/add', { body: 'x'.repeat(2_000_000) }));
  for (const [name, { headers }] of replies) {
    assert.equal(headers['x-content-type-options'], 'nosniff', name);
    for (const telling of ['server', 'x-powered-by', 'access-control-allow-origin'])
      assert.equal(headers[telling], undefined, `${name}: ${telling}`);
  }
  for (const path of [...READS, ...WRITES]) {
    const { headers } = await ask(path, keys.get('write') as string, someone());
    assert.equal(headers['cache-control'], 'no-store', path);
  }
});

const PAIRS = 150;
/** This limit is far below the difference that the control test measures, and above the noise of a busy machine. */
const DIFFERENCE_MS_MAX = 0.4;

/**
 * @returns the median difference over all pairs of requests: the time to refuse a key whose last byte is wrong, minus
 * the time to refuse a key whose first byte is wrong
 */
async function timeDifferenceMs(): Promise<number> {
  const near = apiKeySecret('write', secretBytes.with(SECRET_BYTES - 1, (secretBytes.at(-1) as number) ^ 1));
  const far = apiKeySecret('write', secretBytes.with(0, (secretBytes[0] as number) ^ 0x80));
  const differences: number[] = [];
  const timed = async (key: string) => {
    const start = performance.now();
    assert.equal((await ask('/get-active-balance', key)).status, 401);
    return performance.now() - start;
  };
  for (let pair = 0; pair < PAIRS; pair++) {
    // The second of two requests may be faster, so the order alternates.
    const [first, second] = pair % 2 === 0 ? [near, far] : [far, near];
    const difference = (await timed(first)) - (await timed(second));
    differences.push(pair % 2 === 0 ? difference : -difference);
  }
  return differences.sort((a, b) => a - b)[PAIRS / 2] as number;
}

test('the time to refuse an API key does not depend on how much of the key is correct', async () => {
  const asked = mock.method(scrip.service.stores.keys, 'find');
  assert(Math.abs(await timeDifferenceMs()) < DIFFERENCE_MS_MAX);
  assert.equal(asked.mock.callCount(), 2 * PAIRS, 'both keys are well-formed, so the service looks them up');
  for (const { arguments: given } of asked.mock.calls)
    assert.match(given[0], /^[0-9a-f]{64}$/, 'keys are looked up by their SHA-256');
});

test('control: the timing test catches a service that compares keys character by character', async () => {
  const right = keys.get('write') as string;
  withAuthenticator((found, authorization) => {
    const secret = authorization?.slice('Bearer '.length) ?? '';
    let same = 0;
    while (same < right.length && secret[same] === right[same]) same++;
    const until = performance.now() + same * 0.05;
    while (performance.now() < until);
    return found;
  });
  assert((await timeDifferenceMs()) > DIFFERENCE_MS_MAX);
});
