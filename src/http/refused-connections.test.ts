// Connections on which a request was refused: read at once while there is time to spare, and otherwise after a rest.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from './connection.ts';
import { REST_MS_MAX, RefusedConnections } from './refused-connections.ts';

class StillSocket extends EventEmitter {
  destroyed = false;
  isRead = true;
  pause(): void {
    this.isRead = false;
  }
  resume(): void {
    this.isRead = true;
    this.emit('resume');
  }
}

function connectionOn(socket: StillSocket): Connection {
  return new Connection(socket as unknown as Socket);
}

/** Refusals now and then, until the connection rests or so much time has passed. */
async function refuseUntilItRests(refused: RefusedConnections, connection: Connection, ms: number): Promise<void> {
  const until = performance.now() + ms;
  while (!connection.isResting && performance.now() < until) {
    refused.rest(connection);
    await sleep(20);
  }
}

test('while there is time to spare, who was refused is read at once', async () => {
  const socket = new StillSocket();
  const connection = connectionOn(socket);
  await refuseUntilItRests(new RefusedConnections(() => 0.9), connection, 300);
  assert.deepEqual([connection.isResting, socket.isRead], [false, true]);
});

test('while the processor is full, who was refused rests, and is read again after a moment', async () => {
  const refused = new RefusedConnections(() => 1);
  const socket = new StillSocket();
  const connection = connectionOn(socket);
  const until = performance.now() + 2_000;
  let longest = 0;
  while (longest < REST_MS_MAX / 2 && performance.now() < until) {
    refused.rest(connection);
    const restedAt = performance.now();
    while (!socket.isRead) await sleep(1);
    longest = Math.max(longest, performance.now() - restedAt);
    await sleep(5);
  }
  assert(longest >= REST_MS_MAX / 2, `it rests for ${longest} ms at the most`);
  assert.equal(connection.isResting, false);
});

test('who rests does so at once, and although Node goes on reading behind each answer', async () => {
  const refused = new RefusedConnections(() => 1);
  const socket = new StillSocket();
  const connection = connectionOn(socket);
  await refuseUntilItRests(refused, connection, 1_000);
  while (connection.isResting) await sleep(1);
  refused.rest(connection);
  assert.deepEqual([connection.isResting, socket.isRead], [true, false]);
  socket.resume();
  assert.equal(socket.isRead, false);
  while (connection.isResting) await sleep(1);
  assert.deepEqual([socket.isRead, socket.listenerCount('resume')], [true, 0]);
});

test('who is held while it rests is left to those who hold it', async () => {
  const refused = new RefusedConnections(() => 1);
  const socket = new StillSocket();
  const connection = connectionOn(socket);
  await refuseUntilItRests(refused, connection, 1_000);
  while (socket.isRead) {
    refused.rest(connection);
  }
  connection.isHeld = true;
  while (connection.isResting) await sleep(5);
  assert.equal(socket.isRead, false);
});

test('once there is time to spare again, nobody rests any more', async () => {
  let utilization = 1;
  const refused = new RefusedConnections(() => utilization);
  const crowd = Array.from({ length: 60 }, () => connectionOn(new StillSocket()));
  for (const connection of crowd) {
    refused.rest(connection);
    await sleep(5);
  }
  assert(crowd.some(({ isResting }) => isResting));
  utilization = 0.5;
  for (let looks = 0; looks < 10; looks++) {
    refused.rest(connectionOn(new StillSocket()));
    await sleep(60);
  }
  const late = connectionOn(new StillSocket());
  refused.rest(late);
  assert.deepEqual([late.isResting, crowd.some(({ isResting }) => isResting)], [false, false]);
});
