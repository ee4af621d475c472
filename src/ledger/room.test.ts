// Tests that the spendable and held credits of an end user never exceed 2^53−1 in total, now or later.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  add,
  capture,
  hold,
  holding,
  MemoryLedger,
  NOW,
  oneTime,
  recurring,
  refund,
  release,
  startCycle,
  stateOf,
  stopCycle,
  subtract,
} from '../../test/ledger/ledger-builders.ts';
import { historiesOf } from '../../test/ledger/random-histories.ts';
import { AMOUNT_MAX } from './amount.ts';
import { applyAll } from './apply.ts';
import { balanceAt } from './history.ts';
import { DAY_MS, type Instant } from './instant.ts';
import { refuseTooLarge } from './room.ts';
import type { EndUserState } from './state.ts';

const END = NOW + DAY_MS;

function roomOf(state: EndUserState, end: Instant, now = NOW): number {
  const refusal = refuseTooLarge(state, { amount: AMOUNT_MAX + 1, end }, now);
  assert(refusal?.refused === 'BalanceTooLarge');
  const { available } = refusal;
  assert.equal(refuseTooLarge(state, { amount: available, end }, now), null);
  assert.deepEqual(refuseTooLarge(state, { amount: available + 1, end }, now), {
    refused: 'BalanceTooLarge',
    requested: available + 1,
    available,
  });
  return available;
}

const BOUGHT = oneTime({ validityDays: 1 }, 3);
const DAILY = recurring({ validityDays: 1 }, 4);

const ROOMS: readonly (readonly [what: string, until: Instant, now: Instant, room: number])[] = [
  ['held credits of a running cycle count only once toward the maximum balance', END + 1, NOW, 100],
  ['held credits count toward the maximum balance after the end of their cycle', END + 1, END, 10],
  ['held credits count toward the maximum balance until a millisecond before their hold lapses', END + 2, END + 1, 10],
  ['held credits do not count toward the maximum balance when their hold lapses', END + 1, END + 1, 0],
];

for (const [what, until, now, taken] of ROOMS) {
  test(what, () => {
    const state = applyAll(stateOf(BOUGHT), [holding(BOUGHT, 10, { until })]);
    assert.equal(roomOf(state, END + 9 * DAY_MS, now), AMOUNT_MAX - taken);
  });
}

test('an addition that outlasts a period is refused if the added credits, the next period and the credits that are still held at the renewal would together exceed 2^53−1', () => {
  const [short, long] = [END, END + 1].map((until) => applyAll(stateOf(DAILY), [holding(DAILY, 10, { until })]));
  assert(short && long);
  assert.equal(roomOf(short, END + 1), AMOUNT_MAX - 100, 'the hold lapses when the period ends');
  assert.equal(roomOf(long, END + 1), AMOUNT_MAX - 110, 'the hold lapses a millisecond later');
  assert.equal(roomOf(long, END), AMOUNT_MAX - 100, 'the new credits end with the period');
});

/** A ledger in which the next renewal leaves room for only 10 more credits. */
function almostFull(): MemoryLedger {
  const ledger = new MemoryLedger();
  ledger.accept(startCycle(50, { validityDays: 1 }));
  ledger.accept(add(AMOUNT_MAX - 60, { validityDays: 2 }));
  return ledger;
}

const holdFor = (amount: number, seconds: number) => hold(amount, { expiresInSeconds: seconds });

test('a hold that outlasts a period is refused if the held credits, the next period and all other credits would together exceed 2^53−1', () => {
  const ledger = almostFull();
  assert.deepEqual(ledger.run(holdFor(11, 86_401)), { refused: 'BalanceTooLarge', requested: 11, available: 10 });
  ledger.accept(holdFor(10, 86_401));
  assert.deepEqual(ledger.run(holdFor(1, 86_401)), { refused: 'BalanceTooLarge', requested: 1, available: 0 });
  ledger.now = END;
  const { balance, held } = balanceAt(ledger.state, END);
  assert.deepEqual([balance, held], [AMOUNT_MAX - 10, 10]);
  assert.equal(roomOf(ledger.state, END + 1, END), 0);
});

test('a hold can be larger than the room at the next renewal if enough of its credits come from cycles that end after the renewal', () => {
  const ledger = new MemoryLedger();
  ledger.accept(add(20, { validityDays: 2 }));
  ledger.accept(startCycle(50, { validityDays: 1 }));
  ledger.accept(add(AMOUNT_MAX - 80, { validityDays: 2 }));
  assert.deepEqual(ledger.run(holdFor(31, 86_401)), { refused: 'BalanceTooLarge', requested: 11, available: 10 });
  ledger.accept(holdFor(30, 86_401));
});

test('held credits count toward the maximum balance, even after their cycle has ended', () => {
  const ledger = new MemoryLedger();
  ledger.run(add(AMOUNT_MAX, { validityDays: 1 }));
  const id = ledger.transact(holdFor(10, 2 * 86_400));
  assert.deepEqual(ledger.run(add(1)), { refused: 'BalanceTooLarge', requested: 1, available: 0 });
  ledger.now += DAY_MS;
  assert.deepEqual(ledger.run(add(AMOUNT_MAX)), {
    refused: 'BalanceTooLarge',
    requested: AMOUNT_MAX,
    available: AMOUNT_MAX - 10,
  });
  ledger.run(release(id));
  ledger.accept(add(AMOUNT_MAX));
});

test('a hold that lapses by the end of the period does not count toward the maximum after the renewal', () => {
  const ledger = almostFull();
  ledger.accept(holdFor(50, 86_400));
  assert.equal(balanceAt(ledger.state, END).balance, AMOUNT_MAX - 10);
});

test('a hold on credits that outlast the period does not raise the total after the renewal', () => {
  const ledger = almostFull();
  ledger.accept(subtract(50));
  ledger.accept(holdFor(1_000, 86_401));
  const { balance, held } = balanceAt(ledger.state, END);
  assert.equal(balance + held, AMOUNT_MAX - 10);
});

test('a hold that outlasts the period of a canceled cycle does not count toward the maximum, because no renewal follows', () => {
  const ledger = almostFull();
  ledger.accept(stopCycle());
  ledger.accept(holdFor(50, 86_401));
});

test('a refused hold changes nothing, and the credits can still be spent or held for a shorter time', () => {
  const ledger = almostFull();
  const before = ledger.state;
  ledger.run(holdFor(11, 86_401));
  assert.deepEqual(ledger.state, before);
  ledger.accept(holdFor(11, 86_399));
  ledger.accept(subtract(AMOUNT_MAX - 60 - 11 + 50));
});

test('all 2^53−1 credits can be held, captured and refunded', () => {
  const ledger = new MemoryLedger();
  ledger.accept(add(AMOUNT_MAX));
  const id = ledger.transact(hold(AMOUNT_MAX));
  const captured = ledger.transact(capture(id));
  ledger.accept(refund(captured));
  assert.equal(balanceAt(ledger.state, NOW).balance, AMOUNT_MAX);
});

test('a refund to the current period does not count toward the maximum after the renewal', () => {
  const ledger = almostFull();
  const spent = ledger.transact(subtract(50));
  ledger.accept(refund(spent));
  assert.equal(balanceAt(ledger.state, NOW).balance, AMOUNT_MAX - 10);
});

test('a refund that opens a cycle must leave room for the next period', () => {
  const ledger = new MemoryLedger();
  ledger.accept(add(30, { validityDays: 1 }));
  const spent = ledger.transact(subtract(30));
  ledger.now = END;
  ledger.accept(startCycle(AMOUNT_MAX - 20));
  ledger.accept(subtract(AMOUNT_MAX - 20));
  const long = refund(spent, null, { validityDays: 32 });
  assert.deepEqual(ledger.run(long), { refused: 'BalanceTooLarge', requested: 30, available: 20 });
  ledger.accept(refund(spent, null, { validityDays: 31 }));
});

test('if a refund with a validity opens no cycle, its credits do not count toward the maximum after the renewal', () => {
  const ledger = new MemoryLedger();
  ledger.accept(startCycle(AMOUNT_MAX, { validityDays: 1 }));
  const spent = ledger.transact(subtract(30));
  ledger.accept(refund(spent, null, { validityDays: 90 }));
});

test('releasing a hold after the end of its period makes room for an addition', () => {
  const ledger = almostFull();
  const id = ledger.transact(holdFor(10, 86_401));
  ledger.now = END;
  assert.deepEqual(ledger.run(add(1)), { refused: 'BalanceTooLarge', requested: 1, available: 0 });
  ledger.accept(release(id));
  ledger.accept(add(10, { validityDays: 1 }));
});

test('in random histories, the balance and the held credits never exceed 2^53−1 in total, now or later', () => {
  const parts = [2, 3, 4].map((count) => Math.floor(AMOUNT_MAX / count));
  const amounts = fc.constantFrom(1, 10, ...parts, ...parts.map((part) => part + 5), AMOUNT_MAX - 10, AMOUNT_MAX);
  fc.assert(
    fc.property(historiesOf(amounts), ({ state, now }) => {
      const ends = state.cycles.map(({ end }) => end);
      const lapses = state.holds.map(({ expiresAt }) => expiresAt);
      for (const boundary of [now, ...ends, ...lapses]) {
        for (const at of [boundary - 1, boundary, boundary + DAY_MS]) {
          if (at < now || at > now + 99 * DAY_MS) continue;
          const { balance, held } = balanceAt(state, at);
          assert(held <= AMOUNT_MAX - balance, `${balance} and ${held}`);
        }
      }
    }),
    { numRuns: 500 },
  );
});
