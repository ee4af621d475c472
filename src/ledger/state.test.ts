// The state of an end user: what is left out of it, and how two states differ.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { daysAgo, histories, NOW, oneTime, recurring, stateOf } from '../../test/ledger/ledger-builders.ts';
import { applyAll } from './apply.ts';
import { activeBalance, cyclesAt } from './balance.ts';
import type { Cycle } from './cycle.ts';
import { DAY_MS, VALIDITY_DAYS_MAX } from './instant.ts';
import { dueCount } from './settle.ts';
import { cycleChanges, EMPTY_STATE, liveState } from './state.ts';

const DAILY = { start: daysAgo(1), validityDays: 1 } as const;
const END = NOW;

test('an end user without a history has no cycles', () => {
  assert.deepEqual(EMPTY_STATE, { cycles: [] });
  assert.equal(liveState(EMPTY_STATE, NOW), EMPTY_STATE);
});

const LIVE: readonly (readonly [what: string, cycle: Cycle, isLive: readonly [boolean, boolean, boolean]])[] = [
  ['a one-time cycle', oneTime(DAILY), [true, false, false]],
  ['a used-up one-time cycle', oneTime({ ...DAILY, remaining: 0 }), [true, false, false]],
  ['a canceled cycle', recurring({ ...DAILY, status: 'canceled' }), [true, false, false]],
  ['a superseded cycle', recurring({ ...DAILY, status: 'superseded' }), [true, false, false]],
  ['an active recurring cycle, which is still to be renewed,', recurring(DAILY), [true, true, true]],
  ['a cycle that lasts to the year 9999', oneTime({ validityDays: VALIDITY_DAYS_MAX }), [true, true, true]],
];

for (const [what, cycle, isLive] of LIVE) {
  const when = isLive[1] ? 'also after' : 'until';
  test(`${what} counts in a state ${when} the end of its period`, () => {
    const kept = [END - 1, END, END + 1].map((now) => liveState(stateOf(cycle), now).cycles.length === 1);
    assert.deepEqual(kept, isLive);
  });
}

test('cycles that have ended are left out, and the others keep their order', () => {
  const [bought, ended, active] = [oneTime({ start: daysAgo(2) }), oneTime(DAILY, 2), recurring()];
  const state = stateOf(bought, ended, active);
  assert.deepEqual(liveState(state, END), { cycles: [bought, active] });
  assert.equal(liveState(state, END - 1), state, 'the same object where nothing has ended');
});

test('leaving ended cycles out of a state changes nothing that can be seen later', () => {
  fc.assert(
    fc.property(histories, fc.nat({ max: 9 }), (ledger, days) => {
      const whole = stateOf(...ledger.cycles.toSorted((a, b) => a.start - b.start || (a.id < b.id ? -1 : 1)));
      const live = liveState(whole, ledger.now);
      const later = ledger.now + days * DAY_MS;
      assert.deepEqual(cyclesAt(live, later), cyclesAt(whole, later));
      assert.equal(activeBalance(cyclesAt(live, later), later), activeBalance(cyclesAt(whole, later), later));
      assert.equal(dueCount(live, later), dueCount(whole, later));
    }),
  );
});

const [A, B, C] = [oneTime({}, 1), oneTime({}, 2), recurring({}, 3)];

test('a state and itself do not differ', () => {
  assert.deepEqual(cycleChanges(EMPTY_STATE, EMPTY_STATE), { opened: [], changed: [] });
  assert.deepEqual(cycleChanges(stateOf(A, B), stateOf(A, B)), { opened: [], changed: [] });
});

test('a cycle that is only in the later state was opened', () => {
  assert.deepEqual(cycleChanges(EMPTY_STATE, stateOf(A)), { opened: [A], changed: [] });
  assert.deepEqual(cycleChanges(stateOf(A), stateOf(A, B, C)), { opened: [B, C], changed: [] });
});

test('a cycle that is another object in the later state was changed', () => {
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

test('a renewed cycle has changed, and those that moved to its place have not', () => {
  const next = { ...C, period: 1, start: C.end, end: C.end + 31 * DAY_MS };
  assert.deepEqual(cycleChanges(stateOf(C, A, B), stateOf(A, B, next)), {
    opened: [],
    changed: [{ before: C, after: next }],
  });
});

test('a cycle that moved to the place of a renewed one and was spent has changed as well', () => {
  const next = { ...C, period: 1, start: C.end, end: C.end + 31 * DAY_MS };
  const spent = { ...B, remaining: 0 };
  const added = oneTime({ start: C.end }, 4);
  const { opened, changed } = cycleChanges(stateOf(C, A, B), stateOf(A, spent, next, added));
  assert.deepEqual(opened, [added]);
  assert.deepEqual(changed, [
    { before: B, after: spent },
    { before: C, after: next },
  ]);
});

test('the earlier state with its changes made is the later one', () => {
  fc.assert(
    fc.property(histories, fc.nat({ max: 40 }), ({ postings }, split) => {
      const before = applyAll(EMPTY_STATE, postings.slice(0, split));
      const after = applyAll(before, postings.slice(split));
      const { opened, changed } = cycleChanges(before, after);
      for (const change of changed) assert.notDeepEqual(change.before, change.after);
      const rows = new Map(before.cycles.map((cycle) => [cycle.id, cycle]));
      for (const change of changed) {
        assert.equal(rows.get(change.before.id), change.before, 'a row is changed once, from what it was');
        rows.set(change.before.id, change.after);
      }
      for (const cycle of opened) {
        assert(!rows.has(cycle.id), 'a row is inserted once');
        rows.set(cycle.id, cycle);
      }
      assert.deepEqual(rows, new Map(after.cycles.map((cycle) => [cycle.id, cycle])));
    }),
  );
});
