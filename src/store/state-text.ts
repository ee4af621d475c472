// Snapshots: the text format in which states of end users are stored, and how often they are stored. A state can always
// be folded from the postings; a snapshot only limits how many postings that takes.

import { type Cycle, type CycleStatus, type CycleType, isLive } from '../ledger/cycle.ts';
import type { Instant } from '../ledger/instant.ts';
import type { Posting } from '../ledger/posting.ts';
import type { EndUserState } from '../ledger/state.ts';

/**
 * The average number of transactions between two snapshots. Folding this many takes about 0.2 ms; a snapshot of an end
 * user with two cycles takes 200 bytes.
 */
const TRANSACTIONS = 128;

/** An end user with more cycles has fewer snapshots, so that they never take more space than the postings. */
const CYCLES_AT_FULL_RATE = 16;

/**
 * Whether a snapshot is stored after these postings of an end user. The random digits of the transaction ids decide, so
 * no counter is needed. Never after a renewal: a renewal that is stored late is applied to a state without the cycles
 * that have ended since its instant.
 */
export function isSnapshotDue(postings: readonly Posting[], { cycles }: EndUserState): boolean {
  if (postings.at(-1)?.kind === 'renew') return false;
  const transactions = TRANSACTIONS * Math.ceil((cycles.length + 1) / CYCLES_AT_FULL_RATE);
  return postings.some(
    ({ kind, transactionId }) => kind !== 'renew' && Number.parseInt(transactionId.slice(-8), 16) % transactions === 0,
  );
}

type CycleText = [string, number, CycleType, CycleStatus, number, number, number, number, number];

/** The values of a cycle in the order of `CYCLE_COLUMNS` in both stores. */
export function cycleValues(cycle: Cycle): CycleText {
  const { id, period, type, status, amount, remaining, start, end, validityDays } = cycle;
  return [id, period, type, status, amount, remaining, start, end, validityDays];
}

/** @param at cycles that are not live at this instant are left out */
export function stateText({ cycles }: EndUserState, at: Instant): string {
  return JSON.stringify(cycles.filter((cycle) => isLive(cycle, at)).map(cycleValues));
}

export function stateOfText(text: string): EndUserState {
  const cycles = (JSON.parse(text) as CycleText[]).map(
    ([id, period, type, status, amount, remaining, start, end, validityDays]): Cycle => {
      return { id, period, type, status, amount, remaining, start, end, validityDays };
    },
  );
  return { cycles };
}
