// Tests unusual requests to the console: text that cannot be stored, forms without a session, and paths with a trailing
// slash.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RawConnection } from '../http/raw-connection.ts';
import { assertGoesTo, newOwner, onBothStores, onOneStore, Visitor } from './visitor.ts';

const END_USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';
const PAGE = `/console/end-users/${END_USER}`;

onBothStores('console requests with invalid text', (start) => {
  test('a console request with the character U+0000 in a form, a query or a path is refused, and later writes succeed', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const replies = [
      await owner.post(`${PAGE}/add`, { amount: '1', validity: '31', idempotency_key: '\0' }),
      await owner.post(`${PAGE}/add`, { amount: '1', validity: '31', note: 'a\0b' }),
      await owner.postBody('/console/webhooks', 'url=https%3A%2F%2Fexample.com&types=credits.added&types=%00'),
      await new Visitor(scrip).signIn('a\0@example.com'),
      await owner.get('/console/webhooks/1?before=%00'),
      await owner.get('/console/webhooks/1/deliveries/%00'),
    ];
    for (const { status, text } of replies) {
      assert.equal(status, 400);
      assert.match(text, /<h1>Invalid request<\/h1>[\s\S]*contains the character U\+0000/);
    }
    const added = await scrip.post('/add', { end_user_id: END_USER, amount: 5 });
    assert.equal(added.status, 200);
    assert.match((await owner.get(PAGE)).text, /class="large-number">5</);
  });
});

onOneStore('console requests', (start) => {
  test('a console form that is sent after the session has ended changes nothing, and the sign-in page says so', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    await owner.post('/console/sign-out');
    const reply = await owner.post(`${PAGE}/add`, { amount: '1', validity: '31' });
    assertGoesTo(reply, '/console/sign-in?notice=session-ended');
    const { text } = await owner.get(String(reply.headers.location));
    assert.match(text, /role="status">Nothing was changed, because your session has ended\./);
    assertGoesTo(await owner.get(PAGE), '/console/sign-in');
  });

  test('a console path with a trailing slash redirects to the path without the slash, even for a path such as /console/end-users/, where an ID could follow', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    for (const path of ['/console', '/console/end-users', '/console/webhooks', '/console/nowhere'])
      assertGoesTo(await owner.get(`${path}/`), path);
    assertGoesTo(await owner.get('/console/end-users/?list=balance'), '/console/end-users?list=balance');
  });

  test('a request whose target names another host is redirected only to a path of the console', async () => {
    const { scrip } = await start();
    for (const [target, path] of [
      ['http://evil.example/console/', '/console'],
      ['HTTPS://evil.example:1/console/end-users//?a=/', '/console/end-users?a=/'],
    ]) {
      const connection = await RawConnection.open(scrip);
      connection.send(`GET ${target} HTTP/1.1\r\nHost: evil.example\r\n\r\n`);
      const reply = await connection.answer();
      assert.deepEqual([reply?.status, reply?.headers.get('location')], [303, path]);
    }
  });
});
