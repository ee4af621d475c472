// Tests that a balance is the exact sum of the spendable credits in all cycles that have not ended, and that renewals
// and lapses take effect at the instant at which they are due.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { holding, idAt, oneTime, recurring, stateOf } from '../../test/ledger/ledger-builders.ts';
import { AMOUNT_MAX } from './amount.ts';
import { applyAll } from './apply.ts';
import { activeBalance, cyclesAt } from './balance.ts';
import { type Cycle, periodAfter } from './cycle.ts';
import { DAY_MS, INSTANT_MAX, type Instant, LAST_INSTANT } from './instant.ts';
import type { EndUserState } from './state.ts';
import { transactionId } from './transaction-id.ts';

const START = Date.UTC(2026, 0, 15, 9, 30);
const END = START + DAY_MS;

function cycle(change: Partial<Cycle> = {}): Cycle {
  return {
    id: transactionId({ at: START, sequence: 2, tail: 'aaaaaaaaaaaa' }),
    period: 0,
    type: 'one-time',
    status: 'active',
    amount: 100,
    remaining: 100,
    held: 0,
    start: START,
    end: END,
    plan: { amount: 100, validityDays: 1, validityMonths: null, rolloverMax: 0 },
    next: null,
    ...change,
  };
}

test('an end user without cycles has a balance of zero', () => {
  assert.equal(activeBalance([], START), 0);
});

const INSTANTS: readonly (readonly [when: string, now: number, balance: number])[] = [
  ['count at the instant at which their cycle starts', START, 100],
  ['count a millisecond before the end of their cycle', END - 1, 100],
  ['do not count at the end of their cycle', END, 0],
  ['do not count a millisecond after the end of their cycle', END + 1, 0],
];

for (const [when, now, balance] of INSTANTS) {
  test(`credits ${when}`, () => assert.equal(activeBalance([cycle()], now), balance));
}

test('the balance counts the remaining credits of a cycle, not its initial credits', () => {
  assert.equal(activeBalance([cycle({ remaining: 1 })], START), 1);
  assert.equal(activeBalance([cycle({ remaining: 0 })], START), 0);
});

test('one-time, recurring, canceled and superseded cycles all count toward the balance, but ended cycles do not', () => {
  const cycles = [
    cycle({ remaining: 1 }),
    cycle({ remaining: 20, end: END - 1 }),
    cycle({ remaining: 300, type: 'recurring' }),
    cycle({ remaining: 4_000, type: 'recurring', status: 'canceled' }),
    cycle({ remaining: 50_000, type: 'recurring', status: 'superseded' }),
  ];
  assert.equal(activeBalance(cycles, END - 1), 54_301);
});

test('a balance can be 2^53−1', () => {
  const cycles = [cycle({ remaining: 1 }), cycle({ remaining: AMOUNT_MAX - 1 })];
  assert.equal(activeBalance(cycles, START), AMOUNT_MAX);
});

test('a balance above 2^53−1 fails an assertion instead of being rounded', () => {
  const cycles = [cycle({ remaining: 1 }), cycle({ remaining: AMOUNT_MAX })];
  assert.throws(() => activeBalance(cycles, START), { name: 'AssertionError' });
  assert.equal(activeBalance(cycles, END), 0, 'ended cycles do not count');
});

test('held credits do not count toward the balance', () => {
  assert.equal(activeBalance([cycle({ remaining: 60, held: 45 })], START), 15);
  assert.equal(activeBalance([cycle({ remaining: 60, held: 60 })], START), 0);
});

const LAPSE = START + 1_000;
const BOUGHT = oneTime({ start: START });
const DAILY = recurring({ start: START, validityDays: 1 }, 3);

function heldOf(state: EndUserState, at: Instant): number[] {
  return cyclesAt(state, at).map(({ held }) => held);
}

for (const [when, at, held] of [
  ['a millisecond before it lapses', LAPSE - 1, [10, 5]],
  ['when it lapses, even if the lapse is not stored yet', LAPSE, [0, 0]],
  ['after it has lapsed, even if the lapse is not stored yet', LAPSE + 1, [0, 0]],
] as const) {
  test(`the credits of a hold ${held[0] === 0 ? 'no longer count' : 'count'} as held ${when}`, () => {
    const parts = [BOUGHT, DAILY].map((each, index) => holding(each, 10 - 5 * index, { until: LAPSE }));
    assert.deepEqual(heldOf(applyAll(stateOf(BOUGHT, DAILY), parts), at), held);
  });
}

test('a lapsed hold returns only its own credits: other holds on the same cycle keep their credits', () => {
  const holds = [1, 20, 300].map((amount, index) =>
    holding({ ...BOUGHT, amount: 400 }, amount, { until: LAPSE + index, sequence: 90 + index }),
  );
  const state = applyAll(stateOf({ ...BOUGHT, amount: 400, remaining: 400 }), holds);
  assert.deepEqual(
    [LAPSE - 1, LAPSE, LAPSE + 1, LAPSE + 2].map((at) => heldOf(state, at)),
    [[321], [320], [300], [0]],
  );
});

test('a hold on one period never changes the next period, whether the hold is open or has lapsed', () => {
  const state = applyAll(stateOf(DAILY), [holding(DAILY, 10, { until: END + 1 })]);
  assert.deepEqual(cyclesAt(state, END - 1), [{ ...DAILY, held: 10 }]);
  for (const at of [END, END + 1, END + 2]) assert.deepEqual(cyclesAt(state, at), [periodAfter(DAILY, 1)]);
});

test('when a hold on several cycles lapses, only the credits that it held in a renewed cycle roll over with that cycle', () => {
  const rolling = recurring({ start: START, validityDays: 1, rolloverMax: 1_000 }, 3);
  const parts = [holding(BOUGHT, 10, { until: LAPSE }), holding(rolling, 5, { until: LAPSE })];
  const cycles = cyclesAt(applyAll(stateOf(BOUGHT, rolling), parts), END);
  const renewed = cycles.find(({ id }) => id === rolling.id);
  assert.deepEqual([renewed?.remaining, renewed?.held], [200, 0]);
});

test('reading a balance does not change the state', () => {
  const state = applyAll(stateOf(BOUGHT, DAILY), [holding(BOUGHT, 10, { until: LAPSE })]);
  const copy = structuredClone(state);
  cyclesAt(state, LAPSE + 2 * DAY_MS);
  assert.deepEqual(state, copy);
});

test('at the last instant of the year 9999, every period has ended, including one that is not stored yet', () => {
  const daily = recurring({ start: LAST_INSTANT - DAY_MS, validityDays: 1 });
  assert.equal(cyclesAt(stateOf(daily), LAST_INSTANT).length, 1);
  assert.deepEqual(cyclesAt(stateOf(daily), INSTANT_MAX), []);
  const scheduled = { id: idAt(daily.start, 9), plan: daily.plan };
  assert.equal(cyclesAt(stateOf({ ...daily, next: scheduled }), LAST_INSTANT).length, 1);
  assert.deepEqual(cyclesAt(stateOf({ ...daily, next: scheduled }), INSTANT_MAX), []);
});
