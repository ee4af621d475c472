// Tests holds, captures and releases, before and after the expiry of the hold and the end of its cycles.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  add,
  capture,
  EVENTS_MAX,
  hold,
  idAt,
  MemoryLedger,
  momentAt,
  NOW,
  refund,
  release,
  settling,
  startCycle,
  stopCycle,
  subtract,
} from '../../test/ledger/ledger-builders.ts';
import { histories } from '../../test/ledger/random-histories.ts';
import { AMOUNT_MAX } from './amount.ts';
import { activeBalance, cyclesAt } from './balance.ts';
import type { HoldResult } from './command.ts';
import { decide } from './decide.ts';
import { heldAt, OPEN_HOLDS_MAX } from './hold.ts';
import { DAY_MS, INSTANT_MAX, LAST_INSTANT } from './instant.ts';
import { transactionOf } from './posting.ts';
import { settle } from './settle.ts';

const SECOND_MS = 1_000;
const NO_HOLD = idAt(NOW, 90);

function balanceOf({ state, now }: MemoryLedger): [number, number] {
  return [activeBalance(cyclesAt(state, now), now), heldAt(state.holds, now)];
}

function held(ledger: MemoryLedger, amount: number, seconds = 900): string {
  return ledger.accept(hold(amount, { expiresInSeconds: seconds })).hold?.id as string;
}

function ledgerOfTwoCycles(): MemoryLedger {
  const ledger = new MemoryLedger();
  ledger.run(add(10, { validityDays: 1 }));
  ledger.run(add(10, { validityDays: 10 }));
  return ledger;
}

function spentOf(ledger: MemoryLedger): number[][] {
  return ledger.cycles.map(({ remaining, held: kept }) => [remaining, kept]);
}

test('a hold sets credits aside, oldest first, and they can be neither spent nor held again', () => {
  const ledger = ledgerOfTwoCycles();
  held(ledger, 15);
  assert.deepEqual(spentOf(ledger), [
    [10, 10],
    [10, 5],
  ]);
  assert.deepEqual(balanceOf(ledger), [5, 15]);
  const tooMuch = { refused: 'InsufficientFunds', requested: 6, available: 5 };
  assert.deepEqual(ledger.run(subtract(6)), tooMuch);
  assert.deepEqual(ledger.run(hold(6)), tooMuch);
  ledger.accept(subtract(5));
  assert.deepEqual(balanceOf(ledger), [0, 15]);
});

test('a capture of less than was held spends the oldest credits and returns the rest', () => {
  const ledger = ledgerOfTwoCycles();
  const id = held(ledger, 15);
  const { hold: result, transactionId } = ledger.accept(capture(id, 12));
  const { status, amount, captured, returned, expired } = result ?? {};
  assert.deepEqual([status, amount, captured, returned, expired], ['captured', 15, 12, 3, 0]);
  assert.deepEqual(spentOf(ledger), [
    [0, 0],
    [8, 0],
  ]);
  assert.deepEqual(balanceOf(ledger), [8, 0]);
  const [first, ...others] = ledger.find(transactionId as string);
  assert.equal(first && transactionOf([first, ...others]).amount, -12);
});

test('a capture without an amount spends all held credits', () => {
  const ledger = ledgerOfTwoCycles();
  const id = held(ledger, 15);
  assert.equal(ledger.accept(capture(id)).hold?.captured, 15);
  assert.deepEqual(balanceOf(ledger), [5, 0]);
});

test('a capture of more than was held draws the difference from the balance, with one posting for each cycle', () => {
  const ledger = ledgerOfTwoCycles();
  const id = held(ledger, 5);
  const transactionId = ledger.transact(capture(id, 12));
  assert.deepEqual(
    ledger.find(transactionId).map(({ amount, held: change }) => [amount, change]),
    [
      [-10, -5],
      [-2, 0],
    ],
  );
  assert.deepEqual(balanceOf(ledger), [8, 0]);
});

test('the postings of a capture are in spending order, even if older credits than those of the hold became free again', () => {
  const ledger = ledgerOfTwoCycles();
  const older = held(ledger, 10);
  const newer = held(ledger, 5);
  ledger.run(release(older));
  const postings = ledger.find(ledger.transact(capture(newer, 20)));
  const changes = postings.map(({ amount, held: change }) => `${amount}, ${change}`);
  assert.deepEqual(changes, ['-10, 0', '-10, -5']);
});

test('a capture that the balance cannot cover is refused, and the hold stays open', () => {
  const ledger = ledgerOfTwoCycles();
  const id = held(ledger, 5);
  assert.deepEqual(ledger.run(capture(id, 21)), { refused: 'InsufficientFunds', requested: 21, available: 20 });
  assert.deepEqual(balanceOf(ledger), [15, 5]);
  ledger.accept(capture(id, 20));
  assert.deepEqual(balanceOf(ledger), [0, 0]);
});

test('a release returns all held credits to the cycles that they came from', () => {
  const ledger = ledgerOfTwoCycles();
  const id = held(ledger, 15);
  const { status, captured, returned } = ledger.accept(release(id)).hold ?? {};
  assert.deepEqual([status, captured, returned], ['released', 0, 15]);
  assert.deepEqual(balanceOf(ledger), [20, 0]);
});

test('a capture or a release of a closed or unknown hold is refused with `HoldNotFound`', () => {
  const ledger = ledgerOfTwoCycles();
  const [first, second] = [held(ledger, 5), held(ledger, 5)];
  ledger.run(capture(first));
  ledger.run(release(second));
  for (const id of [first, second, ledger.postings[0]?.transactionId as string]) {
    assert.deepEqual(ledger.run(capture(id)), { refused: 'HoldNotFound' });
    assert.deepEqual(ledger.run(release(id)), { refused: 'HoldNotFound' });
  }
  assert.deepEqual(balanceOf(ledger), [15, 0]);
});

for (const [name, before, status] of [
  ['a millisecond before it expires', 1, 'captured'],
  ['at the instant at which it expires', 0, 'lapsed'],
  ['a millisecond after it has expired', -1, 'lapsed'],
] as const) {
  test(`a hold ${status === 'lapsed' ? 'has lapsed' : 'can still be captured'} ${name}`, () => {
    const ledger = ledgerOfTwoCycles();
    const id = held(ledger, 15, 60);
    ledger.now += 60 * SECOND_MS - before;
    assert.deepEqual(balanceOf(ledger), status === 'lapsed' ? [20, 0] : [5, 15]);
    const outcome = ledger.run(capture(id));
    assert.equal(outcome.refused, status === 'lapsed' ? 'HoldNotFound' : null);
    assert.deepEqual(balanceOf(ledger), status === 'lapsed' ? [20, 0] : [5, 0]);
  });
}

test('a lapse that became due while Scrip was not running is recorded with the instant at which the hold expired', () => {
  const ledger = ledgerOfTwoCycles();
  held(ledger, 15, 60);
  ledger.now += 5 * DAY_MS;
  ledger.run(settling());
  const lapses = ledger.postings.filter(({ kind }) => kind === 'lapse');
  assert.deepEqual(
    lapses.map(({ createdAt, amount, held: change, actor }) => [createdAt, amount, change, actor]),
    [
      [NOW + 60 * SECOND_MS, 0, -10, 'lapse'],
      [NOW + 60 * SECOND_MS, 0, -5, 'lapse'],
    ],
  );
  assert.deepEqual(balanceOf(ledger), [10, 0]);
});

for (const [name, late, balance] of [
  ['a millisecond before the cycle ends', -1, 20],
  ['at the end of the cycle', 0, 10],
  ['a millisecond after the cycle ended', 1, 10],
] as const) {
  test(`credits that are released ${name} ${late < 0 ? 'return to the balance' : 'have expired'}`, () => {
    const ledger = ledgerOfTwoCycles();
    const id = held(ledger, 15, 2 * 86_400);
    ledger.now += DAY_MS + late;
    const { returned, expired } = ledger.accept(release(id)).hold ?? {};
    assert.deepEqual([returned, expired], late < 0 ? [15, 0] : [5, 10]);
    assert.deepEqual(balanceOf(ledger), [balance, 0]);
  });
}

test('held credits can still be captured after their cycle has ended', () => {
  const ledger = ledgerOfTwoCycles();
  const id = held(ledger, 15, 2 * 86_400);
  ledger.now += DAY_MS + 1;
  assert.deepEqual(balanceOf(ledger), [5, 15]);
  const { captured, returned, expired } = ledger.accept(capture(id, 12)).hold ?? {};
  assert.deepEqual([captured, returned, expired], [12, 3, 0]);
  assert.deepEqual(balanceOf(ledger), [8, 0]);
});

test('credits that are released after a renewal do not return to the new period', () => {
  const ledger = new MemoryLedger();
  ledger.run(startCycle(100, { validityDays: 1 }));
  const id = held(ledger, 30, 2 * 86_400);
  ledger.now += DAY_MS;
  assert.deepEqual(balanceOf(ledger), [100, 30]);
  const { returned, expired } = ledger.accept(release(id)).hold ?? {};
  assert.deepEqual([returned, expired], [0, 30]);
  assert.deepEqual(balanceOf(ledger), [100, 0]);
});

test('a hold that lapses at the end of a period returns no credits to the next period', () => {
  const ledger = new MemoryLedger();
  ledger.run(startCycle(100, { validityDays: 1 }));
  held(ledger, 30, 86_400);
  ledger.now += DAY_MS;
  ledger.run(settling());
  assert.deepEqual(
    ledger.postings.slice(2).map(({ kind }) => kind),
    ['renew', 'lapse'],
  );
  assert.deepEqual(balanceOf(ledger), [100, 0]);
});

test('a capture after a renewal spends the held credits of the old period first, and then credits of the new one', () => {
  const ledger = new MemoryLedger();
  ledger.run(startCycle(100, { validityDays: 1 }));
  const id = held(ledger, 30, 2 * 86_400);
  ledger.now += DAY_MS;
  const transactionId = ledger.transact(capture(id, 40));
  assert.deepEqual(
    ledger.find(transactionId).map(({ period, amount, held: change }) => [period, amount, change]),
    [
      [0, -30, -30],
      [1, -10, 0],
    ],
  );
  assert.deepEqual(balanceOf(ledger), [90, 0]);
});

test('stopping a cycle does not change its holds', () => {
  const ledger = new MemoryLedger();
  ledger.run(startCycle(100, { validityDays: 1 }));
  const id = held(ledger, 30);
  ledger.run(stopCycle());
  ledger.run(release(id));
  assert.deepEqual(balanceOf(ledger), [100, 0]);
});

test('holds lapse in the order in which they expire, regardless of the order in which they were created', () => {
  const ledger = ledgerOfTwoCycles();
  const ids = [held(ledger, 1, 300), held(ledger, 2, 100), held(ledger, 3, 200), held(ledger, 4, 100)];
  assert.deepEqual(
    ledger.holds.map(({ id }) => ids.indexOf(id)),
    [1, 3, 2, 0],
  );
  const { postings, state } = settle(ledger.state, NOW + 250 * SECOND_MS, EVENTS_MAX);
  assert.deepEqual(
    postings.map(({ held: change }) => change),
    [-2, -4, -3],
  );
  assert.deepEqual(
    state.holds.map(({ id }) => ids.indexOf(id)),
    [0],
  );
});

test(`an end user can have ${OPEN_HOLDS_MAX} open holds, and no more until one of them is closed or lapses`, () => {
  const ledger = new MemoryLedger();
  ledger.run(add(2_000));
  const first = held(ledger, 1, 60);
  for (let count = 1; count < OPEN_HOLDS_MAX; count++) held(ledger, 1, 900);
  assert.deepEqual(ledger.run(hold(1)), { refused: 'TooManyHolds' });
  ledger.run(release(first));
  held(ledger, 1, 60);
  assert.deepEqual(ledger.run(hold(1)), { refused: 'TooManyHolds' });
  ledger.now += 60 * SECOND_MS;
  held(ledger, 1);
});

test('a hold cannot be refunded', () => {
  const ledger = ledgerOfTwoCycles();
  const id = held(ledger, 5);
  assert.deepEqual(ledger.run(refund(id)), { refused: 'NotRefundable' });
});

test('the outcome of a hold, a capture or a release describes the hold: its ID, times, status and credits', () => {
  const ledger = ledgerOfTwoCycles();
  const created = ledger.accept(hold(15, { expiresInSeconds: 60 }));
  const id = created.transactionId as string;
  const times = { id, createdAt: NOW, expiresAt: NOW + 60 * SECOND_MS };
  const nothing = { captured: 0, returned: 0, expired: 0 };
  assert.deepEqual(created.hold, { ...times, status: 'open', amount: 15, ...nothing });
  ledger.now += 1;
  const captured = ledger.accept(capture(id, 4)).hold;
  assert.deepEqual(captured, { ...times, status: 'captured', amount: 15, ...nothing, captured: 4, returned: 11 });
  const other = held(ledger, 5, 60);
  const released = ledger.accept(release(other)).hold;
  const otherTimes = { id: other, createdAt: NOW + 1, expiresAt: NOW + 1 + 60 * SECOND_MS };
  assert.deepEqual(released, { ...otherTimes, status: 'released', amount: 5, ...nothing, returned: 5 });
});

test('a hold never expires later than the last instant of the year 9999', () => {
  for (const now of [LAST_INSTANT - 60_000, LAST_INSTANT]) {
    const ledger = new MemoryLedger(now);
    ledger.run(add(10));
    const id = held(ledger, 5, 120);
    assert.equal(ledger.holds[0]?.expiresAt, INSTANT_MAX);
    ledger.accept(release(id));
  }
});

test('the postings of a hold and those of its capture have the actor and the note of their own requests', () => {
  const ledger = ledgerOfTwoCycles();
  const ids = [
    ledger.transact(hold(15, { actor: 'key:8', note: 'job 1' })),
    ledger.transact(capture(ledger.holds[0]?.id as string, 12, { actor: 'user:3', note: 'job 1 done' })),
  ];
  const said = ids.map((id) => ledger.find(id).map(({ kind, actor, note }) => [kind, actor, note]));
  assert.deepEqual(said, [
    [
      ['hold', 'key:8', 'job 1'],
      ['hold', 'key:8', 'job 1'],
    ],
    [
      ['capture', 'user:3', 'job 1 done'],
      ['capture', 'user:3', 'job 1 done'],
    ],
  ]);
});

test('if a capture spends no credits from one cycle of its hold, the posting for that cycle has the amount 0, not −0', () => {
  const ledger = ledgerOfTwoCycles();
  const id = held(ledger, 15);
  const transactionId = ledger.transact(capture(id, 10));
  const amounts = ledger.find(transactionId).map(({ amount, held: change }) => [amount, change]);
  assert.deepEqual(amounts, [
    [-10, -10],
    [0, -5],
  ]);
});

test('held credits that are not spent by a capture return to their cycles, or are lost if those cycles have ended', () => {
  const ledger = ledgerOfTwoCycles();
  const id = held(ledger, 15, 2 * 86_400);
  ledger.now += DAY_MS;
  const { captured, returned, expired } = ledger.accept(capture(id, 4)).hold ?? {};
  assert.deepEqual([captured, returned, expired], [4, 5, 6]);
  assert.deepEqual(balanceOf(ledger), [10, 0]);
});

test('a hold that expires after the end of a period is refused if the balance and the held credits in the next period would together exceed 2^53−1', () => {
  const ledger = new MemoryLedger();
  ledger.run(startCycle(AMOUNT_MAX, { validityDays: 1 }));
  held(ledger, 10, 86_400);
  const refused = { refused: 'BalanceTooLarge', requested: 10, available: 0 };
  assert.deepEqual(ledger.run(hold(10, { expiresInSeconds: 86_401 })), refused);
});

test('a capture of more than was held cannot spend the credits of other holds', () => {
  const ledger = ledgerOfTwoCycles();
  const [first] = [held(ledger, 5), held(ledger, 12)];
  const refusal = { refused: 'InsufficientFunds', requested: 9, available: 8 };
  assert.deepEqual(ledger.run(capture(first, 9)), refusal);
  ledger.accept(capture(first, 8));
  assert.deepEqual(balanceOf(ledger), [0, 12]);
});

test('a hold, a capture or a release that is refused changes nothing', () => {
  const ledger = ledgerOfTwoCycles();
  const id = held(ledger, 5);
  const before = [ledger.state, ledger.postings.length];
  for (const command of [hold(16), capture(id, 21), capture(NO_HOLD), release(NO_HOLD)])
    assert.notEqual(ledger.run(command).refused, null);
  assert.deepEqual([ledger.state, ledger.postings.length], before);
});

test('a hold of 0 credits, which the API rejects, fails an assertion', () => {
  const ledger = ledgerOfTwoCycles();
  assert.throws(() => ledger.run(hold(0)), { name: 'AssertionError' });
});

test('in random histories, the spent, returned and expired credits of each hold add up to the held credits', () => {
  fc.assert(
    fc.property(histories, fc.option(fc.integer({ min: 1, max: 40 })), ({ holds, state, now }, amount) => {
      for (const { id, parts } of holds) {
        const { outcome } = decide(settle(state, now, EVENTS_MAX).state, capture(id, amount), momentAt(now));
        if (outcome.refused !== null) continue;
        const total = parts.reduce((sum, part) => sum + part.amount, 0);
        const { captured, returned, expired } = outcome.hold as HoldResult;
        assert.equal(captured, amount ?? total);
        assert.equal(Math.min(captured, total) + returned + expired, total);
      }
    }),
  );
});
