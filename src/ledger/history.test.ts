// The balance over time: at each instant it equals the balance that a read at that instant returned or will return.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  add,
  drawing,
  histories,
  MemoryLedger,
  NOW,
  oneTime,
  opening,
  recurring,
  startCycle,
  stateOf,
  stopCycle,
  stopping,
  subtract,
} from '../../test/ledger/ledger-builders.ts';
import { applyAll } from './apply.ts';
import { activeBalance, cyclesAt } from './balance.ts';
import { periodAfter } from './cycle.ts';
import { balanceSteps, type Range, type Step } from './history.ts';
import { DAY_MS, INSTANT_MAX, type Instant, LAST_INSTANT, VALIDITY_DAYS_MAX } from './instant.ts';
import type { Posting } from './posting.ts';
import { EMPTY_STATE } from './state.ts';

const BOUGHT = oneTime({ validityDays: 10 });
const DAILY = recurring({ amount: 50, validityDays: 1 }, 2);

function days(count: number): Instant {
  return NOW + count * DAY_MS;
}

function steps(postings: readonly Posting[], from: Instant, to: Instant): [day: number, balance: number][] {
  return balanceSteps({ state: EMPTY_STATE, postings }, { from, to }).map(({ at, balance }) => [
    (at - NOW) / DAY_MS,
    balance,
  ]);
}

test('an end user without credits has a balance of zero throughout', () => {
  assert.deepEqual(steps([], days(0), days(9)), [[0, 0]]);
  assert.deepEqual(steps([], 0, INSTANT_MAX).length, 1);
});

test('the balance steps up when credits are added, down when they are spent, and to zero when they expire', () => {
  const postings = [opening(BOUGHT), drawing(BOUGHT, 30, days(2)), drawing(BOUGHT, 20, days(3), 1)];
  assert.deepEqual(steps(postings, days(-1), days(99)), [
    [-1, 0],
    [0, 100],
    [2, 70],
    [3, 50],
    [10, 0],
  ]);
});

test('the first balance step of a range is the balance at the start of the range', () => {
  const postings = [opening(BOUGHT), drawing(BOUGHT, 30, days(2))];
  assert.deepEqual(steps(postings, days(1), days(3)), [
    [1, 100],
    [2, 70],
  ]);
  assert.deepEqual(steps(postings, days(2), days(3)), [[2, 70]]);
  assert.deepEqual(steps(postings, days(2) - 1, days(2) - 1), [[2 - 1 / DAY_MS, 100]]);
  assert.deepEqual(steps(postings, days(10), days(10)), [[10, 0]]);
});

test('the balance steps of a range include a step at its last instant, and none after it', () => {
  const postings = [opening(BOUGHT)];
  assert.deepEqual(steps(postings, days(1), days(10) - 1), [[1, 100]]);
  assert.deepEqual(steps(postings, days(1), days(10)), [
    [1, 100],
    [10, 0],
  ]);
});

test('several postings at one instant are one step of the balance', () => {
  const postings = [opening(BOUGHT), opening(oneTime({ validityDays: 10 }, 3)), drawing(BOUGHT, 30, NOW)];
  assert.deepEqual(steps(postings, days(-1), days(1)), [
    [-1, 0],
    [0, 170],
  ]);
});

test('a stop or the renewal of an unspent period does not change the balance and makes no step', () => {
  const postings = [opening(DAILY), stopping(DAILY, NOW + 1)];
  assert.deepEqual(steps(postings, days(0), days(1) - 1), [[0, 50]]);
  assert.deepEqual(steps([opening(DAILY)], days(0), days(400)), [[0, 50]], 'a renewal of an unspent period');
});

test('a stored renewal and a future renewal give the same steps of the balance', () => {
  const spent = [opening(DAILY), drawing(DAILY, 10, NOW + 1)];
  const expected = [
    [0, 50],
    [1 / DAY_MS, 40],
    [1, 50],
  ];
  assert.deepEqual(steps(spent, days(0), days(5)), expected);
  assert.deepEqual(steps([...spent, opening(periodAfter(DAILY, 1))], days(0), days(5)), expected);
});

test('a canceled cycle ends without a renewal', () => {
  assert.deepEqual(steps([opening(DAILY), stopping(DAILY, NOW + 1)], days(0), days(5)), [
    [0, 50],
    [1, 0],
  ]);
});

test('the steps of the balance start from the state before the first posting', () => {
  const state = stateOf({ ...BOUGHT, remaining: 60 });
  const postings = [drawing(BOUGHT, 10, days(4))];
  assert.deepEqual(balanceSteps({ state, postings }, { from: days(3), to: days(20) }), [
    { at: days(3), balance: 60 },
    { at: days(4), balance: 50 },
    { at: days(10), balance: 0 },
  ]);
});

test('the balance can be projected to the last instant of the year 9999', () => {
  const endless = oneTime({ validityDays: VALIDITY_DAYS_MAX });
  assert.deepEqual(balanceSteps({ state: stateOf(endless), postings: [] }, { from: LAST_INSTANT, to: INSTANT_MAX }), [
    { at: LAST_INSTANT, balance: 100 },
    { at: INSTANT_MAX, balance: 0 },
  ]);
});

test('spending, renewing and stopping a recurring cycle next to added credits makes a step for each change of the balance', () => {
  const ledger = new MemoryLedger();
  ledger.run(startCycle(50, { validityDays: 7 }));
  for (const [day, command] of [
    [3, subtract(20)],
    [8, add(5, { validityDays: 3 })],
    [9, subtract(51)],
    [10, stopCycle()],
  ] as const) {
    ledger.now = days(day);
    assert.equal(ledger.run(command).refused, null);
  }
  assert.deepEqual(steps(ledger.postings, days(-1), days(30)), [
    [-1, 0],
    [0, 50],
    [3, 30],
    [7, 50],
    [8, 55],
    [9, 4],
    [11, 0],
  ]);
});

function balanceAt(steps: readonly Step[], at: Instant): number | undefined {
  return steps.findLast((step) => step.at <= at)?.balance;
}

test('the balance at any instant of a range equals the balance computed from the postings up to that instant', () => {
  const shifts = fc.oneof(fc.constantFrom(-1, 0, 1), fc.integer({ min: -DAY_MS, max: DAY_MS }));
  fc.assert(
    fc.property(
      histories,
      fc.nat({ max: 30 }),
      fc.nat({ max: 30 }),
      fc.array(shifts),
      (ledger, start, length, shifts) => {
        const { postings } = ledger;
        const range: Range = { from: days(start - 5), to: days(start - 5 + length) };
        const found = balanceSteps({ state: EMPTY_STATE, postings }, range);
        assert.equal(found[0]?.at, range.from);
        found.forEach((step, index) => {
          const last = found[index - 1];
          assert(last === undefined || (last.at < step.at && last.balance !== step.balance));
        });
        const boundaries = postings.flatMap(({ createdAt, expiresAt }) => [createdAt, expiresAt]);
        for (const instant of [range.from, range.to, ...found.map(({ at }) => at), ...boundaries]) {
          for (const shift of [0, ...shifts]) {
            const at = instant + shift;
            if (at < range.from || at > range.to) continue;
            const before = postings.filter(({ createdAt }) => createdAt <= at);
            assert.equal(balanceAt(found, at), activeBalance(cyclesAt(applyAll(EMPTY_STATE, before), at), at));
          }
        }
      },
    ),
  );
});

test('the balance over a range is the same whichever earlier state it is computed from', () => {
  fc.assert(
    fc.property(histories, fc.nat({ max: 40 }), ({ postings, now }, split) => {
      const after = postings[split]?.createdAt ?? now;
      const state = applyAll(EMPTY_STATE, postings.slice(0, split));
      const range = { from: after, to: now + 9 * DAY_MS };
      const late = balanceSteps({ state, postings: postings.slice(split) }, range);
      assert.deepEqual(late, balanceSteps({ state: EMPTY_STATE, postings }, range));
    }),
  );
});
