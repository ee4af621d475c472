// Tests pipelining: pipelined requests delay other clients no more than sequential requests do.

import assert from 'node:assert/strict';
import { after, before, mock, test } from 'node:test';
import { effort } from '../../effort.ts';
import { postText, RawConnection } from '../raw-connection.ts';
import { eventually, type Scrip, someone, startScrip } from '../running-service.ts';
import { stallWrites } from '../stalled-writes.ts';

let scrip: Scrip;
before(async () => {
  scrip = await startScrip();
});
after(() => scrip.stop());

const addition = (end_user_id: string, amount = 5) => postText(scrip, '/add', { end_user_id, amount });
const read = (path: string, endUser: string) =>
  `GET ${path}?end_user_id=${endUser} HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${scrip.writeKey}\r\n\r\n`;
const balance = (endUser: string) => read('/get-active-balance', endUser);

test('a read that is pipelined after a write returns the state after the write', async () => {
  for (let round = 0; round < 20; round++) {
    const user = someone();
    const connection = await RawConnection.open(scrip);
    const list = read('/get-all-user-transactions', user);
    connection.send(balance(user) + addition(user) + balance(user) + list + addition(user) + balance(user));
    const [before, , between, listed, , last] = (await connection.answers(6)).map(({ body }) => body);
    assert.deepEqual(
      [before?.active_balance, between?.active_balance, listed?.transactions.length, last?.active_balance],
      [0, 5, 1, 10],
    );
  }
});

test('a write that is pipelined after a read does not overtake the read, even if the read is slow', async () => {
  const user = someone();
  const { ledger } = scrip.service.stores;
  const load = ledger.load.bind(ledger);
  const { promise, resolve } = Promise.withResolvers<void>();
  const reading = mock.method(ledger, 'load', (...whose: Parameters<typeof load>) =>
    promise.then(() => load(...whose)),
  );
  const connection = await RawConnection.open(scrip);
  connection.send(balance(user) + addition(user));
  await eventually(() => reading.mock.callCount() === 1, 'the read has begun');
  await scrip.post('/add', { end_user_id: someone(), amount: 1 });
  resolve();
  const [balanceBefore, added] = await connection.answers(2);
  mock.restoreAll();
  assert.deepEqual([balanceBefore?.body.active_balance, added?.status], [0, 200]);
});

test('500 pipelined requests on one connection are processed one at a time', async (t) => {
  const { resume, waiting } = stallWrites(t, scrip);
  const connection = await RawConnection.open(scrip);
  connection.send(addition(someone()).repeat(500));
  await waiting(1);
  const { text } = await scrip.call('GET', '/metrics');
  assert.match(text, /^scrip_requests_in_flight 1$/m);
  resume();
  const statuses = (await connection.answers(500)).map(({ status }) => status);
  assert.deepEqual([...new Set(statuses)], [200]);
});

test('pipelined requests of different sizes get responses in order, and invalid bytes after them get a 400', async () => {
  const users = Array.from({ length: 400 }, someone);
  const requests = users.map((end_user_id, index) => {
    const fields = JSON.stringify({ end_user_id, amount: index + 1 });
    return postText(scrip, '/add', index % 10 === 0 ? fields.padEnd(10_000) : fields);
  });
  const connection = await RawConnection.open(scrip);
  connection.send(`${requests.join('')}this is no request\r\n\r\n`);
  const replies = await connection.answers(users.length);
  assert.deepEqual(
    replies.map(({ body }) => [body.end_user_id, body.amount]),
    users.map((user, index) => [user, index + 1]),
  );
  assert.equal((await connection.answer())?.status, 400);
  assert.equal(await connection.answer(), null);
});

test('while 2,000 requests are pipelined on 20 connections, requests of another account are processed in between', async () => {
  const quietKey = await scrip.createKey('Quiet', 'write');
  const quiet = async () =>
    (await scrip.get('/get-active-balance', { end_user_id: someone() }, { key: quietKey })).status;
  assert.equal(await quiet(), 200);
  const loud = await Promise.all(Array.from({ length: 20 }, () => RawConnection.open(scrip)));
  for (const connection of loud) connection.send(addition(someone()).repeat(100));
  let isDone = false;
  const answered = Promise.all(loud.map((connection) => connection.answers(100))).then(() => {
    isDone = true;
  });
  let between = 0;
  while (!isDone) {
    assert.equal(await quiet(), 200);
    between += 1;
  }
  await answered;
  assert(between > 20, `only ${between} responses while 2,000 requests were processed`);
});

/** The number of connections that pipeline requests. */
const LOUD = effort(100, 300);

test('while hundreds of requests are pipelined on each of many new connections, another client still gets responses', async () => {
  assert.equal((await scrip.get('/get-active-balance', { end_user_id: someone() })).status, 200);
  const loud = await Promise.all(Array.from({ length: LOUD }, () => RawConnection.open(scrip)));
  const requests = 'GET /nothing HTTP/1.1\r\nHost: scrip\r\n\r\n'.repeat(300);
  for (const connection of loud) connection.send(requests);
  let answered = 0;
  for (const connection of loud) void connection.answers(300).then(() => (answered += 1));
  let between = 0;
  while (answered === 0) {
    assert.equal((await scrip.get('/get-active-balance', { end_user_id: someone() })).status, 200);
    between += 1;
  }
  assert(between >= 10, `only ${between} responses before the first connection had all of its responses`);
  await eventually(() => answered === LOUD, 'all requests get responses');
});
