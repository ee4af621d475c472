// Tests with random histories that each point of the balance chart shows the ledger's balance at that time.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  ADA,
  add,
  capture,
  hold,
  MemoryLedger,
  NOW,
  refund,
  release,
  settling,
  startCycle,
  stopCycle,
  subtract,
} from '../../../../test/ledger/ledger-builders.ts';
import { applyAll } from '../../../ledger/apply.ts';
import { activeBalance } from '../../../ledger/balance.ts';
import type { Command } from '../../../ledger/command.ts';
import { DAY_MS, HOUR_MS, type Instant } from '../../../ledger/instant.ts';
import { EMPTY_STATE } from '../../../ledger/state.ts';
import type { BalanceOverTime } from '../../charts/balance-chart.ts';
import { readBalanceOverTime } from './balance-over-time.ts';

/**
 * The time between adjacent points of the chart. The test with random histories runs `settle` at each point, and all
 * other commands between points.
 */
const POINT_INTERVAL_MS = 3 * HOUR_MS;

function settledBalance(ledger: MemoryLedger): number {
  ledger.run(settling());
  return activeBalance(ledger.state.cycles, ledger.now);
}

function pass(ledger: MemoryLedger, hours: number, recorded: Map<Instant, number>): void {
  const end = ledger.now + hours * HOUR_MS;
  for (let at = nextPoint(ledger.now); at <= end; at += POINT_INTERVAL_MS) {
    ledger.now = at;
    recorded.set(at, settledBalance(ledger));
  }
  ledger.now = end;
}

function nextPoint(at: Instant): Instant {
  return Math.ceil(at / POINT_INTERVAL_MS) * POINT_INTERVAL_MS;
}

function chartOf({ postings, state, now }: MemoryLedger): Promise<BalanceOverTime> {
  const statesAt = async (_: unknown, instants: readonly Instant[]) => ({
    now,
    states: instants.map((at) =>
      applyAll(
        EMPTY_STATE,
        postings.filter(({ createdAt }) => createdAt <= at),
      ),
    ),
  });
  return readBalanceOverTime({ statesAt }, ADA, { state, now });
}

const amounts = fc.integer({ min: 1, max: 50 });
const optionalAmounts = fc.option(amounts);
const hours = fc.integer({ min: 1, max: 200 });

type CommandFor = (ledger: MemoryLedger) => Command;

const commands = fc.oneof(
  fc.tuple(amounts, fc.integer({ min: 1, max: 9 })).map(
    ([amount, validityDays]) =>
      () =>
        add(amount, { validityDays }),
  ),
  amounts.map((amount) => () => subtract(amount)),
  fc
    .record({
      validity: fc.oneof(
        fc.record({ validityDays: fc.integer({ min: 1, max: 6 }) }),
        fc.constant({ validityDays: null, validityMonths: 1 }),
      ),
      amount: amounts,
      rolloverMax: fc.nat({ max: 20 }),
      onActive: fc.constantFrom('refuse' as const, 'replace' as const, 'at_period_end' as const),
    })
    .map(
      ({ validity, amount, ...change }) =>
        () =>
          startCycle(amount, { ...validity, ...change }),
    ),
  fc.constant(() => stopCycle()),
  fc.tuple(amounts, hours).map(
    ([amount, until]) =>
      () =>
        hold(amount, { expiresInSeconds: until * 3_600 }),
  ),
  optionalAmounts.map(
    (amount) =>
      ({ holds }: MemoryLedger) =>
        capture(holds.at(-1)?.id ?? '', amount),
  ),
  fc.constant(({ holds }: MemoryLedger) => release(holds.at(-1)?.id ?? '')),
  optionalAmounts.map(
    (amount) =>
      ({ postings }: MemoryLedger) =>
        refund(postings.findLast(({ kind }) => kind === 'subtract')?.transactionId ?? '', amount),
  ),
);

test('the balance chart of a random history shows the balance of the ledger at every past and future point', async () => {
  const steps = fc.tuple(fc.integer({ min: 0, max: 72 }), commands as fc.Arbitrary<CommandFor>);
  const histories = fc.array(steps, { maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(histories, fc.nat({ max: 80 }), async (history, restHours) => {
      const ledger = new MemoryLedger(NOW);
      const recorded = new Map<Instant, number>();
      for (const [afterHours, command] of history) {
        pass(ledger, afterHours, recorded);
        ledger.run(command(ledger));
      }
      pass(ledger, restHours, recorded);
      const { past, future } = await chartOf(ledger);
      for (const { at, balance } of past.slice(0, -1)) assert.equal(balance, recorded.get(at) ?? 0, atText(at));
      assert.deepEqual(past.at(-1), future[0], 'the last past point is the first future point');
      for (const { at, balance } of future) {
        ledger.now = at;
        assert.equal(balance, settledBalance(ledger), atText(at));
      }
    }),
    { numRuns: 100 },
  );
});

function atText(at: Instant): string {
  return `after ${(at - NOW) / HOUR_MS} hours`;
}

test('the balance chart has a point at the start of each day from 30 days ago to 32 days ahead, and a point for now', async () => {
  const ledger = new MemoryLedger(NOW);
  ledger.run(add(100, { validityDays: 10 }));
  ledger.run(hold(30, { expiresInSeconds: 2 * 86_400 }));
  const { past, future } = await chartOf(ledger);
  const days = [...past, ...future].map(({ at }) => at / DAY_MS).filter(Number.isInteger);
  const today = Math.floor(NOW / DAY_MS);
  assert.deepEqual(
    days,
    Array.from({ length: 63 }, (_, index) => today - 30 + index),
  );
  assert.deepEqual(past.at(-1), { at: NOW, balance: 70, held: 30 });
  const changes = future.filter(({ balance }, index) => balance !== future[index - 1]?.balance);
  assert.deepEqual(changes, [
    { at: NOW, balance: 70, held: 30 },
    { at: nextPoint(NOW + 2 * DAY_MS), balance: 100, held: 0 },
    { at: nextPoint(NOW + 10 * DAY_MS), balance: 0, held: 0 },
  ]);
});
