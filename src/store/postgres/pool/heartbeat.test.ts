// Tests what the heartbeat reports if it gets no connection.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { StoreFault } from '../../store-fault.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { DatabaseClock } from './database-clock.ts';
import { Heartbeat } from './heartbeat.ts';

for (const [code, message] of [
  ['CERT_HAS_EXPIRED', 'certificate has expired'],
  [undefined, 'The server does not support SSL connections'],
] as const)
  test(`if connecting fails because of "${message}", writes are possible again as soon as connecting succeeds`, async () => {
    let isFailing = true;
    const pool = {
      async use() {
        if (isFailing) throw Object.assign(new Error(message), { code });
        return null;
      },
    };
    const reported: (StoreFault | null)[] = [];
    const heartbeat = new Heartbeat(pool as unknown as ConnectionPool, {} as DatabaseClock, (fault) =>
      reported.push(fault),
    );
    for (const failing of [true, false]) {
      isFailing = failing;
      heartbeat.suspectStandby();
      await nextTurn();
    }
    // A fault with another code would stop the ledger until the process restarts.
    assert.deepEqual(
      reported.map((fault) => fault?.code),
      ['StoreUnavailable', undefined],
    );
  });
