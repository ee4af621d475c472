// The two reads, which take the end user from the query string or, as the interface has it, from a JSON body.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sendRaw } from './raw-connection.ts';
import { assertFieldRefused, assertProblem, type Scrip, someone, startScrip } from './running-service.ts';

let scrip: Scrip;
before(async () => {
  scrip = await startScrip();
});
after(() => scrip.stop());

for (const path of ['/get-active-balance', '/get-all-user-transactions', '/v1/get-active-balance']) {
  describe(path, () => {
    const user = someone();
    const other = someone();
    before(async () => {
      await scrip.post('/add', { end_user_id: user, amount: 12 });
    });

    const read = (query: string, body?: unknown) => scrip.call('GET', path + query, body === undefined ? {} : { body });
    const head = (more: string) =>
      `GET ${path}?end_user_id=${user} HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${scrip.writeKey}\r\n${more}`;

    test('the end user in the query, in the body and in both gives the same answer', async () => {
      const byQuery = await read(`?end_user_id=${user}`);
      assert.equal(byQuery.status, 200);
      assert.match(byQuery.text, /"amount":12/);
      for (const reply of [
        await read('', { end_user_id: user }),
        await read(`?end_user_id=${user}`, { end_user_id: user }),
        await read(`?end_user_id=${user}`, {}),
      ]) {
        assert.deepEqual([reply.status, reply.text], [200, byQuery.text]);
      }
    });

    test('a body that comes in chunks is a body', async () => {
      const body = JSON.stringify({ end_user_id: user });
      const reply = await sendRaw(
        scrip,
        `GET ${path} HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${scrip.writeKey}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
      );
      assert.equal(reply.status, 200, reply.text);
      assert.equal(reply.body.end_user_id, user);
    });

    test('a content type without a body does no harm', async () => {
      for (const more of ['', 'Content-Length: 0\r\n']) {
        const reply = await sendRaw(scrip, head(`Content-Type: application/json\r\n${more}\r\n`));
        assert.equal(reply.status, 200, reply.text);
      }
    });

    test('one end user in the query and another in the body is refused', async () => {
      for (const body of [{ end_user_id: other }, { end_user_id: null }, { end_user_id: [user] }]) {
        assertFieldRefused(await read(`?end_user_id=${user}`, body), '/end_user_id');
      }
    });

    test('a query parameter that comes twice is refused, alike or not', async () => {
      for (const second of [user, other]) {
        assertFieldRefused(await read(`?end_user_id=${user}&end_user_id=${second}`), '/end_user_id');
      }
      assertFieldRefused(await read(`?end_user_id=${user}&end_user_id=${user}`, { end_user_id: user }), '/end_user_id');
    });

    test('no end user at all is refused', async () => {
      for (const reply of [await read(''), await read('?'), await read('', {}), await read('?end_user_id', {})])
        assertFieldRefused(reply, '/end_user_id');
    });

    test('what is no UUID is refused, however it is written', async () => {
      for (const query of ['?end_user_id=', '?end_user_id=5', '?end_user_id=%zz', `?end_user_id=${user}%00`])
        assertFieldRefused(await read(query), '/end_user_id');
      for (const end_user_id of ['', '5', 5, null, [user], { end_user_id: user }])
        assertFieldRefused(await read('', { end_user_id }), '/end_user_id');
    });

    test('a field that it does not know is refused and named, in the query and in the body', async () => {
      for (const field of ['end_user', 'amount', 'page']) {
        assertFieldRefused(await read(`?end_user_id=${user}&${field}=1`), `/${field}`);
        assertFieldRefused(await read('', { end_user_id: user, [field]: 1 }), `/${field}`);
        assertFieldRefused(await read(`?${field}=1`, { end_user_id: user }), `/${field}`);
      }
    });

    test('a body that is no JSON object is refused', async () => {
      for (const body of ['[]', 'null', '5', '"x"', `["${user}"]`]) {
        assertProblem(await read(`?end_user_id=${user}`, body), 'InvalidField', 422);
      }
      for (const body of ['{', '\ufeff{}', Buffer.from([0xff])]) {
        assertProblem(await read(`?end_user_id=${user}`, body), 'InvalidJson', 400);
      }
      const twice = `{"end_user_id":"${other}","end_user_id":"${user}"}`;
      assertFieldRefused(await read('', twice), '/end_user_id');
    });

    test('a body of another content type, or of none, is refused', async () => {
      const call = { body: JSON.stringify({ end_user_id: user }), headers: { 'content-type': 'text/plain' } };
      assertProblem(await scrip.call('GET', path, call), 'UnsupportedMediaType', 415);
      const reply = await sendRaw(scrip, head('Content-Length: 2\r\n\r\n{}'));
      assert.equal(reply.status, 415, reply.text);
    });

    test('answers are not to be kept by caches', async () => {
      assert.equal((await read(`?end_user_id=${user}`)).headers['cache-control'], 'no-store');
    });
  });
}
