// Tests the `balance.low`, `balance.exhausted` and `balance.recovered` events.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  balanceLines,
  type EventHistory,
  eventsOf,
  latestOf,
  MS,
  settingsOf,
} from '../../test/ledger/event-histories.ts';
import {
  add,
  capture,
  hold,
  refund,
  release,
  startCycle,
  stopCycle,
  subtract,
} from '../../test/ledger/ledger-builders.ts';

type Case = readonly [title: string, thresholds: readonly string[], history: EventHistory, ...expected: string[]];

const CROSSINGS: readonly Case[] = [
  [
    'the `balance.low` event happens below a threshold, not at it, and only once',
    ['20'],
    [
      [0, add(100)],
      [1, subtract(80)],
      [2, subtract(1)],
      [3, subtract(1)],
    ],
    '2: balance.low 20 (20 to 19)',
  ],
  [
    'the balance recovers at a threshold, not below it, and can be low again afterwards',
    ['20'],
    [
      [0, add(100)],
      [1, subtract(81)],
      [2, add(1)],
      [3, subtract(2)],
      [4, add(1)],
      [5, add(40)],
    ],
    '1: balance.low 20 (100 to 19)',
    '2: balance.recovered 20 (19 to 20)',
    '3: balance.low 20 (20 to 18)',
    '5: balance.recovered 20 (19 to 59)',
  ],
  [
    'a single transaction can cross several thresholds and exhaust the balance',
    ['20', '50%', '10', '100'],
    [
      [0, add(100)],
      [1, subtract(85)],
      [2, subtract(15)],
      [3, add(40)],
    ],
    '1: balance.low 20 (100 to 15)',
    '1: balance.low 50% (100 to 15)',
    '1: balance.low 100 (100 to 15)',
    '2: balance.low 10 (15 to 0)',
    '2: balance.exhausted (15 to 0)',
    '3: balance.recovered 20,50%,10 (0 to 40)',
  ],
  [
    'a threshold in percent refers to the latest grant and is not rounded',
    ['33%'],
    [
      [0, add(10)],
      [1, subtract(6)],
      [2, subtract(1)],
      [3, add(1)],
      [4, subtract(4)],
    ],
    '2: balance.low 33% (4 to 3)',
    '3: balance.recovered 33% (3 to 4)',
    '4: balance.low 33% (4 to 0)',
    '4: balance.exhausted (4 to 0)',
  ],
  [
    'a threshold in percent of the largest possible grant is exact',
    ['50%'],
    [
      [0, add(Number.MAX_SAFE_INTEGER)],
      [1, subtract((Number.MAX_SAFE_INTEGER - 1) / 2)],
      [2, subtract(1)],
    ],
    `2: balance.low 50% (${2 ** 52} to ${2 ** 52 - 1})`,
  ],
  [
    'a refund is not a grant, so a threshold in percent still refers to the latest grant before the refund',
    ['50%'],
    [
      [0, add(100, { validityDays: 2 })],
      [0, add(100)],
      [1, subtract(40)],
      [3, (ledger) => refund(latestOf(ledger, 'subtract'), null, { validityDays: 9 })],
      [4, subtract(91)],
    ],
    '4: balance.low 50% (140 to 49)',
  ],
  [
    'a hold can make the balance low and exhaust it; a release, a lapse and a capture of less than the hold can recover it',
    ['20'],
    [
      [0, add(100)],
      [1, hold(85, { expiresInSeconds: 21_600 })],
      [2, hold(100)],
      [2, (ledger) => release(latestOf(ledger, 'hold'))],
      [3, hold(90)],
      [3, (ledger) => capture(latestOf(ledger, 'hold'), 70)],
    ],
    '1: balance.low 20 (100 to 15)',
    '1.25: balance.recovered 20 (15 to 100)',
    '2: balance.low 20 (100 to 0)',
    '2: balance.exhausted (100 to 0)',
    '2: balance.recovered 20 (0 to 100)',
    '3: balance.low 20 (100 to 10)',
    '3: balance.recovered 20 (10 to 30)',
  ],
  [
    'a capture of more than the held amount can make the balance low, but a capture of exactly that amount cannot',
    ['20'],
    [
      [0, add(100)],
      [1, hold(60)],
      [1, (ledger) => capture(latestOf(ledger, 'hold'))],
      [2, hold(10)],
      [2, (ledger) => capture(latestOf(ledger, 'hold'), 21)],
    ],
    '2: balance.low 20 (30 to 19)',
  ],
  [
    'a refund can recover the balance',
    ['20'],
    [
      [0, add(100)],
      [1, subtract(100)],
      [2, (ledger) => refund(latestOf(ledger, 'subtract'), 5)],
    ],
    '1: balance.low 20 (100 to 0)',
    '1: balance.exhausted (100 to 0)',
    '2: balance.recovered (0 to 5)',
  ],
  [
    'an end user whose first credits are below a threshold is not reported as low',
    ['20', '50%'],
    [
      [0, add(10)],
      [1, subtract(1)],
      [2, subtract(9)],
    ],
    '2: balance.low 50% (9 to 0)',
    '2: balance.exhausted (9 to 0)',
  ],
  ['the first credits of an end user do not count as a recovery of the balance', ['20', '50%'], [[0, startCycle(100)]]],
  [
    'a balance that reaches a threshold for the first time has recovered, unless it reaches the threshold with the first credits',
    ['20'],
    [
      [0, add(19)],
      [1, add(1)],
    ],
    '1: balance.recovered 20 (19 to 20)',
  ],
  [
    'without thresholds, the `balance.exhausted` and `balance.recovered` events still happen',
    [],
    [
      [0, add(10)],
      [1, subtract(10)],
      [2, add(1)],
    ],
    '1: balance.exhausted (10 to 0)',
    '2: balance.recovered (0 to 1)',
  ],
];

const BY_TIME: readonly Case[] = [
  [
    'an expiry makes the balance low at the end of the cycle',
    ['20', '50%'],
    [
      [0, add(90, { validityDays: 3 })],
      [0, add(10)],
      [4, subtract(1)],
    ],
    '3: balance.low 20 (100 to 10)',
  ],
  [
    'the end of the last cycle exhausts the balance, and the end of a cycle without credits causes no event',
    ['20'],
    [
      [0, add(30, { validityDays: 1 })],
      [0, add(30, { validityDays: 2 })],
      [0.5, subtract(30)],
      [3, add(1)],
    ],
    '2: balance.low 20 (30 to 0)',
    '2: balance.exhausted (30 to 0)',
    '3: balance.recovered (0 to 1)',
  ],
  [
    'if two cycles end at the same instant, only the balance after both have ended is compared with the thresholds',
    ['40', '15', '5'],
    [
      [0, add(30, { validityDays: 2 })],
      [0, startCycle(30, { validityDays: 2 })],
      [0, stopCycle()],
      [0, add(10)],
      [3, add(1)],
    ],
    '0: balance.recovered 40 (30 to 60)',
    '2: balance.low 40 (70 to 10)',
    '2: balance.low 15 (70 to 10)',
  ],
  [
    'a subtraction one millisecond before the end of a cycle spends its credits',
    ['20'],
    [
      [0, add(30, { validityDays: 2 })],
      [0, add(30)],
      [2 - MS, subtract(30)],
      [3, subtract(11)],
    ],
    '3: balance.low 20 (30 to 19)',
  ],
  [
    'a subtraction at the end of a cycle comes after the expiry',
    ['20', '40'],
    [
      [0, add(30, { validityDays: 2 })],
      [0, add(30)],
      [2, subtract(15)],
    ],
    '0: balance.recovered 40 (30 to 60)',
    '2: balance.low 40 (60 to 30)',
    '2: balance.low 20 (30 to 15)',
  ],
  [
    'a subtraction one millisecond after the end of a cycle comes after the expiry',
    ['20', '40'],
    [
      [0, add(30, { validityDays: 2 })],
      [0, add(30)],
      [2 + MS, subtract(15)],
    ],
    '0: balance.recovered 40 (30 to 60)',
    '2: balance.low 40 (60 to 30)',
    '2 + 1 ms: balance.low 20 (30 to 15)',
  ],
  [
    'credits that are added at the instant at which a cycle ends come after the expiry',
    ['20'],
    [
      [0, add(30, { validityDays: 2 })],
      [2, add(30)],
    ],
    '2: balance.low 20 (30 to 0)',
    '2: balance.exhausted (30 to 0)',
    '2: balance.recovered 20 (0 to 30)',
  ],
  [
    'at a renewal, only the renewed balance is compared with the thresholds, whether credits were left or not',
    ['20', '50%'],
    [
      [0, startCycle(100, { validityDays: 2 })],
      [1, subtract(95)],
      [5, subtract(10)],
      [7, add(1)],
    ],
    '1: balance.low 20 (100 to 5)',
    '1: balance.low 50% (100 to 5)',
    '2: balance.recovered 20,50% (5 to 100)',
  ],
  [
    'if another cycle ends at the instant of a renewal, only the balance after both events is compared with the thresholds',
    ['20', '150'],
    [
      [0, startCycle(100, { validityDays: 2 })],
      [0, add(80, { validityDays: 2 })],
      [1, subtract(20)],
      [3, add(1)],
    ],
    '0: balance.recovered 150 (100 to 180)',
    '2: balance.low 150 (160 to 100)',
  ],
  [
    'at a change of plan, only the new balance is compared with the thresholds, and a threshold in percent refers to the new plan',
    ['30', '50%'],
    [
      [0, startCycle(100, { validityDays: 2 })],
      [1, startCycle(20, { validityDays: 2, onActive: 'at_period_end' })],
      [1, subtract(60)],
      [3, subtract(11)],
    ],
    '1: balance.low 50% (100 to 40)',
    '2: balance.low 30 (40 to 20)',
    '2: balance.recovered 50% (40 to 20)',
    '3: balance.low 50% (20 to 9)',
  ],
  [
    'for a threshold in percent, the credits that roll over count as granted',
    ['50%'],
    [
      [0, startCycle(100, { validityDays: 2, rolloverMax: 40 })],
      [3, subtract(70)],
      [3.5, subtract(1)],
    ],
    '3.5: balance.low 50% (70 to 69)',
  ],
  [
    'a cycle that replaces another one is a grant, and the remaining credits of the old cycle expire later',
    ['50%', '120'],
    [
      [0, startCycle(100, { validityDays: 2 })],
      [1, startCycle(50, { validityDays: 9, onActive: 'replace' })],
      [3, subtract(26)],
    ],
    '1: balance.recovered 120 (100 to 150)',
    '2: balance.low 120 (150 to 50)',
    '3: balance.low 50% (50 to 24)',
  ],
];

for (const [title, thresholds, history, ...expected] of [...CROSSINGS, ...BY_TIME]) {
  test(title, () => {
    assert.deepEqual(balanceLines(eventsOf(history, { settings: settingsOf(thresholds) })), expected);
  });
}
