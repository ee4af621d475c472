// The connection of a lane goes from one batch to the next, and back to the pool when none follows.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Connection } from '../pool/connection.ts';
import { LaneSessions } from './lane-sessions.ts';

const LANE = 3;

/** A pool of connections that only say how they came back. */
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

/** A batch that the test ends. */
function runBatch(sessions: LaneSessions, lane: number | null) {
  const { promise: decided, resolve: commit, reject: fail } = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<{ connection: Connection; open: () => void }>();
  const run = sessions.run(lane, async (connection, open) => {
    begun.resolve({ connection, open });
    await decided;
  });
  return { begun: begun.promise, run, commit, fail };
}

describe('the connection of a lane of PostgreSQL', () => {
  test('the next batch of a lane takes over the connection in the same turn of the event loop', async () => {
    const { sessions, returned } = fakePool();
    const first = runBatch(sessions, LANE);
    const { connection } = await first.begun;
    first.commit();
    await first.run;
    const second = runBatch(sessions, LANE);
    assert.equal((await second.begun).connection, connection);
    await nextTurn();
    assert.deepEqual(returned, [], 'it is in use');
    second.commit();
    await second.run;
    await nextTurn();
    assert.deepEqual(returned, ['connection 1, sound']);
  });

  test('a connection that no batch of its lane takes over goes back to the pool, once', async () => {
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

  test('after an error no batch takes the connection over, and it is closed once both of its batches are over', async () => {
    const { sessions, returned } = fakePool();
    const first = runBatch(sessions, LANE);
    const { connection, open } = await first.begun;
    open();
    const second = runBatch(sessions, LANE);
    assert.equal((await second.begun).connection, connection, 'a batch follows');
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

  test('a batch that follows no other one leaves no connection open', async () => {
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
