// What a turn of the event loop brings is bounded, however many connections have something to say at once.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Connection } from './connection.ts';
import { ConnectionTurns } from './connection-turns.ts';
import { WorkInFlight } from './work-in-flight.ts';

const LOUD = 1;
const QUIET = 2;
/** As in `connection-turns.ts`. */
const TURN_MAX = 1_024;
const HELD_TURN_MAX = 512;

class SilentSocket extends EventEmitter {
  destroyed = false;
  isRead = true;
  readonly readableLength = 0;
  pause(): void {
    this.isRead = false;
  }
  resume(): void {
    this.isRead = true;
    this.emit('resume');
  }
}

interface Caller {
  readonly socket: SilentSocket;
  readonly connection: Connection;
}

function callersOf(turns: ConnectionTurns, count: number, account: number | null): Caller[] {
  return Array.from({ length: count }, () => {
    const socket = new SilentSocket();
    const connection = new Connection(socket as unknown as Socket);
    turns.arrive(connection);
    if (account !== null) turns.recognise(connection, account);
    return { socket, connection };
  });
}

function newTurns(): ConnectionTurns {
  return new ConnectionTurns(new WorkInFlight(), () => {});
}

const read = (callers: readonly Caller[]) => callers.filter(({ socket }) => socket.isRead);

test('as many as one poll of the system brings are all read from', () => {
  const turns = newTurns();
  const callers = callersOf(turns, 2_000, LOUD);
  for (const { connection } of callers.slice(0, TURN_MAX - 1)) turns.count(connection);
  assert.equal(read(callers).length, 2_000);
});

test('once a turn has brought as many as that, nobody is read from, whether he has been heard or not', () => {
  const turns = newTurns();
  const callers = [...callersOf(turns, 2_000, LOUD), ...callersOf(turns, 10, QUIET), ...callersOf(turns, 10, null)];
  for (const { connection } of callers.slice(0, TURN_MAX)) turns.count(connection);
  assert.equal(read(callers).length, 0);
});

test('then they are read from in turn, a few in each, until all have been', async () => {
  const turns = newTurns();
  const callers = callersOf(turns, 2_000, LOUD);
  for (const { connection } of callers.slice(0, TURN_MAX)) turns.count(connection);
  // Of those that were not heard it is not known how many they bring.
  await turn();
  const first = read(callers);
  assert.deepEqual(first, callers.slice(0, HELD_TURN_MAX));
  for (let turned = 0; turned < 2_000 && read(callers).length < 2_000; turned++) {
    const before = read(callers).length;
    await turn();
    assert(read(callers).length - before <= HELD_TURN_MAX);
  }
  assert.equal(read(callers).length, 2_000);
});

test('accounts take turns: one that has two connections among thousands waits for none of them', async () => {
  const turns = newTurns();
  const loud = callersOf(turns, 2_000, LOUD);
  const quiet = callersOf(turns, 2, QUIET);
  for (const { connection } of quiet) turns.count(connection);
  for (const { connection } of loud.slice(0, TURN_MAX - 2)) turns.count(connection);
  assert.equal(read(quiet).length, 0);
  await turn();
  assert.equal(read(quiet).length, 2);
  assert(read(loud).length < HELD_TURN_MAX);
});

test('while others are held, thousands of new connections are let in within a few turns, if each brings little', async () => {
  const turns = newTurns();
  const loud = callersOf(turns, 20_000, LOUD);
  for (const { connection } of loud.slice(0, TURN_MAX)) turns.count(connection);
  const strangers = callersOf(turns, 2_000, null);
  assert.equal(read(strangers).length, 0);
  const heard = new Set<Caller>();
  let turned = 0;
  for (; heard.size < 2_000; turned++) {
    await turn();
    for (const stranger of read(strangers))
      if (!heard.has(stranger)) {
        heard.add(stranger);
        turns.count(stranger.connection);
      }
  }
  assert(turned < 20, `it took ${turned} turns`);
});
