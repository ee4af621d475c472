// Tests the balance at past and future instants. For a past instant, the history shows the balance that a read at that
// instant returned. For a future instant, it shows the balance that a read will return if no request arrives before
// then.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  add,
  capture,
  EVENTS_MAX,
  hold,
  MemoryLedger,
  NOW,
  oneTime,
  opening,
  recurring,
  refund,
  release,
  startCycle,
  stateOf,
  stopCycle,
  subtract,
} from '../../test/ledger/ledger-builders.ts';
import { histories } from '../../test/ledger/random-histories.ts';
import { applyAll } from './apply.ts';
import type { Command, Outcome } from './command.ts';
import { periodAfter } from './cycle.ts';
import { balanceAt, INTERVALS, type Interval, POINTS_MAX, pointsBetween } from './history.ts';
import { DAY_MS, HOUR_MS, INSTANT_MAX, type Instant, LAST_INSTANT, VALIDITY_DAYS_MAX } from './instant.ts';
import type { Posting } from './posting.ts';
import { settle } from './settle.ts';
import { EMPTY_STATE, type EndUserState } from './state.ts';

function days(count: number): Instant {
  return NOW + count * DAY_MS;
}

function stateAt(postings: readonly Posting[], at: Instant): EndUserState {
  return applyAll(
    EMPTY_STATE,
    postings.filter(({ createdAt }) => createdAt <= at),
  );
}

function past({ postings }: MemoryLedger, at: Instant): [balance: number, held: number] {
  const { balance, held } = balanceAt(stateAt(postings, at), at);
  return [balance, held];
}

function future({ state }: MemoryLedger, at: Instant): [balance: number, held: number] {
  const { balance, held } = balanceAt(state, at);
  return [balance, held];
}

function ledgerOf(...commands: readonly (readonly [day: number, command: (ledger: MemoryLedger) => Command])[]) {
  const ledger = new MemoryLedger();
  for (const [day, command] of commands) {
    ledger.now = days(day);
    assert.equal(ledger.run(command(ledger)).refused, null, `the command on day ${day} is accepted`);
  }
  return ledger;
}

const holdFor = (amount: number, expiresInDays: number) => () =>
  hold(amount, { expiresInSeconds: expiresInDays * 86_400 });
const latestHold = ({ holds }: MemoryLedger) => holds.at(-1)?.id as string;
const latestId = ({ postings }: MemoryLedger) => postings.at(-1)?.transactionId as string;

test('an end user without credits has a balance of zero at any instant', () => {
  for (const at of [0, NOW, INSTANT_MAX]) assert.deepEqual(balanceAt(EMPTY_STATE, at), { at, balance: 0, held: 0 });
});

type Expected = readonly [balance: number, held: number];

type Step = readonly [what: string, ledger: MemoryLedger, day: number, before: Expected, after: Expected];

const BOUGHT = [0, () => add(100, { validityDays: 10 })] as const;
const DAILY = [0, () => startCycle(50, { validityDays: 1 })] as const;

const BY_REQUEST: readonly Step[] = [
  ['an addition', ledgerOf(BOUGHT), 0, [0, 0], [100, 0]],
  ['a cycle start', ledgerOf(DAILY), 0, [0, 0], [50, 0]],
  ['a subtraction', ledgerOf(BOUGHT, [2, () => subtract(30)]), 2, [100, 0], [70, 0]],
  ['a hold', ledgerOf(BOUGHT, [2, holdFor(30, 1)]), 2, [100, 0], [70, 30]],
  ['a capture', ledgerOf(BOUGHT, [2, holdFor(30, 2)], [3, (l) => capture(latestHold(l), 20)]), 3, [70, 30], [80, 0]],
  ['a release', ledgerOf(BOUGHT, [2, holdFor(30, 2)], [3, (l) => release(latestHold(l))]), 3, [70, 30], [100, 0]],
  ['a refund', ledgerOf(BOUGHT, [2, () => subtract(30)], [3, (l) => refund(latestId(l), 10)]), 3, [70, 0], [80, 0]],
  [
    'a refund to an ended cycle',
    ledgerOf(BOUGHT, [2, () => subtract(30)], [10, (l) => refund(latestId(l), 10, { validityDays: 1 })]),
    10,
    [70, 0],
    [10, 0],
  ],
];

const BY_TIME: readonly Step[] = [
  ['the end of a cycle', ledgerOf(BOUGHT), 10, [100, 0], [0, 0]],
  ['the lapse of a hold', ledgerOf(BOUGHT, [2, holdFor(30, 3)]), 5, [70, 30], [100, 0]],
  ['the end of a cycle with held credits', ledgerOf(BOUGHT, [2, holdFor(30, 9)]), 10, [70, 30], [0, 30]],
  ['the lapse of a hold on an ended cycle', ledgerOf(BOUGHT, [2, holdFor(30, 9)]), 11, [0, 30], [0, 0]],
  ['the lapse of a hold when its cycle ends', ledgerOf(BOUGHT, [2, holdFor(30, 8)]), 10, [70, 30], [0, 0]],
  ['the renewal of a partly spent period', ledgerOf(DAILY, [0.5, () => subtract(20)]), 1, [30, 0], [50, 0]],
  ['the renewal of a period with held credits', ledgerOf(DAILY, [0.5, holdFor(20, 1)]), 1, [30, 20], [50, 20]],
  ['the lapse of a hold on an earlier period', ledgerOf(DAILY, [0.5, holdFor(20, 1)]), 1.5, [50, 20], [50, 0]],
  ['the lapse of a hold when its period is renewed', ledgerOf(DAILY, [0, holdFor(20, 1)]), 1, [30, 20], [50, 0]],
  ['the end of a canceled cycle', ledgerOf(DAILY, [0.5, () => stopCycle()]), 1, [50, 0], [0, 0]],
];

for (const [what, ledger, day, before, after] of BY_REQUEST) {
  test(`the historical balance changes at the instant of ${what}, and not a millisecond before`, () => {
    assert.deepEqual(past(ledger, days(day) - 1), before);
    assert.deepEqual(past(ledger, days(day)), after);
    assert.deepEqual(past(ledger, days(day) + 1), after);
  });
}

for (const [what, ledger, day, before, after] of BY_TIME) {
  test(`the predicted balance changes at ${what}, and not a millisecond before`, () => {
    assert(ledger.now < days(day), 'the change is in the future');
    assert.deepEqual(future(ledger, days(day) - 1), before);
    assert.deepEqual(future(ledger, days(day)), after);
    assert.deepEqual(future(ledger, days(day) + 1), after);
  });

  test(`twenty days later, the history shows that the balance changed at ${what}, and not a millisecond before`, () => {
    const stored = new MemoryLedger(days(day + 20));
    const { postings } = settle(ledger.state, stored.now, EVENTS_MAX);
    stored.postings.push(...ledger.postings, ...postings);
    assert.deepEqual(past(stored, days(day) - 1), before);
    assert.deepEqual(past(stored, days(day)), after);
    assert.deepEqual(past(stored, days(day) + 1), after);
  });
}

test('the balance can be computed for the last instant of the year 9999', () => {
  const endless = stateOf(oneTime({ validityDays: VALIDITY_DAYS_MAX }));
  assert.equal(balanceAt(endless, LAST_INSTANT).balance, 100);
  assert.equal(balanceAt(endless, INSTANT_MAX).balance, 0);
  const daily = stateOf(recurring({ validityDays: 1, remaining: 3 }));
  assert.equal(balanceAt(daily, LAST_INSTANT).balance, 100);
});

test('a stored renewal and a due renewal that is not stored yet give the same balance', () => {
  const cycle = recurring({ validityDays: 1, remaining: 3 });
  const renewed = applyAll(stateOf(cycle), [opening(periodAfter(cycle, 1))]);
  for (const at of [days(1), days(2) - 1, days(2), days(9)])
    assert.deepEqual(balanceAt(renewed, at), balanceAt(stateOf(cycle), at));
});

function sumOf(postings: readonly Posting[], at: Instant): [balance: number, held: number] {
  let [balance, held] = [0, 0];
  for (const { amount, held: change, expiresAt } of postings) {
    held += change;
    if (expiresAt > at) balance += amount - change;
  }
  return [balance, held];
}

const shifts = fc.oneof(fc.constantFrom(-1, 0, 0, 1), fc.integer({ min: -DAY_MS, max: DAY_MS }));

test('in random histories, the balance at any instant is the sum of all postings up to that instant, not counting expired credits', () => {
  fc.assert(
    fc.property(histories, fc.array(shifts, { minLength: 1, maxLength: 4 }), ({ postings, now }, offsets) => {
      const boundaries = postings.flatMap(({ createdAt, expiresAt, holdExpiresAt }) => [
        createdAt,
        Math.min(expiresAt, now + 9 * DAY_MS),
        holdExpiresAt ?? now,
      ]);
      for (const boundary of [...boundaries, now]) {
        for (const offset of offsets) {
          const at = boundary + offset;
          const state = stateAt(postings, at);
          const due = settle(state, at, EVENTS_MAX).postings;
          const expected = sumOf([...postings.filter(({ createdAt }) => createdAt <= at), ...due], at);
          const { balance, held } = balanceAt(state, at);
          assert.deepEqual([balance, held], expected);
        }
      }
    }),
  );
});

test('a balance computed for a future instant is the actual balance at that instant if no request follows', () => {
  fc.assert(
    fc.property(histories, fc.nat({ max: 9 * 24 }), fc.nat({ max: 9 * 24 }), (ledger, first, second) => {
      const [soon, later] = [ledger.now + first * HOUR_MS, ledger.now + (first + second) * HOUR_MS];
      const { state } = settle(ledger.state, soon, EVENTS_MAX);
      assert.deepEqual(balanceAt(state, later), balanceAt(ledger.state, later));
    }),
  );
});

test('at any instant, an end user can spend exactly the balance, and not one credit more', () => {
  fc.assert(
    fc.property(histories, (ledger) => {
      const { balance } = balanceAt(ledger.state, ledger.now);
      const tooMuch: Outcome = { refused: 'InsufficientFunds', requested: balance + 1, available: balance };
      assert.deepEqual(ledger.run(subtract(balance + 1)), tooMuch);
      if (balance > 0) assert.equal(ledger.run(subtract(balance)).refused, null);
      assert.equal(balanceAt(ledger.state, ledger.now).balance, 0);
    }),
  );
});

function pointTexts(from: string, to: string, interval: Interval): string[] | undefined {
  const points = pointsBetween(Date.parse(from), Date.parse(to), interval);
  return points?.map((at) => new Date(at).toISOString());
}

test('a history has a point at its start, and then one every hour, day or month', () => {
  assert.deepEqual(pointTexts('2026-01-15T09:30:00.123Z', '2026-01-15T12:00Z', 'hour'), [
    '2026-01-15T09:30:00.123Z',
    '2026-01-15T10:30:00.123Z',
    '2026-01-15T11:30:00.123Z',
  ]);
  assert.deepEqual(pointTexts('2028-02-27T09:30:00.123Z', '2028-03-02T00:00Z', 'day'), [
    '2028-02-27T09:30:00.123Z',
    '2028-02-28T09:30:00.123Z',
    '2028-02-29T09:30:00.123Z',
    '2028-03-01T09:30:00.123Z',
  ]);
  assert.deepEqual(pointTexts('2026-11-15T09:30:00.123Z', '2027-02-01T00:00Z', 'month'), [
    '2026-11-15T09:30:00.123Z',
    '2026-12-15T09:30:00.123Z',
    '2027-01-15T09:30:00.123Z',
  ]);
});

test('if a history starts on the 31st, its monthly points fall on the last day of each month and do not drift to earlier days', () => {
  assert.deepEqual(pointTexts('2027-12-31T12:00:00.000Z', '2028-06-01T00:00Z', 'month'), [
    '2027-12-31T12:00:00.000Z',
    '2028-01-31T12:00:00.000Z',
    '2028-02-29T12:00:00.000Z',
    '2028-03-31T12:00:00.000Z',
    '2028-04-30T12:00:00.000Z',
    '2028-05-31T12:00:00.000Z',
  ]);
});

const STEP_MS = { hour: HOUR_MS, day: DAY_MS } as const;

for (const interval of ['hour', 'day'] as const) {
  const step = STEP_MS[interval];
  test(`a history with interval=${interval} has a point at its end if its length is a whole number of ${interval}s`, () => {
    assert.deepEqual(pointsBetween(NOW, NOW + 2 * step - 1, interval), [NOW, NOW + step]);
    assert.deepEqual(pointsBetween(NOW, NOW + 2 * step, interval), [NOW, NOW + step, NOW + 2 * step]);
    assert.deepEqual(pointsBetween(NOW, NOW + 2 * step + 1, interval), [NOW, NOW + step, NOW + 2 * step]);
  });

  test(`a history with interval=${interval} can have ${POINTS_MAX} points, and not one more`, () => {
    const to = NOW + (POINTS_MAX - 1) * step;
    assert.equal(pointsBetween(NOW, to, interval)?.length, POINTS_MAX);
    assert.equal(pointsBetween(NOW, to + step - 1, interval)?.length, POINTS_MAX);
    assert.equal(pointsBetween(NOW, to + step, interval), null);
    assert.equal(pointsBetween(0, INSTANT_MAX, interval), null);
  });
}

test(`a history with interval=month can have ${POINTS_MAX} points, and not one more`, () => {
  const [from, last, next] = [Date.UTC(2026, 0, 31), Date.UTC(2026, 999, 30), Date.UTC(2026, 1_000, 31)] as const;
  assert.deepEqual([new Date(last), new Date(next)], [new Date('2109-04-30'), new Date('2109-05-31')]);
  assert.equal(pointsBetween(from, last, 'month')?.at(-1), last);
  assert.equal(pointsBetween(from, last, 'month')?.length, POINTS_MAX);
  assert.equal(pointsBetween(from, next - 1, 'month')?.length, POINTS_MAX);
  assert.equal(pointsBetween(from, next, 'month'), null);
});

for (const interval of INTERVALS) {
  test(`a history with interval=${interval} that covers a single instant has one point, even at the start of 1970 or the end of the year 9999`, () => {
    for (const at of [0, NOW, INSTANT_MAX]) assert.deepEqual(pointsBetween(at, at, interval), [at]);
  });

  test(`an assertion fails if a history with interval=${interval} ends before it begins, or after the year 9999`, () => {
    assert.throws(() => pointsBetween(NOW, NOW - 1, interval), { name: 'AssertionError' });
    assert.throws(() => pointsBetween(NOW, INSTANT_MAX + 1, interval), { name: 'AssertionError' });
  });
}
