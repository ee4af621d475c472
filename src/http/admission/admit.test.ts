// Tests that the concurrency limit of an account depends on the throughput of the store.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BATCH_COMMANDS_MAX } from '../../batching/group-commit.ts';
import { SERVER_LIMITS, WAIT_MS_MAX } from '../limits.ts';
import { mayBegin } from './admit.ts';
import { FairShare } from './fair-share.ts';

function beginAll(inFlight: FairShare, account: number, perMs: number | null): number {
  let begun = 0;
  for (; mayBegin(inFlight, account, perMs); begun++) inFlight.take(account, 1);
  return begun;
}

const THROUGHPUTS: readonly (readonly [what: string, perMs: number | null, alone: number])[] = [
  ['with an unknown throughput', null, SERVER_LIMITS.inFlightMax / 2],
  ['with a throughput of 30 commands per millisecond', 30, SERVER_LIMITS.inFlightMax / 2],
  ['with a throughput of 3 commands per millisecond', 3, 3 * WAIT_MS_MAX],
  ['with almost no throughput', 0.1, 2 * BATCH_COMMANDS_MAX],
];

for (const [what, perMs, alone] of THROUGHPUTS) {
  test(`on a store ${what}, an account can have ${alone} requests in flight if no other account has any`, () => {
    const inFlight = new FairShare(SERVER_LIMITS.inFlightMax);
    assert.equal(beginAll(inFlight, 1, perMs), alone);
    inFlight.release(1, 1);
    assert(mayBegin(inFlight, 1, perMs), 'after a request ends, another one can begin');
    assert(beginAll(inFlight, 2, perMs) >= 1, 'another account can begin a request');
  });
}
