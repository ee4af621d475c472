// A second, slow implementation of `src/events/derive.ts` for some event types. It always starts at the first posting,
// not at a stored state.

import assert from 'node:assert/strict';
import { applyAll } from '../../src/ledger/apply.ts';
import { type Cycle, renews, spendable } from '../../src/ledger/cycle.ts';
import { balanceAt } from '../../src/ledger/history.ts';
import { INSTANT_MAX, type Instant } from '../../src/ledger/instant.ts';
import { nextEventAt } from '../../src/ledger/next-event.ts';
import { isOpening, type Posting } from '../../src/ledger/posting.ts';
import { EMPTY_STATE, type EndUserState } from '../../src/ledger/state.ts';
import { type EventSettings, type EventType, type Threshold, thresholdText } from '../../src/store/event-log.ts';
import { wholeTransactions } from '../../src/store/transaction-history.ts';

export interface ReferenceEvent {
  readonly type: EventType;
  readonly at: Instant;
  readonly balance: number;
  /** The balance before the event; for `credits.expired`, the credits that expired. */
  readonly amount: number;
  /** The crossed thresholds; for `credits.expired`, the ID of the cycle. */
  readonly of: readonly string[];
}

export const REFERENCE_TYPES: readonly EventType[] = [
  'credits.expired',
  'balance.low',
  'balance.exhausted',
  'balance.recovered',
];

/** `postings` contains all postings of an end user up to `until`, oldest first. */
export function referenceEvents(
  postings: readonly Posting[],
  until: Instant,
  { thresholds }: Pick<EventSettings, 'thresholds'>,
): readonly ReferenceEvent[] {
  const events: ReferenceEvent[] = [];
  const transactions = [...wholeTransactions(postings, ({ transactionId }) => transactionId)];
  const last = Math.min(until, nextEventAt(applyAll(EMPTY_STATE, postings)) - 1);
  let state = EMPTY_STATE;
  let grant = 0;
  for (const at of instantsOf(postings, last)) {
    const here = transactions.filter(([{ createdAt }]) => createdAt === at);
    const isByPeriodEnd = here[0]?.[0].kind === 'renew' || here[0]?.[0].kind === 'change-plan';
    const steps = isByPeriodEnd ? here : [[], ...here];
    for (const [index, step] of steps.entries()) {
      const earlier = state;
      const earlierGrant = grant;
      state = applyAll(state, step);
      const [first] = step;
      if (first !== undefined && isOpening(first) && first.kind !== 'refund') grant = first.amount;
      // Credits expire before anything else that happens at the same instant.
      const before = index === 0 ? running(earlier, at - 1) : running(earlier, at);
      const balance = running(state, at);
      if (index === 0) assert.equal(before, balanceAt(earlier, at - 1).balance, 'the ledger shows the same balance');
      const add = (type: EventType, amount: number, of: readonly string[]) =>
        events.push({ type, at, balance, amount, of });
      if (index === 0)
        for (const cycle of earlier.cycles) {
          const amount = lostAtEnd(cycle, at, state);
          if (amount > 0) add('credits.expired', amount, [cycle.id]);
        }
      for (const posting of step) {
        const amount = lostHold(posting, earlier);
        if (amount > 0) add('credits.expired', amount, [posting.cycleId]);
      }
      const crossed = thresholds.filter(
        (threshold) => isBelow(before, threshold, earlierGrant) !== isBelow(balance, threshold, grant),
      );
      const [low, high] = [true, false].map((wanted) =>
        crossed.filter((threshold) => isBelow(balance, threshold, grant) === wanted).map(thresholdText),
      ) as [string[], string[]];
      for (const text of low) add('balance.low', before, [text]);
      if (before > 0 && balance === 0) add('balance.exhausted', before, []);
      if (earlierGrant > 0 && (high.length > 0 || (before === 0 && balance > 0)))
        add('balance.recovered', before, high);
    }
  }
  return events;
}

function instantsOf(postings: readonly Posting[], last: Instant): readonly Instant[] {
  const made = postings.map(({ createdAt }) => createdAt);
  const ends = postings.map(({ expiresAt }) => expiresAt).filter((end) => end <= last && end < INSTANT_MAX);
  return [...new Set([...made, ...ends])].sort((a, b) => a - b);
}

/** Must not be called if a renewal or lapse is due at `at`. */
function running({ cycles }: EndUserState, at: Instant): number {
  return cycles.reduce((sum, cycle) => (cycle.end > at ? sum + spendable(cycle) : sum), 0);
}

function lostAtEnd(cycle: Cycle, at: Instant, after: EndUserState): number {
  if (cycle.end !== at) return 0;
  const next = after.cycles.find(({ id, period }) => id === cycle.id && period === cycle.period + 1);
  assert(
    next !== undefined || !after.cycles.some((each) => each.id === cycle.id && renews(each)),
    'the cycle was renewed',
  );
  return spendable(cycle) - (next === undefined ? 0 : Math.min(spendable(cycle), next.amount - next.plan.amount));
}

/** Held credits expire when they return to a period that has ended. */
function lostHold({ cycleId, period, amount, held, createdAt, reference }: Posting, { holds }: EndUserState): number {
  if (held >= 0) return 0;
  const hold = holds.find(({ id }) => id === reference);
  const part = hold?.parts.find((each) => each.cycleId === cycleId && each.period === period);
  assert(part !== undefined, 'a posting closes a part of an open hold');
  return part.end <= createdAt ? part.amount + amount : 0;
}

function isBelow(balance: number, threshold: Threshold, latestGrant: number): boolean {
  if ('credits' in threshold) return balance < threshold.credits;
  return BigInt(balance) * 100n < BigInt(threshold.percent) * BigInt(latestGrant);
}
