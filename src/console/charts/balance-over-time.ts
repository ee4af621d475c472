// The balance of one end user as steps in time: what it was, undone from what remains now, posting by posting; and what
// time alone will do to it, if nobody adds, spends, starts or stops. Pure, by the rules of the ledger.

import assert from 'node:assert/strict';
import type { Amount } from '../../ledger/amount.ts';
import { activeBalance } from '../../ledger/balance.ts';
import { type Cycle, hasEnded, periodAfter, periodsMissed, renews } from '../../ledger/cycle.ts';
import { DAY_MS, type Instant } from '../../ledger/instant.ts';
import { cyclesAt } from '../../ledger/settle.ts';
import type { TransactionId } from '../../ledger/transaction-id.ts';

/** From `at` on, until the next step, this is the balance. */
export interface Step {
  readonly at: Instant;
  readonly balance: Amount;
}

export interface BalanceOverTime {
  readonly now: Instant;
  /** From the first instant asked for to now; at least one step. */
  readonly past: readonly Step[];
  /** From now to the last instant asked for; the first step is the balance now. */
  readonly future: readonly Step[];
  readonly end: Instant;
}

/** What a posting did to a cycle, as far as the past needs it. */
export interface Movement {
  readonly cycleId: TransactionId;
  readonly period: number;
  readonly amount: number;
  readonly createdAt: Instant;
}

export interface Known {
  readonly now: Instant;
  /** All that had not ended at `from`, as they are now; a renewal that is due need not be among them. */
  readonly cycles: readonly Cycle[];
  /** All of these cycles since `from`; older ones do no harm. */
  readonly movements: readonly Movement[];
}

export function balanceOverTime(known: Known, { from, to }: { from: Instant; to: Instant }): BalanceOverTime {
  const { now } = known;
  assert(from <= now && now <= to, 'now lies within what is shown');
  return { now, past: pastOf(known, from), future: futureOf(known, to), end: to };
}

interface Change {
  readonly at: Instant;
  readonly by: number;
}

function pastOf({ cycles, movements, now }: Known, from: Instant): Step[] {
  const changes: Change[] = [];
  let balance = 0;
  const spentOf = Map.groupBy(
    movements.filter(({ amount }) => amount < 0),
    ({ cycleId, period }) => `${cycleId} ${period}`,
  );
  for (const cycle of cycles.flatMap((stored) => periodsWithin(stored, from, now))) {
    const spent = (spentOf.get(`${cycle.id} ${cycle.period}`) ?? []).filter(({ createdAt }) => createdAt > from);
    const before = spent.reduce((sum, { amount }) => sum - amount, cycle.remaining);
    if (cycle.start <= from) balance += before;
    else changes.push({ at: cycle.start, by: before });
    for (const { createdAt, amount } of spent) changes.push({ at: createdAt, by: amount });
    if (hasEnded(cycle, now)) changes.push({ at: cycle.end, by: -cycle.remaining });
  }
  return stepsOf({ at: from, balance }, changes);
}

/** The cycle itself, and the periods that follow it up to now and are not stored yet: those of them that bear on `from` or later. */
function periodsWithin(cycle: Cycle, from: Instant, now: Instant): Cycle[] {
  const periods = hasEnded(cycle, from) || cycle.start > now ? [] : [cycle];
  const missed = periodsMissed(cycle, now);
  const endedBefore = Math.floor((from - cycle.end) / (cycle.validityDays * DAY_MS)) + 1;
  for (let turn = Math.max(1, endedBefore); turn <= missed; turn++) periods.push(periodAfter(cycle, turn));
  return periods;
}

function futureOf({ cycles, now }: Known, to: Instant): Step[] {
  const current = cyclesAt(cycles, now);
  const changes: Change[] = [];
  for (const cycle of current) {
    if (cycle.end > to) continue;
    changes.push({ at: cycle.end, by: -cycle.remaining });
    // Untouched periods follow each other at the same height: the first renewal is the only one that shows.
    if (renews(cycle)) changes.push({ at: cycle.end, by: periodAfter(cycle, 1).amount });
  }
  return stepsOf({ at: now, balance: activeBalance(current, now) }, changes);
}

/** One step an instant: what ends and what begins at the same instant are one change. */
function stepsOf(first: Step, changes: readonly Change[]): Step[] {
  const steps = [first];
  // What falls comes first, so that the sum never passes what a number holds exactly.
  for (const { at, by } of changes.toSorted((a, b) => a.at - b.at || a.by - b.by)) {
    const last = steps.at(-1) as Step;
    const next = { at, balance: last.balance + by };
    if (last.at === at) steps[steps.length - 1] = next;
    else steps.push(next);
  }
  return steps.filter((step, index) => index === 0 || step.balance !== steps[index - 1]?.balance);
}
