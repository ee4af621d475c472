// Compares the chart of the balance with the ledger: a random history is recorded hour by hour while it happens, and the
// chart, computed afterwards from what a store gives for it, must agree.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { add, MemoryLedger, NOW, startCycle, stopCycle, subtract } from '../../../test/ledger/ledger-builders.ts';
import { applyAll } from '../../ledger/apply.ts';
import { activeBalance, cyclesAt } from '../../ledger/balance.ts';
import type { Command } from '../../ledger/command.ts';
import type { Step } from '../../ledger/history.ts';
import { DAY_MS, HOUR_MS, type Instant } from '../../ledger/instant.ts';
import { EMPTY_STATE } from '../../ledger/state.ts';
import { type BalanceOverTime, balanceOverTime } from './balance-chart.ts';

/** What the chart shows of the time after now. */
const PROJECTED_HOURS = 20 * 24;

function balanceOf(ledger: MemoryLedger, at: Instant): number {
  return activeBalance(cyclesAt(ledger.state, at), at);
}

/** Lets time pass, and records the balance at half past each hour: commands and expiries are on the hour. */
function pass(ledger: MemoryLedger, hours: number, recorded: Map<Instant, number>): void {
  const end = ledger.now + hours * HOUR_MS;
  for (let at = ledger.now + HOUR_MS / 2; at < end; at += HOUR_MS) {
    ledger.now = at;
    recorded.set(at, balanceOf(ledger, at));
  }
  ledger.now = end;
}

/** From what a store gives for it: the state before `from`, and the postings since. */
function chartOf({ postings, now }: MemoryLedger, from: Instant): BalanceOverTime {
  const state = applyAll(
    EMPTY_STATE,
    postings.filter(({ createdAt }) => createdAt < from),
  );
  const since = postings.filter(({ createdAt }) => createdAt >= from);
  const to = now + PROJECTED_HOURS * HOUR_MS;
  return balanceOverTime({ now, since: from, state, postings: since }, { from, to });
}

function balanceAt(steps: readonly Step[], at: Instant): number | undefined {
  return steps.findLast((step) => step.at <= at)?.balance;
}

const amounts = fc.integer({ min: 1, max: 50 });
const commands: fc.Arbitrary<Command> = fc.oneof(
  fc.tuple(amounts, fc.integer({ min: 1, max: 9 })).map(([amount, validityDays]) => add(amount, { validityDays })),
  amounts.map((amount) => subtract(amount)),
  fc
    .tuple(amounts, fc.integer({ min: 1, max: 6 }), fc.constantFrom('refuse' as const, 'replace' as const))
    .map(([amount, validityDays, onActive]) => startCycle(amount, { validityDays, onActive })),
  fc.constant(stopCycle()),
);

test('the balance chart of a random history agrees with the ledger at every hour, past and projected', () => {
  const histories = fc.array(fc.tuple(fc.integer({ min: 0, max: 72 }), commands), { maxLength: 30 });
  fc.assert(
    fc.property(histories, fc.integer({ min: 0, max: 30 }), fc.nat({ max: 80 }), (history, fromDay, restHours) => {
      const ledger = new MemoryLedger(NOW);
      const recorded = new Map<Instant, number>();
      for (const [afterHours, command] of history) {
        pass(ledger, afterHours, recorded);
        ledger.run(command);
      }
      pass(ledger, restHours, recorded);
      const from = NOW + fromDay * DAY_MS;
      if (from > ledger.now) pass(ledger, (from - ledger.now) / HOUR_MS, recorded);
      const { past, future } = chartOf(ledger, from);
      for (const [at, balance] of recorded)
        if (at >= from) assert.equal(balanceAt(past, at), balance, `${(at - NOW) / HOUR_MS} hours on`);
      assert.equal(past.at(-1)?.balance, future[0]?.balance, 'the past ends where the future begins');
      for (let hour = 0; hour <= PROJECTED_HOURS; hour++) {
        const at = ledger.now + hour * HOUR_MS;
        assert.equal(balanceAt(future, at), balanceOf(ledger, at), `in ${hour} hours`);
      }
    }),
    { numRuns: 300 },
  );
});

test('the past of the balance chart ends now, and its future begins now, at the same balance', () => {
  const ledger = new MemoryLedger(NOW);
  ledger.run(add(100, { validityDays: 10 }));
  ledger.now += 2 * DAY_MS;
  const { past, future, now, end } = chartOf(ledger, NOW - DAY_MS);
  assert.deepEqual(past, [
    { at: NOW - DAY_MS, balance: 0 },
    { at: NOW, balance: 100 },
  ]);
  assert.deepEqual(future, [
    { at: ledger.now, balance: 100 },
    { at: NOW + 10 * DAY_MS, balance: 0 },
  ]);
  assert.deepEqual([now, end], [ledger.now, ledger.now + PROJECTED_HOURS * HOUR_MS]);
});
