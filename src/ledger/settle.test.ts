// Tests settling, which applies all due events, such as renewals and lapses of holds.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  EVENTS_MAX,
  holding,
  idAt,
  lapsing,
  NOW,
  oneTime,
  recurring,
  stateOf,
} from '../../test/ledger/ledger-builders.ts';
import { histories } from '../../test/ledger/random-histories.ts';
import { applyAll } from './apply.ts';
import { cyclesAt } from './balance.ts';
import { type Cycle, hasEnded, spendingOrder } from './cycle.ts';
import { heldAt } from './hold.ts';
import { DAY_MS, INSTANT_MAX, LAST_INSTANT } from './instant.ts';
import { isSettled } from './next-event.ts';
import { endOf } from './plan.ts';
import { type Posting, transactionOf } from './posting.ts';
import { dueCount, dueLapses, dueTransactions, settle } from './settle.ts';
import { EMPTY_STATE, type EndUserState } from './state.ts';
import { renewalId } from './transaction-id.ts';

const MONTHLY = recurring({ remaining: 40 });
const { id: ID, end: END } = MONTHLY;

function inPeriod(period: number): Cycle {
  const start = NOW + period * 31 * DAY_MS;
  return { ...MONTHLY, period, remaining: 100, start, end: start + 31 * DAY_MS };
}

test('settling changes nothing a millisecond before the end of a period', () => {
  const state = stateOf(MONTHLY);
  assert.deepEqual(settle(state, END - 1, EVENTS_MAX), { state, postings: [], isComplete: true });
  assert.equal(settle(state, END - 1, EVENTS_MAX).state, state);
  assert(isSettled(state, END - 1));
});

for (const late of [0, 1, 31 * DAY_MS - 1]) {
  test(`settling ${late} ms after the end of a period applies the renewal as of the end of the period, with full credits`, () => {
    const state = stateOf(MONTHLY);
    assert(!isSettled(state, END + late));
    const settled = settle(state, END + late, EVENTS_MAX);
    assert.deepEqual(settled.state, stateOf(inPeriod(1)));
    assert.deepEqual(
      settled.postings.map(({ transactionId, createdAt, amount }) => [transactionId, createdAt, amount]),
      [[renewalId(ID, END), END, 100]],
    );
    assert(settled.isComplete && isSettled(settled.state, END + late));
  });
}

test('without a rollover, the remaining credits of a period are not carried over to the next', () => {
  for (const remaining of [0, 1, 99, 100])
    assert.equal(settle(stateOf({ ...MONTHLY, remaining }), END, EVENTS_MAX).state.cycles[0]?.remaining, 100);
});

test('settling creates a separate renewal for each missed period, at the start of that period', () => {
  const { state, postings } = settle(stateOf(MONTHLY), END + 62 * DAY_MS, EVENTS_MAX);
  assert.deepEqual(state.cycles, [inPeriod(3)]);
  assert.deepEqual(
    postings.map(({ period, createdAt, expiresAt }) => ({ period, createdAt, expiresAt })),
    [
      { period: 1, createdAt: END, expiresAt: END + 31 * DAY_MS },
      { period: 2, createdAt: END + 31 * DAY_MS, expiresAt: END + 62 * DAY_MS },
      { period: 3, createdAt: END + 62 * DAY_MS, expiresAt: END + 93 * DAY_MS },
    ],
  );
});

test('settling ten years of daily periods, including leap days, creates 3,653 renewals without a gap', () => {
  const start = Date.UTC(2016, 0, 1);
  const daily = recurring({ start, validityDays: 1 });
  const now = Date.UTC(2026, 0, 1);
  assert.equal(settle(stateOf(daily), now - 1, EVENTS_MAX).postings.length, 3652);
  const { state, postings, isComplete } = settle(stateOf(daily), now, EVENTS_MAX);
  assert(isComplete);
  assert.equal(postings.length, 3653);
  postings.forEach(({ period, createdAt, expiresAt }, index) => {
    assert.equal(period, index + 1);
    assert.equal(createdAt, start + period * DAY_MS);
    assert.equal(expiresAt, createdAt + DAY_MS);
  });
  assert.deepEqual(state.cycles, [{ ...daily, period: 3653, start: now, end: now + DAY_MS }]);
  assert.deepEqual(cyclesAt(stateOf(daily), now), state.cycles);
  assert.equal(dueCount(stateOf(daily), now), 3653);
});

test('settling applies at most the given number of renewals: the oldest come first, and the rest stay due', () => {
  const now = END + 4 * 31 * DAY_MS;
  const first = settle(stateOf(MONTHLY), now, 2);
  assert.deepEqual([first.isComplete, first.postings.map(({ period }) => period)], [false, [1, 2]]);
  assert.deepEqual(first.state.cycles, [inPeriod(2)]);
  assert.equal(dueCount(first.state, now), 3);
  const none = settle(first.state, now, 0);
  assert.deepEqual(none, { state: first.state, postings: [], isComplete: false });
  const almost = settle(first.state, now, 2);
  assert.deepEqual([almost.isComplete, dueCount(almost.state, now)], [false, 1]);
  const rest = settle(first.state, now, 3);
  assert.deepEqual([rest.isComplete, dueCount(rest.state, now)], [true, 0]);
});

test('if nothing is due, settling is complete even with a limit of 0 renewals', () => {
  assert(settle(stateOf(MONTHLY), END - 1, 0).isComplete);
  assert(settle(EMPTY_STATE, END, 0).isComplete);
});

const AT_REST: readonly (readonly [what: string, cycle: Cycle])[] = [
  ['a one-time cycle', oneTime()],
  ['a canceled cycle', recurring({ status: 'canceled' })],
  ['a superseded cycle', recurring({ status: 'superseded' })],
];

for (const [what, cycle] of AT_REST) {
  test(`${what} ends without a renewal`, () => {
    const state = stateOf(cycle);
    for (const now of [END - 1, END, END + 1, END + 1_000 * DAY_MS]) {
      assert.equal(settle(state, now, EVENTS_MAX).state, state);
      assert.deepEqual(cyclesAt(state, now), now < END ? [cycle] : []);
      assert.deepEqual([...dueTransactions(state, now)], []);
      assert.equal(dueCount(state, now), 0);
    }
  });
}

test('the last period of a recurring cycle ends at the last instant of the year 9999 and is not renewed', () => {
  const state = stateOf(recurring({ start: INSTANT_MAX - 40 * DAY_MS }));
  const settled = settle(state, LAST_INSTANT, EVENTS_MAX);
  assert.equal(settled.postings.length, 1);
  assert.equal(settled.postings[0]?.expiresAt, INSTANT_MAX);
  assert.deepEqual(cyclesAt(state, LAST_INSTANT), settled.state.cycles);
  assert.deepEqual(settle(settled.state, INSTANT_MAX, EVENTS_MAX).postings, []);
  assert.deepEqual(cyclesAt(settled.state, INSTANT_MAX), []);
});

test('no period begins at the last instant of the year 9999', () => {
  const state = stateOf(recurring({ start: INSTANT_MAX - 2 * DAY_MS, validityDays: 1 }));
  assert.equal(settle(state, INSTANT_MAX, EVENTS_MAX).postings.length, 1);
  assert.equal(dueCount(state, INSTANT_MAX), 1);
  assert.equal([...dueTransactions(state, INSTANT_MAX)].length, 1);
});

test('a reader sees cycles in spending order, with a renewed cycle after all cycles that started before the renewal', () => {
  const before = oneTime({ start: NOW - DAY_MS, validityDays: 90 });
  const after = oneTime({ start: NOW + DAY_MS, validityDays: 90 });
  const order = (now: number) => cyclesAt(stateOf(before, MONTHLY, after), now).map(({ start }) => start);
  assert.deepEqual(order(END - 1), [before.start, NOW, after.start]);
  assert.deepEqual(order(END), [before.start, after.start, END]);
});

test('due transactions are listed latest first', () => {
  const renewedAt = (at: number) => ({
    id: renewalId(ID, at),
    kind: 'renew',
    amount: 100,
    createdAt: at,
    expiresAt: at + 31 * DAY_MS,
    actor: 'renewal',
    note: null,
  });
  const state = stateOf(oneTime({ validityDays: 90 }, 3), MONTHLY);
  const now = END + 31 * DAY_MS;
  assert.deepEqual([...dueTransactions(state, now)], [renewedAt(now), renewedAt(END)]);
  assert.deepEqual([...dueTransactions(state, now - 1)], [renewedAt(END)]);
  assert.deepEqual([...dueTransactions(state, END - 1)], []);
  assert.deepEqual([...dueTransactions(EMPTY_STATE, now)], []);
  assert.equal(dueCount(EMPTY_STATE, now), 0);
});

interface Loaded {
  readonly state: EndUserState;
  readonly now: number;
}

const offset = fc.constantFrom(-1, 0, 0, 1);

const anyCycles: fc.Arbitrary<Loaded> = fc
  .record({
    start: fc.oneof(fc.constant(NOW), fc.integer({ min: INSTANT_MAX - 200 * DAY_MS, max: LAST_INSTANT })),
    validityDays: fc.integer({ min: 1, max: 40 }),
    status: fc.constantFrom('active' as const, 'active' as const, 'canceled' as const),
    others: fc.array(fc.record({ earlier: fc.nat({ max: 9 * DAY_MS }), days: fc.integer({ min: 1, max: 90 }) }), {
      maxLength: 4,
    }),
    periods: fc.oneof(fc.double({ min: 0, max: 60, noNaN: true }), fc.nat({ max: 60 })),
    offset,
  })
  .map(({ start, validityDays, status, others, periods, offset }) => {
    const cycle = recurring({ start, validityDays, status });
    const bought = others.map(({ earlier, days }, index) =>
      oneTime({ start: start - earlier, validityDays: days }, index + 3),
    );
    const wanted = start + Math.floor(periods * validityDays * DAY_MS) + offset;
    const now = Math.min(Math.max(wanted, start), INSTANT_MAX);
    return { state: stateOf(...[...bought, cycle].sort(spendingOrder)), now };
  });

const anyHistory: fc.Arbitrary<Loaded> = fc
  .tuple(histories, fc.nat({ max: 30 }), offset)
  .map(([{ state, now }, days, offset]) => ({ state, now: Math.max(now, now + days * DAY_MS + offset) }));

const loaded = fc.oneof(anyCycles, anyHistory);

test('settling a second time at the same instant changes nothing', () => {
  fc.assert(
    fc.property(loaded, ({ state, now }) => {
      const once = settle(state, now, EVENTS_MAX);
      assert.deepEqual(settle(once.state, now, EVENTS_MAX), { state: once.state, postings: [], isComplete: true });
      assert.deepEqual(settle(state, now, EVENTS_MAX), once, 'settling the same state again gives the same result');
      assert.deepEqual(applyAll(state, once.postings), once.state);
    }),
  );
});

test('settling at two instants gives the same result as settling only at the later one', () => {
  fc.assert(
    fc.property(loaded, fc.nat({ max: 20 }), ({ state, now }, days) => {
      const later = endOf(now, { validityDays: days, validityMonths: null });
      const first = settle(state, now, EVENTS_MAX);
      const second = settle(first.state, later, EVENTS_MAX);
      const whole = settle(state, later, EVENTS_MAX);
      assert.deepEqual(second.state, whole.state);
      assert.deepEqual([...first.postings, ...second.postings], whole.postings);
    }),
  );
});

test('settling a few events at a time gives the same result as settling all of them together', () => {
  fc.assert(
    fc.property(loaded, fc.integer({ min: 1, max: 7 }), ({ state, now }, eventsMax) => {
      const postings: Posting[] = [];
      let step = settle(state, now, eventsMax);
      for (; !step.isComplete; step = settle(step.state, now, eventsMax)) {
        assert(step.postings.length >= eventsMax, 'a lapse with several postings is applied whole');
        const last = step.postings.at(-1)?.transactionId;
        const before = step.postings.filter(({ transactionId }) => transactionId !== last).length;
        assert(before < eventsMax, 'no event is applied after the limit is reached');
        assert.equal(isSettled(step.state, now), false);
        postings.push(...step.postings);
      }
      const whole = settle(state, now, EVENTS_MAX);
      assert.deepEqual([...postings, ...step.postings], whole.postings);
      assert.deepEqual(step.state, whole.state);
    }),
  );
});

test('applying all due events in one step, as readers do, gives the same result as settling event by event', () => {
  fc.assert(
    fc.property(loaded, ({ state, now }) => {
      const settled = settle(state, now, EVENTS_MAX);
      const current = settled.state.cycles.filter((cycle) => !hasEnded(cycle, now));
      assert.deepEqual(cyclesAt(state, now), current, 'in spending order');
      assert.deepEqual(cyclesAt(settled.state, now), current);
      const renewals = settled.postings.filter(({ kind }) => kind !== 'lapse');
      assert.equal(dueCount(state, now), renewals.length);
      assert.deepEqual(
        [...dueTransactions(state, now)].reverse(),
        renewals.map((posting) => transactionOf([posting])),
      );
      const lapses = settled.postings.filter(({ kind }) => kind === 'lapse');
      assert.deepEqual([...dueLapses(state, now)].reverse().flat(), lapses);
      assert.equal(heldAt(state.holds, now), heldAt(settled.state.holds, now));
      assert.deepEqual(
        settled.state.holds,
        state.holds.filter(({ expiresAt }) => expiresAt > now),
      );
      assert.equal(dueCount(settled.state, now), 0);
      assert.deepEqual([...dueTransactions(settled.state, now)], []);
      assert.equal(isSettled(state, now), settled.postings.length === 0);
    }),
    { numRuns: 500 },
  );
});

test('renewals and lapses are applied in the order of their transaction IDs', () => {
  fc.assert(
    fc.property(loaded, ({ state, now }) => {
      const postings = settle(state, now, EVENTS_MAX).postings;
      const ids = postings.map(({ transactionId }) => transactionId);
      assert.deepEqual(ids, ids.toSorted());
      const touched = postings.map(({ transactionId, cycleId }) => `${transactionId}/${cycleId}`);
      assert.equal(new Set(touched).size, postings.length);
      for (const id of ids) assert(id < idAt(now), 'renewals and lapses sort before all new transactions');
    }),
  );
});

const BOUGHT = oneTime({ validityDays: 90 }, 3);
const LAPSE = NOW + 60_000;
const HOLD = holding(BOUGHT, 10, { until: LAPSE });

test('settling returns the credits of a hold at the instant at which it expires, and changes nothing a millisecond before', () => {
  const state = applyAll(stateOf(BOUGHT), [HOLD]);
  assert.equal(settle(state, LAPSE - 1, EVENTS_MAX).state, state);
  for (const late of [0, 1, DAY_MS]) {
    const settled = settle(state, LAPSE + late, EVENTS_MAX);
    assert.deepEqual(settled, { state: stateOf(BOUGHT), postings: [lapsing(HOLD)], isComplete: true });
  }
});

test('the lapses of a thousand expired holds are applied one after the other, each at the instant at which its hold expired', () => {
  const holds = Array.from({ length: 1_000 }, (_, index) =>
    holding({ ...BOUGHT, amount: 1_000 }, 1, { until: LAPSE + ((index * 7) % 1_000), sequence: 100 + index }),
  );
  const state = applyAll(stateOf({ ...BOUGHT, amount: 1_000, remaining: 1_000 }), holds);
  const settled = settle(state, LAPSE + DAY_MS, EVENTS_MAX);
  assert.deepEqual(
    settled.postings.map(({ createdAt }) => createdAt - LAPSE),
    Array.from({ length: 1_000 }, (_, index) => index),
  );
  assert.deepEqual(settled.state, stateOf({ ...BOUGHT, amount: 1_000, remaining: 1_000 }));
});

test('a lapse is applied completely even if its postings exceed the limit, and the next event stays due', () => {
  const [first, second] = [oneTime({}, 3), oneTime({}, 4)];
  const kept = [first, second].map((cycle) => holding(cycle, 10, { until: LAPSE }));
  const later = holding(second, 10, { until: LAPSE + 1, sequence: 98 });
  const state = applyAll(stateOf(first, second), [...kept, later]);
  const once = settle(state, LAPSE + 1, 1);
  assert.deepEqual([once.isComplete, once.postings], [false, kept.map(lapsing)]);
  assert.deepEqual(settle(once.state, LAPSE + 1, 1), {
    state: stateOf(first, second),
    postings: [lapsing(later)],
    isComplete: true,
  });
});

test('a lapse is due from the instant at which the hold expires', () => {
  const state = applyAll(stateOf(BOUGHT), [HOLD]);
  assert.deepEqual([...dueLapses(state, LAPSE - 1)], []);
  assert.deepEqual([...dueLapses(state, LAPSE)], [[lapsing(HOLD)]]);
});

test('due lapses are not listed among the due transactions', () => {
  const state = applyAll(stateOf(BOUGHT), [HOLD]);
  assert.deepEqual([dueCount(state, LAPSE), ...dueTransactions(state, LAPSE)], [0]);
});
