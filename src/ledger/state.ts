// The state of an end user: what a decision is made from. It is a fold of postings, so it can always be computed again.

import { type Cycle, isLive } from './cycle.ts';
import type { Instant } from './instant.ts';

export interface EndUserState {
  /** In burn order, each once: at least those that are live. */
  readonly cycles: readonly Cycle[];
}

/** An end user who was never given anything. */
export const EMPTY_STATE: EndUserState = { cycles: [] };

/** The state without what no decision at `now` or later can depend on. */
export function liveState(state: EndUserState, now: Instant): EndUserState {
  return state.cycles.every((cycle) => isLive(cycle, now))
    ? state
    : { cycles: state.cycles.filter((cycle) => isLive(cycle, now)) };
}

/** How a state differs from an earlier one of the same end user, from which no cycle has been left out. */
export interface CycleChanges {
  readonly opened: readonly Cycle[];
  readonly changed: readonly { readonly before: Cycle; readonly after: Cycle }[];
}

/** Cycles that did not change are the same objects, mostly in the same place: of a thousand, few are looked up. */
export function cycleChanges({ cycles: before }: EndUserState, { cycles: after }: EndUserState): CycleChanges {
  const opened: Cycle[] = [];
  const changed: { before: Cycle; after: Cycle }[] = [];
  let moved: Map<string, Cycle> | null = null;
  for (let index = 0; index < after.length; index++) {
    const cycle = after[index] as Cycle;
    const inPlace = before[index];
    if (cycle === inPlace) continue;
    if (cycle.id === inPlace?.id) {
      changed.push({ before: inPlace, after: cycle });
      continue;
    }
    moved ??= new Map(before.map((each) => [each.id, each]));
    const earlier = moved.get(cycle.id);
    if (earlier === undefined) opened.push(cycle);
    else if (earlier !== cycle) changed.push({ before: earlier, after: cycle });
  }
  return { opened, changed };
}
