// Clients that close their half of a connection, or go altogether. Who may still be listening is answered; what nobody
// waits for is not begun.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { postText, RawConnection } from './raw-connection.ts';
import { eventually, type Scrip, someone, startScrip } from './running-service.ts';
import { stallWrites } from './stalled-writes.ts';

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

test('a client that closes its half behind whole requests has their answers, and then the connection is closed', async () => {
  const user = someone();
  for (const count of [1, 3]) {
    const connection = await RawConnection.open(scrip);
    connection.send(addition(user).repeat(count));
    connection.socket.end();
    assert.deepEqual(await statusesOf(connection), Array(count).fill(200));
  }
  assert.equal((await scrip.balance(user)).active_balance, 20);
});

test('a client that closes its half behind nothing, or behind an answer, is let go of', async () => {
  const [silent, answered] = [await RawConnection.open(scrip), await RawConnection.open(scrip)];
  answered.send(addition(someone()));
  assert.equal((await answered.answer())?.status, 200);
  for (const connection of [silent, answered]) {
    connection.socket.end();
    assert.deepEqual(await statusesOf(connection), []);
  }
});

test('who closed its half and waits for long is told to go on waiting, and answered', async (t) => {
  const user = someone();
  const { goOn, waiting } = stallWrites(t, scrip);
  const connection = await RawConnection.open(scrip);
  connection.send(addition(user).repeat(2));
  connection.socket.end();
  await waiting(2);
  await sleep(1_000);
  goOn();
  assert.deepEqual(await statusesOf(connection), [100, 100, 200, 200]);
  assert.equal((await scrip.balance(user)).active_balance, 10);
});

for (const [how, leave] of [
  ['close', ({ socket }: RawConnection) => void socket.destroy()],
  ['reset', ({ socket }: RawConnection) => void socket.resetAndDestroy()],
] as const) {
  test(`what clients asked for that ${how} their connection while it waits is not done, and their places are free`, async (t) => {
    const [first, user] = [someone(), someone()];
    const { goOn, waiting } = stallWrites(t, scrip);
    const writing = scrip.post('/add', { end_user_id: first, amount: 1 });
    await waiting(1);
    const staying = await RawConnection.open(scrip);
    const leaving = await Promise.all(Array.from({ length: 50 }, () => RawConnection.open(scrip)));
    for (const connection of [staying, ...leaving]) connection.send(addition(user));
    await waiting(52);
    leaving.forEach(leave);
    await Promise.all(leaving.map(({ isClosed, socket }) => isClosed || once(socket, 'close')));
    await sleep(700);
    goOn();
    assert.equal((await writing).status, 200);
    assert.equal((await staying.answer())?.status, 200);
    await eventually(async () => (await inFlight()) === 0, 'no place is taken');
    assert.equal((await scrip.balance(user)).active_balance, 5, 'of who stayed alone');
  });
}

async function inFlight(): Promise<number> {
  const { text } = await scrip.call('GET', '/metrics');
  return Number(/^scrip_requests_in_flight (\d+)$/m.exec(text)?.[1]);
}
