// Tests which requests count as cross-origin, and that the console refuses forms from other websites.

import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { test } from 'node:test';
import { isCrossOrigin } from '../../src/console/cross-origin.ts';
import { assertGoesTo, newOwner, onOneStore } from './visitor.ts';

const HOST = 'scrip.internal:8080';
const PUBLIC = 'https://scrip.example';

const ROWS: readonly (readonly [
  request: string,
  method: string,
  headers: IncomingHttpHeaders,
  isCrossOrigin: boolean,
])[] = [
  [
    'a GET request from a link on another site',
    'GET',
    { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
    false,
  ],
  ['a HEAD request from another site', 'HEAD', { 'sec-fetch-site': 'cross-site' }, false],
  ['a form of the console', 'POST', { 'sec-fetch-site': 'same-origin', origin: 'null' }, false],
  ['a request that the user started, such as a reload', 'POST', { 'sec-fetch-site': 'none' }, false],
  ['a form from another site', 'POST', { 'sec-fetch-site': 'cross-site' }, true],
  ['a form from another subdomain', 'POST', { 'sec-fetch-site': 'same-site' }, true],
  [
    'a form from another site with a forged Origin',
    'POST',
    { 'sec-fetch-site': 'cross-site', origin: `http://${HOST}` },
    true,
  ],
  ['an unknown Sec-Fetch-Site value', 'POST', { 'sec-fetch-site': 'whatever' }, true],
  ['an empty Sec-Fetch-Site', 'POST', { 'sec-fetch-site': '' }, true],
  ['a form of the console in an old browser', 'POST', { origin: `http://${HOST}` }, false],
  ['a form of the console behind a proxy in an old browser', 'POST', { origin: PUBLIC }, false],
  [
    'a form of the console behind a proxy in an old browser with the default port in Origin',
    'POST',
    { origin: `${PUBLIC}:443` },
    false,
  ],
  ['a form of the console over plain HTTP in an old browser', 'POST', { origin: 'http://scrip.example' }, true],
  ['a form from another site in an old browser', 'POST', { origin: 'https://evil.example' }, true],
  ['a form from another port on the same host', 'POST', { origin: 'http://scrip.internal:9090' }, true],
  [
    "a form from another host whose name begins with the server's name",
    'POST',
    { origin: `${PUBLIC}.evil.example` },
    true,
  ],
  ['a page that hides its origin', 'POST', { origin: 'null' }, true],
  ['a malformed Origin', 'POST', { origin: 'scrip.example' }, true],
  ['an empty Origin', 'POST', { origin: '' }, true],
  ['a client that is not a browser', 'POST', {}, false],
  ['a DELETE from another site', 'DELETE', { origin: 'https://evil.example' }, true],
];

for (const [request, method, headers, expected] of ROWS) {
  test(`${request} ${expected ? 'counts' : 'does not count'} as cross-origin`, () => {
    assert.equal(isCrossOrigin(method, { host: HOST, ...headers }, PUBLIC), expected);
  });
}

test('without PUBLIC_URL, the console compares Origin only with the Host header', () => {
  assert(isCrossOrigin('POST', { host: HOST, origin: PUBLIC }, null));
  assert(!isCrossOrigin('POST', { host: HOST.toUpperCase(), origin: `http://${HOST}` }, null));
  assert(isCrossOrigin('POST', { origin: `http://${HOST}` }, null), 'a request without a Host header');
});

onOneStore('cross-origin forms', (start) => {
  test('a form sent by another website is refused and changes nothing', async () => {
    const { scrip, sql } = await start();
    const owner = await newOwner(scrip);
    for (const path of ['/console/sign-out', '/console/members/invite', '/console/sign-in', '/console/nowhere']) {
      const reply = await owner.post(path, { role: 'owner' }, { 'sec-fetch-site': 'cross-site' });
      assert.equal(reply.status, 403, path);
      assert.match(reply.text, /This request came from another website/);
    }
    assert(await owner.isSignedIn());
    assert.equal((await sql('SELECT * FROM console_invitations')).length, 0);
    const own = await owner.post('/console/sign-out', {}, { 'sec-fetch-site': 'same-origin', origin: 'null' });
    assertGoesTo(own, '/console/sign-in?notice=signed-out');
  });
});
