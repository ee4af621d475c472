// Tests that a renewal adds unused credits to the next period, up to a maximum, even if several periods were missed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  add,
  capture,
  EVENTS_MAX,
  findingsOf,
  hold,
  MemoryLedger,
  NOW,
  recurring,
  refund,
  release,
  settling,
  startCycle,
  stateOf,
  stopCycle,
  subtract,
} from '../../test/ledger/ledger-builders.ts';
import { AMOUNT_MAX } from './amount.ts';
import { activeBalance, cyclesAt } from './balance.ts';
import type { Command } from './command.ts';
import { brokenRules, type Cycle, periodAfter } from './cycle.ts';
import { balanceAt } from './history.ts';
import { DAY_MS } from './instant.ts';
import { dueCount, dueRenewals, settle } from './settle.ts';

const END = NOW + DAY_MS;

function daily(rolloverMax: number, remaining: number, amount = 100): Cycle {
  return { ...recurring({ amount, validityDays: 1, rolloverMax }), remaining };
}

function naive({ plan, remaining }: Cycle, count: number): number {
  let unused = remaining;
  for (let renewal = 0; renewal < count; renewal++) unused = plan.amount + Math.min(plan.rolloverMax, unused);
  return unused;
}

/** All examples use a plan with 100 credits. */
const EXAMPLES: readonly (readonly [rolloverMax: number, remaining: number, missed: number, amount: number])[] = [
  [0, 100, 1, 100],
  [50, 0, 1, 100],
  [50, 1, 1, 101],
  [50, 49, 1, 149],
  [50, 50, 1, 150],
  [50, 51, 1, 150],
  [50, 100, 1, 150],
  [50, 0, 2, 150],
  [100, 40, 1, 140],
  [100, 40, 2, 200],
  [250, 40, 1, 140],
  [250, 40, 2, 240],
  [250, 40, 3, 340],
  [250, 40, 4, 350],
  [250, 40, 1_000, 350],
  [1, 0, 1, 100],
  [1, 0, 1_000, 101],
];

for (const [rolloverMax, remaining, missed, amount] of EXAMPLES) {
  test(`with ${remaining} of 100 credits left and a rollover of up to ${rolloverMax}, an end user has ${amount} credits after ${missed} renewals`, () => {
    const cycle = daily(rolloverMax, remaining);
    const now = NOW + missed * DAY_MS;
    assert.equal(activeBalance(cyclesAt(stateOf(cycle), now), now), amount);
    assert.equal(settle(stateOf(cycle), now, EVENTS_MAX).state.cycles[0]?.amount, amount);
    assert.equal(naive(cycle, missed), amount);
  });
}

const CAPS = [0, 1, 50, 99, 100, 101, 250, 1_000_000];

for (const rolloverMax of CAPS) {
  for (const missed of [0, 1, 2, 3, 1_000]) {
    test(`with a rollover of up to ${rolloverMax}, a read after ${missed} missed periods shows the same credits as applying the renewals one by one`, () => {
      for (const remaining of [0, 1, 40, 99, 100]) {
        const cycle = daily(rolloverMax, remaining);
        const state = stateOf(cycle);
        const now = NOW + missed * DAY_MS;
        const settled = settle(state, now, EVENTS_MAX);
        assert.equal(settled.postings.length, missed);
        settled.postings.forEach(({ amount, period }) => {
          assert.equal(amount, naive(cycle, period));
        });
        assert.deepEqual(cyclesAt(state, now), settled.state.cycles);
        assert.deepEqual([...dueRenewals(state, now)].reverse(), settled.postings);
        assert.equal(dueCount(state, now), missed);
        const steps = { state, isComplete: missed === 0 };
        for (let step = 0; !steps.isComplete; step++) {
          assert(step <= missed);
          Object.assign(steps, settle(steps.state, now, 1));
        }
        assert.deepEqual(steps.state, settled.state);
        for (const each of settled.state.cycles) assert.deepEqual(brokenRules(each), []);
      }
    });
  }
}

test('at each renewal, unused credits roll over up to the maximum, including credits that rolled over before', () => {
  const ledger = new MemoryLedger();
  ledger.run(startCycle(100, { validityDays: 1, rolloverMax: 30 }));
  const spent = [90, 0, 125, 105, 0];
  const balances = spent.map((amount) => {
    if (amount > 0) ledger.accept(subtract(amount));
    ledger.now += DAY_MS;
    return balanceAt(ledger.state, ledger.now).balance;
  });
  // The periods ended with 10, 110, 5, 0 and 100 unused credits.
  assert.deepEqual(balances, [110, 130, 105, 100, 130]);
});

test('the rollover formula is exact for amounts up to 2^53−1', () => {
  const amounts = fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: AMOUNT_MAX }));
  fc.assert(
    fc.property(
      amounts,
      amounts,
      fc.nat({ max: AMOUNT_MAX }),
      fc.integer({ min: 1, max: 300 }),
      (amount, most, left, count) => {
        const rolloverMax = Math.min(most, AMOUNT_MAX - amount);
        const cycle = daily(rolloverMax, Math.min(left, amount), amount);
        const after = periodAfter(cycle, count);
        assert.equal(after.amount, naive(cycle, count));
        assert.equal(after.remaining, after.amount);
        assert.deepEqual(brokenRules(after), []);
      },
    ),
    { numRuns: 2_000 },
  );
});

function withHold(seconds: number): { ledger: MemoryLedger; holdId: string } {
  const ledger = new MemoryLedger();
  ledger.run(startCycle(100, { validityDays: 1, rolloverMax: 60 }));
  ledger.run(subtract(30));
  return { ledger, holdId: ledger.transact(hold(50, { expiresInSeconds: seconds })) };
}

function assertBalances(ledger: MemoryLedger, at: number, balance: number, held: number): void {
  assert.deepEqual(balanceAt(ledger.state, at), { at, balance, held }, 'before the due events are stored');
  const due = [...dueRenewals(ledger.state, at)].reverse();
  const stored = ledger.postings.length;
  ledger.now = at;
  ledger.run(settling());
  assert.deepEqual(balanceAt(ledger.state, at), { at, balance, held }, 'after the due events are stored');
  assert.deepEqual(
    ledger.postings.slice(stored).filter(({ kind }) => kind !== 'lapse'),
    due,
  );
  const { cycles, holds, postings, now } = ledger;
  assert.deepEqual(findingsOf({ cycles, holds, postings, now }), []);
}

const DAY_S = 86_400;

test('if a hold lapses before the end of the period, its credits roll over', () => {
  assertBalances(withHold(DAY_S - 1).ledger, END, 160, 0);
});

test('credits of a hold that lapses at the end of the period do not roll over, because the renewal comes first', () => {
  assertBalances(withHold(DAY_S).ledger, END, 120, 0);
});

test('credits of a hold that lapses after the end of the period do not roll over, and do not return to any period', () => {
  const { ledger } = withHold(DAY_S + 1);
  assertBalances(ledger, END, 120, 50);
  assertBalances(ledger, END + 999, 120, 50);
  assertBalances(ledger, END + 1_000, 120, 0);
  assertBalances(ledger, END + DAY_MS, 160, 0);
});

for (const [when, seconds] of [
  ['before', DAY_S - 1],
  ['at', DAY_S],
  ['after', DAY_S + 1],
] as const) {
  test(`after 2 or 1,000 missed periods, the maximum number of credits rolls over, even if a hold lapsed ${when} the end of its period`, () => {
    assertBalances(withHold(seconds).ledger, END + DAY_MS, 160, 0);
    const far = withHold(seconds).ledger;
    assertBalances(far, END + 999 * DAY_MS, 160, 0);
  });
}

test('held credits that were released before the end of the period roll over, up to the maximum', () => {
  const { ledger, holdId } = withHold(2 * DAY_S);
  ledger.now = END - 1;
  ledger.accept(release(holdId));
  assertBalances(ledger, END, 160, 0);
});

test('held credits that are released at the end of the period or later are lost', () => {
  const { ledger, holdId } = withHold(2 * DAY_S);
  ledger.now = END;
  const { hold: released } = ledger.accept(release(holdId));
  assert.deepEqual([released?.returned, released?.expired], [0, 50]);
  assertBalances(ledger, END, 120, 0);
});

test('a capture of held credits after the end of their period does not touch the next period', () => {
  const { ledger, holdId } = withHold(2 * DAY_S);
  ledger.now = END;
  ledger.accept(capture(holdId, 45));
  assertBalances(ledger, END, 120, 0);
});

test('a capture of more than was held draws the rest from the next period, including the credits that rolled over', () => {
  const { ledger, holdId } = withHold(2 * DAY_S);
  ledger.now = END;
  assert.deepEqual(ledger.run(capture(holdId, 171)), {
    refused: 'InsufficientFunds',
    requested: 171,
    available: 170,
  });
  ledger.accept(capture(holdId, 170));
  assertBalances(ledger, END, 0, 0);
  assertBalances(ledger, END + DAY_MS, 100, 0);
});

test('if there are several holds, held credits roll over only if their hold lapses before the end of the period', () => {
  const ledger = new MemoryLedger();
  ledger.run(startCycle(100, { validityDays: 1, rolloverMax: 100 }));
  for (const [amount, seconds] of [
    [1, DAY_S + 1],
    [2, DAY_S],
    [4, DAY_S - 1],
    [8, 1],
    [16, 9 * DAY_S],
  ] as const)
    ledger.accept(hold(amount, { expiresInSeconds: seconds }));
  assertBalances(ledger, END, 100 + 69 + 4 + 8, 1 + 16);
});

test('a hold from an earlier period returns no credits to the current period, so its credits do not roll over when it lapses', () => {
  const ledger = new MemoryLedger();
  ledger.run(startCycle(100, { validityDays: 1, rolloverMax: 1_000 }));
  ledger.accept(hold(50, { expiresInSeconds: DAY_S + 3_600 }));
  ledger.now = END;
  ledger.accept(hold(60, { expiresInSeconds: 2 * DAY_S }));
  assertBalances(ledger, END, 90, 110);
  assertBalances(ledger, END + DAY_MS, 190, 60);
});

test('credits held since an earlier period, and added credits, do not roll over', () => {
  const ledger = new MemoryLedger();
  ledger.run(add(7, { validityDays: 9 }));
  ledger.run(startCycle(100, { validityDays: 1, rolloverMax: 5 }));
  ledger.accept(hold(50, { expiresInSeconds: 3 * DAY_S }));
  assertBalances(ledger, END, 105, 50);
  assertBalances(ledger, END + 2 * DAY_MS, 7 + 105, 0);
});

const WITHOUT: readonly (readonly [what: string, commands: readonly Command[], balance: number])[] = [
  ['credits of a canceled cycle expire at its end', [stopCycle()], 0],
  [
    'credits of a replaced cycle expire at its end',
    [startCycle(10, { validityDays: 2, rolloverMax: 90, onActive: 'replace' })],
    10,
  ],
  [
    'credits do not roll over to another plan, even if both plans have a rollover',
    [startCycle(10, { validityDays: 2, rolloverMax: 90, onActive: 'at_period_end' })],
    10,
  ],
  [
    'credits do not roll over to a new plan with the same terms',
    [startCycle(100, { validityDays: 1, rolloverMax: 60, onActive: 'at_period_end' })],
    100,
  ],
  ['added credits are neither lost nor counted twice at a renewal', [add(7, { validityDays: 2 })], 167],
];

for (const [what, commands, balance] of WITHOUT) {
  test(what, () => {
    const ledger = new MemoryLedger();
    ledger.run(startCycle(100, { validityDays: 1, rolloverMax: 60 }));
    for (const command of commands) ledger.accept(command);
    assertBalances(ledger, END, balance, 0);
  });
}

test('credits that are refunded before the end of the period roll over, and credits that are refunded at the end or later are lost', () => {
  for (const [at, balance] of [
    [END - 1, 105],
    [END, 100],
  ] as const) {
    const ledger = new MemoryLedger();
    ledger.run(startCycle(100, { validityDays: 1, rolloverMax: 60 }));
    const spent = ledger.transact(subtract(100));
    ledger.now = at;
    ledger.accept(refund(spent, 5));
    assertBalances(ledger, END, balance, 0);
  }
});

test('credits that rolled over are spent with their period: after older credits and before newer ones', () => {
  const ledger = new MemoryLedger();
  ledger.run(add(10, { validityDays: 9 }));
  ledger.run(startCycle(100, { validityDays: 1, rolloverMax: 60 }));
  ledger.now = END;
  ledger.run(add(20, { validityDays: 9 }));
  ledger.accept(subtract(175));
  assert.deepEqual(
    cyclesAt(ledger.state, END).map(({ amount, remaining }) => [amount, remaining]),
    [
      [10, 0],
      [160, 0],
      [20, 15],
    ],
  );
});

test('credits roll over between months of different lengths', () => {
  const ledger = new MemoryLedger(Date.UTC(2026, 0, 31));
  ledger.run(startCycle(100, { validityDays: null, validityMonths: 1, rolloverMax: 10 }));
  ledger.run(subtract(97));
  assertBalances(ledger, Date.UTC(2026, 1, 28) - 1, 3, 0);
  assertBalances(ledger, Date.UTC(2026, 1, 28), 103, 0);
  assertBalances(ledger, Date.UTC(2026, 2, 31), 110, 0);
  assertBalances(ledger, Date.UTC(2046, 0, 31), 110, 0);
});
