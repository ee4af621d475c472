// Tests clients that disconnect before they get a response: Scrip cancels their queued commands.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { postText, RawConnection } from '../raw-connection.ts';
import { eventually, type Scrip, someone, startScrip } from '../running-service.ts';
import { stallWrites } from '../stalled-writes.ts';

let scrip: Scrip;
before(async () => {
  scrip = await startScrip();
});
after(() => scrip.stop());

const addition = (user: string) => postText(scrip, '/add', { end_user_id: user, amount: 5 });

async function statusesOf(connection: RawConnection): Promise<number[]> {
  const statuses: number[] = [];
  for (let reply = await connection.answer(); reply; reply = await connection.answer()) statuses.push(reply.status);
  return statuses;
}

test('a client that half-closes its connection is disconnected, and its request is processed at most once', async () => {
  const user = someone();
  const connection = await RawConnection.open(scrip);
  connection.send(addition(user));
  connection.socket.end();
  const statuses = await statusesOf(connection);
  const { active_balance } = await scrip.balance(user);
  assert(statuses.length <= 1 && active_balance <= 5, `${statuses} ${active_balance}`);
  if (statuses[0] === 200) assert.equal(active_balance, 5);
});

test('a client that half-closes its connection while none of its requests is in flight is disconnected', async () => {
  const [silent, answered] = [await RawConnection.open(scrip), await RawConnection.open(scrip)];
  answered.send(addition(someone()));
  assert.equal((await answered.answer())?.status, 200);
  for (const connection of [silent, answered]) {
    connection.socket.end();
    assert.deepEqual(await statusesOf(connection), []);
  }
});

for (const [how, leave] of [
  ['close', ({ socket }: RawConnection) => void socket.destroy()],
  ['reset', ({ socket }: RawConnection) => void socket.resetAndDestroy()],
  ['half-close', ({ socket }: RawConnection) => void socket.end()],
] as const) {
  test(`if clients ${how} their connections, their queued commands are canceled and no longer count as in flight`, async (t) => {
    const [first, user] = [someone(), someone()];
    const { resume, waiting } = stallWrites(t, scrip);
    const writing = scrip.post('/add', { end_user_id: first, amount: 1 });
    await waiting(1);
    const staying = await RawConnection.open(scrip);
    const leaving = await Promise.all(Array.from({ length: 50 }, () => RawConnection.open(scrip)));
    for (const connection of [staying, ...leaving]) connection.send(addition(user));
    await waiting(52);
    leaving.forEach(leave);
    await Promise.all(leaving.map(({ isClosed, socket }) => isClosed || once(socket, 'close')));
    await sleep(700);
    resume();
    assert.equal((await writing).status, 200);
    assert.equal((await staying.answer())?.status, 200);
    await eventually(async () => (await inFlight()) === 0, 'nothing is in flight');
    assert.equal((await scrip.balance(user)).active_balance, 5, 'only the command of the connected client is executed');
  });
}

test('if a client disconnects while its API key is looked up, its request does not stay in flight', async (t) => {
  const key = await scrip.createKey('Departed', 'write');
  const { keys } = scrip.service.stores;
  const find = keys.find.bind(keys);
  const lookUps: (() => void)[] = [];
  t.mock.method(keys, 'find', async (hash: string) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    lookUps.push(resolve);
    await promise;
    return find(hash);
  });
  const leaving = await RawConnection.open(scrip);
  leaving.send(addition(someone()).replace(scrip.writeKey, key));
  await eventually(async () => lookUps.length > 0, 'the key is looked up');
  leaving.socket.destroy();
  await sleep(200);
  for (const resolve of lookUps) resolve();
  await eventually(async () => (await inFlight()) === 0, 'nothing is in flight');
});

async function inFlight(): Promise<number> {
  const { text } = await scrip.call('GET', '/metrics');
  return Number(/^scrip_requests_in_flight (\d+)$/m.exec(text)?.[1]);
}
