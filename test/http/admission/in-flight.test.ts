// Tests the limits on requests in flight: one for each account, and one for the whole process.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { postText, RawConnection, sendRaw } from '../raw-connection.ts';
import { assertProblem, eventually, type Scrip, someone, startScrip } from '../running-service.ts';
import { stallWrites } from '../stalled-writes.ts';

const IN_FLIGHT_MAX = 60;
/** The limit for an account while no other account has requests in flight. */
const ALONE = IN_FLIGHT_MAX / 2;

async function start(t: TestContext): Promise<Scrip> {
  const scrip = await startScrip({ limits: { inFlightMax: IN_FLIGHT_MAX } });
  t.after(() => scrip.stop());
  return scrip;
}

const balance = (scrip: Scrip, key = scrip.writeKey, path = '/get-active-balance') =>
  scrip.get(path, { end_user_id: someone() }, { key });

const subtraction = (scrip: Scrip, key = scrip.writeKey) =>
  postText(scrip, '/subtract', { end_user_id: someone(), amount: 1 }).replace(scrip.writeKey, key);

async function sendOn(scrip: Scrip, count: number, bytes: string): Promise<RawConnection[]> {
  const connections = await Promise.all(Array.from({ length: count }, () => RawConnection.open(scrip)));
  for (const connection of connections) connection.send(bytes);
  return connections;
}

async function statusesOf(connections: readonly RawConnection[]): Promise<(number | undefined)[]> {
  return Promise.all(connections.map(async (connection) => (await connection.answer())?.status));
}

async function inFlight(scrip: Scrip): Promise<number> {
  const { text } = await scrip.call('GET', '/metrics');
  return Number(/^scrip_requests_in_flight (\d+)$/m.exec(text)?.[1]);
}

test('while an account has its full share of requests in flight, further requests of this account get Overloaded with Retry-After, and other accounts are served', async (t) => {
  const scrip = await start(t);
  const quietKey = await scrip.createKey('Quiet', 'write');
  const { resume, waiting } = stallWrites(t, scrip);
  const connections = await sendOn(scrip, ALONE, subtraction(scrip));
  await waiting(ALONE);
  assert.equal(await inFlight(scrip), ALONE);
  for (const path of ['/get-active-balance', '/v1/get-active-balance']) {
    const refused = await balance(scrip, scrip.writeKey, path);
    assertProblem(refused, 'Overloaded', 503);
    assert.equal(refused.headers['retry-after'], '1');
  }
  assert.equal((await scrip.call('GET', '/healthz')).status, 200);
  assert.equal((await balance(scrip, quietKey)).status, 200);
  resume();
  assert.deepEqual(await statusesOf(connections), Array(ALONE).fill(402), 'the requests in flight get their responses');
  assert.equal((await balance(scrip)).status, 200);
});

test('while one account uses half of the limit on requests in flight, a second account may use a quarter of the limit, and a third account is served', async (t) => {
  const scrip = await start(t);
  const [secondKey, thirdKey] = [await scrip.createKey('Second', 'write'), await scrip.createKey('Third', 'write')];
  const { resume, waiting } = stallWrites(t, scrip);
  const first = await sendOn(scrip, ALONE, subtraction(scrip));
  await waiting(ALONE);
  const statuses: (number | undefined)[] = [];
  const second = await sendOn(scrip, ALONE, subtraction(scrip, secondKey));
  const answered = second.map(async (connection) => statuses.push((await connection.answer())?.status));
  await waiting(ALONE + ALONE / 2);
  await eventually(() => statuses.length === ALONE / 2, 'the other requests get their responses');
  assert.deepEqual(statuses, Array(ALONE / 2).fill(503));
  assert.equal((await balance(scrip, thirdKey)).status, 200);
  resume();
  assert.deepEqual(await statusesOf(first), Array(ALONE).fill(402));
  await Promise.all(answered);
  assert.deepEqual(statuses.slice(ALONE / 2), Array(ALONE / 2).fill(402));
});

const HALVES: readonly (readonly [
  name: string,
  half: (whole: string) => string,
  giveUp: (client: RawConnection) => void,
])[] = [
  ['disconnect in the middle of a body', (whole) => whole.slice(0, -10), ({ socket }) => void socket.destroy()],
  [
    'send a broken body',
    (whole) => whole.replace(/Content-Length[\s\S]*/, 'Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n'),
    (connection) => connection.send('not a chunk\r\n\r\nnot a chunk\r\n\r\n'),
  ],
];

for (const [name, half, giveUp] of HALVES) {
  test(`if clients ${name}, their requests no longer count as in flight`, async (t) => {
    const scrip = await start(t);
    await balance(scrip);
    const clients = await sendOn(scrip, ALONE, half(subtraction(scrip)));
    await eventually(async () => (await inFlight(scrip)) === ALONE, 'incomplete requests are in flight');
    assert.equal((await balance(scrip)).status, 503);
    clients.forEach(giveUp);
    await eventually(async () => (await inFlight(scrip)) === 0, 'nothing is in flight');
    assert.equal((await balance(scrip)).status, 200);
  });
}

const REFUSED: readonly (readonly [name: string, change: (request: string) => string, status: number])[] = [
  ['without a key', (request) => request.replace(/Authorization.*\r\n/, ''), 401],
  ['without a host', (request) => request.replace(/Host.*\r\n/, ''), 400],
  ['with an unknown expectation', (request) => request.replace('Host:', 'Expect: a-miracle\r\nHost:'), 417],
  ['with a body of another type', (request) => request.replace('application/json', 'text/plain'), 415],
  ['with the wrong method', (request) => request.replace('POST', 'PUT'), 405],
  ['with a path that cannot be decoded', (request) => request.replace('/subtract', '/%zz'), 400],
];

test('a request no longer counts as in flight after it is refused', async (t) => {
  const scrip = await start(t);
  for (const [name, change, status] of REFUSED) {
    assert.equal((await sendRaw(scrip, change(subtraction(scrip)))).status, status, name);
    assert.equal(await inFlight(scrip), 0, name);
  }
});
