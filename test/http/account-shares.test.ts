// What one account may hold of a process while others are there: as much as it leaves free, so that whoever comes next
// finds room, and connections that bring many requests at once wait for those that bring few.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { SHARED_PLACES } from '../../src/http/shared-places.ts';
import { IN_FLIGHT_ALONE_MAX } from '../../src/http/work-in-flight.ts';
import { postText, RawConnection } from './raw-connection.ts';
import { assertProblem, type Scrip, someone, startScrip } from './running-service.ts';
import { stallWrites } from './stalled-writes.ts';

let scrip: Scrip;
/** Of another account than `scrip.writeKey`. */
let quietKey: string;
beforeEach(async () => {
  scrip = await startScrip();
  quietKey = await scrip.createKey('Quiet', 'write');
});
afterEach(() => scrip.stop());

const look = (key: string) => scrip.get('/get-active-balance', { end_user_id: someone() }, { key });

async function inFlight(): Promise<number> {
  const { text } = await scrip.call('GET', '/metrics');
  return Number(/^scrip_requests_in_flight (\d+)$/m.exec(text)?.[1]);
}

async function flood(key: string, count: number): Promise<RawConnection> {
  const connection = await RawConnection.open(scrip);
  const request = postText(scrip, '/add', { end_user_id: someone(), amount: 1 });
  connection.send(request.replace(scrip.writeKey, key).repeat(count));
  return connection;
}

test('an account that has its share of the work in flight is Overloaded, and another one is answered', async (t) => {
  const { goOn, waiting } = stallWrites(t, scrip);
  const connection = await flood(scrip.writeKey, IN_FLIGHT_ALONE_MAX);
  await waiting(IN_FLIGHT_ALONE_MAX);
  assert.equal(await inFlight(), IN_FLIGHT_ALONE_MAX);
  assertProblem(await look(scrip.writeKey), 'Overloaded', 503);
  assert.equal((await look(quietKey)).status, 200);
  goOn();
  const statuses = (await connection.answers(IN_FLIGHT_ALONE_MAX)).map(({ status }) => status);
  assert.deepEqual([...new Set(statuses)], [200], 'and what the first one had in flight is done');
});

test('beside one that has all it may hold, a second has places, what it brings beyond them waits, and a third gets in', async (t) => {
  const { goOn, waiting } = stallWrites(t, scrip);
  const thirdKey = await scrip.createKey('Third', 'write');
  const first = await flood(scrip.writeKey, IN_FLIGHT_ALONE_MAX);
  await waiting(IN_FLIGHT_ALONE_MAX);
  const places = SHARED_PLACES / 2;
  assert.equal((await look(quietKey)).status, 200);
  const second = await flood(quietKey, 3 * places);
  await waiting(IN_FLIGHT_ALONE_MAX + places);
  assert.equal(await inFlight(), IN_FLIGHT_ALONE_MAX + places);
  assert.equal((await look(thirdKey)).status, 200);
  goOn();
  await first.answers(IN_FLIGHT_ALONE_MAX);
  const statuses = (await second.answers(3 * places)).map(({ status }) => status);
  assert.deepEqual([...new Set(statuses)], [200], 'nothing of the second is refused');
  assert.equal((await look(scrip.writeKey)).status, 200);
});

test('a write of another account is with the store in the batch after the one that is being written', async (t) => {
  const { store } = scrip.service;
  const { goOn, waiting } = stallWrites(t, scrip);
  const connection = await flood(scrip.writeKey, 4_000);
  await waiting(4_000);
  const user = someone();
  const adding = scrip.post('/add', { end_user_id: user, amount: 7 }, { key: quietKey });
  await waiting(4_001);
  const batches: boolean[] = [];
  goOn();
  const write = store.write.bind(store);
  t.mock.method(store, 'write', async (commands: Parameters<typeof write>[0]) => {
    batches.push(commands.some(({ endUser }) => endUser === user));
    return write(commands);
  });
  assert.equal((await adding).status, 200);
  await connection.answers(4_000);
  assert(batches.length > 3, 'the flood takes several');
  assert.deepEqual(batches.indexOf(true), 0);
});

/** Without turns they come in one or two pieces, and nobody is answered in between. */
const MANY = 6_000;

test('while a connection brings thousands of requests at once, those of others are answered in between', async () => {
  await look(quietKey);
  const connection = await flood(scrip.writeKey, MANY);
  let answered = 0;
  const counting = connection.answers(MANY).then((replies) => {
    answered = replies.length;
  });
  let between = 0;
  while (answered === 0) {
    assert.equal((await look(quietKey)).status, 200);
    between += 1;
  }
  await counting;
  assert(between > 20, `only ${between} while ${MANY} were answered`);
});

/** From a hundred connections that is more than have places at once, many times over. */
const EACH = 100;

test('no connection waits for ever: hundreds that bring many at once are all answered', async () => {
  const connections = await Promise.all(Array.from({ length: 100 }, () => flood(scrip.writeKey, EACH)));
  for (const connection of connections) {
    const statuses = (await connection.answers(EACH)).map(({ status }) => status);
    assert(
      statuses.every((status) => status === 200 || status === 503),
      `${new Set(statuses)}`,
    );
  }
  assert.equal((await scrip.call('GET', '/healthz')).status, 200);
});

/** Bodies are longer than the pieces in which a connection is read that brings much. */
const PADDED = 10_000;

test('what is read in pieces is answered whole and in its order, and what is no request behind it is told so', async () => {
  await look(quietKey);
  const connection = await RawConnection.open(scrip);
  const users = Array.from({ length: 400 }, someone);
  const requests = users.map((end_user_id, index) => {
    const fields = JSON.stringify({ end_user_id, amount: index + 1 });
    return postText(scrip, '/add', index % 10 === 0 ? fields.padEnd(PADDED) : fields);
  });
  connection.send(`${requests.join('')}this is no request\r\n\r\n`);
  const replies = await connection.answers(users.length);
  assert.deepEqual(
    replies.map(({ body }) => [body.end_user_id, body.amount]),
    users.map((user, index) => [user, index + 1]),
  );
  assert.equal((await connection.answer())?.status, 400);
  assert.equal(await connection.answer(), null);
});

test('a client that closes its half behind much that is read in pieces has all of its answers', async () => {
  await look(quietKey);
  const connection = await flood(scrip.writeKey, 1_000);
  connection.socket.end();
  const statuses = (await connection.answers(1_000)).map(({ status }) => status);
  assert.deepEqual([...new Set(statuses)], [200]);
});
