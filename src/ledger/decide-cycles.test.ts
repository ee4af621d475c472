// Recurring cycles: started once, replaced in one step, stopped as often as one likes, and never two at a time.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AMOUNT_MAX } from './amount.ts';
import { ACCEPTED, type StartCycle } from './command.ts';
import type { Cycle } from './cycle.ts';
import { type Decision, decide } from './decide.ts';
import { DAY_MS, endOf, INSTANT_MAX, VALIDITY_DAYS_MAX } from './instant.ts';
import { transactionId } from './transaction-id.ts';

const NOW = Date.UTC(2026, 0, 15, 9, 30, 0, 123);
const USER = { account: 1, endUser: '5f0c6f7e-0000-4000-8000-000000000001', actor: 'key:7' };

function idAt(at: number, sequence: number): string {
  return transactionId({ at, sequence, tail: 'aaaaaaaaaaaa' });
}

function momentAt(now: number) {
  let sequence = 0;
  return { now, nextId: () => idAt(now, ++sequence) };
}

/** A recurring cycle in its first period, that started `daysAgo`. */
function cycle(daysAgo: number, change: Partial<Cycle> = {}): Cycle {
  const start = NOW - daysAgo * DAY_MS;
  const validityDays = change.validityDays ?? 31;
  return Object.freeze({
    id: idAt(start, 1),
    period: 0,
    type: 'recurring',
    status: 'active',
    amount: 100,
    remaining: 40,
    start,
    end: endOf(start, validityDays),
    validityDays,
    ...change,
  });
}

function start(cycles: readonly Cycle[], change: Partial<StartCycle> = {}, now = NOW): Decision {
  const command = { ...USER, kind: 'start-cycle', amount: 25, validityDays: 7, onActive: 'refuse', ...change } as const;
  return decide(Object.freeze(cycles), command, momentAt(now));
}

function stop(cycles: readonly Cycle[], now = NOW): Decision {
  return decide(Object.freeze(cycles), { ...USER, kind: 'stop-cycle' }, momentAt(now));
}

function assertUnchanged(decision: Decision, cycles: readonly Cycle[], outcome: object): void {
  assert.deepEqual(decision.outcome, outcome);
  assert.equal(decision.cycles, cycles);
  assert.deepEqual(decision.postings, []);
}

function assertStarted(decision: Decision, before: readonly Cycle[], id: string): void {
  const started = {
    id,
    period: 0,
    type: 'recurring',
    status: 'active',
    amount: 25,
    remaining: 25,
    start: NOW,
    end: NOW + 7 * DAY_MS,
    validityDays: 7,
  };
  assert.deepEqual(decision.outcome, { refused: null, cycle: started });
  assert.deepEqual(decision.cycles, [...before, started]);
  assert.deepEqual(decision.postings.at(-1), {
    transactionId: id,
    cycleId: id,
    period: 0,
    kind: 'start-cycle',
    amount: 25,
    createdAt: NOW,
    expiresAt: NOW + 7 * DAY_MS,
    actor: 'key:7',
    note: null,
  });
}

const STARTABLE: readonly (readonly [who: string, cycles: readonly Cycle[]])[] = [
  ['a new end user', []],
  ['who only has added credits', [cycle(1, { type: 'one-time' })]],
  ['who stopped a cycle that still runs', [cycle(1, { status: 'canceled' })]],
  ['whose canceled cycle ends now', [cycle(31, { status: 'canceled' })]],
  ['whose earlier periods are over', [cycle(62, { status: 'renewed' })]],
];

for (const onActive of ['refuse', 'replace'] as const) {
  for (const [who, cycles] of STARTABLE) {
    test(`${who} can start a cycle, beside what is there (on active: ${onActive})`, () => {
      const decision = start(cycles, { onActive });
      assertStarted(decision, cycles, idAt(NOW, 1));
      assert.equal(decision.postings.length, 1);
    });
  }
}

test('a cycle without end lasts to the last instant of the year 9999', () => {
  const { outcome } = start([], { validityDays: VALIDITY_DAYS_MAX });
  assert(outcome.refused === null);
  assert.equal(outcome.cycle?.end, INSTANT_MAX);
});

test('a cycle is not started while one is active: that one is shown, and nothing is changed', () => {
  const cycles = [cycle(3, { type: 'one-time' }), cycle(1)];
  assertUnchanged(start(cycles), cycles, { refused: 'CycleAlreadyActive', cycle: cycles[1] });
});

test('a cycle is active until a millisecond before its end', () => {
  const cycles = [cycle(1)];
  const end = cycles[0]?.end as number;
  assert.equal(start(cycles, {}, end - 1).outcome.refused, 'CycleAlreadyActive');
});

test('that a cycle is active is said before that the credits are too many', () => {
  const cycles = [cycle(1)];
  assert.equal(start(cycles, { amount: AMOUNT_MAX }).outcome.refused, 'CycleAlreadyActive');
});

test('an active cycle is replaced in one step: it is canceled, keeps its credits until its end, and the new one starts', () => {
  const [added, old] = [cycle(3, { type: 'one-time' }), cycle(1)] as const;
  const decision = start([added, old], { onActive: 'replace' });
  assertStarted(decision, [added, { ...old, status: 'canceled' }], idAt(NOW, 2));
  assert.deepEqual(decision.postings.slice(0, -1), [
    {
      transactionId: idAt(NOW, 1),
      cycleId: old.id,
      period: 0,
      kind: 'stop-cycle',
      amount: 0,
      createdAt: NOW,
      expiresAt: old.end,
      actor: 'key:7',
      note: null,
    },
  ]);
});

/** Each row is refused at `available + 1`, with nothing changed, and accepted at `available`. */
const ROOMS: readonly (readonly [why: string, cycles: readonly Cycle[], available: number])[] = [
  ['who has nothing may start with all there is', [], AMOUNT_MAX],
  ['what one has counts', [cycle(1, { type: 'one-time', amount: AMOUNT_MAX, remaining: AMOUNT_MAX - 5 })], 5],
  ['what has ended does not count', [cycle(31, { type: 'one-time' })], AMOUNT_MAX],
  ['what is left of a replaced cycle counts', [cycle(1)], AMOUNT_MAX - 40],
  ['a replaced cycle needs no room for a renewal', [cycle(1, { amount: AMOUNT_MAX, remaining: 3 })], AMOUNT_MAX - 3],
];

for (const [why, cycles, available] of ROOMS) {
  test(`a start may take an end user to 2^53−1 and no further: ${why}`, () => {
    const started = start(cycles, { amount: available, validityDays: 31, onActive: 'replace' });
    assert.equal(started.outcome.refused, null);
    if (available === AMOUNT_MAX) return;
    const requested = available + 1;
    const refusal = { refused: 'BalanceTooLarge', requested, available };
    assertUnchanged(start(cycles, { amount: requested, validityDays: 31, onActive: 'replace' }), cycles, refusal);
  });
}

test('a replacement that is too large leaves the old cycle active', () => {
  const cycles = [cycle(1)];
  assert.equal(start(cycles, { amount: AMOUNT_MAX, onActive: 'replace' }).outcome.refused, 'BalanceTooLarge');
  assert.equal(start(cycles).outcome.refused, 'CycleAlreadyActive');
});

test('a stop cancels the active cycle, leaves its credits, and is kept as a posting of no credits', () => {
  const [added, old] = [cycle(3, { type: 'one-time' }), cycle(1, { period: 0 })] as const;
  const { outcome, cycles, postings } = stop([added, old]);
  const canceled = { ...old, status: 'canceled' };
  assert.deepEqual(outcome, { refused: null, cycle: canceled });
  assert.deepEqual(cycles, [added, canceled]);
  assert.deepEqual(postings, [
    {
      transactionId: idAt(NOW, 1),
      cycleId: old.id,
      period: 0,
      kind: 'stop-cycle',
      amount: 0,
      createdAt: NOW,
      expiresAt: old.end,
      actor: 'key:7',
      note: null,
    },
  ]);
});

test('a stop cancels the period that runs, not those before it', () => {
  const [before, running] = [cycle(40, { status: 'renewed' }), cycle(40, { period: 1, start: NOW - 9 * DAY_MS })];
  const { cycles, postings } = stop([before, { ...running, end: NOW + 22 * DAY_MS } as Cycle]);
  assert.deepEqual(
    cycles.map(({ period, status }) => [period, status]),
    [
      [0, 'renewed'],
      [1, 'canceled'],
    ],
  );
  assert.equal(postings[0]?.period, 1);
});

test('stopping twice answers the same canceled cycle, and changes nothing', () => {
  const first = stop([cycle(1)]);
  assertUnchanged(stop(first.cycles), first.cycles, first.outcome);
});

test('a canceled cycle is the current one until its end, and then there is none', () => {
  const canceled = cycle(1, { status: 'canceled' });
  const cycles = [canceled];
  assertUnchanged(stop(cycles, canceled.end - 1), cycles, { refused: null, cycle: canceled });
  assertUnchanged(stop(cycles, canceled.end), cycles, { refused: 'CycleNotFound' });
  assertUnchanged(stop(cycles, canceled.end + 1), cycles, { refused: 'CycleNotFound' });
});

test('a cycle that ran to the last instant of the year 9999 is over there, and is not stopped', () => {
  const cycles = [cycle(1, { validityDays: VALIDITY_DAYS_MAX })];
  assert.equal(stop(cycles, INSTANT_MAX - 1).outcome.refused, null);
  assertUnchanged(stop(cycles, INSTANT_MAX), cycles, { refused: 'CycleNotFound' });
});

const WITHOUT: readonly (readonly [who: string, cycles: readonly Cycle[]])[] = [
  ['a new end user', []],
  ['who only has added credits', [cycle(1, { type: 'one-time' })]],
  ['whose periods are all over', [cycle(62, { status: 'renewed' })]],
];

for (const [who, cycles] of WITHOUT) {
  test(`${who} has no cycle to stop`, () => assertUnchanged(stop(cycles), cycles, { refused: 'CycleNotFound' }));
}

test('the active cycle is stopped, not the canceled one beside it', () => {
  const { cycles } = stop([cycle(3, { status: 'canceled' }), cycle(1)]);
  assert.deepEqual(
    cycles.map(({ start, status }) => [start, status]),
    [
      [NOW - 3 * DAY_MS, 'canceled'],
      [NOW - DAY_MS, 'canceled'],
    ],
  );
});

test('of two canceled cycles the one started last is the current one, until it ends and the older still runs', () => {
  const older = cycle(3, { status: 'canceled', validityDays: 90 });
  const newer = cycle(1, { status: 'canceled', validityDays: 2 });
  const cycles = [older, newer];
  assertUnchanged(stop(cycles), cycles, { refused: null, cycle: newer });
  assertUnchanged(stop(cycles, newer.end - 1), cycles, { refused: null, cycle: newer });
  assertUnchanged(stop(cycles, newer.end), cycles, { refused: null, cycle: older });
  assertUnchanged(stop(cycles, older.end), cycles, { refused: 'CycleNotFound' });
});

test('a renewal clock that comes by finds nothing to decide', () => {
  const cycles = [cycle(1)];
  const { account, endUser } = USER;
  assertUnchanged(decide(cycles, { kind: 'renew', account, endUser }, momentAt(NOW)), cycles, ACCEPTED);
});
