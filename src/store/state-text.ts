// Snapshots: the text format in which states of end users are stored, and how often they are stored. A state can always
// be folded from the postings; a snapshot only reduces the number of postings to fold.

import { type Cycle, type CycleStatus, type CycleType, isLive } from '../ledger/cycle.ts';
import type { Hold, HoldPart } from '../ledger/hold.ts';
import type { Instant } from '../ledger/instant.ts';
import { isByTime, type Posting } from '../ledger/posting.ts';
import type { EndUserState } from '../ledger/state.ts';

/**
 * The average number of transactions between two snapshots. Folding this many takes about 0.2 ms; a snapshot of an end
 * user with two cycles takes 200 bytes.
 */
const TRANSACTIONS = 128;

/** An end user with more cycles has fewer snapshots, so that they never take more space than the postings. */
const CYCLES_AT_FULL_RATE = 16;

/**
 * Whether a waypoint is stored after these postings of an end user. A waypoint is a snapshot without a state, which
 * helps to find older postings. If a snapshot is due, a waypoint is due, too. So check this first: it is nearly always
 * false.
 */
export function isWaypointDue(postings: readonly Posting[]): boolean {
  return isOneOf(TRANSACTIONS, postings);
}

/**
 * Whether a snapshot is stored after these postings of an end user. The random digits of the transaction ids decide,
 * so nothing has to be counted. Always false after a renewal or a lapse: these may be stored late, and the state then
 * lacks cycles that have ended meanwhile.
 */
export function isSnapshotDue(postings: readonly Posting[], { cycles, holds }: EndUserState): boolean {
  return isOneOf(TRANSACTIONS * Math.ceil((cycles.length + holds.length + 1) / CYCLES_AT_FULL_RATE), postings);
}

/**
 * Whether a transaction is selected by the random digits of its id, with a chance of 1 in `transactions`. False after
 * an event.
 */
function isOneOf(transactions: number, postings: readonly Posting[]): boolean {
  const latest = postings.at(-1);
  if (latest === undefined || isByTime(latest.kind)) return false;
  return postings.some(
    ({ kind, transactionId }) => !isByTime(kind) && Number.parseInt(transactionId.slice(-8), 16) % transactions === 0,
  );
}

type CycleText = [string, number, CycleType, CycleStatus, number, number, number, number, number, number];
type PartText = [string, number, number, number];
type HoldText = [string, number, PartText[]];

/** The values of a cycle in the order of `CYCLE_COLUMNS` in both stores. */
export function cycleValues(cycle: Cycle): CycleText {
  const { id, period, type, status, amount, remaining, held, start, end, validityDays } = cycle;
  return [id, period, type, status, amount, remaining, held, start, end, validityDays];
}

/** @param at cycles that are not live at this instant are left out */
export function stateText({ cycles, holds }: EndUserState, at: Instant): string {
  const live = cycles.filter((cycle) => isLive(cycle, at)).map(cycleValues);
  return JSON.stringify(holds.length === 0 ? [live] : [live, holds.map(holdValues)]);
}

export function stateOfText(text: string): EndUserState {
  const [live, open = []] = JSON.parse(text) as [CycleText[], HoldText[]?];
  const cycles = live.map(([id, period, type, status, amount, remaining, held, start, end, validityDays]): Cycle => {
    return { id, period, type, status, amount, remaining, held, start, end, validityDays };
  });
  return { cycles, holds: open.map(holdOf) };
}

/** @returns null if there are no holds */
export function holdsText(holds: readonly Hold[]): string | null {
  return holds.length === 0 ? null : JSON.stringify(holds.map(holdValues));
}

export function holdsOfText(text: string | null): readonly Hold[] {
  return text === null ? NO_HOLDS : (JSON.parse(text) as HoldText[]).map(holdOf);
}

const NO_HOLDS: readonly Hold[] = [];

function holdValues({ id, expiresAt, parts }: Hold): HoldText {
  return [id, expiresAt, parts.map(partValues)];
}

function holdOf([id, expiresAt, parts]: HoldText): Hold {
  return { id, expiresAt, parts: parts.map(partOf) };
}

/** The parts of a hold, as text in the format of `stateText`. */
export function partsText(parts: readonly HoldPart[]): string {
  return JSON.stringify(parts.map(partValues));
}

export function partsOfText(text: string): readonly HoldPart[] {
  return (JSON.parse(text) as PartText[]).map(partOf);
}

function partValues({ cycleId, period, amount, end }: HoldPart): PartText {
  return [cycleId, period, amount, end];
}

function partOf([cycleId, period, amount, end]: PartText): HoldPart {
  return { cycleId, period, amount, end };
}
