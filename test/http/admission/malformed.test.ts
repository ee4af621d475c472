// Tests that a client gets a problem document if it sends bytes that are not a valid HTTP request, and that other
// connections are not affected.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { postText, RawConnection, sendRaw } from '../raw-connection.ts';
import { assertProblem, type Scrip, someone, startScrip } from '../running-service.ts';

let scrip: Scrip;
before(async () => {
  scrip = await startScrip();
});
after(() => scrip.stop());

const BAD_REQUESTS: readonly (readonly [name: string, bytes: string])[] = [
  ['text that is not HTTP', 'hello there\r\n\r\n'],
  ['a TLS handshake', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ['an unknown HTTP version', 'GET /healthz HTTP/9.9\r\nHost: scrip\r\n\r\n'],
  ['the HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['a path with a space', 'GET /health z HTTP/1.1\r\nHost: scrip\r\n\r\n'],
  ['a method that does not exist', 'SPEND /add HTTP/1.1\r\nHost: scrip\r\n\r\n'],
  ['a header without a name', 'GET /healthz HTTP/1.1\r\nHost: scrip\r\n: x\r\n\r\n'],
  ['a null byte in a header', 'GET /healthz HTTP/1.1\r\nHost: scrip\r\nX: a\0b\r\n\r\n'],
  ['a Content-Length that is not a number', 'POST /add HTTP/1.1\r\nHost: scrip\r\nContent-Length: x\r\n\r\n'],
  ['a negative Content-Length', 'POST /add HTTP/1.1\r\nHost: scrip\r\nContent-Length: -1\r\n\r\n'],
  [
    'two different Content-Length headers',
    'POST /add HTTP/1.1\r\nHost: scrip\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}',
  ],
  [
    'both a Content-Length and a Transfer-Encoding',
    'POST /add HTTP/1.1\r\nHost: scrip\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
  ['an unknown transfer encoding', 'POST /add HTTP/1.1\r\nHost: scrip\r\nTransfer-Encoding: x\r\n\r\n{}'],
  [
    'a transfer encoding whose name ends in "chunked"',
    'POST /add HTTP/1.1\r\nHost: scrip\r\nTransfer-Encoding: xchunked\r\n\r\n{}',
  ],
  ['a request line without a version', 'GET /healthz\r\nHost: scrip\r\n\r\n'],
  ['a request without a Host header', 'GET /healthz HTTP/1.1\r\n\r\n'],
];

for (const [name, bytes] of BAD_REQUESTS) {
  test(`a client that sends ${name} gets BadRequest, and the connection is closed`, async () => {
    const connection = await RawConnection.open(scrip);
    connection.send(Buffer.from(bytes, 'latin1'));
    const reply = await connection.answer();
    assert(reply, 'the client gets a response');
    assertProblem({ ...reply, headers: Object.fromEntries(reply.headers) }, 'BadRequest', 400);
    assert.equal(reply.headers.get('connection'), 'close');
    assert.equal(await connection.untilClosed(), '', 'the client gets only one response');
    assert.equal((await scrip.call('GET', '/healthz')).status, 200);
  });
}

test('a write whose request line has no HTTP version is refused and changes nothing', async () => {
  const user = someone();
  const connection = await RawConnection.open(scrip);
  connection.send(postText(scrip, '/add', { end_user_id: user, amount: 5 }).replace(' HTTP/1.1', ''));
  assert.equal((await connection.answer())?.status, 400);
  await connection.untilClosed();
  assert.equal((await scrip.balance(user)).active_balance, 0);
});

test('a request with an unknown Expect header gets a problem document', async () => {
  const reply = await sendRaw(scrip, 'GET /healthz HTTP/1.1\r\nHost: scrip\r\nExpect: a-miracle\r\n\r\n');
  assert.equal(reply.headers.get('content-type'), 'application/problem+json');
  assert.equal(reply.body.status, reply.status);
});

test('a client that sends Expect: 100-continue gets 100 Continue', async () => {
  const user = someone();
  const connection = await RawConnection.open(scrip);
  const addition = postText(scrip, '/add', { end_user_id: user, amount: 5 });
  connection.send(addition.replace('Host:', 'Expect: 100-continue\r\nHost:'));
  assert.deepEqual(
    (await connection.answers(2)).map(({ status }) => status),
    [100, 200],
  );
});

for (const path of ['/%zz', '/add/%zz', '/get-active-balance/%e0%a4%a', '/%']) {
  test(`a request for the undecodable path ${path} gets BadRequest`, async () => {
    assertProblem(await scrip.call('GET', path), 'BadRequest', 400);
    assertProblem(await scrip.call('POST', path, { body: {} }), 'BadRequest', 400);
  });
}

test('a request for a very long path gets a short problem document', async () => {
  for (const path of [`/${'x'.repeat(10_000)}`, `/problems/${'x'.repeat(10_000)}`]) {
    const reply = await scrip.call('GET', path);
    assert.equal(reply.headers['content-type'], 'application/problem+json');
    assert(reply.status === 404 || reply.status === 400);
  }
});

test('if invalid bytes follow a valid request, the problem document for these bytes is not sent as the response to the valid request', async () => {
  const user = someone();
  const connection = await RawConnection.open(scrip);
  connection.send(`${postText(scrip, '/add', { end_user_id: user, amount: 5 })}this is no request\r\n\r\n`);
  // A 400 would wrongly say that the valid request changed nothing.
  const reply = await connection.answer();
  await connection.untilClosed();
  const { active_balance } = await scrip.balance(user);
  assert.deepEqual([reply?.status ?? 200, active_balance], [200, 5], reply?.text ?? 'no response');
});

test('if a request with a broken body follows valid requests, the valid requests get their responses before the problem document', async () => {
  const user = someone();
  const connection = await RawConnection.open(scrip);
  const addition = postText(scrip, '/add', { end_user_id: user, amount: 5 });
  const broken = addition.replace(/Content-Length[\s\S]*/, 'Transfer-Encoding: chunked\r\n\r\nthis is no chunk\r\n');
  connection.send(addition + addition + broken);
  const statuses: (number | undefined)[] = [];
  for (let reply = await connection.answer(); reply; reply = await connection.answer()) statuses.push(reply.status);
  assert.deepEqual(statuses, [200, 200, 400]);
  assert.equal((await scrip.balance(user)).active_balance, 10);
});

test('an HTTP/1.0 request needs no Host header', async () => {
  assert.equal((await sendRaw(scrip, 'GET /healthz HTTP/1.0\r\n\r\n')).status, 200);
});

test('a request whose body is shorter than its Content-Length changes nothing', async () => {
  const user = someone();
  const connection = await RawConnection.open(scrip);
  connection.send(postText(scrip, '/add', { end_user_id: user, amount: 5 }).slice(0, -1));
  connection.socket.end();
  await connection.untilClosed();
  assert.equal((await scrip.balance(user)).active_balance, 0);
});

test('after a request with a body that is not JSON, the next request on the connection is processed', async () => {
  const user = someone();
  const connection = await RawConnection.open(scrip);
  const addition = postText(scrip, '/add', { end_user_id: user, amount: 5 });
  connection.send(
    postText(scrip, '/add', '{x') + postText(scrip, '/add', { end_user_id: user, amount: 1.5 }) + addition,
  );
  const replies = await connection.answers(3);
  assert.deepEqual(
    replies.map(({ status }) => status),
    [400, 422, 200],
  );
  assert.equal((await scrip.balance(user)).active_balance, 5);
});

const CLOSING: readonly (readonly [name: string, change: (request: string) => string, status: number])[] = [
  ['no Host header', (request) => request.replace(/Host.*\r\n/, ''), 400],
  [
    'a body that is too large',
    (request) => `${request.replace(/Length: \d+/, 'Length: 70000').replace(/{.*/, '')}${' '.repeat(70_000)}`,
    413,
  ],
];

for (const [name, change, status] of CLOSING) {
  test(`after a request with ${name}, the server closes the connection and processes none of the pipelined requests that follow`, async () => {
    const user = someone();
    const connection = await RawConnection.open(scrip);
    const addition = postText(scrip, '/add', { end_user_id: user, amount: 5 });
    connection.send(addition + change(addition) + addition + addition);
    assert.equal((await connection.answer())?.status, 200, 'the request before is processed');
    const reply = await connection.answer();
    assert.deepEqual([reply?.status, reply?.headers.get('connection')], [status, 'close']);
    assert.equal(await connection.untilClosed(), '');
    assert.equal((await scrip.balance(user)).active_balance, 5);
  });
}
