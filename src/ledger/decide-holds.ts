// Decides the outcome of holds, captures and releases.

import assert from 'node:assert/strict';
import { activeBalance } from './balance.ts';
import type { Capture, Hold as HoldCommand, HoldResult, Refusal, Release } from './command.ts';
import { hasEnded, renews } from './cycle.ts';
import { accepted, type Decision, entryOf, type Moment, refused } from './decision.ts';
import { type Draw, draw } from './draw.ts';
import { type Hold, type HoldPart, heldBy, OPEN_HOLDS_MAX } from './hold.ts';
import { INSTANT_MAX, type Instant } from './instant.ts';
import { currentPeriodName, type Posting, periodName, postingOn, postingTo } from './posting.ts';
import { roomAtRenewal } from './room.ts';
import type { EndUserState } from './state.ts';
import { instantOf } from './transaction-id.ts';

export function hold(state: EndUserState, command: HoldCommand, moment: Moment): Decision {
  const { cycles, holds } = state;
  const { now } = moment;
  if (holds.length >= OPEN_HOLDS_MAX) return refused({ refused: 'TooManyHolds' });
  const draws = draw(cycles, command.amount, now);
  if (draws === null)
    return refused({
      refused: 'InsufficientFunds',
      requested: command.amount,
      available: activeBalance(cycles, now),
    });
  const expiresAt = Math.min(now + command.expiresInSeconds * 1_000, INSTANT_MAX);
  const refusal = refuseWithoutRoom(state, draws, expiresAt);
  if (refusal) return refused(refusal);
  const entry = { ...entryOf(command, moment), holdExpiresAt: expiresAt };
  const postings = draws.map(({ cycle, amount }) => ({ ...postingTo(cycle, 0, entry), held: amount }));
  const { amount } = command;
  const result: HoldResult = {
    id: entry.transactionId,
    createdAt: now,
    expiresAt,
    status: 'open',
    amount,
    captured: 0,
    returned: 0,
    expired: 0,
  };
  return accepted(entry.transactionId, postings, { hold: result });
}

/**
 * A hold that outlasts the current period keeps credits that would otherwise expire at the renewal. The kept credits
 * count toward the maximum of 2^53−1 credits after the renewal.
 */
function refuseWithoutRoom(state: EndUserState, draws: readonly Draw[], expiresAt: Instant): Refusal | null {
  const renewing = state.cycles.find(renews);
  if (renewing === undefined || expiresAt <= renewing.end) return null;
  const kept = draws.filter(({ cycle }) => hasEnded(cycle, renewing.end));
  const requested = kept.reduce((sum, { amount }) => sum + amount, 0);
  const available = roomAtRenewal(state, renewing);
  return requested <= available ? null : { refused: 'BalanceTooLarge', requested, available };
}

/**
 * Spends held credits, oldest first, and returns the rest. If the amount exceeds the hold, draws the difference from
 * the balance.
 */
export function capture({ cycles, holds }: EndUserState, command: Capture, moment: Moment): Decision {
  const hold = holds.find(({ id }) => id === command.holdId);
  if (hold === undefined) return refused({ refused: 'HoldNotFound' });
  const { now } = moment;
  const held = heldBy(hold);
  const wanted = command.amount ?? held;
  const further = wanted > held ? draw(cycles, wanted - held, now) : [];
  if (further === null) {
    const available = held + activeBalance(cycles, now);
    return refused({ refused: 'InsufficientFunds', requested: wanted, available });
  }
  const entry = { ...entryOf(command, moment), reference: hold.id };
  const parts = new Set(hold.parts.map(periodName));
  const places = new Map(further.map(({ cycle }, place) => [currentPeriodName(cycle), place]));
  const postings: Posting[] = [];
  let left = wanted;
  let next = 0;
  /** Keeps the order of the draws, because a refund first returns the credits that were drawn last. */
  const drawUpTo = (place: number) => {
    for (; next < place; next++) {
      const { cycle, amount } = further[next] as Draw;
      if (!parts.has(currentPeriodName(cycle))) postings.push(postingTo(cycle, -amount, entry));
    }
  };
  for (const part of hold.parts) {
    const spent = Math.min(left, part.amount);
    left -= spent;
    const place = places.get(periodName(part));
    if (place !== undefined) drawUpTo(place);
    postings.push(closing(part, -(spent + (place === undefined ? 0 : (further[place] as Draw).amount)), entry));
  }
  drawUpTo(further.length);
  return accepted(entry.transactionId, postings, { hold: closedHold(hold, 'captured', wanted, now) });
}

export function release({ holds }: EndUserState, command: Release, moment: Moment): Decision {
  const hold = holds.find(({ id }) => id === command.holdId);
  if (hold === undefined) return refused({ refused: 'HoldNotFound' });
  const entry = { ...entryOf(command, moment), reference: hold.id };
  const postings = hold.parts.map((part) => closing(part, 0, entry));
  return accepted(entry.transactionId, postings, { hold: closedHold(hold, 'released', 0, moment.now) });
}

function closing(part: HoldPart, amount: number, entry: Parameters<typeof postingOn>[2]): Posting {
  const { cycleId, period, end: expiresAt } = part;
  // Avoids -0, which `Object.is` and `assert.deepEqual` distinguish from 0.
  return postingOn({ cycleId, period, expiresAt }, { amount: amount || 0, held: -part.amount }, entry);
}

function closedHold(hold: Hold, status: 'captured' | 'released', captured: number, now: Instant): HoldResult {
  const { id, expiresAt, parts } = hold;
  let left = captured;
  let returned = 0;
  let expired = 0;
  for (const { amount, end } of parts) {
    const spent = Math.min(left, amount);
    left -= spent;
    if (end > now) returned += amount - spent;
    else expired += amount - spent;
  }
  const amount = heldBy(hold);
  assert(left === Math.max(0, captured - amount), 'the held credits are spent before the balance');
  return { id, createdAt: instantOf(id), expiresAt, status, amount, captured, returned, expired };
}
