// The connection of a lane goes from one batch to the next, and back to the pool when nobody follows.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Pool } from 'pg';
import { LaneSessions } from './lane-sessions.ts';

const LANE = 3;

/** Gives out connections, and notes how each comes back. */
function fakePool() {
  const returned: ('sound' | 'broken')[] = [];
  const connect = async () => ({ release: (isBroken?: boolean) => returned.push(isBroken ? 'broken' : 'sound') });
  return { returned, sessions: new LaneSessions({ connect } as unknown as Pool) };
}

describe('the connection of a lane', () => {
  test('the next batch takes it over at once, in the same turn of the event loop', async () => {
    const { sessions, returned } = fakePool();
    const session = await sessions.take();
    sessions.leave(session, true, LANE);
    assert.equal(sessions.takeOpen(LANE), session);
    await nextTurn();
    assert.deepEqual(returned, [], 'it is in use');
    sessions.leave(session, true, LANE);
    await nextTurn();
    assert.deepEqual(returned, ['sound']);
  });

  test('it goes back to the pool, once, when no batch takes it over in that turn', async () => {
    const { sessions, returned } = fakePool();
    const session = await sessions.take();
    sessions.leave(session, true, LANE);
    await nextTurn();
    assert.deepEqual(returned, ['sound']);
    assert.equal(sessions.takeOpen(LANE), null);
  });

  test('after an error nobody takes it over, and it is closed once both of its batches have left', async () => {
    const { sessions, returned } = fakePool();
    const session = await sessions.take();
    sessions.offer(LANE, session);
    assert.equal(sessions.takeOpen(LANE), session, 'a batch follows');
    sessions.leave(session, false, LANE);
    assert.equal(sessions.takeOpen(LANE), null);
    assert.deepEqual(returned, []);
    sessions.leave(session, true, LANE);
    await nextTurn();
    assert.deepEqual(returned, ['broken']);
  });

  test('a batch that follows nobody leaves nothing open', async () => {
    const { sessions, returned } = fakePool();
    sessions.leave(await sessions.take(), true, null);
    assert.deepEqual(returned, ['sound']);
    assert.equal(sessions.takeOpen(LANE), null);
  });
});
