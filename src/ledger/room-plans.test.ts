// Tests the limit of 2^53−1 credits for plans with a rollover and for scheduled plans.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  add,
  EVENTS_MAX,
  hold,
  MemoryLedger,
  NOW,
  refund,
  settling,
  startCycle,
  stopCycle,
  subtract,
} from '../../test/ledger/ledger-builders.ts';
import { AMOUNT_MAX } from './amount.ts';
import type { Command, StartCycle } from './command.ts';
import { balanceAt } from './history.ts';
import { DAY_MS } from './instant.ts';
import { settle } from './settle.ts';

const END = NOW + DAY_MS;

function assertRoom(ledger: MemoryLedger, commandOf: (amount: number) => Command, available: number): void {
  const before = ledger.state;
  const requested = available + 1;
  assert.deepEqual(ledger.run(commandOf(requested)), { refused: 'BalanceTooLarge', requested, available });
  assert.deepEqual(ledger.state, before);
  if (available > 0) ledger.accept(commandOf(available));
}

function assertWithin(ledger: MemoryLedger): void {
  for (let days = 0; days <= 400; days++) {
    for (const offset of [-1, 0, 1]) {
      const at = NOW + days * DAY_MS + offset;
      if (at < ledger.now) continue;
      const { balance, held } = balanceAt(ledger.state, at);
      assert(held <= AMOUNT_MAX - balance, `${days} days: ${balance} and ${held}`);
    }
  }
  assert(settle(ledger.state, NOW + 400 * DAY_MS, EVENTS_MAX).isComplete);
}

function rolling(amount: number, rolloverMax: number, change: Partial<StartCycle> = {}): StartCycle {
  return startCycle(amount, { validityDays: 1, rolloverMax, ...change });
}

function scheduled(amount: number, rolloverMax = 0): StartCycle {
  return rolling(amount, rolloverMax, { validityDays: 2, onActive: 'at_period_end' });
}

const addedFor = (validityDays: number) => (amount: number) => add(amount, { validityDays });

test('a cycle start must leave room for the credits that can roll over', () => {
  const ledger = new MemoryLedger();
  assertRoom(ledger, (amount) => rolling(amount, 10), AMOUNT_MAX - 10);
  assertWithin(ledger);
});

test('a cycle start with a rollover must leave room for other credits that outlast the first period', () => {
  for (const [days, available] of [
    [1, AMOUNT_MAX - 30],
    [2, AMOUNT_MAX - 40],
  ] as const) {
    const ledger = new MemoryLedger();
    ledger.accept(add(30, { validityDays: days }));
    assertRoom(ledger, (amount) => rolling(amount, 10), available);
    assertWithin(ledger);
  }
});

test('with a rollover of 2^53−1 credits, there is no room left to start a cycle', () => {
  const ledger = new MemoryLedger();
  assertRoom(ledger, (amount) => rolling(amount, AMOUNT_MAX), 0);
  ledger.accept(rolling(1, AMOUNT_MAX - 1));
  assertWithin(ledger);
});

test('added credits that outlast the period must leave room for the next period and its rollover, but added credits that expire with the period need not', () => {
  const ledger = new MemoryLedger();
  ledger.accept(rolling(100, 60));
  assertRoom(ledger, addedFor(2), AMOUNT_MAX - 160);
  const short = new MemoryLedger();
  short.accept(rolling(100, 60));
  assertRoom(short, addedFor(1), AMOUNT_MAX - 100);
  for (const each of [ledger, short]) assertWithin(each);
});

test('credits that rolled over count only once toward the maximum balance, now and at later renewals', () => {
  const ledger = new MemoryLedger();
  ledger.accept(rolling(100, 60));
  ledger.now = END;
  ledger.accept(settling());
  assert.equal(balanceAt(ledger.state, END).balance, 160);
  assertRoom(ledger, addedFor(9), AMOUNT_MAX - 160);
  assertWithin(ledger);
  ledger.now = END + 5 * DAY_MS;
  ledger.accept(settling());
  assert.equal(balanceAt(ledger.state, ledger.now).balance, AMOUNT_MAX);
});

test('a replacement need not leave room for the rollover of the cycle that it replaces', () => {
  const ledger = new MemoryLedger();
  ledger.accept(rolling(100, AMOUNT_MAX - 100));
  assertRoom(ledger, (amount) => rolling(amount, 0, { validityDays: 9, onActive: 'replace' }), AMOUNT_MAX - 100);
  assertWithin(ledger);
});

test('a replacement must leave room for its rollover in addition to the credits of the replaced cycle only if those credits outlast the first period of the replacement', () => {
  const ledger = new MemoryLedger();
  ledger.accept(startCycle(100, { validityDays: 3 }));
  assertRoom(ledger, (amount) => rolling(amount, 50, { onActive: 'replace' }), AMOUNT_MAX - 150);
  assertWithin(ledger);
  const short = new MemoryLedger();
  short.accept(startCycle(100, { validityDays: 1 }));
  assertRoom(short, (amount) => rolling(amount, 50, { onActive: 'replace' }), AMOUNT_MAX - 100);
  assertWithin(short);
});

test('a scheduled plan must leave room for credits that outlast the current period, but not for credits of the current plan', () => {
  const ledger = new MemoryLedger();
  ledger.accept(rolling(AMOUNT_MAX - 99, 9));
  ledger.accept(add(30, { validityDays: 1 }));
  ledger.accept(add(7, { validityDays: 2 }));
  assertRoom(ledger, (amount) => scheduled(amount), AMOUNT_MAX - 7);
  assertRoom(ledger, (amount) => scheduled(amount, 20), AMOUNT_MAX - 27);
  assertWithin(ledger);
});

test('if the rollover of a scheduled plan alone would make the balance too large, the plan is refused, and the refusal shows 0 available credits', () => {
  const ledger = new MemoryLedger();
  ledger.accept(rolling(100, 0));
  ledger.accept(add(7, { validityDays: 2 }));
  assertRoom(ledger, (amount) => scheduled(amount, AMOUNT_MAX - 3), 0);
});

test('a scheduled plan must leave room for credits that stay held after the end of the current period', () => {
  for (const [seconds, available] of [
    [86_400, AMOUNT_MAX],
    [86_401, AMOUNT_MAX - 40],
  ] as const) {
    const ledger = new MemoryLedger();
    ledger.accept(rolling(100, 0));
    ledger.accept(hold(40, { expiresInSeconds: seconds }));
    assertRoom(ledger, (amount) => scheduled(amount), available);
    assertWithin(ledger);
  }
});

test('after a plan has been scheduled, additions and holds must leave room for the scheduled plan instead of the next renewal', () => {
  const ledger = new MemoryLedger();
  ledger.accept(rolling(100, 60));
  ledger.accept(scheduled(AMOUNT_MAX - 20, 5));
  assert.deepEqual(ledger.run(add(16, { validityDays: 2 })), {
    refused: 'BalanceTooLarge',
    requested: 16,
    available: 15,
  });
  assert.deepEqual(ledger.run(hold(16, { expiresInSeconds: 86_401 })), {
    refused: 'BalanceTooLarge',
    requested: 16,
    available: 15,
  });
  ledger.accept(hold(16, { expiresInSeconds: 86_400 }));
  ledger.accept(hold(5, { expiresInSeconds: 86_401 }));
  assertRoom(ledger, addedFor(2), 10);
  ledger.accept(add(1_000, { validityDays: 1 }));
  assertWithin(ledger);
});

test('scheduling a smaller plan makes room for an addition, and the next scheduled plan must leave room for the added credits', () => {
  const ledger = new MemoryLedger();
  ledger.accept(rolling(AMOUNT_MAX - 20, 5));
  ledger.accept(subtract(AMOUNT_MAX - 20));
  assert.equal(ledger.run(add(16, { validityDays: 2 })).refused, 'BalanceTooLarge');
  ledger.accept(scheduled(1));
  ledger.accept(add(1_000, { validityDays: 2 }));
  assertRoom(ledger, (amount) => scheduled(amount), AMOUNT_MAX - 1_000);
  assert.equal(ledger.run(add(1, { validityDays: 2 })).refused, 'BalanceTooLarge');
  ledger.accept(stopCycle());
  assertRoom(ledger, addedFor(2), AMOUNT_MAX - 1_000);
  assertWithin(ledger);
});

test('a refund to a one-time cycle must leave room for the scheduled plan', () => {
  const ledger = new MemoryLedger();
  ledger.accept(add(30, { validityDays: 3 }));
  ledger.accept(rolling(10, 0));
  const spent = ledger.transact(subtract(30));
  ledger.accept(scheduled(AMOUNT_MAX - 20));
  assert.deepEqual(ledger.run(refund(spent)), { refused: 'BalanceTooLarge', requested: 30, available: 20 });
  ledger.accept(refund(spent, 20));
  assertWithin(ledger);
});

test('after a change of plan, additions must leave room for the new plan instead of the old one', () => {
  const ledger = new MemoryLedger();
  ledger.accept(rolling(100, 60));
  ledger.accept(scheduled(10, 5));
  ledger.now = END;
  ledger.accept(settling());
  assertRoom(ledger, addedFor(9), AMOUNT_MAX - 15);
  assertWithin(ledger);
});
