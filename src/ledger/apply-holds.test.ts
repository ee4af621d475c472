// Tests how postings of holds, captures, releases, lapses and refunds change an end user's state, and which
// invariants invalid postings violate.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  capturing,
  daysAgo,
  drawing,
  holding,
  holdOf,
  idAt,
  lapsing,
  NOW,
  oneTime,
  opening,
  recurring,
  refunding,
  releasing,
  reopening,
  stateOf,
} from '../../test/ledger/ledger-builders.ts';
import { apply, applyAll } from './apply.ts';
import { type Cycle, periodAfter } from './cycle.ts';
import { DAY_MS, type Instant } from './instant.ts';
import { type Invariant, InvariantViolation } from './invariant.ts';
import type { Posting } from './posting.ts';
import type { EndUserState } from './state.ts';

const BOUGHT = oneTime({ start: daysAgo(2) });
const MONTHLY = recurring({ start: daysAgo(1) });
const LAPSE = NOW + 60_000;
const HOLD = holding(BOUGHT, 10, { at: NOW, until: LAPSE });
const HELD = apply(stateOf(BOUGHT, MONTHLY), HOLD);
const SPENT = drawing(BOUGHT, 30, NOW);

function creditsOf({ cycles }: EndUserState): [remaining: number, held: number][] {
  return cycles.map(({ remaining, held }) => [remaining, held]);
}

test('a hold sets aside credits of its cycle, spends nothing, and is open afterwards', () => {
  assert.deepEqual(HELD.cycles, [{ ...BOUGHT, held: 10 }, MONTHLY]);
  const part = { cycleId: BOUGHT.id, period: 0, amount: 10, end: BOUGHT.end };
  assert.deepEqual(HELD.holds, [{ id: HOLD.transactionId, expiresAt: LAPSE, parts: [part] }]);
});

test('a hold on several cycles is stored as one open hold, with its parts in the order of the postings', () => {
  const other = holding(MONTHLY, 5, { at: NOW, until: LAPSE });
  const state = applyAll(stateOf(BOUGHT, MONTHLY), [HOLD, other]);
  assert.deepEqual(state.holds, [holdOf(HOLD, other)]);
  assert.deepEqual(creditsOf(state), [
    [100, 10],
    [100, 5],
  ]);
});

test('open holds are sorted by the instant at which they lapse, then by the last digits of their IDs', () => {
  const until = (expiry: Instant, sequence: number) => holding(BOUGHT, 1, { at: NOW, until: expiry, sequence });
  const [first, second, third, fourth] = [until(LAPSE - 1, 8), until(LAPSE, 3), until(LAPSE, 7), until(LAPSE + 1, 2)];
  for (const order of [
    [first, second, third, fourth],
    [fourth, third, second, first],
    [third, fourth, second, first],
    [second, first, fourth, third],
  ]) {
    const { holds } = applyAll(stateOf(BOUGHT), order);
    assert.deepEqual(
      holds,
      [first, second, third, fourth].map((posting) => holdOf(posting)),
    );
  }
});

const CLOSED: readonly (readonly [what: string, posting: Posting, remaining: number])[] = [
  ['a capture spends all held credits', capturing(HOLD), 90],
  ['a capture of less than was held spends only the captured credits and returns the rest', capturing(HOLD, 4), 96],
  ['a capture of 0 credits returns all held credits', capturing(HOLD, 0), 100],
  ['a capture of more than was held also draws on the same cycle', capturing(HOLD, 25), 75],
  ['a release returns all held credits', releasing(HOLD), 100],
  ['a lapse returns all held credits', lapsing(HOLD), 100],
];

for (const [what, posting, remaining] of CLOSED) {
  test(`${what}, and closes the hold`, () => {
    assert.deepEqual(apply(HELD, posting), stateOf({ ...BOUGHT, remaining }, MONTHLY));
  });
}

test('a capture can also spend credits of a cycle that is not part of the hold', () => {
  const further = { ...drawing(MONTHLY, 5, NOW, 100), kind: 'capture' as const, reference: HOLD.transactionId };
  const state = applyAll(HELD, [capturing(HOLD), further]);
  assert.deepEqual(creditsOf(state), [
    [90, 0],
    [95, 0],
  ]);
});

test('closing one part of a hold leaves its other parts open and does not change the order of the holds', () => {
  const other = holding(MONTHLY, 5, { at: NOW, until: LAPSE });
  const [earlier, later] = [LAPSE - 1, LAPSE + 1].map((until, index) =>
    holding(MONTHLY, 1, { at: NOW, until, sequence: 90 + index }),
  );
  assert(earlier && later);
  const before = applyAll(stateOf(BOUGHT, MONTHLY), [HOLD, other, later, earlier]);
  const after = apply(before, releasing(HOLD));
  assert.deepEqual(after.holds, [holdOf(earlier), holdOf(other), holdOf(later)]);
  assert.deepEqual(apply(after, releasing(other)).holds, [holdOf(earlier), holdOf(later)]);
});

const INSTANTS: readonly (readonly [when: string, at: Instant])[] = [
  ['at the end of its cycle', BOUGHT.end],
  ['a millisecond after the end of its cycle', BOUGHT.end + 1],
];

for (const [when, at] of INSTANTS) {
  const kept = holding(BOUGHT, 10, { at: NOW, until: at });
  const closings = [capturing(kept, 4, { at: at - 1 }), releasing(kept, { at: at - 1 }), lapsing(kept)];
  test(`if a hold lapses ${when}, the lapse closes the hold and does not change the cycle, whether or not the cycle is loaded`, () => {
    const held = apply(stateOf(BOUGHT), kept);
    assert.deepEqual(apply(held, lapsing(kept)), { cycles: held.cycles, holds: [] });
    assert.deepEqual(apply({ cycles: [], holds: held.holds }, lapsing(kept)), stateOf());
  });

  test(`a hold that lapses ${when} can be captured or released until a millisecond before it lapses`, () => {
    const held = apply(stateOf(BOUGHT), kept);
    for (const closing of closings) assert.deepEqual(apply(held, closing).holds, [], closing.kind);
  });
}

test('a capture or release of a hold whose cycle has ended closes the hold and does not change the cycle', () => {
  const kept = holding(BOUGHT, 10, { at: NOW, until: BOUGHT.end + DAY_MS });
  const held = apply(stateOf(BOUGHT), kept);
  for (const at of [BOUGHT.end, BOUGHT.end + DAY_MS - 1])
    for (const closing of [capturing(kept, 10, { at }), capturing(kept, 4, { at }), releasing(kept, { at })])
      assert.deepEqual(apply(held, closing), { cycles: held.cycles, holds: [] });
});

test('a capture can spend more credits of a running cycle than were held, even if the cycle is not loaded', () => {
  const { holds } = HELD;
  assert.deepEqual(apply({ cycles: [MONTHLY], holds }, capturing(HOLD, 25)), stateOf(MONTHLY));
});

test('closing a hold on credits of an earlier period does not change the current period', () => {
  const kept = holding(MONTHLY, 10, { at: NOW, until: MONTHLY.end + DAY_MS });
  const next = periodAfter(MONTHLY, 1);
  const held = applyAll(stateOf(MONTHLY), [kept, opening(next)]);
  assert.deepEqual(held, { cycles: [next], holds: [holdOf(kept)] });
  for (const closing of [capturing(kept, 10, { at: next.start }), releasing(kept, { at: next.start }), lapsing(kept)])
    assert.deepEqual(apply(held, closing), stateOf(next));
});

test('held credits can still be captured after their cycle has been stopped or superseded', () => {
  for (const status of ['canceled', 'superseded'] as const) {
    const cycle = { ...MONTHLY, status };
    const kept = holding(cycle, 10, { at: NOW });
    const held = apply(stateOf(cycle), kept);
    assert.deepEqual(apply(held, capturing(kept)), stateOf({ ...cycle, remaining: 90 }));
  }
});

test('a refund returns credits to the cycle that they came from', () => {
  const state = applyAll(HELD, [SPENT, refunding(SPENT, 20)]);
  assert.deepEqual(creditsOf(state), [
    [90, 10],
    [100, 0],
  ]);
});

test('a refund to a cycle that has ended changes nothing, whether or not the cycle is loaded', () => {
  const spent = apply(HELD, SPENT);
  for (const at of [BOUGHT.end, BOUGHT.end + 1]) {
    assert.deepEqual(apply(spent, refunding(SPENT, 20, { at })), spent);
    assert.deepEqual(apply(stateOf(MONTHLY), refunding(SPENT, 20, { at })), stateOf(MONTHLY));
  }
});

test('a refund to an earlier period does not change the current period', () => {
  const spent = drawing(MONTHLY, 10, NOW);
  const next = periodAfter(MONTHLY, 1);
  assert.deepEqual(apply(stateOf(next), refunding(spent, 10, { at: next.start })), stateOf(next));
});

test('a refund can open a new one-time cycle', () => {
  const cycle = oneTime({ amount: 30, validityDays: 7 });
  assert.deepEqual(apply(stateOf(MONTHLY), reopening(SPENT, cycle)), stateOf(MONTHLY, cycle));
});

test('applying a posting does not modify the holds of the previous state', () => {
  const copy = structuredClone(HELD);
  for (const posting of [HOLD, capturing(HOLD), releasing(HOLD), lapsing(HOLD), refunding(SPENT)].map((each) => ({
    ...each,
  }))) {
    if (posting.kind === 'hold') posting.transactionId = idAt(NOW, 80);
    const before = posting.kind === 'refund' ? apply(HELD, SPENT) : HELD;
    assert.notEqual(apply(before, Object.freeze(posting)), before);
    assert.deepEqual(HELD, copy);
  }
});

type Violation = readonly [what: string, state: EndUserState, posting: Posting, invariant: Invariant];

const FREE = stateOf(BOUGHT);
const [CAPTURE, RELEASE, LAPSED] = [capturing(HOLD), releasing(HOLD), lapsing(HOLD)];

const HOLDS: readonly Violation[] = [
  ['a hold of 0 credits', FREE, { ...HOLD, held: 0 }, 1],
  ['a hold of minus one credit', HELD, { ...HOLD, held: -1 }, 1],
  ['a hold of half a credit', FREE, { ...HOLD, held: 0.5 }, 1],
  ['a hold that spends a credit', FREE, { ...HOLD, amount: -1 }, 1],
  ['a hold that adds a credit', stateOf({ ...BOUGHT, remaining: 9 }), { ...HOLD, held: 1, amount: 1 }, 1],
  ['a hold of one credit more than remains', stateOf({ ...BOUGHT, remaining: 9 }), HOLD, 1],
  [
    'a second hold that exceeds the spendable credits by one',
    HELD,
    { ...HOLD, transactionId: idAt(NOW, 3), held: 91 },
    1,
  ],
  ['a hold without an expiry', FREE, { ...HOLD, holdExpiresAt: null }, 4],
  ['a hold that expires when it is created', FREE, { ...HOLD, holdExpiresAt: NOW }, 4],
  ['a hold with two expiries', HELD, { ...holding(MONTHLY, 5, { at: NOW, until: LAPSE + 1 }) }, 4],
  ['a hold with terms', FREE, { ...HOLD, terms: opening(BOUGHT).terms }, 4],
  ['a hold a millisecond before the start of its cycle', FREE, { ...HOLD, createdAt: BOUGHT.start - 1 }, 4],
  ['a hold on credits that expire a millisecond late', FREE, { ...HOLD, expiresAt: BOUGHT.end + 1 }, 4],
  ['a hold on credits that expire a millisecond early', FREE, { ...HOLD, expiresAt: BOUGHT.end - 1 }, 4],
];

const CLOSINGS: readonly Violation[] = [CAPTURE, RELEASE, LAPSED].flatMap((posting): Violation[] => {
  const a = `a ${posting.kind}`;
  const { held, expiresAt, amount } = posting;
  return [
    [`${a} of a hold that is not open`, FREE, posting, 1],
    [`${a} of a hold that is already closed`, apply(HELD, RELEASE), posting, 1],
    [`${a} of another hold`, HELD, { ...posting, reference: idAt(NOW, 3) }, 1],
    [`${a} without a hold`, HELD, { ...posting, reference: null }, 4],
    [`${a} that returns one credit more than was held`, HELD, { ...posting, held: held - 1 }, 1],
    [`${a} that returns one credit less than was held`, HELD, { ...posting, held: held + 1 }, 1],
    [`${a} that holds more`, HELD, { ...posting, held: 10 }, 1],
    [`${a} that adds a credit`, HELD, { ...posting, amount: amount + 101 }, 1],
    [`${a} of credits of another cycle`, HELD, { ...posting, cycleId: MONTHLY.id, expiresAt: MONTHLY.end }, 1],
    [`${a} of credits of another period`, HELD, { ...posting, period: 1 }, 1],
    [`${a} of credits that expire a millisecond late`, HELD, { ...posting, expiresAt: expiresAt + 1 }, 1],
    [`${a} of credits that expire a millisecond early`, HELD, { ...posting, expiresAt: expiresAt - 1 }, 1],
    [`${a} with terms`, HELD, { ...posting, terms: opening(BOUGHT).terms }, 4],
  ];
});

const ENDED = holding(BOUGHT, 10, { at: NOW, until: BOUGHT.end + DAY_MS });
const AT_END = { at: BOUGHT.end };
const FURTHER = { ...capturing(HOLD, 5), held: 0 };

const RETURNS: readonly Violation[] = [
  ['a capture at the expiry of its hold', HELD, capturing(HOLD, 10, { at: LAPSE }), 4],
  ['a capture after the expiry of its hold', HELD, capturing(HOLD, 10, { at: LAPSE + 1 }), 4],
  ['a release at the expiry of its hold', HELD, releasing(HOLD, { at: LAPSE }), 4],
  ['a lapse a millisecond early', HELD, { ...LAPSED, createdAt: LAPSE - 1 }, 4],
  ['a lapse with an ID that is not derived from its hold', HELD, { ...LAPSED, transactionId: idAt(LAPSE) }, 4],
  ['a release of more credits than its cycle shows as held', { cycles: [BOUGHT], holds: HELD.holds }, RELEASE, 1],
  ['a release that spends a credit', HELD, { ...RELEASE, amount: -1 }, 1],
  ['a lapse that spends a credit', HELD, { ...LAPSED, amount: -1 }, 1],
  ['a release that returns nothing', HELD, { ...RELEASE, held: 0 }, 1],
  ['a capture that neither spends nor closes anything', HELD, { ...CAPTURE, amount: 0, held: 0 }, 1],
  ['a capture that returns credits that were spent before', apply(HELD, SPENT), { ...CAPTURE, amount: 1 }, 1],
  ['a capture of half a credit', HELD, capturing(HOLD, 0.5), 1],
  ['a capture of one credit more than the hold and its cycle have', HELD, capturing(HOLD, 101), 1],
  ['a capture beyond the hold that spends credits of another hold', HELD, { ...FURTHER, amount: -91 }, 1],
  ['a capture beyond the hold that spends from a cycle that does not exist', stateOf(MONTHLY), FURTHER, 4],
  ['a capture beyond the hold at the end of the cycle', HELD, { ...FURTHER, createdAt: BOUGHT.end }, 4],
  ['a capture that exceeds the held credits of an ended cycle', apply(FREE, ENDED), capturing(ENDED, 11, AT_END), 1],
];

const REFUND = refunding(SPENT, 20);
const AFTER = apply(FREE, SPENT);
const REOPENED: Cycle = oneTime({ amount: 30, validityDays: 7 });
const REOPENING = reopening(SPENT, REOPENED);

const REFUNDS: readonly Violation[] = [
  ['a refund of 0 credits', AFTER, { ...REFUND, amount: 0 }, 1],
  ['a refund of minus one credit', AFTER, { ...REFUND, amount: -1 }, 1],
  ['a refund of half a credit', AFTER, { ...REFUND, amount: 0.5 }, 1],
  ['a refund of half a credit to an ended cycle', AFTER, { ...refunding(SPENT, 20, AT_END), amount: 0.5 }, 1],
  ['a refund of more than was spent from its cycle', AFTER, refunding(SPENT, 31), 1],
  ['a refund that holds a credit', AFTER, { ...REFUND, held: 1 }, 1],
  ['a refund that returns a held credit', apply(HELD, SPENT), { ...REFUND, held: -1 }, 1],
  ['a refund that names no transaction', AFTER, { ...REFUND, reference: null }, 4],
  ['a refund a millisecond before the start of its cycle', AFTER, { ...REFUND, createdAt: BOUGHT.start - 1 }, 4],
  ['a refund of credits that expire a millisecond late', AFTER, { ...REFUND, expiresAt: BOUGHT.end + 1 }, 4],
  ['a refund that opens a cycle with a different ID', AFTER, { ...REOPENING, cycleId: idAt(NOW, 3) }, 4],
  ['a refund that opens a cycle again', stateOf(REOPENED), REOPENING, 3],
  ['a refund that opens a recurring cycle', FREE, reopening(SPENT, recurring({ amount: 30 })), 3],
  ['a refund that opens a cycle of half a credit', FREE, { ...REOPENING, amount: 0.5 }, 1],
];

const OPENINGS: readonly Violation[] = [
  ['an addition that holds credits', stateOf(), { ...opening(BOUGHT), held: 1 }, 1],
  ['a cycle start that holds credits', stateOf(), { ...opening(MONTHLY), held: 1 }, 1],
  ['a renewal that holds credits', stateOf(MONTHLY), { ...opening(periodAfter(MONTHLY, 1)), held: 1 }, 3],
  ['a subtraction that holds credits', FREE, { ...SPENT, held: 1 }, 1],
  ['a subtraction of held credits', stateOf({ ...BOUGHT, held: 75 }), SPENT, 1],
];

for (const [what, state, posting, invariant] of [...HOLDS, ...CLOSINGS, ...RETURNS, ...REFUNDS, ...OPENINGS]) {
  test(`${what} violates invariant ${invariant}`, () => {
    assert.throws(
      () => apply(state, posting),
      (error) => error instanceof InvariantViolation && error.invariant === invariant,
    );
  });
}
