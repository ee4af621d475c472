// How many requests of an account may be in flight, by how fast the store is.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FairShare } from '../../batching/fair-share.ts';
import { BATCH_COMMANDS_MAX } from '../../batching/group-commit.ts';
import { SERVER_LIMITS, WAIT_MS_MAX } from '../limits.ts';
import { mayBegin } from './admit.ts';

function beginAll(inFlight: FairShare, account: number, perMs: number | null): number {
  let begun = 0;
  for (; mayBegin(inFlight, account, perMs); begun++) inFlight.take(account, 1);
  return begun;
}

/** Commands in a millisecond, and how many requests an account may have in flight that is alone. */
const THROUGHPUTS: readonly (readonly [what: string, perMs: number | null, alone: number])[] = [
  ['whose throughput is not known', null, SERVER_LIMITS.inFlightMax / 2],
  ['that does 30 commands in a millisecond', 30, SERVER_LIMITS.inFlightMax / 2],
  ['that does 2 commands in a millisecond', 2, 2 * WAIT_MS_MAX],
  ['that does hardly anything', 0.1, BATCH_COMMANDS_MAX],
];

for (const [what, perMs, alone] of THROUGHPUTS) {
  test(`on a store ${what}, an account that is alone may have ${alone} requests in flight`, () => {
    const inFlight = new FairShare(SERVER_LIMITS.inFlightMax);
    assert.equal(beginAll(inFlight, 1, perMs), alone);
    inFlight.release(1, 1);
    assert(mayBegin(inFlight, 1, perMs), 'there is room again');
    assert(beginAll(inFlight, 2, perMs) >= 1, 'and another account has room');
  });
}
