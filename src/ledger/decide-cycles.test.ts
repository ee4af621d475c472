// Tests how recurring cycles are started, replaced and stopped.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type CycleChange,
  daysAgo,
  EVENTS_MAX,
  idAt,
  momentAt,
  NOW,
  oneTime,
  opening,
  recurring,
  startCycle,
  stateOf,
  stopCycle,
  stopping,
} from '../../test/ledger/ledger-builders.ts';
import { AMOUNT_MAX } from './amount.ts';
import { applyAll } from './apply.ts';
import type { Outcome, SeenCycle, StartCycle } from './command.ts';
import { type Cycle, periodAfter } from './cycle.ts';
import { decide } from './decide.ts';
import type { Decision } from './decision.ts';
import { DAY_MS, INSTANT_MAX, VALIDITY_DAYS_MAX } from './instant.ts';
import { settle } from './settle.ts';
import type { EndUserState } from './state.ts';

function cycle(days: number, change: CycleChange = {}): Cycle {
  return recurring({ start: daysAgo(days), remaining: 40, ...change });
}

function bought(days: number, change: CycleChange = {}): Cycle {
  return oneTime({ start: daysAgo(days), ...change });
}

function start(cycles: readonly Cycle[], change: Partial<StartCycle> = {}, now = NOW): Decision {
  return decide(stateOf(...cycles), startCycle(25, { validityDays: 7, ...change }), momentAt(now));
}

function stop(cycles: readonly Cycle[], now = NOW): Decision {
  return decide(stateOf(...cycles), stopCycle(), momentAt(now));
}

function cyclesAfter(cycles: readonly Cycle[], { postings }: Decision): readonly Cycle[] {
  return applyAll(stateOf(...cycles), postings).cycles;
}

function assertUnchanged(decision: Decision, outcome: object): void {
  assert.deepEqual(decision, { outcome, postings: [] });
}

function startedAs(cycle: Cycle): Outcome {
  return { refused: null, transactionId: cycle.id, cycle };
}

function stoppedAs(cycle: Cycle, transactionId: string | null = idAt(NOW)): Outcome {
  return { refused: null, transactionId, cycle };
}

const NOT_FOUND = { refused: 'CycleNotFound' };

type Row = readonly [what: string, cycles: readonly Cycle[], after: readonly Cycle[]];

function unchanged(what: string, cycle: Cycle): Row {
  return [what, [cycle], [cycle]];
}

const CANCELED = cycle(1, { status: 'canceled' });

const STARTABLE: readonly Row[] = [
  ['for an unknown end user', [], []],
  unchanged('in addition to added credits', bought(1)),
  ['before the end of a canceled cycle, which becomes superseded', [CANCELED], [{ ...CANCELED, status: 'superseded' }]],
  unchanged('before a superseded cycle ends', cycle(1, { status: 'superseded' })),
  unchanged('at the instant at which a canceled cycle ends', cycle(31, { status: 'canceled' })),
  unchanged('after a canceled cycle has ended', cycle(32, { status: 'canceled' })),
];

for (const onActive of ['refuse', 'replace'] as const) {
  for (const [what, cycles, after] of STARTABLE) {
    test(`a cycle can be started ${what} (onActive: ${onActive})`, () => {
      const started = recurring({ amount: 25, validityDays: 7 });
      const decision = start(cycles, { onActive });
      assert.deepEqual(decision, { outcome: startedAs(started), postings: [opening(started)] });
      assert.deepEqual(cyclesAfter(cycles, decision), [...after, started]);
    });
  }
}

test('a cycle with the maximum validity ends at the last instant of the year 9999', () => {
  const { outcome } = start([], { validityDays: VALIDITY_DAYS_MAX });
  assert(outcome.refused === null);
  assert.equal(outcome.cycle?.end, INSTANT_MAX);
});

test('starting a cycle while another is active is refused and changes nothing, and the outcome contains the active cycle', () => {
  const active = cycle(1);
  assertUnchanged(start([bought(3), active]), { refused: 'CycleAlreadyActive', cycle: active });
});

test('a cycle is still active a millisecond before its end', () => {
  const active = cycle(1);
  assert.equal(start([active], {}, active.end - 1).outcome.refused, 'CycleAlreadyActive');
});

test('while a cycle is active, starting another is refused with `CycleAlreadyActive`, even if the new cycle would also raise the balance above 2^53−1', () => {
  assert.equal(start([cycle(1)], { amount: AMOUNT_MAX }).outcome.refused, 'CycleAlreadyActive');
});

test('a replacement stops the active cycle and starts a new one, and the old credits remain until they expire', () => {
  const [added, old] = [bought(3), cycle(1)];
  const started = recurring({ amount: 25, validityDays: 7 }, 3);
  const decision = start([added, old], { onActive: 'replace', note: 'upgrade' });
  assert.deepEqual(decision.outcome, startedAs(started));
  assert.deepEqual(decision.postings, [
    { ...stopping(old, NOW, 2), note: 'upgrade' },
    { ...opening(started), note: 'upgrade' },
  ]);
  assert.deepEqual(cyclesAfter([added, old], decision), [added, { ...old, status: 'superseded' }, started]);
});

const SCHEDULED: Cycle = { ...cycle(1), next: { id: idAt(NOW, 8), plan: cycle(1).plan } };
const SEEN: readonly (readonly [what: string, active: Cycle, seen: SeenCycle | null, isRefused: boolean])[] = [
  ['that does not say which cycle the requester saw', cycle(1), null, false],
  ['of the cycle that the requester saw', cycle(1), { cycle: cycle(1).id, next: null }, false],
  ['of another cycle', cycle(1), { cycle: idAt(NOW, 9), next: null }, true],
  [
    'of a cycle with the scheduled plan that the requester saw',
    SCHEDULED,
    { cycle: SCHEDULED.id, next: idAt(NOW, 8) },
    false,
  ],
  ['of a cycle with another scheduled plan', SCHEDULED, { cycle: SCHEDULED.id, next: idAt(NOW, 9) }, true],
  ['of a cycle for which a plan was scheduled since', SCHEDULED, { cycle: SCHEDULED.id, next: null }, true],
  ['of a cycle whose scheduled plan was canceled since', cycle(1), { cycle: cycle(1).id, next: idAt(NOW, 8) }, true],
];

for (const [what, active, seen, isRefused] of SEEN) {
  test(`a replacement ${what} is ${isRefused ? 'refused' : 'accepted'}`, () => {
    const decision = start([active], { onActive: 'replace', seen });
    if (isRefused) assertUnchanged(decision, { refused: 'CycleAlreadyActive', cycle: active });
    else assert.equal(decision.outcome.refused, null);
  });
}

const ROOMS: readonly (readonly [why: string, cycles: readonly Cycle[], available: number])[] = [
  ['an unknown end user has room for 2^53−1', [], AMOUNT_MAX],
  ['credits that were added count', [bought(1, { amount: AMOUNT_MAX, remaining: AMOUNT_MAX - 5 })], 5],
  ['credits of a cycle that has ended do not count', [bought(31)], AMOUNT_MAX],
  ['the credits left in a replaced cycle count', [cycle(1)], AMOUNT_MAX - 40],
  ['a replaced cycle needs no room for a renewal', [cycle(1, { amount: AMOUNT_MAX, remaining: 3 })], AMOUNT_MAX - 3],
];

for (const [why, cycles, available] of ROOMS) {
  test(`starting a cycle can raise a balance to 2^53−1 and no higher: ${why}`, () => {
    const started = start(cycles, { amount: available, validityDays: 31, onActive: 'replace' });
    assert.equal(started.outcome.refused, null);
    if (available === AMOUNT_MAX) return;
    const requested = available + 1;
    const refused = start(cycles, { amount: requested, validityDays: 31, onActive: 'replace' });
    assertUnchanged(refused, { refused: 'BalanceTooLarge', requested, available });
  });
}

for (const amount of [0, -1, 0.5]) {
  test(`starting a cycle with ${amount} credits, which the API rejects, fails an assertion`, () => {
    assert.throws(() => start([], { amount }), { name: 'AssertionError' });
  });
}

test('a stop cancels the active cycle, does not change its credits, and makes a posting of 0 credits', () => {
  const [added, old] = [bought(3), cycle(1)];
  const decision = stop([added, old]);
  const canceled = { ...old, status: 'canceled' as const };
  assert.deepEqual(decision, { outcome: stoppedAs(canceled), postings: [stopping(old, NOW, 2)] });
  assert.deepEqual(cyclesAfter([added, old], decision), [added, canceled]);
});

test('a stop after a renewal cancels the cycle in its current period', () => {
  const running = periodAfter(cycle(40), 1);
  const { outcome, postings } = stop([running]);
  assert.deepEqual(outcome, stoppedAs({ ...running, status: 'canceled' as const }));
  assert.deepEqual(postings, [stopping(running, NOW, 2)]);
});

test('a stopped cycle does not renew', () => {
  const before = [cycle(1)];
  const state = stateOf(...cyclesAfter(before, stop(before)));
  assert.deepEqual(settle(state, NOW + 400 * DAY_MS, EVENTS_MAX).postings, []);
});

test('a repeated stop returns the same canceled cycle with its current remaining credits, and changes nothing', () => {
  const before = [cycle(1)];
  const first = stop(before);
  const after = cyclesAfter(before, first);
  assertUnchanged(stop(after), { ...first.outcome, transactionId: null });
  const spent = { ...(after[0] as Cycle), remaining: 3 };
  assertUnchanged(stop([spent]), stoppedAs(spent, null));
});

test('a repeated stop returns the canceled cycle until it ends, and is refused from then on', () => {
  const cycles = [CANCELED];
  assertUnchanged(stop(cycles, CANCELED.end - 1), stoppedAs(CANCELED, null));
  assertUnchanged(stop(cycles, CANCELED.end), NOT_FOUND);
  assertUnchanged(stop(cycles, CANCELED.end + 1), NOT_FOUND);
});

test('a cycle that lasts to the last instant of the year 9999 can be stopped before that instant, but not at that instant', () => {
  const cycles = [cycle(1, { validityDays: VALIDITY_DAYS_MAX })];
  assert.equal(stop(cycles, INSTANT_MAX - 1).outcome.refused, null);
  assertUnchanged(stop(cycles, INSTANT_MAX), NOT_FOUND);
});

const WITHOUT: readonly (readonly [what: string, cycles: readonly Cycle[]])[] = [
  ['an unknown end user', []],
  ['an end user with added credits only', [bought(1)]],
  ['an end user with a superseded cycle', [cycle(1, { status: 'superseded' })]],
];

for (const [what, cycles] of WITHOUT) {
  test(`${what} has no cycle to stop`, () => assertUnchanged(stop(cycles), NOT_FOUND));
}

test('a stop cancels the active cycle, not an older cycle that is superseded', () => {
  const old = cycle(3, { status: 'superseded', validityDays: 90 });
  const active = cycle(1);
  const decision = stop([old, active]);
  assert.deepEqual(decision.outcome, stoppedAs({ ...active, status: 'canceled' }));
  assert.deepEqual(cyclesAfter([old, active], decision), [old, { ...active, status: 'canceled' }]);
});

test('a repeated stop returns the cycle that was stopped last, and is refused once that cycle has ended, even if an older cycle has not ended yet', () => {
  let state: EndUserState = stateOf(cycle(3, { validityDays: 90 }));
  const run = (command: ReturnType<typeof startCycle | typeof stopCycle>, now: number, sequence: number) => {
    const { outcome, postings } = decide(state, command, momentAt(now, sequence));
    state = applyAll(state, postings);
    return outcome;
  };
  run(stopCycle(), NOW, 2);
  run(startCycle(25, { validityDays: 2 }), NOW, 3);
  run(stopCycle(), NOW, 4);
  const [older, newer] = state.cycles as [Cycle, Cycle];
  assert.deepEqual([older.status, newer.status], ['superseded', 'canceled']);
  assert.deepEqual(newer.id, idAt(NOW, 3));
  for (const now of [NOW, newer.end - 1]) assert.deepEqual(run(stopCycle(), now, 5), stoppedAs(newer, null));
  for (const now of [newer.end, older.end - 1]) assert.deepEqual(run(stopCycle(), now, 5), NOT_FOUND);
});

test('a repeated stop never returns a replaced cycle, even after the replacement has been stopped and has ended', () => {
  const old = cycle(1, { validityDays: 90 });
  const replaced = cyclesAfter([old], start([old], { onActive: 'replace' }));
  const stopped = applyAll(stateOf(...replaced), stop(replaced, NOW + 1).postings).cycles;
  const found = stop(stopped, NOW + 7 * DAY_MS - 1).outcome;
  assert(found.refused === null);
  assert.equal(found.cycle?.id, replaced[1]?.id);
  assertUnchanged(stop(stopped, NOW + 7 * DAY_MS), NOT_FOUND);
});
