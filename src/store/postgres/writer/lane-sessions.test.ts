// Tests that a lane passes its connection to the next batch, or to the pool if no batch follows.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Connection } from '../pool/connection.ts';
import { LaneSessions } from './lane-sessions.ts';

const LANE = 3;

function fakePool() {
  const returned: string[] = [];
  let opened = 0;
  const connect = async () => {
    const name = `connection ${++opened}`;
    const release = (isSound: boolean) => returned.push(`${name}, ${isSound ? 'sound' : 'broken'}`);
    return { release } as unknown as Connection;
  };
  return { returned, sessions: new LaneSessions({ connect }) };
}

function runBatch(sessions: LaneSessions, lane: number | null) {
  const { promise: decided, resolve: commit, reject: fail } = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<{ connection: Connection; open: () => void }>();
  const run = sessions.run(lane, async (connection, open) => {
    begun.resolve({ connection, open });
    await decided;
  });
  return { begun: begun.promise, run, commit, fail };
}

describe('the connection of a PostgreSQL lane', () => {
  test('if a batch ends and the next batch of its lane begins in the same turn of the event loop, the next batch takes over the connection', async () => {
    const { sessions, returned } = fakePool();
    const first = runBatch(sessions, LANE);
    const { connection } = await first.begun;
    first.commit();
    await first.run;
    const second = runBatch(sessions, LANE);
    assert.equal((await second.begun).connection, connection);
    await nextTurn();
    assert.deepEqual(returned, [], 'the connection is in use');
    second.commit();
    await second.run;
    await nextTurn();
    assert.deepEqual(returned, ['connection 1, sound']);
  });

  test('a lane returns its connection to the pool exactly once if no further batch takes it over', async () => {
    const { sessions, returned } = fakePool();
    for (const expected of [['connection 1, sound'], ['connection 1, sound', 'connection 2, sound']]) {
      const batch = runBatch(sessions, LANE);
      await batch.begun;
      batch.commit();
      await batch.run;
      await nextTurn();
      assert.deepEqual(returned, expected);
    }
  });

  test('after an error, no further batch takes over the connection, and the connection is closed as soon as both batches that share it have ended', async () => {
    const { sessions, returned } = fakePool();
    const first = runBatch(sessions, LANE);
    const { connection, open } = await first.begun;
    open();
    const second = runBatch(sessions, LANE);
    assert.equal((await second.begun).connection, connection, 'the second batch takes over the connection');
    first.fail(new Error('the COMMIT was refused'));
    await assert.rejects(first.run, /the COMMIT was refused/);
    const third = runBatch(sessions, LANE);
    assert.notEqual((await third.begun).connection, connection);
    assert.deepEqual(returned, []);
    second.commit();
    await second.run;
    await nextTurn();
    assert.deepEqual(returned, ['connection 1, broken']);
    third.commit();
    await third.run;
  });

  test('a batch without a lane returns its connection to the pool as soon as the batch ends', async () => {
    const { sessions, returned } = fakePool();
    const batch = runBatch(sessions, null);
    const { open } = await batch.begun;
    open();
    batch.commit();
    await batch.run;
    assert.deepEqual(returned, ['connection 1, sound']);
    const next = runBatch(sessions, null);
    await next.begun;
    next.commit();
    await next.run;
    assert.deepEqual(returned, ['connection 1, sound', 'connection 2, sound']);
  });
});
