// Defines the text format of snapshots, and decides after which transactions a snapshot is stored. A snapshot can
// always be computed from the postings. It only reduces the number of postings that must be applied to compute a state.

import { type Cycle, type CycleStatus, type CycleType, isLive } from '../ledger/cycle.ts';
import type { Hold, HoldPart } from '../ledger/hold.ts';
import type { Instant } from '../ledger/instant.ts';
import { planOfText, planText, scheduledOfText, scheduledText } from '../ledger/plan.ts';
import { isByTime, type Posting } from '../ledger/posting.ts';
import { EMPTY_STATE, type EndUserState } from '../ledger/state.ts';
import { hexNumber } from '../ledger/transaction-id.ts';

/**
 * The average number of transactions between two snapshots. Applying the postings of this many transactions takes about
 * 0.2 ms. A snapshot of an end user with two cycles takes 200 bytes.
 */
const TRANSACTIONS = 128;

/**
 * If an end user has at least this many cycles and holds in total, snapshots are stored less often, so that they do not
 * need more space than the postings.
 */
const CYCLES_AT_FULL_RATE = 16;

/**
 * Returns true if a snapshot is due after these postings: a full snapshot if `isSnapshotDue` also returns true, and
 * otherwise a waypoint, which has no state and only helps to find older postings. A search passes all postings up to
 * the next snapshot, and a transaction can have thousands of postings. On average, the result is therefore true after
 * one in `TRANSACTIONS` postings, and always after a transaction with that many postings.
 */
export function isWaypointDue(postings: readonly Posting[]): boolean {
  let place = 0;
  return isDueAfter(postings, (digits, index) => {
    place = postings[index]?.transactionId === postings[index - 1]?.transactionId ? place + 1 : 0;
    return digits % TRANSACTIONS <= place;
  });
}

/**
 * Returns true if a full snapshot is due after these postings. The result depends on random digits in the transaction
 * IDs, so that Scrip does not have to count transactions. The result is always false after a renewal, a change of plan
 * or a lapse. Such an event can be stored late. In that case, the state lacks cycles that ended in the meantime, and
 * the snapshot would be incomplete.
 */
export function isSnapshotDue(postings: readonly Posting[], { cycles, holds }: EndUserState): boolean {
  const transactions = TRANSACTIONS * Math.ceil((cycles.length + holds.length + 1) / CYCLES_AT_FULL_RATE);
  return isDueAfter(postings, (digits) => digits % transactions === 0);
}

/**
 * Returns true if `isDue` returns true for the random digits in one of the transaction IDs. The result is always false
 * if the last posting is a renewal, a change of plan or a lapse.
 */
function isDueAfter(postings: readonly Posting[], isDue: (digits: number, index: number) => boolean): boolean {
  const latest = postings.at(-1);
  if (latest === undefined || isByTime(latest.kind)) return false;
  return postings.some(
    ({ kind, transactionId }, index) => !isByTime(kind) && isDue(hexNumber(transactionId, 28, 36), index),
  );
}

type CycleText = [string, number, CycleType, CycleStatus, number, number, number, number, number, string, string?];
type PartText = [string, number, number, number];
type HoldText = [string, number, PartText[]];

/** The values of a cycle, in the order of the `CYCLE_COLUMNS` of both stores. */
export function cycleValues(cycle: Cycle) {
  const { id, period, type, status, amount, remaining, held, start, end, plan, next } = cycle;
  return [id, period, type, status, amount, remaining, held, start, end, planText(plan), scheduledText(next)] as const;
}

function cycleText(cycle: Cycle): readonly unknown[] {
  const values = cycleValues(cycle);
  return cycle.next === null ? values.slice(0, -1) : values;
}

/** @param at cycles that are not live at this instant are omitted */
export function stateText({ cycles, holds }: EndUserState, at: Instant): string {
  const live = cycles.filter((cycle) => isLive(cycle, at)).map(cycleText);
  return JSON.stringify(holds.length === 0 ? [live] : [live, holds.map(holdValues)]);
}

export function stateOfText(text: string): EndUserState {
  const [live, open = []] = JSON.parse(text) as [CycleText[], HoldText[]?];
  const cycles = live.map(
    ([id, period, type, status, amount, remaining, held, start, end, plan, next = null]): Cycle => {
      const credits = { amount, remaining, held };
      return { id, period, type, status, ...credits, start, end, plan: planOfText(plan), next: scheduledOfText(next) };
    },
  );
  return { cycles, holds: open.map(holdOf) };
}

/** @returns the holds as JSON; null if there are none */
export function holdsText(holds: readonly Hold[]): string | null {
  return holds.length === 0 ? null : JSON.stringify(holds.map(holdValues));
}

export function holdsOfText(text: string | null): readonly Hold[] {
  return text === null ? EMPTY_STATE.holds : (JSON.parse(text) as HoldText[]).map(holdOf);
}

function holdValues({ id, expiresAt, parts }: Hold): HoldText {
  return [id, expiresAt, parts.map(partValues)];
}

function holdOf([id, expiresAt, parts]: HoldText): Hold {
  return { id, expiresAt, parts: parts.map(partOf) };
}

/** The parts of a hold as JSON, in the same format as in `stateText`. */
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
