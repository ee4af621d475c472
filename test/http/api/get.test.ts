// Tests reads that name the end user in the query string, in a JSON body, or in both.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sendRaw } from '../raw-connection.ts';
import { assertFieldRefused, assertProblem, type Scrip, someone, startScrip } from '../running-service.ts';

let scrip: Scrip;
before(async () => {
  scrip = await startScrip();
});
after(() => scrip.stop());

for (const path of ['/get-active-balance', '/get-all-user-transactions', '/get-holds', '/v1/get-active-balance']) {
  describe(path, () => {
    const user = someone();
    const other = someone();
    before(async () => {
      for (const call of ['/add', '/add', '/hold']) await scrip.post(call, { end_user_id: user, amount: 12 });
    });

    const read = (query: string, body?: unknown) => scrip.call('GET', path + query, body === undefined ? {} : { body });
    const head = (more: string) =>
      `GET ${path}?end_user_id=${user} HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${scrip.writeKey}\r\n${more}`;

    test('a read gets the same response with the end user in the query string, in the body or in both', async () => {
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

    test('a read with a chunked body is accepted', async () => {
      const body = JSON.stringify({ end_user_id: user });
      const reply = await sendRaw(
        scrip,
        `GET ${path} HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${scrip.writeKey}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
      );
      assert.equal(reply.status, 200, reply.text);
      assert.equal(reply.body.end_user_id, user);
    });

    test('a read without a body is accepted with any content type', async () => {
      for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'json', '']) {
        for (const more of ['', 'Content-Length: 0\r\n']) {
          const reply = await sendRaw(scrip, head(`Content-Type: ${type}\r\n${more}\r\n`));
          assert.equal(reply.status, 200, `${type}: ${reply.text}`);
        }
      }
    });

    test('a read with different end users in the query string and in the body is refused', async () => {
      for (const body of [{ end_user_id: other }, { end_user_id: null }, { end_user_id: [user] }]) {
        assertFieldRefused(await read(`?end_user_id=${user}`, body), '/end_user_id');
      }
    });

    test('a read with a duplicate query parameter is refused', async () => {
      for (const second of [user, other]) {
        assertFieldRefused(await read(`?end_user_id=${user}&end_user_id=${second}`), '/end_user_id');
      }
      assertFieldRefused(await read(`?end_user_id=${user}&end_user_id=${user}`, { end_user_id: user }), '/end_user_id');
    });

    test('a read without an end user is refused', async () => {
      for (const reply of [await read(''), await read('?'), await read('', {}), await read('?end_user_id', {})])
        assertFieldRefused(reply, '/end_user_id');
    });

    test('a read with an end_user_id that is not a UUID is refused', async () => {
      for (const query of ['?end_user_id=', '?end_user_id=5', '?end_user_id=%zz', `?end_user_id=${user}%00`])
        assertFieldRefused(await read(query), '/end_user_id');
      for (const end_user_id of ['', '5', 5, null, [user], { end_user_id: user }])
        assertFieldRefused(await read('', { end_user_id }), '/end_user_id');
    });

    test('a read with an unknown field in the query string or in the body is refused, and the response names the field', async () => {
      for (const field of ['end_user', 'amount', 'page']) {
        assertFieldRefused(await read(`?end_user_id=${user}&${field}=1`), `/${field}`);
        assertFieldRefused(await read('', { end_user_id: user, [field]: 1 }), `/${field}`);
        assertFieldRefused(await read(`?${field}=1`, { end_user_id: user }), `/${field}`);
      }
    });

    test('a read with a body that is not a JSON object is refused', async () => {
      for (const body of ['[]', 'null', '5', '"x"', `["${user}"]`]) {
        assertProblem(await read(`?end_user_id=${user}`, body), 'InvalidField', 422);
      }
      for (const body of ['{', '\ufeff{}', Buffer.from([0xff])]) {
        assertProblem(await read(`?end_user_id=${user}`, body), 'InvalidJson', 400);
      }
      const twice = `{"end_user_id":"${other}","end_user_id":"${user}"}`;
      assertFieldRefused(await read('', twice), '/end_user_id');
    });

    test('a read with a body is refused if the content type is missing or is not application/json', async () => {
      const call = { body: JSON.stringify({ end_user_id: user }), headers: { 'content-type': 'text/plain' } };
      assertProblem(await scrip.call('GET', path, call), 'UnsupportedMediaType', 415);
      const reply = await sendRaw(scrip, head('Content-Length: 2\r\n\r\n{}'));
      assert.equal(reply.status, 415, reply.text);
    });

    test('responses to reads have Cache-Control: no-store', async () => {
      assert.equal((await read(`?end_user_id=${user}`)).headers['cache-control'], 'no-store');
    });
  });
}
