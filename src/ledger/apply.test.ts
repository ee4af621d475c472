// Tests how postings change an end user's state, and which invariants invalid postings violate.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  daysAgo,
  drawing,
  idAt,
  NOW,
  oneTime,
  opening,
  recurring,
  refunding,
  stateOf,
  stopping,
} from '../../test/ledger/ledger-builders.ts';
import { histories } from '../../test/ledger/random-histories.ts';
import { AMOUNT_MAX } from './amount.ts';
import { apply, applyAll } from './apply.ts';
import { type Cycle, hasEnded, periodAfter } from './cycle.ts';
import { DAY_MS, INSTANT_MAX, VALIDITY_DAYS_MAX } from './instant.ts';
import { type Invariant, InvariantViolation } from './invariant.ts';
import type { Posting } from './posting.ts';
import { EMPTY_STATE, type EndUserState } from './state.ts';

const BOUGHT = oneTime({ start: daysAgo(2) });
const MONTHLY = recurring({ start: daysAgo(1) });
const NEXT = periodAfter(MONTHLY, 1);

test('the posting of an addition adds a one-time cycle with all its credits to the state', () => {
  const cycle = oneTime({ amount: 25, validityDays: 7 });
  assert.deepEqual(apply(stateOf(BOUGHT, MONTHLY), opening(cycle)), stateOf(BOUGHT, MONTHLY, cycle));
});

test('the posting of a cycle start adds a recurring cycle in its first period to the state', () => {
  const cycle = recurring({ amount: 25, validityDays: 7 });
  assert.deepEqual(apply(stateOf(BOUGHT), opening(cycle)), stateOf(BOUGHT, cycle));
});

test('a cycle of 2^53−1 credits that lasts to the end of the year 9999 can be opened', () => {
  const cycle = oneTime({ amount: AMOUNT_MAX, validityDays: VALIDITY_DAYS_MAX });
  assert.deepEqual(apply(EMPTY_STATE, opening(cycle)), stateOf(cycle));
  assert.equal(cycle.end, INSTANT_MAX);
});

const STOPPED: readonly (readonly [when: string, end: number, status: Cycle['status']])[] = [
  ['a millisecond before the canceled cycle ends', NOW + 1, 'superseded'],
  ['when the canceled cycle ends', NOW, 'canceled'],
  ['a millisecond after the canceled cycle ends', NOW - 1, 'canceled'],
];

for (const [when, end, status] of STOPPED) {
  test(`a canceled cycle ${status === 'canceled' ? 'stays canceled' : 'becomes superseded'} if another cycle starts ${when}`, () => {
    const canceled = recurring({ start: end - DAY_MS, validityDays: 1, status: 'canceled', remaining: 7 });
    const next = recurring({}, 3);
    assert.deepEqual(apply(stateOf(canceled), opening(next)), stateOf({ ...canceled, status }, next));
  });
}

test('a cycle start changes neither one-time cycles nor superseded cycles', () => {
  const older = recurring({ start: daysAgo(3), status: 'superseded' });
  const { cycles } = apply(stateOf(older, BOUGHT), opening(recurring()));
  assert.equal(cycles[0], older);
  assert.equal(cycles[1], BOUGHT);
});

test('an addition leaves a canceled cycle canceled', () => {
  const canceled = { ...MONTHLY, status: 'canceled' } as const;
  assert.equal(apply(stateOf(canceled), opening(oneTime())).cycles[0], canceled);
});

test('a renewal replaces the ended period with the next period, which has all credits of the plan and comes last in spending order', () => {
  const before = stateOf({ ...MONTHLY, remaining: 40 }, oneTime());
  assert.deepEqual(apply(before, opening(NEXT)), stateOf(oneTime(), NEXT));
});

test('the posting of a subtraction takes credits only from the cycle that it names', () => {
  const before = stateOf(BOUGHT, MONTHLY);
  const after = apply(before, drawing(MONTHLY, 30, NOW));
  assert.deepEqual(after, stateOf(BOUGHT, { ...MONTHLY, remaining: 70 }));
  assert.equal(after.cycles[0], BOUGHT);
});

for (const status of ['canceled', 'superseded'] as const) {
  test(`the credits of a ${status} cycle can be subtracted`, () => {
    const cycle = { ...MONTHLY, status };
    assert.deepEqual(apply(stateOf(cycle), drawing(cycle, 1, NOW)), stateOf({ ...cycle, remaining: 99 }));
  });
}

test('a subtraction can take all remaining credits of a cycle', () => {
  const cycle = { ...BOUGHT, remaining: 5 };
  assert.equal(apply(stateOf(cycle), drawing(cycle, 5, NOW)).cycles[0]?.remaining, 0);
});

test('a stop cancels the active cycle and does not change its credits', () => {
  const cycle = { ...MONTHLY, remaining: 40 };
  const after = apply(stateOf(BOUGHT, cycle), stopping(cycle, NOW));
  assert.deepEqual(after, stateOf(BOUGHT, { ...cycle, status: 'canceled' }));
});

test('the credits of a cycle can be spent, and the cycle can be stopped, from its start to a millisecond before its end', () => {
  for (const at of [MONTHLY.start, MONTHLY.end - 1]) {
    assert.equal(apply(stateOf(MONTHLY), drawing(MONTHLY, 1, at)).cycles[0]?.remaining, 99);
    assert.equal(apply(stateOf(MONTHLY), stopping(MONTHLY, at)).cycles[0]?.status, 'canceled');
  }
});

type Violation = readonly [what: string, state: EndUserState, posting: Posting, invariant: Invariant];

const ADDED = opening(oneTime());
const STARTED = opening(recurring());
const RENEWED = opening(NEXT);
const DRAWN = drawing(BOUGHT, 1, NOW);
const STOP = stopping(MONTHLY, NOW);
const DAILY = { type: 'one-time', plan: { ...BOUGHT.plan, validityDays: 1 } } as const;

const OPENINGS: readonly Violation[] = [
  ['an addition without terms', EMPTY_STATE, { ...ADDED, terms: null }, 4],
  ['an addition of a recurring cycle', EMPTY_STATE, { ...STARTED, kind: 'add' }, 3],
  ['a cycle start that opens a one-time cycle', EMPTY_STATE, { ...ADDED, kind: 'start-cycle' }, 3],
  ['an addition of 0 credits', EMPTY_STATE, { ...ADDED, amount: 0 }, 1],
  ['an addition of minus one credit', EMPTY_STATE, { ...ADDED, amount: -1 }, 1],
  ['an addition of half a credit', EMPTY_STATE, { ...ADDED, amount: 0.5 }, 1],
  ['an addition of 2^53 credits', EMPTY_STATE, { ...ADDED, amount: AMOUNT_MAX + 1 }, 1],
  ['an addition that expires a millisecond early', EMPTY_STATE, { ...ADDED, expiresAt: ADDED.expiresAt - 1 }, 4],
  ['an addition that expires a millisecond late', EMPTY_STATE, { ...ADDED, expiresAt: ADDED.expiresAt + 1 }, 4],
  ['an addition with a validity that does not match its expiry', EMPTY_STATE, { ...ADDED, terms: DAILY }, 4],
  ['an addition a millisecond after the time in its ID', EMPTY_STATE, moved(ADDED, 1), 4],
  ['an addition a millisecond after its cycle starts', EMPTY_STATE, { ...ADDED, createdAt: ADDED.createdAt + 1 }, 4],
  ['an addition before 1970', EMPTY_STATE, moved(ADDED, -NOW - 1), 4],
  ['an addition that opens a second period', EMPTY_STATE, { ...ADDED, period: 1 }, 3],
  [
    'a cycle start that opens a second period',
    EMPTY_STATE,
    { ...RENEWED, kind: 'start-cycle', transactionId: NEXT.id },
    3,
  ],
  ['an addition whose ID is not that of its cycle', EMPTY_STATE, { ...ADDED, transactionId: idAt(NOW, 3) }, 4],
  ['a cycle start whose ID is not that of its cycle', EMPTY_STATE, { ...STARTED, transactionId: idAt(NOW, 3) }, 4],
  ['an addition that was applied before', stateOf(oneTime()), ADDED, 3],
  ['a cycle start that was applied before', stateOf(recurring({ status: 'canceled' })), STARTED, 3],
  ['a cycle start while another cycle is active', stateOf(MONTHLY), STARTED, 3],
  ['a cycle start at the end of an active cycle that was not renewed', stateOf(endingAt(NOW)), STARTED, 3],
  ['a cycle start after the end of an active cycle that was not renewed', stateOf(endingAt(NOW - 1)), STARTED, 3],
];

const RENEWALS: readonly Violation[] = [
  ['a renewal of a cycle that does not exist', stateOf(BOUGHT), RENEWED, 4],
  ['a renewal without terms', stateOf(MONTHLY), { ...RENEWED, terms: null }, 4],
  ['a renewal of a canceled cycle', stateOf({ ...MONTHLY, status: 'canceled' }), RENEWED, 3],
  ['a renewal of a superseded cycle', stateOf({ ...MONTHLY, status: 'superseded' }), RENEWED, 3],
  ['a renewal of a one-time cycle', stateOf({ ...MONTHLY, type: 'one-time' }), RENEWED, 3],
  [
    'a renewal with the terms of a one-time cycle',
    stateOf(MONTHLY),
    { ...RENEWED, terms: { type: 'one-time', plan: NEXT.plan } },
    3,
  ],
  ['a renewal that was applied before', stateOf(NEXT), RENEWED, 3],
  ['a renewal that skips a period', stateOf(MONTHLY), opening(periodAfter(MONTHLY, 2)), 3],
  ['a renewal with period number 0', stateOf(MONTHLY), { ...RENEWED, period: 0 }, 3],
  ['a renewal a millisecond early', stateOf(MONTHLY), moved(RENEWED, -1), 3],
  ['a renewal a millisecond late', stateOf(MONTHLY), moved(RENEWED, 1), 3],
  ['a renewal with one credit too many', stateOf(MONTHLY), { ...RENEWED, amount: 101 }, 1],
  ['a renewal with one credit too few', stateOf(MONTHLY), { ...RENEWED, amount: 99 }, 1],
  ['a renewal whose period number skips one', stateOf(MONTHLY), { ...RENEWED, period: 2 }, 3],
  [
    'a renewal with a shorter validity, numbered as if all earlier periods had been that short',
    stateOf(MONTHLY),
    { ...RENEWED, terms: { ...DAILY, type: 'recurring' }, period: 31, expiresAt: RENEWED.createdAt + DAY_MS },
    3,
  ],
];

const SUBTRACTIONS: readonly Violation[] = [
  ['a subtraction of 0 credits', stateOf(BOUGHT), { ...DRAWN, amount: 0 }, 1],
  ['a subtraction with a positive amount', stateOf({ ...BOUGHT, remaining: 9 }), { ...DRAWN, amount: 1 }, 1],
  ['a subtraction of half a credit', stateOf(BOUGHT), { ...DRAWN, amount: -0.5 }, 1],
  ['a subtraction of one credit more than remains', stateOf({ ...BOUGHT, remaining: 9 }), drawing(BOUGHT, 10, NOW), 1],
  ['a subtraction from a cycle that does not exist', stateOf(MONTHLY), DRAWN, 4],
  ['a subtraction a millisecond before the start of its cycle', stateOf(BOUGHT), at(DRAWN, BOUGHT.start - 1), 4],
  ['a subtraction at the end of its cycle', stateOf(BOUGHT), at(DRAWN, BOUGHT.end), 4],
  ['a subtraction from the next period', stateOf(MONTHLY), { ...drawing(NEXT, 1), createdAt: NOW }, 4],
  ['a subtraction from the previous period', stateOf(NEXT), drawing(MONTHLY, 1, NOW), 4],
  ['a subtraction that expires a millisecond late', stateOf(BOUGHT), { ...DRAWN, expiresAt: BOUGHT.end + 1 }, 4],
  ['a subtraction that expires a millisecond early', stateOf(BOUGHT), { ...DRAWN, expiresAt: BOUGHT.end - 1 }, 4],
  ['a subtraction with terms', stateOf(BOUGHT), { ...DRAWN, terms: ADDED.terms }, 4],
];

const STOPS: readonly Violation[] = [
  ['a stop that takes credits', stateOf(MONTHLY), { ...STOP, amount: -1 }, 1],
  ['a stop that adds credits', stateOf({ ...MONTHLY, remaining: 9 }), { ...STOP, amount: 1 }, 1],
  ['a stop of a cycle that does not exist', stateOf(BOUGHT), STOP, 4],
  ['a stop of a one-time cycle', stateOf(BOUGHT), stopping(BOUGHT, NOW), 3],
  ['a stop of a canceled cycle', stateOf({ ...MONTHLY, status: 'canceled' }), STOP, 3],
  ['a stop of a superseded cycle', stateOf({ ...MONTHLY, status: 'superseded' }), STOP, 3],
  ['a stop a millisecond before the start of its cycle', stateOf(MONTHLY), at(STOP, MONTHLY.start - 1), 4],
  ['a stop at the end of its cycle', stateOf(MONTHLY), at(STOP, MONTHLY.end), 4],
  ['a stop of another period', stateOf(MONTHLY), { ...STOP, period: 1 }, 4],
  ['a stop that expires a millisecond late', stateOf(MONTHLY), { ...STOP, expiresAt: MONTHLY.end + 1 }, 4],
  ['a stop with terms', stateOf(MONTHLY), { ...STOP, terms: STARTED.terms }, 4],
];

function moved(posting: Posting, ms: number): Posting {
  return { ...posting, createdAt: posting.createdAt + ms, expiresAt: posting.expiresAt + ms };
}

function at(posting: Posting, createdAt: number): Posting {
  return { ...posting, createdAt };
}

function endingAt(end: number): Cycle {
  return recurring({ start: end - DAY_MS, validityDays: 1 });
}

for (const [what, state, posting, invariant] of [...OPENINGS, ...RENEWALS, ...SUBTRACTIONS, ...STOPS]) {
  test(`${what} violates invariant ${invariant}`, () => {
    assert.throws(
      () => apply(state, posting),
      (error) => error instanceof InvariantViolation && error.invariant === invariant,
    );
  });
}

test('an invariant violation is an assertion error with the number of the invariant and the broken rule', () => {
  assert.throws(() => apply(stateOf(MONTHLY), STARTED), {
    name: 'AssertionError',
    code: 'ERR_ASSERTION',
    invariant: 3,
    message: 'an end user has at most one active recurring cycle',
  });
});

test('if the last of several postings violates an invariant, none of them changes the state', () => {
  const state = stateOf(BOUGHT, MONTHLY);
  assert.throws(() => applyAll(state, [DRAWN, STOP, STARTED, { ...DRAWN, amount: -100 }]), { invariant: 1 });
  assert.deepEqual(state, stateOf(BOUGHT, MONTHLY));
});

test('applying an empty list of postings returns the same state', () => {
  const state = stateOf(BOUGHT);
  assert.equal(applyAll(state, []), state);
});

test('applying a posting modifies neither the old state nor the posting', () => {
  for (const posting of [ADDED, STARTED, DRAWN, STOP, RENEWED].map((each) => Object.freeze(each))) {
    const cycles = [BOUGHT, posting === STARTED ? ({ ...MONTHLY, status: 'canceled' } as const) : MONTHLY];
    const copy = structuredClone(cycles);
    const state = stateOf(...cycles.map((cycle) => Object.freeze(cycle)));
    assert.notEqual(apply(state, posting), state);
    assert.deepEqual(state.cycles, copy);
  }
});

test('applying postings together gives the same state as applying them one by one', () => {
  fc.assert(
    fc.property(histories, fc.nat({ max: 40 }), ({ postings }, split) => {
      const oneByOne = postings.reduce(apply, EMPTY_STATE);
      assert.deepEqual(applyAll(EMPTY_STATE, postings), oneByOne);
      const first = applyAll(EMPTY_STATE, postings.slice(0, split));
      assert.deepEqual(applyAll(first, postings.slice(split)), oneByOne);
    }),
  );
});

test('the stored cycles and holds of an end user can be recomputed from the postings alone', () => {
  fc.assert(
    fc.property(histories, ({ cycles, holds, postings, now }) => {
      const state = applyAll(EMPTY_STATE, postings);
      // A lapse does not update `held` in a cycle that has ended.
      const rows = (all: readonly Cycle[]) =>
        all
          .map((cycle) => (hasEnded(cycle, now) ? { ...cycle, held: 0 } : cycle))
          .sort((a, b) => (a.id < b.id ? -1 : 1));
      assert.deepEqual(rows(state.cycles), rows(cycles));
      assert.deepEqual(state.holds, holds);
    }),
  );
});

test('after postings have been applied, the cycles are in spending order and need not be sorted', () => {
  fc.assert(
    fc.property(histories, ({ postings }) => {
      const { cycles } = applyAll(EMPTY_STATE, postings);
      assert.deepEqual(
        cycles,
        cycles.toSorted((a, b) => a.start - b.start || (a.id < b.id ? -1 : 1)),
      );
    }),
  );
});

test('a transaction that touches thousands of cycles, in either order, looks at each of them only a few times', () => {
  let looks = 0;
  const cycles = Array.from({ length: 2_000 }, (_, index) => {
    const { id, ...cycle } = oneTime({ start: daysAgo(2), amount: 2, remaining: 1 }, index + 2);
    return Object.defineProperty(cycle as Cycle, 'id', {
      enumerable: true,
      get: () => {
        looks += 1;
        return id;
      },
    });
  });
  const draws = cycles.map((cycle) => drawing(cycle, 1, NOW));
  for (const postings of [draws, draws.toReversed().map((draw) => refunding(draw))]) {
    looks = 0;
    applyAll(stateOf(...cycles), postings);
    assert(looks <= 5 * cycles.length, `${looks} looks at ${cycles.length} cycles`);
  }
});
