// Tests the limits on connections: the number of open connections, the number of headers in a request, and the timeouts
// for requests, unread responses and the shutdown.

import assert from 'node:assert/strict';
import { subscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ServerLimits, SURPLUS_CONNECTIONS_MAX } from '../../../src/http/limits.ts';
import { postText, RawConnection, sendRaw } from '../raw-connection.ts';
import { assertProblem, eventually, type Scrip, someone, startScrip } from '../running-service.ts';
import { stallWrites } from '../stalled-writes.ts';

async function start(t: TestContext, limits: Partial<ServerLimits> = {}): Promise<Scrip> {
  const scrip = await startScrip({ limits });
  t.after(() => scrip.stop());
  return scrip;
}

const HEALTH = 'GET /healthz HTTP/1.1\r\nHost: scrip\r\n\r\n';

function withHeaders(count: number): string {
  const others = Array.from({ length: count - 1 }, (_, index) => `X-${index}: y\r\n`).join('');
  return `GET /healthz HTTP/1.1\r\nHost: scrip\r\n${others}\r\n`;
}

async function served(scrip: Scrip): Promise<RawConnection> {
  const connection = await RawConnection.open(scrip);
  connection.send(HEALTH);
  assert.equal((await connection.answer())?.status, 200);
  return connection;
}

test('the first request on a connection beyond MAX_CONNECTIONS gets Overloaded, the error names the setting, and the connection is closed', async (t) => {
  const scrip = await start(t, { connectionsMax: 10 });
  const open = await Promise.all(Array.from({ length: 10 }, () => served(scrip)));
  const user = someone();
  const further = await RawConnection.open(scrip);
  further.send(postText(scrip, '/add', { end_user_id: user, amount: 5 }).repeat(2));
  const refused = await further.answer();
  assert(refused);
  assertProblem({ ...refused, headers: Object.fromEntries(refused.headers) }, 'Overloaded', 503);
  assert.match(String(refused.body.detail), /\bMAX_CONNECTIONS\b/);
  assert.deepEqual([refused.headers.get('connection'), refused.headers.get('retry-after')], ['close', '1']);
  assert.equal(await further.untilClosed(), '');
  for (const { socket } of open.slice(5)) socket.destroy();
  await eventually(
    async () => (await sendRaw(scrip, HEALTH)).headers.get('connection') !== 'close',
    'a new connection is accepted again',
  );
  assert.equal((await scrip.balance(user)).active_balance, 0);
});

test('on a connection beyond MAX_CONNECTIONS, a request for /healthz, /readyz or /metrics still gets a response, and the connection is then closed', async (t) => {
  const scrip = await start(t, { connectionsMax: 1 });
  await served(scrip);
  for (const path of ['/healthz', '/readyz', '/metrics']) {
    const reply = await sendRaw(scrip, `GET ${path} HTTP/1.1\r\nHost: scrip\r\n\r\n`);
    assert.deepEqual([reply.status, reply.headers.get('connection')], [200, 'close'], path);
  }
});

test('a connection far beyond MAX_CONNECTIONS is closed without a response', async (t) => {
  const scrip = await start(t, { connectionsMax: 1 });
  await served(scrip);
  await Promise.all(Array.from({ length: SURPLUS_CONNECTIONS_MAX }, () => RawConnection.open(scrip)));
  const further = connect(scrip.port, '127.0.0.1');
  further.on('error', () => {});
  further.write(HEALTH);
  await new Promise((resolve) => further.on('close', resolve));
  assert.equal(further.bytesRead, 0);
});

test('a request whose headers do not arrive in time gets RequestTimeout, and the connection is closed', async (t) => {
  const scrip = await start(t, { headersTimeoutMs: 300, connectionsCheckMs: 50 });
  const [slow, quick] = [await RawConnection.open(scrip), await RawConnection.open(scrip)];
  slow.send(HEALTH.slice(0, -2));
  quick.send(HEALTH.slice(0, -2));
  await sleep(100);
  quick.send('\r\n');
  assert.equal((await quick.answer())?.status, 200);
  const reply = await slow.answer();
  assert.deepEqual([reply?.status, reply?.body.error], [408, 'RequestTimeout']);
  await slow.untilClosed();
});

test('a request whose body does not arrive in time gets RequestTimeout and changes nothing', async (t) => {
  const scrip = await start(t, { headersTimeoutMs: 200, requestTimeoutMs: 400, connectionsCheckMs: 50 });
  const user = someone();
  const addition = postText(scrip, '/add', { end_user_id: user, amount: 5 });
  const [slow, quick] = [await RawConnection.open(scrip), await RawConnection.open(scrip)];
  slow.send(addition.slice(0, -1));
  quick.send(addition.slice(0, -1));
  await sleep(100);
  quick.send(addition.slice(-1));
  assert.equal((await quick.answer())?.status, 200);
  const reply = await slow.answer();
  assert.deepEqual([reply?.status, reply?.body.error], [408, 'RequestTimeout']);
  await slow.untilClosed();
  assert.equal((await scrip.balance(user)).active_balance, 5);
});

for (const [what, part] of [
  ['headers', (request: string) => request.slice(0, request.indexOf('\r\n\r\n') + 2)],
  ['body', (request: string) => request.slice(0, -1)],
] as const)
  test(`if the rest of the ${what} of a request arrives after RequestTimeout, nothing changes and no connection stays open`, async (t) => {
    const scrip = await start(t, { headersTimeoutMs: 200, requestTimeoutMs: 200, connectionsCheckMs: 50 });
    const user = someone();
    const addition = postText(scrip, '/add', { end_user_id: user, amount: 5 });
    const first = part(addition);
    const socket = connect({ port: scrip.port, host: '127.0.0.1', allowHalfOpen: true });
    scrip.atStop(() => socket.destroy());
    socket.on('error', () => {}).write(first);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    assert.match(answer.toString(), /^HTTP\/1.1 408 /);
    socket.write(addition.slice(first.length) + HEALTH.repeat(3));
    await eventually(() => otherEndOf({ socket })?.destroyed === true, 'the server closes the connection');
    assert.equal((await scrip.balance(user)).active_balance, 0);
    socket.destroy();
  });

test('a new connection that is not used in time is closed without a response', async (t) => {
  const scrip = await start(t, { headersTimeoutMs: 200, connectionsCheckMs: 50 });
  const socket = connect(scrip.port, '127.0.0.1');
  scrip.atStop(() => socket.destroy());
  let received = '';
  socket.on('data', (bytes) => (received += bytes));
  await once(socket, 'end');
  assert.equal(received, '');
});

test('after a malformed request, a client that does not close its connection is disconnected', async (t) => {
  const scrip = await start(t, { unreadAnswerMs: 300 });
  const socket = connect({ port: scrip.port, host: '127.0.0.1', allowHalfOpen: true });
  scrip.atStop(() => socket.destroy());
  socket.on('error', () => {}).write('malformed\r\n\r\n');
  const [answer] = (await once(socket, 'data')) as [Buffer];
  assert.match(answer.toString(), /^HTTP\/1.1 400 /);
  await eventually(() => otherEndOf({ socket })?.destroyed === true, 'the server closes the connection');
});

test('an idle connection is closed after the idle timeout, and not before', async (t) => {
  const scrip = await start(t, { keepAliveMs: 500 });
  const connection = await RawConnection.open(scrip);
  const started = performance.now();
  connection.send(HEALTH);
  await connection.answer();
  await connection.untilClosed();
  assert(performance.now() - started >= 450);
});

test('a request with 100 headers is accepted, and a request with 101 short headers gets HeadersTooLarge', async (t) => {
  const scrip = await start(t);
  assert.equal((await sendRaw(scrip, withHeaders(100))).status, 200);
  for (const count of [101, 3_000]) {
    const reply = await sendRaw(scrip, withHeaders(count));
    assertProblem({ ...reply, headers: Object.fromEntries(reply.headers) }, 'HeadersTooLarge', 431);
    assert.equal(reply.headers.get('connection'), 'close');
  }
});

test('if thousands of headers precede the idempotency key, the request is refused rather than executed without the key', async (t) => {
  const scrip = await start(t);
  const user = someone();
  const many = 'a:\r\n'.repeat(2_100);
  const addition = postText(scrip, '/add', { end_user_id: user, amount: 5 });
  const reply = await sendRaw(scrip, addition.replace('\r\n\r\n', `\r\n${many}Idempotency-Key: order-1\r\n\r\n`));
  assert.equal(reply.status, 431);
  assert.equal((await scrip.balance(user)).active_balance, 0);
});

for (const second of ['Host: scrip', 'host: elsewhere', 'HOST:']) {
  test(`a request with "${second}" as a second Host header gets BadRequest and changes nothing`, async (t) => {
    const scrip = await start(t);
    const user = someone();
    const addition = postText(scrip, '/add', { end_user_id: user, amount: 5 });
    const reply = await sendRaw(scrip, addition.replace('\r\n', `\r\n${second}\r\n`));
    assertProblem({ ...reply, headers: Object.fromEntries(reply.headers) }, 'BadRequest', 400);
    assert.equal((await scrip.balance(user)).active_balance, 0);
  });
}

const serverEnds = new Map<number | undefined, Socket>();
subscribe('net.server.socket', (message) => {
  const { socket } = message as { socket: Socket };
  serverEnds.set(socket.remotePort, socket);
});

function otherEndOf({ socket }: Pick<RawConnection, 'socket'>): Socket | undefined {
  return serverEnds.get(socket.localPort);
}

const ASKED = 80;

/** Sends requests but reads no responses. The responses do not fit into the buffers between server and client. */
async function askAndNotRead(scrip: Scrip): Promise<RawConnection> {
  const connection = await RawConnection.open(scrip);
  connection.socket.pause();
  connection.send('GET /openapi.json HTTP/1.1\r\nHost: scrip\r\n\r\n'.repeat(ASKED));
  return connection;
}

test('a client that reads none of its responses is disconnected after a timeout', async (t) => {
  const unreadAnswerMs = 1_000;
  const scrip = await start(t, { unreadAnswerMs });
  await scrip.call('GET', '/healthz');
  const connection = await askAndNotRead(scrip);
  const started = performance.now();
  // A client that reads nothing does not notice a closed connection, so the test looks at the server's socket.
  await eventually(() => otherEndOf(connection)?.destroyed === true, 'the server closes the connection');
  const tookMs = performance.now() - started;
  assert(tookMs >= 0.9 * unreadAnswerMs, `${tookMs} ms`);
  assert.equal((await scrip.call('GET', '/healthz')).status, 200);
  connection.socket.resume();
  await connection.untilClosed();
  const whole = JSON.stringify((await scrip.call('GET', '/openapi.json')).body).length * ASKED;
  assert(connection.socket.bytesRead < whole, 'the connection is closed before everything is sent');
});

test('a client that reads slowly gets all of its responses', async (t) => {
  const scrip = await start(t, { unreadAnswerMs: 1_500 });
  const connection = await askAndNotRead(scrip);
  const reading = setInterval(() => {
    connection.socket.resume();
    setTimeout(() => connection.socket.pause(), 10);
  }, 100);
  t.after(() => clearInterval(reading));
  assert.equal((await connection.answers(ASKED)).length, ASKED);
});

test('a client that waits for its response is not disconnected, even if the store is slow', async (t) => {
  const scrip = await start(t, { unreadAnswerMs: 200 });
  const { resume, waiting } = stallWrites(t, scrip);
  const connection = await RawConnection.open(scrip);
  connection.send(postText(scrip, '/add', { end_user_id: someone(), amount: 5 }));
  await waiting(1);
  await sleep(1_000);
  resume();
  assert.equal((await connection.answer())?.status, 200);
});

test('if invalid bytes arrive in many pieces after a request, the request gets its response, the invalid bytes get a single 400, and the server leaks no event listeners', async (t) => {
  const scrip = await start(t);
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);
  process.on('warning', onWarning);
  t.after(() => process.off('warning', onWarning));
  const { resume, waiting } = stallWrites(t, scrip);
  const connection = await RawConnection.open(scrip);
  connection.socket.setNoDelay(true);
  connection.send(postText(scrip, '/add', { end_user_id: someone(), amount: 5 }));
  await waiting(1);
  for (let piece = 0; piece < 50; piece++) {
    connection.send('this is no request\r\n\r\n');
    await sleep(2);
  }
  resume();
  assert.deepEqual(
    (await connection.answers(2)).map(({ status }) => status),
    [200, 400],
  );
  assert.equal(await connection.untilClosed(), '');
  assert.deepEqual(warnings, [], 'no warning about too many listeners');
});

test('a stopping service waits for an incomplete request until the shutdown deadline, but no longer', async (t) => {
  const scrip = await start(t, { drainMs: 500 });
  const connection = await RawConnection.open(scrip);
  connection.send(postText(scrip, '/add', { end_user_id: someone(), amount: 5 }).slice(0, -1));
  await sleep(50);
  const started = performance.now();
  await scrip.service.stop();
  const took = performance.now() - started;
  assert(took >= 450 && took < 5_000, `${took} ms`);
  assert.equal(await connection.untilClosed(), '');
});
