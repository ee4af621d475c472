// Tests that scheduled plans begin at the end of the current period. Some tests send every sequence of three requests,
// with each request just before, at or just after the end of a period.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ACTOR,
  add,
  capture,
  EVENTS_MAX,
  findingsOf,
  hold,
  idAt,
  MemoryLedger,
  NOW,
  settling,
  startCycle,
  stateOf,
  stopCycle,
  subtract,
} from '../../test/ledger/ledger-builders.ts';
import { cyclesAt } from './balance.ts';
import type { Command, StartCycle } from './command.ts';
import { type Cycle, hasEnded, isActiveRecurring } from './cycle.ts';
import { balanceAt } from './history.ts';
import { DAY_MS, type Instant, VALIDITY_DAYS_MAX } from './instant.ts';
import { endOf, type Plan, planText } from './plan.ts';
import { dueCount, dueRenewals, dueTransactions, settle } from './settle.ts';
import { renewalId } from './transaction-id.ts';

const END = NOW + DAY_MS;

function assertSound({ cycles, holds, postings, now }: MemoryLedger): void {
  assert.deepEqual(findingsOf({ cycles, holds, postings, now }), []);
}

function later(amount: number, change: Partial<StartCycle> = {}): StartCycle {
  return startCycle(amount, { validityDays: 3, onActive: 'at_period_end', ...change });
}

function withDaily(): MemoryLedger {
  const ledger = new MemoryLedger();
  ledger.accept(startCycle(100, { validityDays: 1 }));
  return ledger;
}

test('a scheduled plan changes nothing before the end of the period, and begins as a new cycle when the period ends', () => {
  const ledger = withDaily();
  ledger.accept(subtract(30));
  const [daily] = ledger.cycles as [Cycle];
  const scheduled = ledger.accept(later(1_000));
  const id = scheduled.transactionId as string;
  const plan: Plan = { amount: 1_000, validityDays: 3, validityMonths: null, rolloverMax: 0 };
  assert.deepEqual(scheduled.cycle, { ...daily, next: { id, plan } }, 'the outcome contains the current cycle');
  assert.deepEqual(cyclesAt(ledger.state, END - 1), [{ ...daily, next: { id, plan } }]);
  const start = { period: 0, type: 'recurring', status: 'active', held: 0, start: END, plan, next: null } as const;
  const expected: Cycle = { ...start, id: renewalId(id, END), amount: 1_000, remaining: 1_000, end: END + 3 * DAY_MS };
  assert.deepEqual(cyclesAt(ledger.state, END), [expected]);
  ledger.now = END;
  ledger.accept(settling());
  assert.deepEqual(ledger.cycles, [{ ...daily, status: 'superseded' }, expected]);
  assert.deepEqual(ledger.postings.at(-1), {
    transactionId: expected.id,
    cycleId: expected.id,
    period: 0,
    kind: 'change-plan',
    amount: 1_000,
    held: 0,
    createdAt: END,
    expiresAt: END + 3 * DAY_MS,
    actor: 'change',
    note: null,
    terms: { type: 'recurring', plan },
    reference: id,
    holdExpiresAt: null,
  });
  assertSound(ledger);
});

test('the posting that schedules a plan moves no credits, and has the actor and the note of the request', () => {
  const ledger = withDaily();
  const transactionId = ledger.transact(later(7, { note: 'downgrade' }));
  assert.deepEqual(ledger.find(transactionId), [
    {
      transactionId,
      cycleId: ledger.cycles[0]?.id,
      period: 0,
      kind: 'schedule-plan',
      amount: 0,
      held: 0,
      createdAt: NOW,
      expiresAt: END,
      actor: ACTOR,
      note: 'downgrade',
      terms: {
        type: 'recurring',
        plan: { amount: 7, validityDays: 3, validityMonths: null, rolloverMax: 0 },
      },
      reference: null,
      holdExpiresAt: null,
    },
  ]);
});

test('after a change of plan, the new plan renews with its own length and credits', () => {
  const ledger = withDaily();
  ledger.accept(later(1_000, { validityDays: null, validityMonths: 1, rolloverMax: 5 }));
  const start = new Date(END);
  const renewal = Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, start.getUTCDate(), 9, 30, 0, 123);
  for (const [at, balance] of [
    [END, 1_000],
    [renewal - 1, 1_000],
    [renewal, 1_005],
  ] as const)
    assert.equal(balanceAt(ledger.state, at).balance, balance);
});

test('a plan that is scheduled when no cycle is active begins immediately', () => {
  const ledger = new MemoryLedger();
  const { cycle } = ledger.accept(later(7));
  assert.deepEqual([cycle?.start, cycle?.next, ledger.postings[0]?.kind], [NOW, null, 'start-cycle']);
  const stopped = withDaily();
  stopped.accept(stopCycle());
  assert.equal(stopped.accept(later(7)).cycle?.start, NOW);
  assert.equal(
    balanceAt(stopped.state, NOW).balance,
    107,
    'in addition to the remaining credits of the canceled cycle',
  );
  assertSound(stopped);
});

test('no plan can be scheduled to follow a cycle that never renews', () => {
  const ledger = new MemoryLedger();
  ledger.accept(startCycle(100, { validityDays: VALIDITY_DAYS_MAX }));
  const [cycle] = ledger.cycles;
  assert.deepEqual(ledger.run(later(7)), { refused: 'CycleAlreadyActive', cycle });
});

test('a stop cancels the scheduled plan, and the outcome shows the canceled cycle without that plan', () => {
  const ledger = withDaily();
  ledger.accept(later(7));
  const [{ id }] = ledger.cycles as [Cycle];
  const { cycle } = ledger.accept(stopCycle());
  assert.deepEqual([cycle?.id, cycle?.status, cycle?.next], [id, 'canceled', null]);
  assert.deepEqual(ledger.cycles, [cycle]);
  assert.equal(balanceAt(ledger.state, END).balance, 0);
  assertSound(ledger);
});

test('a plan that is scheduled at the end of a period begins at the end of the next period', () => {
  const ledger = withDaily();
  ledger.now = END;
  const { cycle } = ledger.accept(later(7));
  assert.deepEqual([cycle?.period, cycle?.end], [1, END + DAY_MS]);
  assert.equal(balanceAt(ledger.state, END + DAY_MS - 1).balance, 100);
  assert.equal(balanceAt(ledger.state, END + DAY_MS).balance, 7);
});

test('credits of the old plan can be held before a change of plan, and captured after it', () => {
  const ledger = withDaily();
  const transactionId = ledger.transact(hold(60, { expiresInSeconds: 2 * 86_400 }));
  ledger.accept(later(7));
  ledger.now = END;
  assert.deepEqual(balanceAt(ledger.state, END), { at: END, balance: 7, held: 60 });
  ledger.accept(capture(transactionId, 65));
  assert.deepEqual(balanceAt(ledger.state, END), { at: END, balance: 2, held: 0 });
  assertSound(ledger);
});

test('added credits can still be spent after a change of plan', () => {
  const ledger = withDaily();
  ledger.accept(add(9, { validityDays: 9 }));
  ledger.accept(later(7));
  assert.equal(balanceAt(ledger.state, END).balance, 16);
});

test('a stop after a change of plan stops the new cycle, never the old cycle', () => {
  const ledger = withDaily();
  ledger.accept(later(7));
  ledger.now = END;
  const { cycle } = ledger.accept(stopCycle());
  assert.equal(cycle?.start, END);
  assert.deepEqual(
    ledger.cycles.map(({ status }) => status),
    ['superseded', 'canceled'],
  );
  ledger.now = END + 3 * DAY_MS;
  assert.deepEqual(ledger.run(stopCycle()), { refused: 'CycleNotFound' });
  assertSound(ledger);
});

for (const days of [1, 2, 4, 7, 8, 3_000]) {
  test(`after ${days} days of downtime, settling a change of plan and the later renewals together gives the same result as settling them one by one`, () => {
    const ledger = withDaily();
    ledger.accept(later(10, { rolloverMax: 15 }));
    const { state } = ledger;
    for (const now of [NOW + days * DAY_MS - 1, NOW + days * DAY_MS]) {
      const whole = settle(state, now, EVENTS_MAX);
      let current = state;
      for (const [index, posting] of whole.postings.entries()) {
        const step = settle(current, now, 1);
        assert.deepEqual([step.postings, step.isComplete], [[posting], index === whole.postings.length - 1]);
        current = step.state;
        assert.deepEqual(cyclesAt(current, now), cyclesAt(state, now));
        assert.equal(dueCount(current, now), whole.postings.length - index - 1);
      }
      assert.deepEqual(current, whole.state);
      assert.deepEqual(
        cyclesAt(state, now),
        whole.state.cycles.filter((cycle) => !hasEnded(cycle, now)),
      );
      assert.deepEqual([...dueRenewals(state, now)].reverse(), whole.postings);
      assert.equal(dueCount(state, now), whole.postings.length);
      assert.equal([...dueTransactions(state, now)].length, whole.postings.length);
      assert.equal(whole.postings.length, now < END ? 0 : 1 + Math.floor((now - END) / (3 * DAY_MS)));
      assert.equal(whole.postings[0]?.kind ?? 'change-plan', 'change-plan');
    }
  });
}

interface Expected {
  readonly plan: Plan;
  readonly created: Instant;
  readonly period: number;
  readonly next: Plan | null;
}

function planOf({ amount, validityDays, validityMonths = null, rolloverMax = 0 }: StartCycle): Plan {
  return { amount, validityDays, validityMonths, rolloverMax };
}

const started = (plan: Plan, created: Instant): Expected => ({ plan, created, period: 0, next: null });

function atInstant(active: Expected | null, now: Instant): Expected | null {
  if (active === null) return null;
  const end = endOf(active.created, active.plan, active.period + 1);
  if (now < end) return active;
  const following = active.next === null ? { ...active, period: active.period + 1 } : started(active.next, end);
  return atInstant(following, now);
}

function afterCommand(active: Expected | null, command: Command, now: Instant): Expected | null {
  if (command.kind === 'stop-cycle') return null;
  assert(command.kind === 'start-cycle');
  const plan = planOf(command);
  if (active === null || command.onActive === 'replace') return started(plan, now);
  return command.onActive === 'refuse' ? active : { ...active, next: plan };
}

function describe(active: Expected | null): unknown {
  if (active === null) return null;
  const { plan, created, period, next } = active;
  const [start, end] = [endOf(created, plan, period), endOf(created, plan, period + 1)];
  return { plan: planText(plan), period, start, end, next: next && planText(next) };
}

function activeOf(cycles: readonly Cycle[]): unknown {
  const active = cycles.filter(isActiveRecurring);
  assert(active.length <= 1);
  const [cycle] = active;
  if (cycle === undefined) return null;
  const { plan, period, start, end, next } = cycle;
  return { plan: planText(plan), period, start, end, next: next && planText(next.plan) };
}

const COMMANDS: readonly (readonly [name: string, command: Command])[] = [
  ['schedule a plan', later(7)],
  ['schedule another plan', later(8, { validityDays: null, validityMonths: 1, rolloverMax: 2 })],
  ['replace the cycle', startCycle(9, { validityDays: 2, onActive: 'replace' })],
  ['start a cycle', startCycle(11, { validityDays: 1 })],
  ['stop the cycle', stopCycle()],
];

const TIMES: readonly Instant[] = [END - 1, END, END + 1];

const SCHEDULES = TIMES.flatMap((first) =>
  TIMES.filter((second) => second >= first).flatMap((second) =>
    TIMES.filter((third) => third >= second).map((third) => [first, second, third] as const),
  ),
);

for (const [first, one] of COMMANDS) {
  for (const [second, two] of COMMANDS) {
    test(`if a request to ${first} is followed by a request to ${second} and then by any third request, each request has its documented effect, whether it arrives just before, at or just after the end of a period`, () => {
      for (const [third, three] of COMMANDS) for (const times of SCHEDULES) check([one, two, three], times, third);
    });
  }
}

function check(commands: readonly Command[], times: readonly Instant[], third: string): void {
  const ledger = withDaily();
  let expected: Expected | null = {
    plan: { amount: 100, validityDays: 1, validityMonths: null, rolloverMax: 0 },
    created: NOW,
    period: 0,
    next: null,
  };
  const what = `${third} at ${times.map((at) => at - END).join(', ')}`;
  for (const [index, command] of commands.entries()) {
    const now = times[index] as Instant;
    ledger.now = now;
    const before = atInstant(expected, now);
    const { refused } = ledger.run(command);
    expected = afterCommand(before, command, now);
    if (command.kind === 'start-cycle') {
      const isRefused = before !== null && command.onActive === 'refuse';
      assert.equal(refused, isRefused ? 'CycleAlreadyActive' : null, what);
    }
    // Even a refused request stores the due events.
    assert.deepEqual(activeOf(ledger.cycles), describe(expected), what);
    assertSound(ledger);
  }
  for (const now of [ledger.now, END, END + DAY_MS - 1, END + DAY_MS, END + 2 * DAY_MS, END + 40 * DAY_MS]) {
    if (now < ledger.now) continue;
    assert.deepEqual(activeOf(cyclesAt(ledger.state, now)), describe(atInstant(expected, now)), what);
    ledger.now = now;
    ledger.accept(settling());
    assert.deepEqual(activeOf(ledger.cycles), describe(atInstant(expected, now)), what);
  }
  assertSound(ledger);
}

test('a scheduled plan never begins if a later one replaces it', () => {
  const ledger = withDaily();
  for (const amount of [1, 2, 3]) ledger.accept(later(amount));
  ledger.now = END + 30 * DAY_MS;
  ledger.accept(settling());
  const changes = ledger.postings.filter(({ kind }) => kind === 'change-plan');
  assert.deepEqual(
    changes.map(({ amount, createdAt }) => [amount, createdAt]),
    [[3, END]],
  );
  assertSound(ledger);
});

test('each scheduled plan begins as a cycle with its own ID, even if the same plan is scheduled again', () => {
  const ledger = withDaily();
  const ids = [END, END + 3 * DAY_MS, END + 6 * DAY_MS].map((end) => {
    ledger.accept(later(7));
    ledger.now = end;
    ledger.accept(settling());
    return ledger.cycles.at(-1)?.id;
  });
  assert.equal(new Set(ids).size, 3);
  assertSound(ledger);
});

test('cycles are read in spending order even if a scheduled plan is due', () => {
  const ledger = withDaily();
  ledger.accept(later(7));
  ledger.now = END - 1;
  ledger.accept(add(5, { validityDays: 9 }));
  assert.deepEqual(
    cyclesAt(ledger.state, END).map(({ amount }) => amount),
    [5, 7],
  );
  assert.deepEqual(
    stateOf(...cyclesAt(ledger.state, END)),
    stateOf(...settle(ledger.state, END, EVENTS_MAX).state.cycles.filter((cycle) => !hasEnded(cycle, END))),
  );
  assert(idAt(END) > renewalId(idAt(NOW), END), 'requests at the instant of the change come after it');
});
