// Tests the size limits of a request, and the memory use of thousands of pipelined requests.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { postText, RawConnection, sendRaw } from '../raw-connection.ts';
import { assertFieldRefused, assertProblem, type Scrip, someone, startScrip } from '../running-service.ts';
import { stallWrites } from '../stalled-writes.ts';

const BODY_BYTES_MAX = 65_536;
const HEADER_BYTES_MAX = 16_384;

let scrip: Scrip;
before(async () => {
  scrip = await startScrip();
});
after(() => scrip.stop());

function paddedTo(bytes: number, user: string): string {
  return `{"end_user_id":"${user}","amount":5}`.padEnd(bytes);
}

function chunked(path: string, body: string): string {
  const chunks = [body.slice(0, 1_000), body.slice(1_000)].map(
    (chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`,
  );
  return `POST ${path} HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${scrip.writeKey}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunks.join('')}0\r\n\r\n`;
}

test('a request body of 64 KiB is accepted, and a body that is one byte longer gets PayloadTooLarge', async () => {
  const user = someone();
  assert.equal((await scrip.call('POST', '/add', { body: paddedTo(BODY_BYTES_MAX, user) })).status, 200);
  const tooLarge = await scrip.call('POST', '/add', { body: paddedTo(BODY_BYTES_MAX + 1, user) });
  assertProblem(tooLarge, 'PayloadTooLarge', 413);
  assert.equal((await scrip.balance(user)).active_balance, 5);
});

test('the response to an invalid body of 64 KiB names the invalid field', async () => {
  const body = `{"end_user_id":"${someone()}","amount":5,"note":"${'x'.repeat(60_000)}"}`.padEnd(BODY_BYTES_MAX);
  assertFieldRefused(await scrip.call('POST', '/add', { body }), '/note');
});

test('a chunked request body of 64 KiB without a Content-Length is accepted', async () => {
  const user = someone();
  const fits = await sendRaw(scrip, chunked('/add', paddedTo(BODY_BYTES_MAX, user)));
  assert.equal(fits.status, 200, fits.text);
  const tooLarge = await sendRaw(scrip, chunked('/add', paddedTo(BODY_BYTES_MAX + 1, user)));
  assert.deepEqual([tooLarge.status, tooLarge.body.error], [413, 'PayloadTooLarge']);
  assert.equal((await scrip.balance(user)).active_balance, 5);
});

test('a request whose Content-Length exceeds the limit is refused before its body arrives', async () => {
  const head = postText(scrip, '/add', {}).replace(/Content-Length: 2[\s\S]*/, 'Content-Length: 10000000000\r\n\r\n');
  const reply = await sendRaw(scrip, head);
  assert.deepEqual([reply.status, reply.body.error], [413, 'PayloadTooLarge']);
});

test('a GET request with a body of 64 KiB is accepted', async () => {
  const body = `{"end_user_id":"${someone()}"}`;
  assert.equal((await scrip.call('GET', '/get-active-balance', { body: body.padEnd(BODY_BYTES_MAX) })).status, 200);
  const tooLarge = await scrip.call('GET', '/get-active-balance', { body: body.padEnd(BODY_BYTES_MAX + 1) });
  assertProblem(tooLarge, 'PayloadTooLarge', 413);
});

test('a request with more than 16 KiB of headers gets HeadersTooLarge, and the connection is closed', async () => {
  const connection = await RawConnection.open(scrip);
  const requestOf = (bytes: number) => {
    const long = bytes - ['/healthz', 'Host', 'scrip', 'X-Long'].join('').length;
    return `GET /healthz HTTP/1.1\r\nHost: scrip\r\nX-Long: ${'x'.repeat(long)}\r\n\r\n`;
  };
  connection.send(requestOf(HEADER_BYTES_MAX + 1));
  const reply = await connection.answer();
  assert.deepEqual([reply?.status, reply?.body.error], [431, 'HeadersTooLarge']);
  assert.equal(reply?.headers.get('content-type'), 'application/problem+json');
  await connection.untilClosed();
  assert.equal((await sendRaw(scrip, requestOf(HEADER_BYTES_MAX))).status, 200);
});

/** About ten times as many requests as Node parses before Scrip can pause the connection. */
const PIPELINED = 3_000;

for (const store of ['a running store', 'a store that stalls for a while']) {
  test(`with ${store}, ${PIPELINED} requests pipelined on one connection all get responses, and memory use stays bounded`, async (t) => {
    const user = someone();
    const credits = PIPELINED / 3;
    await scrip.post('/add', { end_user_id: user, amount: credits });
    const growthOf = watchMemory();
    const stalled = store === 'a running store' ? null : stallWrites(t, scrip);
    const connection = await RawConnection.open(scrip);
    connection.send(postText(scrip, '/subtract', { end_user_id: user, amount: 1 }).repeat(PIPELINED));
    await stalled?.waiting(1);
    stalled?.resume();
    const statuses = (await connection.answers(PIPELINED)).map(({ status }) => status);
    const expected = statuses.map((_, index) => (index < credits ? 200 : 402));
    assert.deepEqual(statuses, expected);
    assert.equal((await scrip.balance(user)).active_balance, 0);
    const growth = growthOf();
    assert(growth < MEMORY_GROWTH_MIB_MAX, `memory grew by ${growth} MiB`);
  });
}

/**
 * Measured: memory use grows by less than 60 MiB. This includes the client, which runs in the same process as the
 * server.
 */
const MEMORY_GROWTH_MIB_MAX = 160;

function watchMemory(): () => number {
  const before = process.memoryUsage().rss;
  let most = before;
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss);
  }, 20).unref();
  return () => {
    clearInterval(timer);
    return Math.round((most - before) / 2 ** 20);
  };
}
