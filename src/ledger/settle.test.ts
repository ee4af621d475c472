// What time alone does: renewals at the boundary, all of them after however long, and the same for who writes and reads.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { burnOrder, type Cycle, hasEnded } from './cycle.ts';
import { DAY_MS, endOf, INSTANT_MAX } from './instant.ts';
import { type Posting, transactionOf } from './posting.ts';
import { cyclesAt, renewalsDue, renewalsDueCount, settle } from './settle.ts';
import { renewalId, transactionId } from './transaction-id.ts';

const START = Date.UTC(2026, 0, 15, 9, 30, 0, 123);
const END = START + 31 * DAY_MS;
const ID = idAt(START);
const ALL = 100_000;

function idAt(at: number, sequence = 1): string {
  return transactionId({ at, sequence, tail: sequence.toString(16).padStart(12, 'a') });
}

/** A recurring cycle of 31 days in its first period, of which 60 credits are spent. */
function monthly(change: Partial<Cycle> = {}): Cycle {
  return frozen({
    id: ID,
    period: 0,
    type: 'recurring',
    status: 'active',
    amount: 100,
    remaining: 40,
    start: START,
    end: END,
    validityDays: 31,
    ...change,
  });
}

function oneTime(start: number, validityDays: number, sequence = 2): Cycle {
  const id = idAt(start, sequence);
  const end = endOf(start, validityDays);
  return monthly({ id, type: 'one-time', amount: 10, remaining: 10, start, end, validityDays });
}

/** Rules change nothing that they are given. */
function frozen<Value extends object>(value: Value): Readonly<Value> {
  return Object.freeze(value);
}

test('nothing happens a millisecond before the end of a period', () => {
  const cycles = frozen([monthly()]);
  const settled = settle(cycles, END - 1, ALL);
  assert.equal(settled.cycles, cycles);
  assert.deepEqual(settled.postings, []);
  assert.equal(settled.missed, 0);
});

for (const late of [0, 1, 31 * DAY_MS - 1]) {
  test(`a cycle settled ${late} ms after its end was renewed at its end, full`, () => {
    const { cycles, postings, missed } = settle(frozen([monthly()]), END + late, ALL);
    const next = monthly({ period: 1, remaining: 100, start: END, end: END + 31 * DAY_MS });
    assert.deepEqual(cycles, [monthly({ status: 'renewed' }), next]);
    assert.deepEqual(postings, [
      {
        transactionId: renewalId(ID, END),
        cycleId: ID,
        period: 1,
        kind: 'renew',
        amount: 100,
        createdAt: END,
        expiresAt: END + 31 * DAY_MS,
        actor: 'renewal',
        note: null,
      },
    ]);
    assert.equal(missed, 1);
  });
}

test('what was left of a period is not carried over', () => {
  const [before, after] = settle([monthly({ remaining: 99 })], END, ALL).cycles;
  assert.equal(before?.remaining, 99);
  assert.equal(after?.remaining, 100);
});

test('each missed period is there, with its own start, end and transaction', () => {
  const { cycles, postings, missed } = settle([monthly()], END + 62 * DAY_MS, ALL);
  assert.equal(missed, 3);
  assert.deepEqual(
    cycles.map(({ period, status, remaining, start, end }) => ({ period, status, remaining, start, end })),
    [
      { period: 0, status: 'renewed', remaining: 40, start: START, end: END },
      { period: 1, status: 'renewed', remaining: 100, start: END, end: END + 31 * DAY_MS },
      { period: 2, status: 'renewed', remaining: 100, start: END + 31 * DAY_MS, end: END + 62 * DAY_MS },
      { period: 3, status: 'active', remaining: 100, start: END + 62 * DAY_MS, end: END + 93 * DAY_MS },
    ],
  );
  assert.deepEqual(
    postings.map(({ createdAt }) => createdAt),
    [END, END + 31 * DAY_MS, END + 62 * DAY_MS],
  );
});

test('ten years of daily periods are entered in one go, and abut', () => {
  const start = Date.UTC(2016, 0, 1);
  const daily = monthly({ id: idAt(start), start, end: start + DAY_MS, validityDays: 1 });
  const { cycles, postings } = settle([daily], Date.UTC(2026, 0, 1), ALL);
  assert.equal(postings.length, 3653);
  assert.equal(cycles.length, 3654);
  cycles.forEach((cycle, index) => {
    assert.equal(cycle.period, index);
    assert.equal(cycle.start, start + index * DAY_MS);
    assert.equal(cycle.end, start + (index + 1) * DAY_MS);
    assert.equal(cycle.status, index === 3653 ? 'active' : 'renewed');
  });
});

test('at most so many periods are entered at once, the oldest first, and the rest stays due', () => {
  const now = END + 4 * 31 * DAY_MS;
  const first = settle([monthly()], now, 2);
  assert.equal(first.missed, 5);
  assert.deepEqual(
    first.cycles.map(({ period, status }) => [period, status]),
    [
      [0, 'renewed'],
      [1, 'renewed'],
      [2, 'active'],
    ],
  );
  assert.equal(renewalsDueCount(first.cycles, now), 3);
  const none = settle(first.cycles, now, 0);
  assert.equal(none.cycles, first.cycles);
  assert.deepEqual(none.postings, []);
  assert.equal(none.missed, 3);
  const rest = settle(first.cycles, now, 3);
  assert.equal(rest.postings.length, rest.missed);
  assert.equal(renewalsDueCount(rest.cycles, now), 0);
});

const AT_REST: readonly (readonly [what: string, cycle: Cycle])[] = [
  ['a one-time cycle', oneTime(START, 31)],
  ['a canceled cycle', monthly({ status: 'canceled' })],
  ['a period that was renewed before', monthly({ status: 'renewed' })],
];

for (const [what, cycle] of AT_REST) {
  test(`${what} is over at its end, and nothing follows`, () => {
    for (const now of [END - 1, END, END + 1, END + 1_000 * DAY_MS]) {
      const cycles = [cycle];
      assert.equal(settle(cycles, now, ALL).cycles, cycles);
      assert.deepEqual(cyclesAt(cycles, now), now < END ? cycles : []);
      assert.deepEqual([...renewalsDue(cycles, now)], []);
    }
  });
}

test('the last period ends at the last instant of the year 9999, and does not renew there', () => {
  const start = INSTANT_MAX - 40 * DAY_MS;
  const cycle = monthly({ id: idAt(start), start, end: start + 31 * DAY_MS });
  const { cycles, postings } = settle([cycle], INSTANT_MAX - 1, ALL);
  assert.equal(postings.length, 1);
  assert.equal(postings[0]?.expiresAt, INSTANT_MAX);
  assert.deepEqual(cyclesAt([cycle], INSTANT_MAX - 1), cycles.slice(1));
  assert.deepEqual(settle(cycles, INSTANT_MAX, ALL).postings, []);
  assert.deepEqual(cyclesAt(cycles, INSTANT_MAX), []);
});

test('a new period takes the last place, and every other cycle keeps its own', () => {
  const [before, after] = [oneTime(START - DAY_MS, 90), oneTime(START + DAY_MS, 90)];
  const { cycles } = settle(frozen([before, monthly(), after]), END, ALL);
  assert.equal(cycles[0], before);
  assert.deepEqual([cycles[1]?.period, cycles[1]?.status], [0, 'renewed']);
  assert.equal(cycles[2], after);
  assert.deepEqual([cycles[3]?.period, cycles[3]?.status], [1, 'active']);
});

test('a reader sees cycles in the order in which they are spent, a renewed one after what came before its renewal', () => {
  const [before, after] = [oneTime(START - DAY_MS, 90), oneTime(START + DAY_MS, 90)];
  const order = (now: number) => cyclesAt(frozen([before, monthly(), after]), now).map(({ start }) => start);
  assert.deepEqual(order(END - 1), [before.start, START, after.start]);
  assert.deepEqual(order(END), [before.start, after.start, END]);
});

test('renewals that are due are listed latest first', () => {
  const now = END + 31 * DAY_MS;
  assert.deepEqual(
    [...renewalsDue([monthly()], now)],
    [
      {
        id: renewalId(ID, END + 31 * DAY_MS),
        kind: 'renew',
        amount: 100,
        createdAt: END + 31 * DAY_MS,
        expiresAt: END + 62 * DAY_MS,
        actor: 'renewal',
      },
      {
        id: renewalId(ID, END),
        kind: 'renew',
        amount: 100,
        createdAt: END,
        expiresAt: END + 31 * DAY_MS,
        actor: 'renewal',
      },
    ],
  );
  assert.deepEqual([...renewalsDue([monthly()], END - 1)], []);
  assert.deepEqual([...renewalsDue([], END)], []);
  assert.equal(renewalsDueCount([], END), 0);
});

/** Cycles as a store loads them, and an instant that is likely to be a boundary. */
const loaded = fc
  .record({
    validityDays: fc.integer({ min: 1, max: 5 }),
    others: fc.array(fc.record({ hour: fc.integer({ min: -200, max: 23 }), days: fc.integer({ min: 9, max: 40 }) }), {
      maxLength: 4,
    }),
    isRecurring: fc.boolean(),
    hours: fc.integer({ min: 0, max: 24 * 60 }),
    offset: fc.constantFrom(-1, 0, 0, 1),
  })
  .map(({ validityDays, others, isRecurring, hours, offset }) => {
    const end = START + validityDays * DAY_MS;
    const cycles = others.map(({ hour, days }, index) => oneTime(START + hour * 3_600_000, days, index + 2));
    if (isRecurring) cycles.push(monthly({ end, validityDays }));
    const now = START + Math.floor(hours / 12) * (DAY_MS / 2) + offset;
    return { cycles: frozen(cycles.sort(burnOrder)), now: Math.max(now, START + DAY_MS - 1) };
  });

test('to settle twice is to settle once', () => {
  fc.assert(
    fc.property(loaded, ({ cycles, now }) => {
      const once = settle(cycles, now, ALL);
      const twice = settle(once.cycles, now, ALL);
      assert.equal(twice.cycles, once.cycles);
      assert.deepEqual(twice.postings, []);
      assert.deepEqual(settle(cycles, now, ALL), once, 'and the same when it is done again from the start');
    }),
  );
});

test('to settle now and later is to settle later', () => {
  fc.assert(
    fc.property(loaded, fc.integer({ min: 0, max: 20 }), ({ cycles, now }, days) => {
      const first = settle(cycles, now, ALL);
      const second = settle(first.cycles, now + days * DAY_MS, ALL);
      const whole = settle(cycles, now + days * DAY_MS, ALL);
      assert.deepEqual(second.cycles, whole.cycles);
      assert.deepEqual([...first.postings, ...second.postings], whole.postings);
    }),
  );
});

test('to settle a few periods at a time is to settle them all at once', () => {
  fc.assert(
    fc.property(loaded, fc.integer({ min: 1, max: 7 }), ({ cycles, now }, periodsMax) => {
      const postings: Posting[] = [];
      let step = settle(cycles, now, periodsMax);
      for (; step.missed > step.postings.length; step = settle(step.cycles, now, periodsMax)) {
        assert.equal(step.postings.length, periodsMax);
        postings.push(...step.postings);
      }
      const whole = settle(cycles, now, ALL);
      assert.deepEqual([...postings, ...step.postings], whole.postings);
      assert.deepEqual(step.cycles, whole.cycles);
    }),
  );
});

test('a reader sees before a renewal is stored what it sees afterwards', () => {
  fc.assert(
    fc.property(loaded, ({ cycles, now }) => {
      const { cycles: stored, postings, missed } = settle(cycles, now, ALL);
      const current = stored.filter((cycle) => !hasEnded(cycle, now)).sort(burnOrder);
      assert.deepEqual(cyclesAt(cycles, now), current);
      assert.deepEqual(cyclesAt(stored, now), current);
      assert.deepEqual(
        [...renewalsDue(cycles, now)].reverse(),
        postings.map((posting) => transactionOf([posting])),
      );
      assert.deepEqual([...renewalsDue(stored, now)], []);
      assert.equal(renewalsDueCount(cycles, now), missed);
    }),
  );
});
