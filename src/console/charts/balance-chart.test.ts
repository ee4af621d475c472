// Compares the balance chart with the ledger. The test records the balance every hour while a random history happens,
// then computes the chart from the data that a store would return. Both must match.

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

/** How far into the future the chart projects. */
const PROJECTED_HOURS = 20 * 24;

function balanceOf(ledger: MemoryLedger, at: Instant): number {
  return activeBalance(cyclesAt(ledger.state, at), at);
}

/** Advances time and records the balance at half past each hour, since commands and expiries happen on the hour. */
function pass(ledger: MemoryLedger, hours: number, recorded: Map<Instant, number>): void {
  const end = ledger.now + hours * HOUR_MS;
  for (let at = ledger.now + HOUR_MS / 2; at < end; at += HOUR_MS) {
    ledger.now = at;
    recorded.set(at, balanceOf(ledger, at));
  }
  ledger.now = end;
}

/** Computes the chart from the data that a store returns: the state before `from`, and the postings since then. */
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

test('the balance chart of a random history shows the balance of the ledger at every past and future hour', () => {
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
        if (at >= from) assert.equal(balanceAt(past, at), balance, `after ${(at - NOW) / HOUR_MS} hours`);
      assert.equal(past.at(-1)?.balance, future[0]?.balance, 'the past ends at the balance at which the future begins');
      for (let hour = 0; hour <= PROJECTED_HOURS; hour++) {
        const at = ledger.now + hour * HOUR_MS;
        assert.equal(balanceAt(future, at), balanceOf(ledger, at), `in ${hour} hours`);
      }
    }),
    { numRuns: 300 },
  );
});

test('the past part of the balance chart ends now at the balance at which the future part begins', () => {
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
