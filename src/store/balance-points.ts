// Computes the points of a balance history.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { type BalancePoint, balanceAt } from '../ledger/history.ts';
import type { Instant } from '../ledger/instant.ts';
import { type EndUserState, sizeOf } from '../ledger/state.ts';

/** After this many cycles and holds, the computation yields to the event loop. Processing them takes about 0.5 ms. */
const ADDED_PER_TURN = 5_000;

/** @param states one state for each of `instants`, in the same order */
export async function balancePoints(
  instants: readonly Instant[],
  states: readonly EndUserState[],
): Promise<readonly BalancePoint[]> {
  const points: BalancePoint[] = [];
  let added = 0;
  for (const [index, state] of states.entries()) {
    points.push(balanceAt(state, instants[index] as Instant));
    added += sizeOf(state);
    if (added < ADDED_PER_TURN) continue;
    added = 0;
    await nextTurn();
  }
  return points;
}
