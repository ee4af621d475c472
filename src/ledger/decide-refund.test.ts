// Refunds: at most the spent credits return to the cycles that they came from, the last cycle first.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  add,
  capture,
  hold,
  MemoryLedger,
  NOW,
  refund,
  startCycle,
  subtract,
} from '../../test/ledger/ledger-builders.ts';
import { AMOUNT_MAX } from './amount.ts';
import { activeBalance, cyclesAt } from './balance.ts';
import type { Accepted, Command } from './command.ts';
import { DAY_MS } from './instant.ts';
import { transactionOf } from './posting.ts';

function accepted(ledger: MemoryLedger, command: Command): Accepted {
  const outcome = ledger.run(command);
  assert(outcome.refused === null, `accepted, not ${outcome.refused}`);
  return outcome;
}

/** @returns the id of the transaction */
function spend(ledger: MemoryLedger, amount: number): string {
  return accepted(ledger, subtract(amount)).transactionId as string;
}

/** An end user with 10 credits in each of three cycles, which end after one, two and three days. */
function ledgerOfThreeCycles(): MemoryLedger {
  const ledger = new MemoryLedger();
  for (const validityDays of [1, 2, 3]) ledger.run(add(10, { validityDays }));
  return ledger;
}

function remainingOf({ cycles }: MemoryLedger): number[] {
  return cycles.map(({ remaining }) => remaining);
}

function balanceOf({ state, now }: MemoryLedger): number {
  return activeBalance(cyclesAt(state, now), now);
}

test('a refund first returns the credits that were spent last, as if less had been spent', () => {
  const ledger = ledgerOfThreeCycles();
  const spent = spend(ledger, 25);
  assert.deepEqual(remainingOf(ledger), [0, 0, 5]);
  assert.deepEqual(accepted(ledger, refund(spent, 7)).refund, { restored: 7, expired: 0 });
  assert.deepEqual(remainingOf(ledger), [0, 2, 10]);
  assert.deepEqual(accepted(ledger, refund(spent, 10)).refund, { restored: 10, expired: 0 });
  assert.deepEqual(remainingOf(ledger), [2, 10, 10]);
});

test('a refund without an amount returns all credits that are not refunded yet, and a further refund is refused', () => {
  const ledger = ledgerOfThreeCycles();
  const spent = spend(ledger, 25);
  ledger.run(refund(spent, 7));
  assert.deepEqual(accepted(ledger, refund(spent)).refund, { restored: 18, expired: 0 });
  assert.deepEqual(remainingOf(ledger), [10, 10, 10]);
  assert.deepEqual(ledger.run(refund(spent)), { refused: 'RefundTooLarge', requested: null, refundable: 0 });
  assert.deepEqual(ledger.run(refund(spent, 1)), { refused: 'RefundTooLarge', requested: 1, refundable: 0 });
});

test('a refund of more than the remaining refundable credits of a subtraction is refused and changes nothing', () => {
  const ledger = ledgerOfThreeCycles();
  const spent = spend(ledger, 25);
  ledger.run(refund(spent, 20));
  assert.deepEqual(ledger.run(refund(spent, 6)), { refused: 'RefundTooLarge', requested: 6, refundable: 5 });
  assert.equal(balanceOf(ledger), 25);
  accepted(ledger, refund(spent, 5));
});

test('refunded credits of a cycle that has ended are expired and do not raise the balance', () => {
  const ledger = ledgerOfThreeCycles();
  const spent = spend(ledger, 25);
  ledger.now = NOW + DAY_MS;
  const { refund: result, transactionId } = accepted(ledger, refund(spent));
  assert.deepEqual(result, { restored: 15, expired: 10 });
  assert.equal(balanceOf(ledger), 20);
  const [first, ...others] = ledger.find(transactionId as string);
  assert.equal(first && transactionOf([first, ...others]).amount, 15);
  assert.deepEqual(ledger.run(refund(spent)), { refused: 'RefundTooLarge', requested: null, refundable: 0 });
});

test('refunded credits of a cycle that has ended come back as a new cycle if the refund has a validity', () => {
  const ledger = ledgerOfThreeCycles();
  const spent = spend(ledger, 25);
  ledger.now = NOW + DAY_MS;
  const { refund: result } = accepted(ledger, refund(spent, null, { validityDays: 7 }));
  assert.deepEqual(result, { restored: 25, expired: 0 });
  assert.equal(balanceOf(ledger), 30);
  const { type, amount, remaining, end } = ledger.cycles.at(-1) ?? {};
  assert.deepEqual([type, amount, remaining, end], ['one-time', 10, 10, NOW + 8 * DAY_MS]);
  assert.equal(ledger.run(refund(spent)).refused, 'RefundTooLarge');
});

test('a refund opens no new cycle if all cycles are still running', () => {
  const ledger = ledgerOfThreeCycles();
  const spent = spend(ledger, 25);
  accepted(ledger, refund(spent, null, { validityDays: 7 }));
  assert.equal(ledger.cycles.length, 3);
});

test('refunded credits of an earlier period do not return to the current period', () => {
  const ledger = new MemoryLedger();
  ledger.run(startCycle(100, { validityDays: 1 }));
  const spent = spend(ledger, 40);
  ledger.now = NOW + DAY_MS;
  assert.deepEqual(accepted(ledger, refund(spent)).refund, { restored: 0, expired: 40 });
  assert.equal(balanceOf(ledger), 100);
});

test('a refund of a capture also returns credits that the capture spent beyond the hold', () => {
  const ledger = ledgerOfThreeCycles();
  const { hold: created } = accepted(ledger, hold(5));
  const { transactionId } = accepted(ledger, capture(created?.id as string, 12));
  assert.deepEqual(accepted(ledger, refund(transactionId as string, 11)).refund, { restored: 11, expired: 0 });
  assert.deepEqual(remainingOf(ledger), [9, 10, 10]);
  assert.deepEqual(ledger.run(refund(transactionId as string, 2)), {
    refused: 'RefundTooLarge',
    requested: 2,
    refundable: 1,
  });
});

test('only subtractions and captures can be refunded, and an unknown transaction is not found', () => {
  const ledger = ledgerOfThreeCycles();
  const spent = spend(ledger, 5);
  const refunded = accepted(ledger, refund(spent, 1)).transactionId as string;
  const [added] = ledger.postings;
  for (const id of [refunded, added?.transactionId as string])
    assert.deepEqual(ledger.run(refund(id)), { refused: 'NotRefundable' });
  const unknown = '00000000-0000-4000-8000-000000000000';
  assert.deepEqual(ledger.run(refund(unknown)), { refused: 'TransactionNotFound' });
});

test('a refund that would raise the balance above the maximum is refused', () => {
  const ledger = new MemoryLedger();
  ledger.run(add(100));
  const spent = spend(ledger, 60);
  ledger.run(add(AMOUNT_MAX - 50));
  assert.deepEqual(ledger.run(refund(spent)), { refused: 'BalanceTooLarge', requested: 60, available: 10 });
  accepted(ledger, refund(spent, 10));
});
