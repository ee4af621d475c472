// Tests every route of the server against a table of permissions.

import assert from 'node:assert/strict';
import { hash, randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { PERMISSIONS } from '../../src/console/permissions.ts';
import { eventually, type Reply } from '../http/running-service.ts';
import { assertGoesTo, invite, onOneStore, PASSWORD, type Started, someEmail, Visitor } from './visitor.ts';

const WRITES = [
  ...['add', 'subtract', 'start-cycle', 'stop-cycle', 'hold', 'capture', 'release', 'refund', 'test-clock'],
].map((name) => `POST /${name}`);
const READS = [
  ...[
    '/get-active-balance',
    '/get-balance-history',
    '/get-holds',
    '/get-all-user-transactions',
    '/get-events',
    '/test-clock',
  ].flatMap((path) => [`GET ${path}`, `HEAD ${path}`]),
  'POST /preview-change',
];
const versioned = (name: string) => name.replace(' /', ' /v1/');

const OPERATIONS = [
  ...['/healthz', '/readyz', '/metrics', '/openapi.json', '/problems/:error'].flatMap((path) => [
    `GET ${path}`,
    `HEAD ${path}`,
  ]),
];

type RouteAccess = 'write-key' | 'read-key' | 'anyone' | 'signed-in' | 'member' | 'owner';

const TABLE = new Map<string, RouteAccess>([
  ...[...WRITES, ...WRITES.map(versioned)].map((name) => [name, 'write-key'] as const),
  ...[...READS, ...READS.map(versioned)].map((name) => [name, 'read-key'] as const),
  ...OPERATIONS.map((name) => [name, 'anyone'] as const),
  ...Object.entries(PERMISSIONS),
  ...Object.entries(PERMISSIONS).map(([name, access]) => [name.replace(/^GET/, 'HEAD'), access] as const),
]);

const rows = (...kinds: readonly RouteAccess[]) =>
  [...TABLE].filter(([, access]) => kinds.includes(access)).map(([name]) => name);
const consoleRows = (...kinds: readonly RouteAccess[]) =>
  rows(...kinds).filter((name) => /^\w+ \/(console|$)/.test(name));

/** The IDs in the path do not exist, so that no request revokes a key or removes a member or an endpoint. */
function split(name: string): { method: string; path: string } {
  const [method, path] = name.split(' ') as [string, string];
  return { method, path: path.replaceAll(/:\w+/g, 'nothing').replace('*', 'nothing') };
}

function request(visitor: Visitor, name: string): Promise<Reply> {
  const { method, path } = split(name);
  if (method === 'HEAD') return visitor.head(path);
  return method === 'GET' ? visitor.get(path) : visitor.post(path);
}

const WITH_MAIL = { mail: { smtpUrl: 'smtp://127.0.0.1:1', from: 'scrip@example.com' } };

/** The test receives no mail, so this function replaces the token of the confirmation link with a known token. */
async function signedIn({ scrip, sql }: Started, signUp: (visitor: Visitor, email: string) => Promise<Reply>) {
  const visitor = Object.assign(new Visitor(scrip), { email: someEmail() });
  assert.equal((await signUp(visitor, visitor.email)).status, 303);
  if (await visitor.isSignedIn()) return visitor;
  const link = `UPDATE console_pending_users SET token_sha256 = '${hash('sha256', visitor.email, 'hex')}'
    WHERE email = '${visitor.email}' RETURNING email`;
  await eventually(async () => (await sql(link)).length === 1, 'a confirmation link exists');
  assertGoesTo(await visitor.post(`/console/verify/${visitor.email}`, { password: PASSWORD }), '/console/overview');
  return visitor;
}

const newOwner = (started: Started) => signedIn(started, (visitor, email) => visitor.signUp({ email }));

async function newMember(started: Started, owner: Visitor): Promise<Visitor> {
  const link = await invite(owner, 'member');
  return signedIn(started, (visitor, email) => visitor.post(link, { email, password: PASSWORD }));
}

onOneStore('permissions', (start) => {
  test('every route of the console is open only to users with the permission that the route requires', async () => {
    const started = await start(WITH_MAIL);
    const owner = await newOwner(started);
    const visitors = {
      signedOut: new Visitor(started.scrip),
      apiKey: new Visitor(started.scrip, { authorization: `Bearer ${started.scrip.writeKey}` }),
      member: await newMember(started, owner),
      owner,
    };
    const signInRedirect = /^303 \/console\/sign-in(?:\?notice=session-ended)?$/;
    const ownersOnly = (name: string) => (name.startsWith('HEAD') ? /^403 $/ : /^403 .*only owners/i);
    const respond = async (who: keyof typeof visitors, name: string) => {
      const { status, headers, text } = await request(visitors[who], name);
      return `${status} ${headers.location ?? text.replaceAll(/\s+/g, ' ')}`;
    };
    for (const name of consoleRows('signed-in', 'member', 'owner')) {
      for (const who of ['signedOut', 'apiKey'] as const)
        assert.match(await respond(who, name), signInRedirect, `${who}: ${name}`);
      const reply = await respond('owner', name);
      assert.doesNotMatch(reply, signInRedirect, `owner: ${name}`);
      assert.doesNotMatch(reply, /^(403|5)/, `owner: ${name}`);
      const ofMember = await respond('member', name);
      if (TABLE.get(name) === 'owner') assert.match(ofMember, ownersOnly(name), `member: ${name}`);
      else assert.doesNotMatch(ofMember, /^(403|5)|^303 \/console\/sign-in/, `member: ${name}`);
    }
    for (const name of consoleRows('anyone')) {
      if (name.endsWith(' /console')) continue;
      for (const who of ['signedOut', 'apiKey', 'member'] as const) {
        const reply = await respond(who, name);
        assert.doesNotMatch(reply, signInRedirect, `${who}: ${name}`);
        assert.doesNotMatch(reply, /^(403|5)/, `${who}: ${name}`);
      }
    }
  });

  test('every route of the server has a row in the table of permissions, and every row has a route', async () => {
    const { scrip } = await start(WITH_MAIL);
    const { routes } = scrip.service;
    assert(routes.length > 30, 'the list of routes is complete');
    assert.deepEqual(
      routes.filter((name) => !TABLE.has(name)),
      [],
      'a route without a row',
    );
    assert.deepEqual(
      [...TABLE.keys()].filter((name) => !routes.includes(name)),
      [],
      'a row without a route',
    );
  });

  test('a console session gives no access to the API, and an API key gives only the access that its scope allows', async () => {
    const started = await start();
    const owner = await newOwner(started);
    const cookie = [...owner.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const secret = [...owner.cookies.values()][0] as string;
    const call = (name: string, key: string | null, headers = {}) => {
      const { method, path } = split(name);
      const body = { end_user_id: randomUUID(), amount: 1 };
      if (method === 'POST') return started.scrip.call(method, path, { body, key, headers });
      return started.scrip.call(method, `${path}?end_user_id=${body.end_user_id}`, { key, headers });
    };
    for (const name of rows('write-key', 'read-key')) {
      assert.equal((await call(name, null, { cookie })).status, 401, name);
      assert.equal((await call(name, secret, { cookie })).status, 401, name);
      assert.notEqual((await call(name, started.scrip.writeKey)).status, 401, name);
      const isRead = TABLE.get(name) === 'read-key';
      const admitted = /\/(?:test-clock|get-events)$/.test(name) ? 422 : 200;
      assert.equal((await call(name, started.scrip.readKey)).status, isRead ? admitted : 403, name);
    }
    for (const name of OPERATIONS) assert((await call(name, null)).status < 500, name);
  });

  test('every response of the console, including redirects and errors, has strict security headers', async () => {
    const started = await start();
    const owner = await newOwner(started);
    const visitor = new Visitor(started.scrip);
    const replies = [
      await owner.get('/console/members'),
      await visitor.get('/'),
      await visitor.get('/console'),
      await visitor.get('/console/sign-in'),
      await visitor.get('/console/nowhere'),
      await visitor.get('/console/%zz'),
      await visitor.post('/console/sign-in', {}, { 'content-type': 'application/json' }),
      await visitor.post('/console/sign-in', {}, { 'sec-fetch-site': 'cross-site' }),
      await visitor.post('/console/sign-in', { email: 'x'.repeat(70_000) }),
      await owner.post('/console/api-keys', { name: 'x'.repeat(70_000) }),
    ];
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 303, 303, 200, 404, 404, 415, 403, 413, 413],
    );
    assert.match(
      replies.at(-1)?.text ?? '',
      />Sign out</,
      'the page of an error shows that the user is still signed in',
    );
    for (const { status, headers } of replies) {
      assert.equal(
        headers['content-security-policy'],
        "default-src 'none';style-src 'self';script-src 'self';img-src 'self';form-action 'self';frame-ancestors 'none';base-uri 'none'",
      );
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.equal(headers['referrer-policy'], 'same-origin');
      assert.equal(headers['cache-control'], 'no-store');
      if (status !== 303) assert.equal(headers['content-type'], 'text/html; charset=utf-8');
    }
  });

  test("the console's rules for security headers, forms and cross-site requests do not apply to the API", async () => {
    const { scrip } = await start();
    for (const path of ['/nowhere', '/consolex', '/v1/console']) {
      const reply = await scrip.call('GET', path);
      assert.deepEqual([reply.status, reply.headers['content-type']], [404, 'application/problem+json'], path);
      assert.equal(reply.headers['content-security-policy'], undefined);
    }
    const form = await scrip.call('POST', '/add', {
      body: 'amount=1',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    assert.deepEqual([form.status, form.body.error], [415, 'UnsupportedMediaType']);
    const crossSite = await scrip.post(
      '/add',
      { end_user_id: '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23', amount: 1 },
      {
        headers: { 'sec-fetch-site': 'cross-site' },
      },
    );
    assert.equal(crossSite.status, 200);
    assert(!JSON.stringify((await scrip.call('GET', '/openapi.json')).body).includes('/console'));
  });
});
