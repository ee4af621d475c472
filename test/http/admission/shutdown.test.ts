// Tests the shutdown: requests in flight get responses, new connections are not accepted, and idle connections do not
// delay the shutdown.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { postText, RawConnection } from '../raw-connection.ts';
import { assertProblem, type Scrip, someone, startScrip } from '../running-service.ts';
import { stallWrites } from '../stalled-writes.ts';

const SOON_MS = 2_000;

let folder: string;
let file: string;
let scrip: Scrip;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scrip-shutdown-'));
});
let ledgers = 0;
beforeEach(async () => {
  file = join(folder, `${ledgers++}.db`);
  scrip = await startScrip({ file });
});
afterEach(() => scrip.stop());
after(() => rm(folder, { recursive: true }));

async function stopTime(): Promise<number> {
  const started = performance.now();
  await scrip.service.stop();
  return performance.now() - started;
}

async function balanceAfterRestart(user: string): Promise<number> {
  const next = await startScrip({ file });
  const { active_balance } = await next.balance(user);
  await next.stop();
  return active_balance;
}

test('when the service stops, requests in flight get responses with Connection: close, and their transactions are in the ledger afterwards', async (t) => {
  const user = someone();
  const stalled = stallWrites(t, scrip);
  const connections = await Promise.all(Array.from({ length: 20 }, () => RawConnection.open(scrip)));
  for (const connection of connections) connection.send(postText(scrip, '/add', { end_user_id: user, amount: 5 }));
  await stalled.waiting(20);
  const stopping = scrip.service.stop();
  await sleep(50);
  stalled.resume();
  for (const connection of connections) {
    const reply = await connection.answer();
    assert.deepEqual([reply?.status, reply?.headers.get('connection')], [200, 'close']);
    assert.equal(await connection.answer(), null, 'the connection is closed after the response');
  }
  await stopping;
  assert.equal(await balanceAfterRestart(user), 100);
});

test('a stopping service accepts no new connections', async (t) => {
  const stalled = stallWrites(t, scrip);
  const waiting = await RawConnection.open(scrip);
  waiting.send(postText(scrip, '/add', { end_user_id: someone(), amount: 5 }));
  await stalled.waiting(1);
  const stopping = scrip.service.stop();
  await sleep(50);
  const [error] = await once(connect(scrip.port, '127.0.0.1'), 'error');
  assert.equal(error.code, 'ECONNREFUSED');
  stalled.resume();
  assert.equal((await waiting.answer())?.status, 200);
  await stopping;
});

test('idle connections do not delay the shutdown, even if no request was ever sent on them', async () => {
  await scrip.post('/add', { end_user_id: someone(), amount: 5 });
  const silent = await Promise.all(Array.from({ length: 10 }, () => RawConnection.open(scrip)));
  const idle = await Promise.all(Array.from({ length: 10 }, () => RawConnection.open(scrip)));
  for (const connection of idle) {
    connection.send('GET /healthz HTTP/1.1\r\nHost: scrip\r\n\r\n');
    await connection.answer();
  }
  const took = await stopTime();
  assert(took < SOON_MS, `${took} ms`);
  for (const connection of [...silent, ...idle])
    assert.equal(await connection.answer(), null, 'the connection is closed');
});

test('connections that clients have closed do not delay the shutdown', async (t) => {
  const stalled = stallWrites(t, scrip);
  for (let left = 0; left < 10; left++) {
    const connection = await RawConnection.open(scrip);
    connection.send(postText(scrip, '/add', { end_user_id: someone(), amount: 5 }));
    if (left % 2 === 0) connection.socket.destroy();
    else connection.socket.end();
  }
  await sleep(50);
  const stopping = stopTime();
  stalled.resume();
  const took = await stopping;
  assert(took < SOON_MS, `${took} ms`);
});

test('if only part of a request has arrived when the shutdown begins, the request gets a response after the rest of the request arrives', async () => {
  const user = someone();
  const connection = await RawConnection.open(scrip);
  const addition = postText(scrip, '/add', { end_user_id: user, amount: 5 });
  connection.send(addition.slice(0, -20));
  await sleep(50);
  const stopping = scrip.service.stop();
  await sleep(50);
  connection.send(addition.slice(-20));
  const reply = await connection.answer();
  assert.deepEqual([reply?.status, reply?.headers.get('connection')], [200, 'close']);
  await stopping;
  assert.equal(await balanceAfterRestart(user), 5);
});

test('a stopping service returns 200 for /healthz and 503 for /readyz', async () => {
  const [alive, ready] = [await RawConnection.open(scrip), await RawConnection.open(scrip)];
  alive.send('GET /healthz HTTP/1.1\r\nHost: scrip\r\n');
  ready.send('GET /readyz HTTP/1.1\r\nHost: scrip\r\n');
  await sleep(50);
  const stopping = scrip.service.stop();
  alive.send('\r\n');
  ready.send('\r\n');
  assert.equal((await alive.answer())?.status, 200);
  const reply = await ready.answer();
  assert(reply);
  assertProblem({ ...reply, headers: Object.fromEntries(reply.headers) }, 'StoreUnavailable', 503);
  await stopping;
});

test('requests that were pipelined before the shutdown all get responses', async (t) => {
  const user = someone();
  const stalled = stallWrites(t, scrip);
  const connection = await RawConnection.open(scrip);
  connection.send(postText(scrip, '/add', { end_user_id: user, amount: 5 }).repeat(10));
  await stalled.waiting(1);
  const stopping = scrip.service.stop();
  await sleep(50);
  stalled.resume();
  let answered = 0;
  while ((await connection.answer())?.status === 200) answered += 1;
  await stopping;
  assert.deepEqual([answered, await balanceAfterRestart(user)], [10, 50]);
});

test('stopping a service twice has the same effect as stopping it once', async () => {
  const first = scrip.service.stop();
  const second = scrip.service.stop();
  assert.equal(first, second);
  await first;
  assert.equal(scrip.service.stop(), first);
  assert.equal(scrip.log.filter((line) => line.includes('Scrip stopped')).length, 1);
});

test('the ledger file of a stopped service can be opened again immediately, and the file of a running service cannot be opened', async () => {
  await assert.rejects(startScrip({ file }), { name: 'CannotOpen' });
  await scrip.service.stop();
  const next = await startScrip({ file });
  assert.equal((await next.call('GET', '/readyz')).status, 200);
  await next.stop();
});
