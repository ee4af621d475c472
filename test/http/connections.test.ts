// What is bounded of a connection: how many there are, how long its parts may take to arrive, how long an answer may lie
// unread, how many headers it brings, and how long it may hold up a stop. The times are shorter here than in use.

import assert from 'node:assert/strict';
import { subscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServerLimits } from '../../src/http/server-limits.ts';
import { postText, RawConnection, sendRaw } from './raw-connection.ts';
import { assertProblem, eventually, type Scrip, someone, startScrip } from './running-service.ts';
import { stallWrites } from './stalled-writes.ts';

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

test('so many connections are served, and one more is closed at once', async (t) => {
  const scrip = await start(t, { connectionsMax: 10 });
  const open = await Promise.all(Array.from({ length: 10 }, () => RawConnection.open(scrip)));
  for (const connection of open) {
    connection.send(HEALTH);
    assert.equal((await connection.answer())?.status, 200);
  }
  const further = connect(scrip.port, '127.0.0.1');
  further.on('error', () => {});
  further.write(HEALTH);
  await once(further, 'close');
  assert.equal(further.bytesRead, 0);
  open[0]?.socket.destroy();
  await eventually(async () => {
    const next = await RawConnection.open(scrip);
    next.send(HEALTH);
    return (await next.answer().catch(() => null))?.status === 200;
  }, 'there is room again');
});

test('headers that do not arrive in time are answered RequestTimeout, and the connection is closed', async (t) => {
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

test('a body that does not arrive in time is answered RequestTimeout, and moves nothing', async (t) => {
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

test('a connection on which nothing happens is closed after its idle time, not before', async (t) => {
  const scrip = await start(t, { keepAliveMs: 500 });
  const connection = await RawConnection.open(scrip);
  const started = performance.now();
  connection.send(HEALTH);
  await connection.answer();
  await connection.untilClosed();
  assert(performance.now() - started >= 450);
});

test('100 headers are taken, and 101 are HeadersTooLarge, however short they are', async (t) => {
  const scrip = await start(t);
  assert.equal((await sendRaw(scrip, withHeaders(100))).status, 200);
  for (const count of [101, 3_000]) {
    const reply = await sendRaw(scrip, withHeaders(count));
    assertProblem({ ...reply, headers: Object.fromEntries(reply.headers) }, 'HeadersTooLarge', 431);
    assert.equal(reply.headers.get('connection'), 'close');
  }
});

test('an idempotency key behind thousands of headers is not dropped without a word', async (t) => {
  const scrip = await start(t);
  const user = someone();
  const many = 'a:\r\n'.repeat(2_100);
  const addition = postText(scrip, '/add', { end_user_id: user, amount: 5 });
  const reply = await sendRaw(scrip, addition.replace('\r\n\r\n', `\r\n${many}Idempotency-Key: order-1\r\n\r\n`));
  assert.equal(reply.status, 431);
  assert.equal((await scrip.balance(user)).active_balance, 0);
});

for (const second of ['Host: scrip', 'host: elsewhere', 'HOST:']) {
  test(`two hosts, the second as ${second}, are BadRequest, and nothing happens`, async (t) => {
    const scrip = await start(t);
    const user = someone();
    const addition = postText(scrip, '/add', { end_user_id: user, amount: 5 });
    const reply = await sendRaw(scrip, addition.replace('\r\n', `\r\n${second}\r\n`));
    assertProblem({ ...reply, headers: Object.fromEntries(reply.headers) }, 'BadRequest', 400);
    assert.equal((await scrip.balance(user)).active_balance, 0);
  });
}

/** The server's ends of all connections in this process, by the ports of their clients. */
const serverEnds = new Map<number | undefined, Socket>();
subscribe('net.server.socket', (message) => {
  const { socket } = message as { socket: Socket };
  serverEnds.set(socket.remotePort, socket);
});

function otherEndOf({ socket }: RawConnection): Socket | undefined {
  return serverEnds.get(socket.localPort);
}

/** Of about 100 KB each; each costs the server milliseconds. */
const ASKED = 200;

/** Asks for so much that no buffer in between holds it, and reads none of it. */
async function askAndNotRead(scrip: Scrip): Promise<RawConnection> {
  const connection = await RawConnection.open(scrip);
  connection.socket.pause();
  connection.send('GET /openapi.json HTTP/1.1\r\nHost: scrip\r\n\r\n'.repeat(ASKED));
  return connection;
}

test('a client that takes nothing of its answers is let go of', async (t) => {
  const scrip = await start(t, { unreadAnswerMs: 400 });
  await scrip.call('GET', '/healthz');
  const connection = await askAndNotRead(scrip);
  // A client that reads nothing is not told either.
  await eventually(() => otherEndOf(connection)?.destroyed === true, 'the server has let go');
  assert.equal((await scrip.call('GET', '/healthz')).status, 200);
  connection.socket.resume();
  await connection.untilClosed();
  const whole = JSON.stringify((await scrip.call('GET', '/openapi.json')).body).length * ASKED;
  assert(connection.socket.bytesRead < whole, 'it was closed before all was sent');
});

test('a client that reads slowly, but reads, has all of its answers', async (t) => {
  const scrip = await start(t, { unreadAnswerMs: 400 });
  const connection = await askAndNotRead(scrip);
  const reading = setInterval(() => {
    connection.socket.resume();
    setTimeout(() => connection.socket.pause(), 10);
  }, 100);
  t.after(() => clearInterval(reading));
  assert.equal((await connection.answers(ASKED)).length, ASKED);
});

test('a client that waits for us is not let go of, however long the store takes', async (t) => {
  const scrip = await start(t, { unreadAnswerMs: 200 });
  const { goOn, waiting } = stallWrites(t, scrip);
  const connection = await RawConnection.open(scrip);
  connection.send(postText(scrip, '/add', { end_user_id: someone(), amount: 5 }));
  await waiting(1);
  await sleep(1_000);
  goOn();
  assert.equal((await connection.answer())?.status, 200);
});

test('garbage in many pieces behind a request is answered once, after it, and leaves nothing behind', async (t) => {
  const scrip = await start(t);
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);
  process.on('warning', onWarning);
  t.after(() => process.off('warning', onWarning));
  const { goOn, waiting } = stallWrites(t, scrip);
  const connection = await RawConnection.open(scrip);
  connection.socket.setNoDelay(true);
  connection.send(postText(scrip, '/add', { end_user_id: someone(), amount: 5 }));
  await waiting(1);
  for (let piece = 0; piece < 50; piece++) {
    connection.send('this is no request\r\n\r\n');
    await sleep(2);
  }
  goOn();
  assert.deepEqual(
    (await connection.answers(2)).map(({ status }) => status),
    [200, 400],
  );
  assert.equal(await connection.untilClosed(), '');
  assert.deepEqual(warnings, [], 'no listener for each piece');
});

test('a stop waits so long for what is in flight, and no longer for a client that does not come to an end', async (t) => {
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
