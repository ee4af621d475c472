// Every route with every kind of key: of which account, with which scope, valid or revoked. The list of routes is the
// server's own, so that a route without a row here fails the test. What members and owners may do in the console is in
// test/console/permissions.test.ts.
//
// Each check is made of the service, and then of a service that is broken in the way that the check must find.

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
import { type Call, type Reply, type Scrip, someone, startScrip } from '../running-service.ts';

const BOTH = (paths: readonly string[]) => ['', '/v1'].flatMap((prefix) => paths.map((path) => prefix + path));
const WRITES = BOTH(['/add', '/subtract', '/start-cycle', '/stop-cycle']);
const READS = BOTH(['/get-active-balance', '/get-all-user-transactions']);
const OPERATORS = ['/healthz', '/readyz', '/metrics', '/openapi.json', '/problems/:error'];
const DOCS = ['', '/json', '/yaml', '/static/index.html', '/static/swagger-initializer.js', '/static/*'];

/** The callers that each route accepts. */
const ROWS = new Map<string, Scope | Who>([
  ...WRITES.map((path) => [`POST ${path}`, 'write'] as const),
  ...READS.map((path) => [`GET ${path}`, 'read'] as const),
  ...OPERATORS.flatMap((path) => [`GET ${path}`, `HEAD ${path}`].map((name) => [name, 'anyone'] as const)),
  ...DOCS.map((path) => [`GET /docs${path}`, 'anyone'] as const),
  ['HEAD /docs/static/*', 'anyone'],
  ...Object.entries(PERMISSIONS).flatMap(([name, who]) =>
    [name, name.replace(/^GET/, 'HEAD')].map((each) => [each, who] as const),
  ),
]);

/** How the routes of the API answer each kind of key, for a request that is valid otherwise. */
const KINDS: readonly (readonly [kind: string, read: number, write: number])[] = [
  ['none', 401, 401],
  ['malformed', 401, 401],
  ['unknown', 401, 401],
  ['revoked read', 401, 401],
  ['revoked write', 401, 401],
  ['read', 200, 403],
  ['read of another', 200, 403],
];

/** Some routes exist only with a mail server. */
const WITH_MAIL = { mail: { smtpUrl: 'smtp://127.0.0.1:1', from: 'scrip@example.com' } };

let scrip: Scrip;
/** The credits of the account at the start. */
const user = someone();
const keys = new Map<string, string | null>();
/** The key with the scope `write`, to make one that is almost the same. */
const secretBytes = randomBytes(SECRET_BYTES);

before(async () => {
  scrip = await startScrip({ console: WITH_MAIL });
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
  // A key that is in use stops within a second of its revocation.
  await sleep(1_100);
});
afterEach(() => mock.restoreAll());
after(() => scrip.stop());

/** The service with a broken authentication. */
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
  if (READS.includes(path)) return scrip.get(path, { end_user_id: endUser }, { key });
  const amount = path.endsWith('/stop-cycle') ? {} : { amount: 1 };
  return scrip.post(path, { end_user_id: endUser, ...amount }, { key });
}

function askRoute(name: string, call: Call): Promise<Reply> {
  const [method, path] = name.split(' ') as [string, string];
  return scrip.call(method, path.replaceAll(/:\w+/g, 'nothing').replace('*', 'nothing'), call);
}

async function stateOf(endUser: string): Promise<string> {
  const [balance, list] = await Promise.all(
    ['/get-active-balance', '/get-all-user-transactions'].map((path) =>
      ask(path, keys.get('write') as string, endUser),
    ),
  );
  return `${balance?.text} ${list?.text}`;
}

/** Routes without a row, and rows without a route. */
function unmatched(routes: readonly string[]): string[] {
  return [...routes.filter((name) => !ROWS.has(name)), ...[...ROWS.keys()].filter((name) => !routes.includes(name))];
}

test('every route has a row with its callers, and every row has a route', () => {
  const { routes } = scrip.service;
  assert(routes.length > 60, 'it is the real list');
  assert.deepEqual(unmatched(routes), []);
  for (const added of ['GET /accounts', 'POST /metrics', 'DELETE /add', 'GET /console/everything', 'GET /v2/add'])
    assert.deepEqual(unmatched([...routes, added]), [added], 'a new route is found');
  assert.deepEqual(unmatched(routes.slice(1)), [routes[0]], 'one that is gone is found');
});

/** The routes that accept or refuse a caller wrongly. */
async function deviations(): Promise<string[]> {
  const found: string[] = [];
  const before = await stateOf(user);
  for (const [kind, read, write] of KINDS) {
    for (const path of [...WRITES, ...READS]) {
      const { status } = await ask(path, keys.get(kind) ?? null);
      if (status !== (READS.includes(path) ? read : write)) found.push(`${kind}: ${path} ${status}`);
    }
  }
  if ((await stateOf(user)) !== before) found.push('something was changed');
  return found;
}

test('each route of the API accepts the keys with its scope, and no other', async () => {
  assert.deepEqual(await deviations(), []);
});

test('control: a service that ignores scopes, or accepts any key, is found', async () => {
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

/** What one account sees or changes of an end user of another, and what it is refused of its own. */
async function leaks(): Promise<string[]> {
  const found: string[] = [];
  const endUser = someone();
  await ask('/add', keys.get('write') as string, endUser);
  await ask('/start-cycle', keys.get('write') as string, endUser);
  const before = await stateOf(endUser);
  const other = keys.get('write of another') as string;
  for (const key of [other, keys.get('read of another') as string]) {
    for (const path of READS) {
      const mine = (await ask(path, key, endUser)).text;
      const unheard = someone();
      if (mine !== (await ask(path, key, unheard)).text.replaceAll(unheard, endUser)) found.push(`${path} shows it`);
    }
  }
  const refused = await ask('/subtract', other, endUser);
  if (refused.body.available !== 0) found.push('/subtract tells of it');
  if ((await ask('/stop-cycle', other, endUser)).status !== 404) found.push('/stop-cycle finds it');
  for (const path of WRITES.filter((path) => path.startsWith('/v1') || path !== '/stop-cycle')) {
    const { status } = await ask(path, other, endUser);
    if (status !== 200 && status !== 409) found.push(`${path} ${status}: not even for its own`);
  }
  if ((await stateOf(endUser)) !== before) found.push('something was changed');
  return found;
}

test('a key of another account works with its own end users, and never sees these', async () => {
  assert.deepEqual(await leaks(), []);
});

test('control: a service that does not take the account from the key is found', async () => {
  const { account } = await acme();
  withAuthenticator((found) => found && { ...found, account });
  const found = await leaks();
  for (const each of [
    '/get-active-balance shows it',
    '/subtract tells of it',
    '/stop-cycle finds it',
    'something was changed',
  ])
    assert(found.includes(each), `${each}: ${found}`);
});

test('no key opens a page of the console, and public pages need none', async () => {
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

test('a separate port for the metrics needs no key, and serves nothing else', async (t) => {
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
  assert.deepEqual(unmatched(service.routes), ['GET /metrics', 'HEAD /metrics'], 'the service has all the others');
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

test('every response forbids MIME sniffing, and none names the server software', async () => {
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
/** Far below the difference of a comparison character by character, and above the noise of a busy machine. */
const DIFFERENCE_MS_MAX = 0.4;

/** How much longer a refusal takes for a key that is right but for its end than for any other: the median of many pairs. */
async function timeDifference(): Promise<number> {
  const near = apiKeySecret('write', secretBytes.with(SECRET_BYTES - 1, (secretBytes.at(-1) as number) ^ 1));
  const far = apiKeySecret('write', secretBytes.with(0, (secretBytes[0] as number) ^ 0x80));
  const differences: number[] = [];
  const timed = async (key: string) => {
    const start = performance.now();
    assert.equal((await ask('/get-active-balance', key)).status, 401);
    return performance.now() - start;
  };
  for (let pair = 0; pair < PAIRS; pair++) {
    // Alternating, since the second of two may be faster.
    const [first, second] = pair % 2 === 0 ? [near, far] : [far, near];
    const difference = (await timed(first)) - (await timed(second));
    differences.push(pair % 2 === 0 ? difference : -difference);
  }
  return differences.sort((a, b) => a - b)[PAIRS / 2] as number;
}

test('the time of a refusal does not depend on how much of a key is right', async () => {
  const asked = mock.method(scrip.service.stores.keys, 'find');
  assert(Math.abs(await timeDifference()) < DIFFERENCE_MS_MAX);
  assert.equal(asked.mock.callCount(), 2 * PAIRS, 'both are whole keys, and looked up');
  for (const { arguments: given } of asked.mock.calls)
    assert.match(given[0], /^[0-9a-f]{64}$/, 'by their SHA-256 alone');
});

test('control: a service that compares a key character by character is found', async () => {
  const right = keys.get('write') as string;
  withAuthenticator((found, authorization) => {
    const secret = authorization?.slice('Bearer '.length) ?? '';
    let same = 0;
    while (same < right.length && secret[same] === right[same]) same++;
    const until = performance.now() + same * 0.05;
    while (performance.now() < until);
    return found;
  });
  assert((await timeDifference()) > DIFFERENCE_MS_MAX);
});
