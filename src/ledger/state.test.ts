// Tests which cycles the live state leaves out, and how Scrip finds the changes between two states.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  daysAgo,
  EVENTS_MAX,
  holding,
  holdOf,
  NOW,
  oneTime,
  recurring,
  stateOf,
} from '../../test/ledger/ledger-builders.ts';
import { histories } from '../../test/ledger/random-histories.ts';
import { applyAll } from './apply.ts';
import { activeBalance, cyclesAt } from './balance.ts';
import type { Cycle } from './cycle.ts';
import { DAY_MS, VALIDITY_DAYS_MAX } from './instant.ts';
import { nextEventAt } from './next-event.ts';
import { dueCount, settle } from './settle.ts';
import { cycleChanges, EMPTY_STATE, liveState } from './state.ts';

const DAILY = { start: daysAgo(1), validityDays: 1 } as const;
const END = NOW;

test('an end user without a history has neither cycles nor holds', () => {
  assert.deepEqual(EMPTY_STATE, { cycles: [], holds: [] });
  assert.equal(liveState(EMPTY_STATE, NOW), EMPTY_STATE);
});

const LIVE: readonly (readonly [what: string, cycle: Cycle, isLive: readonly [boolean, boolean, boolean]])[] = [
  ['a one-time cycle', oneTime(DAILY), [true, false, false]],
  ['a used-up one-time cycle', oneTime({ ...DAILY, remaining: 0 }), [true, false, false]],
  ['a canceled cycle', recurring({ ...DAILY, status: 'canceled' }), [true, false, false]],
  ['a superseded cycle', recurring({ ...DAILY, status: 'superseded' }), [true, false, false]],
  ['an active recurring cycle that is due for renewal', recurring(DAILY), [true, true, true]],
  ['a cycle that lasts to the year 9999', oneTime({ validityDays: VALIDITY_DAYS_MAX }), [true, true, true]],
];

for (const [what, cycle, isLive] of LIVE) {
  test(`${what} ${isLive[1] ? 'stays in the live state' : 'leaves the live state at its end'}`, () => {
    const kept = [END - 1, END, END + 1].map((now) => liveState(stateOf(cycle), now).cycles.length === 1);
    assert.deepEqual(kept, isLive);
  });
}

test('ended cycles are left out of the live state, and the other cycles keep their order', () => {
  const [bought, ended, active] = [oneTime({ start: daysAgo(2) }), oneTime(DAILY, 3), recurring()];
  const state = stateOf(bought, ended, active);
  assert.deepEqual(liveState(state, END), stateOf(bought, active));
  assert.equal(liveState(state, END - 1), state, 'the same object if no cycle has ended');
});

test('all open holds stay in the live state, including holds on ended cycles and holds that are due to lapse', () => {
  const [ended, running] = [oneTime(DAILY), oneTime({ start: daysAgo(1) }, 3)];
  const postings = [ended, running].map((cycle, index) =>
    holding(cycle, 5, { at: END - 1, until: END + index, sequence: 90 + index }),
  );
  const state = applyAll(stateOf(ended, running), postings);
  const live = liveState(state, END + 2);
  assert.deepEqual(live, { cycles: [{ ...running, held: 5 }], holds: postings.map((posting) => holdOf(posting)) });
});

test('at later instants, the live state gives the same balance, cycles, renewals and lapses as the full state', () => {
  fc.assert(
    fc.property(histories, fc.nat({ max: 9 }), (ledger, days) => {
      const cycles = ledger.cycles.toSorted((a, b) => a.start - b.start || (a.id < b.id ? -1 : 1));
      const whole = { cycles, holds: ledger.holds };
      const live = liveState(whole, ledger.now);
      const later = ledger.now + days * DAY_MS;
      assert.deepEqual(cyclesAt(live, later), cyclesAt(whole, later));
      assert.equal(activeBalance(cyclesAt(live, later), later), activeBalance(cyclesAt(whole, later), later));
      assert.equal(dueCount(live, later), dueCount(whole, later));
      assert.equal(nextEventAt(live), nextEventAt(whole));
      assert.deepEqual(settle(live, later, EVENTS_MAX).postings, settle(whole, later, EVENTS_MAX).postings);
    }),
  );
});

const [A, B, C] = [oneTime({}, 2), oneTime({}, 3), recurring({}, 4)];

test('there are no changes between states with the same cycles', () => {
  assert.deepEqual(cycleChanges(EMPTY_STATE, EMPTY_STATE), { opened: [], changed: [] });
  assert.deepEqual(cycleChanges(stateOf(A, B), stateOf(A, B)), { opened: [], changed: [] });
});

test('a cycle that is only in the later state counts as opened', () => {
  assert.deepEqual(cycleChanges(EMPTY_STATE, stateOf(A)), { opened: [A], changed: [] });
  assert.deepEqual(cycleChanges(stateOf(A), stateOf(A, B, C)), { opened: [B, C], changed: [] });
});

test('a cycle that is a different object in the later state counts as changed', () => {
  const [spent, canceled] = [
    { ...A, remaining: 1 },
    { ...C, status: 'canceled' as const },
  ];
  assert.deepEqual(cycleChanges(stateOf(A, B, C), stateOf(spent, B, canceled)), {
    opened: [],
    changed: [
      { before: A, after: spent },
      { before: C, after: canceled },
    ],
  });
});

test('a renewed cycle counts as changed, but cycles that only move up in the spending order do not', () => {
  const next = { ...C, period: 1, start: C.end, end: C.end + 31 * DAY_MS };
  assert.deepEqual(cycleChanges(stateOf(C, A, B), stateOf(A, B, next)), {
    opened: [],
    changed: [{ before: C, after: next }],
  });
});

test('a cycle whose credits were spent counts as changed even if a renewal of another cycle moves it up in the spending order', () => {
  const next = { ...C, period: 1, start: C.end, end: C.end + 31 * DAY_MS };
  const spent = { ...B, remaining: 0 };
  const added = oneTime({ start: C.end }, 5);
  const { opened, changed } = cycleChanges(stateOf(C, A, B), stateOf(A, spent, next, added));
  assert.deepEqual(opened, [added]);
  assert.deepEqual(changed, [
    { before: B, after: spent },
    { before: C, after: next },
  ]);
});

test('applying the changes to the earlier state gives the later state', () => {
  fc.assert(
    fc.property(histories, fc.nat({ max: 40 }), ({ postings }, split) => {
      const before = applyAll(EMPTY_STATE, postings.slice(0, split));
      const after = applyAll(before, postings.slice(split));
      const { opened, changed } = cycleChanges(before, after);
      for (const change of changed) assert.notEqual(change.before, change.after);
      const rows = new Map(before.cycles.map((cycle) => [cycle.id, cycle]));
      for (const change of changed) {
        assert.equal(rows.get(change.before.id), change.before, 'a row is changed only once, from its earlier content');
        rows.set(change.before.id, change.after);
      }
      for (const cycle of opened) {
        assert(!rows.has(cycle.id), 'a row is inserted only once');
        rows.set(cycle.id, cycle);
      }
      assert.deepEqual(rows, new Map(after.cycles.map((cycle) => [cycle.id, cycle])));
    }),
  );
});
