// Tests how postings of scheduled plans, changes of plan and renewals with rollover affect an end user's state, and
// which invariants invalid postings violate.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ACTOR,
  add,
  holding,
  idAt,
  NOW,
  oneTime,
  opening,
  recurring,
  stateOf,
  stopping,
} from '../../test/ledger/ledger-builders.ts';
import { AMOUNT_MAX } from './amount.ts';
import { apply, applyAll } from './apply.ts';
import { type Cycle, periodAfter, scheduledCycle } from './cycle.ts';
import { planOf } from './decision.ts';
import { DAY_MS, INSTANT_MAX, VALIDITY_DAYS_MAX } from './instant.ts';
import { type Invariant, InvariantViolation } from './invariant.ts';
import { changeOf, nextEvent, nextEventAt } from './next-event.ts';
import type { Plan, ScheduledPlan } from './plan.ts';
import { type CycleTerms, isOpening, type Posting, postingTo, termsText } from './posting.ts';
import type { EndUserState } from './state.ts';

const DAILY = recurring({ validityDays: 1, rolloverMax: 30 });
const END = DAILY.end;
const PLAN: Plan = { amount: 7, validityDays: null, validityMonths: 1, rolloverMax: 2 };

function scheduling(cycle: Cycle, { plan = PLAN, at = cycle.start, sequence = 99 } = {}): Posting {
  const entry = { transactionId: idAt(at, sequence), kind: 'schedule-plan', createdAt: at, actor: ACTOR } as const;
  const terms: CycleTerms = { type: 'recurring', plan };
  return Object.freeze({ ...postingTo(cycle, 0, { ...entry, note: null }), terms });
}

const SCHEDULING = scheduling(DAILY);
const NEXT: ScheduledPlan = { id: SCHEDULING.transactionId, plan: PLAN };
const SCHEDULED: Cycle = Object.freeze({ ...DAILY, next: NEXT });
const CHANGE = Object.freeze(changeOf(DAILY, NEXT));

test('a scheduled plan is recorded on the active cycle, and replaces an earlier scheduled plan', () => {
  assert.deepEqual(apply(stateOf(oneTime({}, 3), DAILY), SCHEDULING), stateOf(oneTime({}, 3), SCHEDULED));
  const again = scheduling(DAILY, { sequence: 100, plan: { ...PLAN, amount: 8 } });
  const next = { id: again.transactionId, plan: { ...PLAN, amount: 8 } };
  assert.deepEqual(applyAll(stateOf(DAILY), [SCHEDULING, again]), stateOf({ ...DAILY, next }));
});

test('a plan can be scheduled at any instant of a period, from its start to a millisecond before its end', () => {
  for (const at of [NOW, END - 1])
    assert.equal(apply(stateOf(DAILY), scheduling(DAILY, { at })).cycles[0]?.next?.id, idAt(at, 99));
});

test('a change of plan supersedes the old cycle, keeps its credits, and opens a new cycle that comes last in spending order', () => {
  const before = stateOf({ ...SCHEDULED, remaining: 40 }, oneTime({}, 3));
  const old = { ...DAILY, remaining: 40, status: 'superseded' } as const;
  assert.deepEqual(apply(before, CHANGE), stateOf(old, oneTime({}, 3), scheduledCycle(SCHEDULED, NEXT)));
});

test('a stop also cancels the scheduled plan', () => {
  const { cycles } = apply(stateOf(SCHEDULED), stopping(DAILY));
  assert.deepEqual(cycles, [{ ...DAILY, status: 'canceled', next: null }]);
});

test('scheduling a plan opens no cycle, but a change of plan does', () => {
  assert.equal(isOpening(SCHEDULING), false);
  assert(isOpening(CHANGE));
  assert(isOpening(opening(DAILY)));
  assert(SCHEDULING.terms);
  assert.equal(termsText(SCHEDULING.terms), 'recurring/7/1m/2');
});

test('the next event of a cycle with a scheduled plan is the change of plan at the end of its period', () => {
  const state = stateOf(oneTime({}, 3), SCHEDULED);
  assert.equal(nextEventAt(state), END);
  assert.equal(nextEvent(state, END - 1), null);
  for (const now of [END, END + 1, END + 400 * DAY_MS]) assert.deepEqual(nextEvent(state, now), [CHANGE]);
});

test('a change of plan comes before a lapse at the same instant, and after a lapse that is a millisecond earlier', () => {
  const kindAt = (until: number) =>
    nextEvent(applyAll(stateOf(DAILY), [holding(DAILY, 5, { until }), scheduling(DAILY, { sequence: 100 })]), END)?.[0]
      ?.kind;
  assert.deepEqual([END - 1, END, END + 1].map(kindAt), ['lapse', 'change-plan', 'change-plan']);
});

test('the plan of an addition has no rollover, and is valid for a number of days or months', () => {
  const plan = { amount: 5, validityDays: 31, validityMonths: null, rolloverMax: 0 };
  assert.deepEqual(planOf(add(5)), plan);
  const inMonths = { validityDays: null, validityMonths: 2 };
  assert.deepEqual(planOf(add(5, inMonths)), { ...plan, ...inMonths });
});

type Violation = readonly [what: string, state: EndUserState, posting: Posting, invariant: Invariant];

const ACTIVE = stateOf(DAILY);
const DUE = stateOf(SCHEDULED);
const RENEWAL = opening(periodAfter(DAILY, 1));
const ENDLESS = recurring({ validityDays: VALIDITY_DAYS_MAX });

function planned(change: Partial<Plan>): Posting {
  return { ...SCHEDULING, terms: { type: 'recurring', plan: { ...PLAN, ...change } } };
}

function changed(plan: Partial<Plan>, change: Partial<Posting> = {}): Posting {
  return { ...CHANGE, terms: { type: 'recurring', plan: { ...PLAN, ...plan } }, ...change };
}

const SCHEDULES: readonly Violation[] = [
  ['a scheduled plan that grants a credit', ACTIVE, { ...SCHEDULING, amount: 1 }, 1],
  ['a scheduled plan that holds a credit', ACTIVE, { ...SCHEDULING, held: 1 }, 1],
  ['a scheduled plan without terms', ACTIVE, { ...SCHEDULING, terms: null }, 4],
  ['a scheduled plan of a one-time cycle', ACTIVE, { ...SCHEDULING, terms: { type: 'one-time', plan: PLAN } }, 4],
  ['a scheduled plan without credits', ACTIVE, planned({ amount: 0 }), 1],
  [
    'a scheduled plan whose credits and rollover together exceed 2^53−1',
    ACTIVE,
    planned({ amount: AMOUNT_MAX - 1 }),
    1,
  ],
  ['a scheduled plan of 121 months', ACTIVE, planned({ validityMonths: 121 }), 4],
  ['a scheduled plan with a validity in both days and months', ACTIVE, planned({ validityDays: 1 }), 4],
  ['a plan that is scheduled to follow a canceled cycle', stateOf({ ...DAILY, status: 'canceled' }), SCHEDULING, 3],
  ['a plan that is scheduled to follow a superseded cycle', stateOf({ ...DAILY, status: 'superseded' }), SCHEDULING, 3],
  ['a plan that is scheduled to follow a one-time cycle', stateOf({ ...DAILY, type: 'one-time' }), SCHEDULING, 3],
  ['a plan that is scheduled to follow a cycle that never renews', stateOf(ENDLESS), scheduling(ENDLESS), 3],
  ['a plan that is scheduled to follow a cycle that does not exist', stateOf(oneTime({}, 3)), SCHEDULING, 4],
  ['a plan that is scheduled at the end of the period', ACTIVE, { ...SCHEDULING, createdAt: END }, 4],
  [
    'a plan that is scheduled a millisecond before the start of the cycle',
    ACTIVE,
    { ...SCHEDULING, createdAt: NOW - 1 },
    4,
  ],
  ['a plan that is scheduled in another period', ACTIVE, { ...SCHEDULING, period: 1 }, 4],
  ['a scheduled plan that expires a millisecond late', ACTIVE, { ...SCHEDULING, expiresAt: END + 1 }, 4],
];

const CHANGES: readonly Violation[] = [
  ['a change of plan without a scheduled plan', ACTIVE, CHANGE, 3],
  ['a change of plan without a cycle', stateOf(), CHANGE, 3],
  ['a change of plan after a stop', stateOf({ ...DAILY, status: 'canceled' }), CHANGE, 3],
  ['a change of plan that was applied before', apply(DUE, CHANGE), CHANGE, 3],
  [
    'a change of plan to a scheduled plan that was replaced',
    stateOf({ ...DAILY, next: { ...NEXT, id: idAt(NOW, 100) } }),
    CHANGE,
    3,
  ],
  ['a change of plan without a reference', DUE, { ...CHANGE, reference: null }, 3],
  ['a change of plan without terms', DUE, { ...CHANGE, terms: null }, 3],
  [
    'a change of plan whose credits differ from those of the scheduled plan',
    DUE,
    changed({ amount: 8 }, { amount: 8 }),
    3,
  ],
  ['a change of plan whose rollover differs from that of the scheduled plan', DUE, changed({ rolloverMax: 3 }), 3],
  ['a change of plan whose validity differs from that of the scheduled plan', DUE, changed({ validityMonths: 2 }), 3],
  ['a change of plan whose credits differ from those in its terms', DUE, { ...CHANGE, amount: 8 }, 1],
  ['a change of plan with a credit that rolled over', DUE, { ...CHANGE, amount: 9 }, 1],
  ['a change of plan that holds a credit', DUE, { ...CHANGE, held: 1 }, 1],
  ['a change of plan to a one-time cycle', DUE, { ...CHANGE, terms: { type: 'one-time', plan: PLAN } }, 3],
  ['a change of plan a millisecond early', DUE, { ...CHANGE, createdAt: END - 1 }, 3],
  ['a change of plan a millisecond late', DUE, { ...CHANGE, createdAt: END + 1 }, 3],
  ['a change of plan that expires a millisecond late', DUE, { ...CHANGE, expiresAt: CHANGE.expiresAt + 1 }, 4],
  ['a change of plan that opens another cycle', DUE, { ...CHANGE, cycleId: idAt(END), transactionId: idAt(END) }, 3],
  ['a change of plan whose ID differs from the ID of its cycle', DUE, { ...CHANGE, transactionId: idAt(END) }, 4],
  ['a change of plan that opens a second period', DUE, { ...CHANGE, period: 1 }, 3],
  ['a cycle start while a scheduled plan is due', DUE, opening(recurring({ start: END }, 3)), 3],
];

const ROLLED = { ...RENEWAL, amount: 130 };

const RENEWALS: readonly Violation[] = [
  ['a renewal instead of a change of plan', DUE, RENEWAL, 3],
  ['a renewal that rolls over more credits than the maximum', ACTIVE, { ...RENEWAL, amount: 131 }, 1],
  ['a renewal that rolls over fewer credits than were unused', ACTIVE, { ...RENEWAL, amount: 129 }, 1],
  ['a renewal that rolls over spent credits', stateOf({ ...DAILY, remaining: 29 }), ROLLED, 1],
  ['a renewal that rolls over held credits', stateOf({ ...DAILY, held: 71 }), ROLLED, 1],
  [
    'a renewal with another rollover',
    ACTIVE,
    { ...ROLLED, terms: { type: 'recurring', plan: { ...DAILY.plan, rolloverMax: 31 } } },
    3,
  ],
];

test('a renewal rolls over the credits that are neither spent nor held, up to the maximum', () => {
  assert.equal(RENEWAL.amount, 130);
  for (const change of [{}, { remaining: 30 }, { held: 70 }, { remaining: 60, held: 30 }])
    assert.equal(apply(stateOf({ ...DAILY, ...change }), ROLLED).cycles[0]?.remaining, 130);
  assert.equal(apply(stateOf({ ...DAILY, remaining: 29 }), { ...ROLLED, amount: 129 }).cycles[0]?.remaining, 129);
});

for (const [what, state, posting, invariant] of [...SCHEDULES, ...CHANGES, ...RENEWALS]) {
  test(`${what} violates invariant ${invariant}`, () => {
    assert.throws(
      () => apply(state, posting),
      (error) => error instanceof InvariantViolation && error.invariant === invariant,
    );
  });
}

test('a scheduled plan that begins shortly before the last instant of the year 9999 ends at that instant and never renews', () => {
  const start = INSTANT_MAX - 2 * DAY_MS;
  const cycle = recurring({ start, validityDays: 1 });
  const scheduled = apply(stateOf(cycle), scheduling(cycle));
  const event = nextEvent(scheduled, INSTANT_MAX);
  assert(event);
  const after = applyAll(scheduled, event);
  assert.deepEqual([after.cycles[1]?.start, after.cycles[1]?.end], [start + DAY_MS, INSTANT_MAX]);
  assert.equal(nextEvent(after, INSTANT_MAX), null);
});
