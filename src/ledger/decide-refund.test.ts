// Tests that refunds never return more credits than were spent, and return the most recently spent credits first.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  add,
  capture,
  hold,
  MemoryLedger,
  NOW,
  refund,
  release,
  startCycle,
  stopCycle,
  subtract,
} from '../../test/ledger/ledger-builders.ts';
import { histories } from '../../test/ledger/random-histories.ts';
import { AMOUNT_MAX } from './amount.ts';
import { activeBalance, cyclesAt } from './balance.ts';
import { refundableOf } from './decide-refund.ts';
import { DAY_MS } from './instant.ts';
import { transactionOf } from './posting.ts';

function spend(ledger: MemoryLedger, amount: number): string {
  return ledger.transact(subtract(amount));
}

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

test('a refund returns the most recently spent credits first, as if the subtraction had been smaller', () => {
  const ledger = ledgerOfThreeCycles();
  const spent = spend(ledger, 25);
  assert.deepEqual(remainingOf(ledger), [0, 0, 5]);
  assert.deepEqual(ledger.accept(refund(spent, 7)).refund, { restored: 7, expired: 0 });
  assert.deepEqual(remainingOf(ledger), [0, 2, 10]);
  assert.deepEqual(ledger.accept(refund(spent, 10)).refund, { restored: 10, expired: 0 });
  assert.deepEqual(remainingOf(ledger), [2, 10, 10]);
});

test('a refund without an amount returns all credits that have not been refunded yet, and a further refund is refused', () => {
  const ledger = ledgerOfThreeCycles();
  const spent = spend(ledger, 25);
  ledger.run(refund(spent, 7));
  assert.deepEqual(ledger.accept(refund(spent)).refund, { restored: 18, expired: 0 });
  assert.deepEqual(remainingOf(ledger), [10, 10, 10]);
  assert.deepEqual(ledger.run(refund(spent)), { refused: 'RefundTooLarge', requested: null, refundable: 0 });
  assert.deepEqual(ledger.run(refund(spent, 1)), { refused: 'RefundTooLarge', requested: 1, refundable: 0 });
});

test('a refund of more credits than are still refundable is refused and changes nothing', () => {
  const ledger = ledgerOfThreeCycles();
  const spent = spend(ledger, 25);
  ledger.run(refund(spent, 20));
  assert.deepEqual(ledger.run(refund(spent, 6)), { refused: 'RefundTooLarge', requested: 6, refundable: 5 });
  assert.equal(balanceOf(ledger), 25);
  ledger.accept(refund(spent, 5));
});

test('refunded credits of a cycle that has ended count as expired and do not raise the balance', () => {
  const ledger = ledgerOfThreeCycles();
  const spent = spend(ledger, 25);
  ledger.now = NOW + DAY_MS;
  const { refund: result, transactionId } = ledger.accept(refund(spent));
  assert.deepEqual(result, { restored: 15, expired: 10 });
  assert.equal(balanceOf(ledger), 20);
  const [first, ...others] = ledger.find(transactionId as string);
  assert.equal(first && transactionOf([first, ...others]).amount, 15);
  assert.deepEqual(ledger.run(refund(spent)), { refused: 'RefundTooLarge', requested: null, refundable: 0 });
});

test('if a refund has a validity, the credits of an ended cycle come back in a new cycle', () => {
  const ledger = ledgerOfThreeCycles();
  const spent = spend(ledger, 25);
  ledger.now = NOW + DAY_MS;
  const { refund: result } = ledger.accept(refund(spent, null, { validityDays: 7 }));
  assert.deepEqual(result, { restored: 25, expired: 0 });
  assert.equal(balanceOf(ledger), 30);
  const { type, amount, remaining, end } = ledger.cycles.at(-1) ?? {};
  assert.deepEqual([type, amount, remaining, end], ['one-time', 10, 10, NOW + 8 * DAY_MS]);
  assert.equal(ledger.run(refund(spent)).refused, 'RefundTooLarge');
});

test('a refund with a validity opens no new cycle if no cycle has ended', () => {
  const ledger = ledgerOfThreeCycles();
  const spent = spend(ledger, 25);
  ledger.accept(refund(spent, null, { validityDays: 7 }));
  assert.equal(ledger.cycles.length, 3);
});

test('refunded credits of an earlier period do not return to the current period', () => {
  const ledger = new MemoryLedger();
  ledger.run(startCycle(100, { validityDays: 1 }));
  const spent = spend(ledger, 40);
  ledger.now = NOW + DAY_MS;
  assert.deepEqual(ledger.accept(refund(spent)).refund, { restored: 0, expired: 40 });
  assert.equal(balanceOf(ledger), 100);
});

test('a refund of a capture also returns credits that the capture spent beyond the hold', () => {
  const ledger = ledgerOfThreeCycles();
  const { hold: created } = ledger.accept(hold(5));
  const transactionId = ledger.transact(capture(created?.id as string, 12));
  assert.deepEqual(ledger.accept(refund(transactionId, 11)).refund, { restored: 11, expired: 0 });
  assert.deepEqual(remainingOf(ledger), [9, 10, 10]);
  assert.deepEqual(ledger.run(refund(transactionId, 2)), {
    refused: 'RefundTooLarge',
    requested: 2,
    refundable: 1,
  });
});

test('a refund of a capture that spent more than its hold first returns what was drawn beyond the hold, latest first', () => {
  const ledger = ledgerOfThreeCycles();
  const spent = spend(ledger, 8);
  const { hold: created } = ledger.accept(hold(15, { expiresInSeconds: 86_400 }));
  assert.deepEqual(remainingOf(ledger), [2, 10, 10]);
  ledger.run(refund(spent));
  // The capture spends 2, 10 and 3 held credits, and then draws 8 from the first cycle and 4 from the third.
  const captured = ledger.transact(capture(created?.id as string, 27));
  assert.deepEqual(remainingOf(ledger), [0, 0, 3]);
  ledger.run(refund(captured, 5));
  assert.deepEqual(remainingOf(ledger), [1, 0, 7]);
  ledger.run(refund(captured, 9));
  assert.deepEqual(remainingOf(ledger), [8, 0, 9]);
  ledger.run(refund(captured));
  assert.deepEqual(remainingOf(ledger), [10, 10, 10]);
});

test('a refund of a transaction that is unknown, or is neither a subtraction nor a capture, is refused', () => {
  const ledger = ledgerOfThreeCycles();
  const spent = spend(ledger, 5);
  const refunded = ledger.transact(refund(spent, 1));
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
  ledger.accept(refund(spent, 10));
});

test('a refund names the transaction that it refunds, and has its own actor and note', () => {
  const ledger = ledgerOfThreeCycles();
  const spent = spend(ledger, 25);
  const transactionId = ledger.transact(refund(spent, 7, { actor: 'user:3', note: 'ticket 4711' }));
  assert.deepEqual(
    ledger
      .find(transactionId)
      .map(({ kind, amount, reference, actor, note }) => [kind, amount, reference, actor, note]),
    [
      ['refund', 5, spent, 'user:3', 'ticket 4711'],
      ['refund', 2, spent, 'user:3', 'ticket 4711'],
    ],
  );
});

for (const [when, late, result] of [
  ['a millisecond before the end of their cycle', -1, { restored: 10, expired: 0 }],
  ['at the end of their cycle', 0, { restored: 0, expired: 10 }],
  ['a millisecond after the end of their cycle', 1, { restored: 0, expired: 10 }],
] as const) {
  test(`credits that are refunded ${when} ${late < 0 ? 'can be spent again' : 'have expired'}`, () => {
    const ledger = ledgerOfThreeCycles();
    const spent = spend(ledger, 10);
    ledger.now = NOW + DAY_MS + late;
    assert.deepEqual(ledger.accept(refund(spent)).refund, result);
    assert.equal(balanceOf(ledger), late < 0 ? 30 : 20);
  });
}

test('a refund that opens a new cycle has one posting for each cycle that the credits came from, then one for the new cycle', () => {
  const ledger = ledgerOfThreeCycles();
  const spent = spend(ledger, 25);
  ledger.now = NOW + 2 * DAY_MS;
  const transactionId = ledger.transact(refund(spent, 17, { validityDays: 7 }));
  const postings = ledger.find(transactionId);
  assert.deepEqual(
    postings.map(({ amount, expiresAt, terms }) => [amount, (expiresAt - NOW) / DAY_MS, terms !== null]),
    [
      [5, 3, false],
      [10, 2, false],
      [2, 1, false],
      [12, 9, true],
    ],
  );
  const [first, ...others] = postings;
  const shown = first && transactionOf([first, ...others]);
  assert.deepEqual([shown?.amount, shown?.expiresAt], [17, NOW + 9 * DAY_MS]);
  assert.equal(balanceOf(ledger), 22);
});

test('credits that a refund put into a new cycle are spent and refunded like other credits', () => {
  const ledger = ledgerOfThreeCycles();
  const spent = spend(ledger, 10);
  ledger.now = NOW + 3 * DAY_MS;
  ledger.accept(refund(spent, null, { validityDays: 7 }));
  const again = spend(ledger, 4);
  assert.equal(balanceOf(ledger), 6);
  assert.deepEqual(ledger.accept(refund(again)).refund, { restored: 4, expired: 0 });
  assert.equal(balanceOf(ledger), 10);
});

test('captured credits of an ended cycle can be refunded: they expire, or come back in a new cycle if the refund has a validity', () => {
  for (const validityDays of [null, 7]) {
    const ledger = ledgerOfThreeCycles();
    const { hold: created } = ledger.accept(hold(15, { expiresInSeconds: 3 * 86_400 }));
    ledger.now = NOW + DAY_MS;
    const transactionId = ledger.transact(capture(created?.id as string));
    const { refund: result } = ledger.accept(refund(transactionId, null, { validityDays }));
    assert.deepEqual(result, validityDays === null ? { restored: 5, expired: 10 } : { restored: 15, expired: 0 });
    assert.equal(balanceOf(ledger), validityDays === null ? 20 : 30);
  }
});

test('if a capture spent only a part of its hold, a refund returns only that part', () => {
  const ledger = ledgerOfThreeCycles();
  const { hold: created } = ledger.accept(hold(15));
  const transactionId = ledger.transact(capture(created?.id as string, 4));
  const tooMuch = { refused: 'RefundTooLarge', requested: 5, refundable: 4 };
  assert.deepEqual(ledger.run(refund(transactionId, 5)), tooMuch);
  assert.deepEqual(ledger.accept(refund(transactionId)).refund, { restored: 4, expired: 0 });
  assert.equal(balanceOf(ledger), 30);
});

test('releases, lapses, stops and renewals cannot be refunded', () => {
  const ledger = new MemoryLedger();
  ledger.run(startCycle(10, { validityDays: 1 }));
  const { hold: created } = ledger.accept(hold(5));
  ledger.run(release(created?.id as string));
  ledger.run(hold(5));
  ledger.now += DAY_MS;
  ledger.run(stopCycle());
  const kinds = new Map(ledger.postings.map(({ kind, transactionId }) => [kind, transactionId]));
  assert.deepEqual([...kinds.keys()], ['start-cycle', 'hold', 'release', 'lapse', 'renew', 'stop-cycle']);
  for (const id of kinds.values()) assert.deepEqual(ledger.run(refund(id)), { refused: 'NotRefundable' });
});

test('the refundable credits of a transaction are the spent credits that no refund has returned', () => {
  const ledger = ledgerOfThreeCycles();
  const spent = spend(ledger, 25);
  const refundable = () =>
    refundableOf({
      postings: ledger.find(spent),
      refunds: ledger.postings.filter(({ kind }) => kind === 'refund'),
    });
  assert.equal(refundable(), 25);
  ledger.accept(refund(spent, 7));
  assert.equal(refundable(), 18);
  ledger.now = NOW + DAY_MS;
  ledger.accept(refund(spent, 13, { validityDays: 7 }));
  assert.equal(refundable(), 5, 'the credits of the new cycle count only once');
  assert.equal(refundableOf({ postings: [], refunds: [] }), 0);
  const holdId = ledger.transact(hold(1));
  const others = [ledger.cycles[0]?.id as string, holdId, ledger.transact(release(holdId))];
  for (const id of others) assert.equal(refundableOf({ postings: ledger.find(id), refunds: [] }), 0);
});

test('in random histories, the restored and expired credits of a full refund add up to the refundable credits, which never exceed the spent credits', () => {
  fc.assert(
    fc.property(histories, fc.option(fc.integer({ min: 1, max: 4 })), (ledger, validityDays) => {
      for (const { kind, transactionId: id } of [...ledger.postings]) {
        if (kind !== 'subtract' && kind !== 'capture') continue;
        const referenced = {
          postings: ledger.find(id),
          refunds: ledger.postings.filter(({ kind, reference }) => kind === 'refund' && reference === id),
        };
        const refundable = refundableOf(referenced);
        const spent = referenced.postings.reduce((sum, { amount }) => sum - amount, 0);
        assert(refundable >= 0 && refundable <= spent);
        const tooMuch = { refused: 'RefundTooLarge', requested: refundable + 1, refundable };
        assert.deepEqual(ledger.run(refund(id, refundable + 1, { validityDays })), tooMuch);
        if (refundable === 0) continue;
        const before = balanceOf(ledger);
        const { refund: result } = ledger.accept(refund(id, null, { validityDays }));
        assert(result);
        assert.equal(result.restored + result.expired, refundable);
        assert.equal(balanceOf(ledger), before + result.restored);
        if (validityDays !== null) assert.equal(result.expired, 0);
      }
    }),
  );
});
