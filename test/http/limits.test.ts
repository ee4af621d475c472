// What is bounded: the size of bodies and headers, and the work in flight, whoever sends it and on however few
// connections. Whoever is turned away is told so at once, and nobody else notices.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { BATCH_COMMANDS_MAX } from '../../src/batching/group-commit.ts';
import { postText, RawConnection, sendRaw } from './raw-connection.ts';
import { assertFieldRefused, assertProblem, eventually, type Scrip, someone, startScrip } from './running-service.ts';
import { type StalledWrites, stallWrites } from './stalled-writes.ts';

const BODY_BYTES_MAX = 65_536;
const IN_FLIGHT_MAX = 5_000;

let scrip: Scrip;
before(async () => {
  scrip = await startScrip();
});
after(() => scrip.stop());

/** An addition of exactly so many bytes. */
function paddedTo(bytes: number, user: string): string {
  return `{"end_user_id":"${user}","amount":5}`.padEnd(bytes);
}

function chunked(path: string, body: string): string {
  const chunks = [body.slice(0, 1_000), body.slice(1_000)].map(
    (chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`,
  );
  return `POST ${path} HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${scrip.writeKey}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunks.join('')}0\r\n\r\n`;
}

test('a body may have 64 KiB, and not a byte more', async () => {
  const user = someone();
  assert.equal((await scrip.call('POST', '/add', { body: paddedTo(BODY_BYTES_MAX, user) })).status, 200);
  const tooLarge = await scrip.call('POST', '/add', { body: paddedTo(BODY_BYTES_MAX + 1, user) });
  assertProblem(tooLarge, 'PayloadTooLarge', 413);
  assert.equal((await scrip.balance(user)).active_balance, 5);
});

test('a body of 64 KiB that is wrong is told what is wrong with it', async () => {
  const body = `{"end_user_id":"${someone()}","amount":5,"note":"${'x'.repeat(60_000)}"}`.padEnd(BODY_BYTES_MAX);
  assertFieldRefused(await scrip.call('POST', '/add', { body }), '/note');
});

test('a body that comes in chunks, its length untold, has the same bound', async () => {
  const user = someone();
  const fits = await sendRaw(scrip, chunked('/add', paddedTo(BODY_BYTES_MAX, user)));
  assert.equal(fits.status, 200, fits.text);
  const tooLarge = await sendRaw(scrip, chunked('/add', paddedTo(BODY_BYTES_MAX + 1, user)));
  assert.deepEqual([tooLarge.status, tooLarge.body.error], [413, 'PayloadTooLarge']);
  assert.equal((await scrip.balance(user)).active_balance, 5);
});

test('a body that says it will be too large is refused before it comes', async () => {
  const head = postText(scrip, '/add', {}).replace(/Content-Length: 2[\s\S]*/, 'Content-Length: 10000000000\r\n\r\n');
  const reply = await sendRaw(scrip, head);
  assert.deepEqual([reply.status, reply.body.error], [413, 'PayloadTooLarge']);
});

test('the body of a GET has the same bound', async () => {
  const body = `{"end_user_id":"${someone()}"}`;
  assert.equal((await scrip.call('GET', '/get-active-balance', { body: body.padEnd(BODY_BYTES_MAX) })).status, 200);
  const tooLarge = await scrip.call('GET', '/get-active-balance', { body: body.padEnd(BODY_BYTES_MAX + 1) });
  assertProblem(tooLarge, 'PayloadTooLarge', 413);
});

test('headers beyond 16 KiB are 431, and the connection is closed', async () => {
  const connection = await RawConnection.open(scrip);
  connection.send(`GET /healthz HTTP/1.1\r\nHost: scrip\r\nX-Long: ${'x'.repeat(17_000)}\r\n\r\n`);
  const reply = await connection.answer();
  assert.deepEqual([reply?.status, reply?.body.error], [431, 'HeadersTooLarge']);
  assert.equal(reply?.headers.get('content-type'), 'application/problem+json');
  await connection.untilClosed();
  const fits = `GET /healthz HTTP/1.1\r\nHost: scrip\r\nX-Long: ${'x'.repeat(15_000)}\r\n\r\n`;
  assert.equal((await sendRaw(scrip, fits)).status, 200);
});

const look = (path = '/get-active-balance') => scrip.get(path, { end_user_id: someone() });

async function someoneWith(credits: number): Promise<string> {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: credits });
  return user;
}

/** Subtractions of 1 on one connection, as many as may be in flight, and held up there. */
async function fillUp(user: string, { waiting }: StalledWrites): Promise<RawConnection> {
  const connection = await RawConnection.open(scrip);
  connection.send(postText(scrip, '/subtract', { end_user_id: user, amount: 1 }).repeat(IN_FLIGHT_MAX));
  // Nobody looks before: whoever looks takes a place.
  await waiting(IN_FLIGHT_MAX);
  assert.equal((await look()).status, 503, 'it is full');
  return connection;
}

test('with 5,000 requests in flight the next one is 503 at once, and the 5,000 are answered once the store goes on', async (t) => {
  const user = await someoneWith(IN_FLIGHT_MAX + 1);
  const stalled = stallWrites(t, scrip);
  const connection = await fillUp(user, stalled);
  const reply = await scrip.post('/subtract', { end_user_id: user, amount: 1 });
  assertProblem(reply, 'Overloaded', 503);
  assert.equal(reply.headers['retry-after'], '1');
  assert.equal((await scrip.call('GET', '/healthz')).status, 200, 'operators are still answered');
  stalled.goOn();
  const statuses = (await connection.answers(IN_FLIGHT_MAX)).map(({ status }) => status);
  assert.deepEqual([...new Set(statuses)], [200]);
  assert.equal((await scrip.balance(user)).active_balance, 1, 'what was refused did not happen');
});

test('the bound is one for the process: /v1 is the same routes, and has no further places', async (t) => {
  const user = await someoneWith(IN_FLIGHT_MAX);
  const stalled = stallWrites(t, scrip);
  const connection = await fillUp(user, stalled);
  const alias = await look('/v1/get-active-balance');
  stalled.goOn();
  await connection.answers(IN_FLIGHT_MAX);
  assertProblem(alias, 'Overloaded', 503);
});

test('of a client that leaves while it waits only that is written which was begun, and its places are free', async (t) => {
  const user = await someoneWith(2 * IN_FLIGHT_MAX);
  const stalled = stallWrites(t, scrip);
  const connection = await fillUp(user, stalled);
  connection.socket.resetAndDestroy();
  await sleep(100);
  stalled.goOn();
  await eventually(async () => (await look()).status === 200, 'there is room again');
  const { active_balance } = await scrip.balance(user);
  // The connection is not read from meanwhile, so that the first answer finds nobody. By then the two batches behind it
  // have begun: the second waits at the writer, so that the writer need not wait for it.
  assert(active_balance >= 2 * IN_FLIGHT_MAX - 3 * BATCH_COMMANDS_MAX, `${active_balance} are left`);
  const again = stallWrites(t, scrip);
  const second = await fillUp(user, again);
  again.goOn();
  await second.answers(IN_FLIGHT_MAX);
  assert.equal((await scrip.balance(user)).active_balance, active_balance - IN_FLIGHT_MAX);
});

/** What 200 clients send of a request, and how they let go of it. */
const HALVES: readonly (readonly [name: string, half: () => string, letGo: (connection: RawConnection) => void])[] = [
  [
    'leave in the middle of their body',
    () => postText(scrip, '/subtract', { end_user_id: someone(), amount: 1 }).slice(0, -10),
    ({ socket }) => void socket.destroy(),
  ],
  [
    'send a body that turns out to be broken',
    () => chunked('/subtract', 'x'.repeat(2_000)).slice(0, -20),
    (connection) => connection.send('this is no chunk\r\n\r\nthis is no chunk\r\n\r\n'),
  ],
];

for (const [name, half, letGo] of HALVES) {
  test(`clients that ${name} free their places`, async (t) => {
    const { goOn } = stallWrites(t, scrip);
    const held = await RawConnection.open(scrip);
    held.send(postText(scrip, '/subtract', { end_user_id: someone(), amount: 1 }).repeat(IN_FLIGHT_MAX - 100));
    const clients = await Promise.all(Array.from({ length: 200 }, () => RawConnection.open(scrip)));
    for (const connection of clients) connection.send(half());
    await eventually(async () => (await look()).status === 503, 'half a request takes a place');
    clients.forEach(letGo);
    await eventually(async () => (await look()).status === 200, 'the places are free again');
    goOn();
    await held.answers(IN_FLIGHT_MAX - 100);
  });
}

/** What each does to a whole request, and how it is answered then. */
const TURNED_AWAY: readonly (readonly [name: string, change: (request: string) => string, status: number])[] = [
  ['without a key', (request) => request.replace(/Authorization.*\r\n/, ''), 401],
  ['without a host', (request) => request.replace(/Host.*\r\n/, ''), 400],
  ['with an expectation', (request) => request.replace('Host:', 'Expect: a-miracle\r\nHost:'), 417],
  ['with a body of another type', (request) => request.replace('application/json', 'text/plain'), 415],
  ['with a method that the path does not take', (request) => request.replace('POST', 'PUT'), 405],
  ['to a path that cannot be decoded', (request) => request.replace('/subtract', '/%zz'), 400],
];

for (const [name, change, status] of TURNED_AWAY) {
  test(`requests that are turned away, ${name}, neither take places nor make more of them`, async (t) => {
    const own = await startScrip();
    t.after(() => own.stop());
    const request = postText(own, '/subtract', { end_user_id: someone(), amount: 1 });
    for (let count = 0; count < 50; count++) assert.equal((await sendRaw(own, change(request))).status, status);
    const { goOn, waiting } = stallWrites(t, own);
    const connection = await RawConnection.open(own);
    const read = async () => (await own.get('/get-active-balance', { end_user_id: someone() })).status;
    connection.send(request.repeat(IN_FLIGHT_MAX - 25));
    await waiting(IN_FLIGHT_MAX - 25);
    assert.equal(await read(), 200, 'there are places left');
    connection.send(request.repeat(50));
    await eventually(async () => (await read()) === 503, 'and no more than before', 5_000);
    goOn();
    await connection.answers(IN_FLIGHT_MAX + 25);
  });
}

for (const store of ['a running store', 'a store that stalls for a while']) {
  test(`10,000 requests on one connection are each answered by ${store}, in bounded memory, and the credits agree`, async (t) => {
    const user = someone();
    const count = 2 * IN_FLIGHT_MAX;
    const credits = 1_000;
    await scrip.post('/add', { end_user_id: user, amount: credits });
    const watch = watchMemory();
    const isStalled = store !== 'a running store';
    const stalled = isStalled ? stallWrites(t, scrip) : null;
    const connection = await RawConnection.open(scrip);
    connection.send(postText(scrip, '/subtract', { end_user_id: user, amount: 1 }).repeat(count));
    await stalled?.waiting(IN_FLIGHT_MAX);
    if (isStalled) await sleep(200);
    stalled?.goOn();
    const statuses = (await connection.answers(count)).map(({ status }) => status);
    const [spent = 0, refused = 0, overloaded = 0] = [200, 402, 503].map(
      (status) => statuses.filter((one) => one === status).length,
    );
    assert.equal(spent + refused + overloaded, count, `${[...new Set(statuses)]}`);
    assert.equal(spent, credits);
    assert(overloaded > 0 || !isStalled, 'past the bound they are turned away');
    assert.equal((await scrip.balance(user)).active_balance, 0);
    const growth = watch();
    assert(growth < MEMORY_GROWTH_MAX, `memory grew by ${growth} MiB`);
    connection.socket.destroy();
    assert.equal((await scrip.post('/add', { end_user_id: user, amount: 1 })).status, 200, 'and then all is well');
  });
}

/** What 10,000 answers may cost, those that this process reads included; measured: under 60. */
const MEMORY_GROWTH_MAX = 160;

/** @returns what to call at the end, for the most MiB by which the memory of this process grew */
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
