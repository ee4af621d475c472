// An end user's state: its cycles and open holds, as computed from its postings.

import { type Cycle, isLive } from './cycle.ts';
import type { Hold } from './hold.ts';
import type { Instant } from './instant.ts';

export interface EndUserState {
  /** In spending order, without duplicates. Contains at least the live cycles. */
  readonly cycles: readonly Cycle[];
  /**
   * Open holds, in the order in which they lapse. When a command is decided, some open holds can be missing, but never
   * those that are due to lapse or that the command needs.
   */
  readonly holds: readonly Hold[];
}

/** The state of an end user without postings. */
export const EMPTY_STATE: EndUserState = { cycles: [], holds: [] };

/** Leaves out the cycles that cannot affect a decision at `now` or later. */
export function liveState(state: EndUserState, now: Instant): EndUserState {
  return state.cycles.every((cycle) => isLive(cycle, now))
    ? state
    : { cycles: state.cycles.filter((cycle) => isLive(cycle, now)), holds: state.holds };
}

/**
 * The difference between an earlier and a later state of an end user. The later state contains all cycles of the
 * earlier one, and possibly more.
 */
interface CycleChanges {
  readonly opened: readonly Cycle[];
  readonly changed: readonly { readonly before: Cycle; readonly after: Cycle }[];
}

/** Compares cycles by identity: an unchanged cycle is the same object in both states, usually at the same index. */
export function cycleChanges({ cycles: before }: EndUserState, { cycles: after }: EndUserState): CycleChanges {
  let moved: ReadonlyMap<string, Cycle> | null = null;
  const opened: Cycle[] = [];
  const changed: { before: Cycle; after: Cycle }[] = [];
  for (const [index, cycle] of after.entries()) {
    const same = before[index];
    if (cycle === same) continue;
    if (same?.id === cycle.id) {
      changed.push({ before: same, after: cycle });
      continue;
    }
    moved ??= byId(before.filter((cycle, index) => cycle !== after[index]));
    const known = moved.get(cycle.id);
    if (known === undefined) opened.push(cycle);
    else if (known !== cycle) changed.push({ before: known, after: cycle });
  }
  return { opened, changed };
}

function byId(cycles: readonly Cycle[]): ReadonlyMap<string, Cycle> {
  return new Map(cycles.map((cycle) => [cycle.id, cycle]));
}

/** The number of cycles and holds: a measure of the cost of reading the state. */
export function sizeOf({ cycles, holds }: EndUserState): number {
  return cycles.length + holds.length;
}
