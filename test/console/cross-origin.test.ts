// Which requests are taken for those of another site's page: the rule as a table, and the console keeping to it.

import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { test } from 'node:test';
import { isCrossOrigin } from '../../src/console/cross-origin.ts';
import { assertGoesTo, newOwner, onBothStores } from './visitor.ts';

const HOST = 'scrip.internal:8080';
const PUBLIC = 'https://scrip.example';

const ROWS: readonly (readonly [what: string, method: string, headers: IncomingHttpHeaders, isCrossOrigin: boolean])[] =
  [
    ['a link from another site', 'GET', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }, false],
    ['a look at the head', 'HEAD', { 'sec-fetch-site': 'cross-site' }, false],
    ['its own form', 'POST', { 'sec-fetch-site': 'same-origin', origin: 'null' }, false],
    ['a form typed into the address bar', 'POST', { 'sec-fetch-site': 'none' }, false],
    ['a form of another site', 'POST', { 'sec-fetch-site': 'cross-site' }, true],
    ['a form of a sister site', 'POST', { 'sec-fetch-site': 'same-site' }, true],
    [
      'a form of another site that claims its origin',
      'POST',
      { 'sec-fetch-site': 'cross-site', origin: `http://${HOST}` },
      true,
    ],
    ['an unknown word', 'POST', { 'sec-fetch-site': 'whatever' }, true],
    ['an empty word', 'POST', { 'sec-fetch-site': '' }, true],
    ['its own form, in an old browser', 'POST', { origin: `http://${HOST}` }, false],
    ['its own form through a proxy, in an old browser', 'POST', { origin: PUBLIC }, false],
    ['the same with the port said', 'POST', { origin: `${PUBLIC}:443` }, false],
    ['another site, in an old browser', 'POST', { origin: 'https://evil.example' }, true],
    ['the same host on another port', 'POST', { origin: 'http://scrip.internal:9090' }, true],
    ['a host that begins alike', 'POST', { origin: `${PUBLIC}.evil.example` }, true],
    ['a page that may not be named', 'POST', { origin: 'null' }, true],
    ['what is no origin', 'POST', { origin: 'scrip.example' }, true],
    ['an empty origin', 'POST', { origin: '' }, true],
    ['no browser', 'POST', {}, false],
    ['another method', 'DELETE', { origin: 'https://evil.example' }, true],
  ];

for (const [what, method, headers, expected] of ROWS) {
  test(`${what} is ${expected ? 'refused' : 'let through'}`, () => {
    assert.equal(isCrossOrigin(method, { host: HOST, ...headers }, PUBLIC), expected);
  });
}

test('without a public address, only the host of the request counts', () => {
  assert(isCrossOrigin('POST', { host: HOST, origin: PUBLIC }, null));
  assert(!isCrossOrigin('POST', { host: HOST.toUpperCase(), origin: `http://${HOST}` }, null));
  assert(isCrossOrigin('POST', { origin: `http://${HOST}` }, null), 'a request that names no host');
});

onBothStores('a form of another site', (start) => {
  test('changes nothing', async () => {
    const { scrip, sql } = await start();
    const owner = await newOwner(scrip);
    for (const path of ['/console/sign-out', '/console/members/invite', '/console/sign-in', '/console/nowhere']) {
      const reply = await owner.post(path, { role: 'owner' }, { 'sec-fetch-site': 'cross-site' });
      assert.equal(reply.status, 403, path);
      assert.match(reply.text, /This request came from another site/);
    }
    assert(await owner.isSignedIn());
    assert.equal((await sql('SELECT * FROM console_invitations')).length, 0);
    const own = await owner.post('/console/sign-out', {}, { 'sec-fetch-site': 'same-origin', origin: 'null' });
    assertGoesTo(own, '/console/sign-in?notice=signed-out');
  });
});
