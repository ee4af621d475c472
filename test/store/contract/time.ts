// The contract of time: what ends, what renews, and that the ledger's time never goes backwards.

import assert from 'node:assert/strict';
import { ACCEPTED, type Outcome } from '../../../src/ledger/command.ts';
import { DAY_MS, VALIDITY_DAYS_MAX } from '../../../src/ledger/instant.ts';
import type { Contract, Ledger } from '../store-contract.ts';
import { balanceOf, EndUser, historyOf, transactionsOf } from '../temporary-ledger.ts';

/** A store enters a thousand periods or more in one batch; these are more than any should. */
const TEN_YEARS_DAYS = 3_653;
const ROUNDS_MAX = 100;

export function timeContract(contract: Contract): void {
  endings(contract);
  renewals(contract);
  catchingUp(contract);
  backwards(contract);
}

function endings({ itInTime }: Contract): void {
  itInTime('credits count until the millisecond before their end', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const start = ledger.wall;
    await ledger.store.write([ada.add(10, 1), ada.add(5, 2)]);
    ledger.wall = start + DAY_MS - 1;
    assert.equal(await balanceOf(ledger.store, ada), 15);
    assert.deepEqual(await ledger.store.write([ada.subtract(1)]), [ACCEPTED]);
    ledger.wall = start + DAY_MS;
    assert.equal((await ledger.store.cycles(ada.key)).cycles.length, 1, 'a cycle that ends now is over');
    const refused: Outcome = { refused: 'InsufficientFunds', requested: 6, available: 5 };
    assert.deepEqual(await ledger.store.write([ada.subtract(6)]), [refused]);
  });

  itInTime('a stopped cycle keeps its credits to its end, and is not renewed there', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const start = ledger.wall;
    await ledger.store.write([ada.startCycle(10, 1)]);
    await ledger.store.write([ada.stopCycle()]);
    ledger.wall = start + DAY_MS - 1;
    assert.equal(await balanceOf(ledger.store, ada), 10);
    ledger.wall = start + DAY_MS;
    assert.equal(await balanceOf(ledger.store, ada), 0);
    assert.deepEqual(await ledger.store.renewalsDue(10), []);
    assert.deepEqual(await ledger.store.write([ada.stopCycle()]), [{ refused: 'CycleNotFound' }]);
    assert.deepEqual(await historyOf(ledger.store, ada), ['+10 start-cycle']);
  });
}

function renewals({ itInTime }: Contract): void {
  itInTime('a cycle renews at its end exactly, and leftover credits are not carried over', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const start = ledger.wall;
    await ledger.store.write([ada.startCycle(10, 1), ada.subtract(4)]);
    ledger.wall = start + DAY_MS - 1;
    assert.deepEqual(await ledger.store.write([ada.renew()]), [ACCEPTED]);
    assert.deepEqual(await historyOf(ledger.store, ada), ['-4 subtract', '+10 start-cycle']);
    ledger.wall = start + DAY_MS;
    assert.equal(await balanceOf(ledger.store, ada), 10, 'who reads needs no renewal to be stored');
    assert.deepEqual(await ledger.store.write([ada.subtract(10)]), [ACCEPTED]);
    const [, renewal] = await transactionsOf(ledger.store, ada);
    assert.equal(renewal?.kind, 'renew');
    assert.deepEqual([renewal?.createdAt, renewal?.expiresAt], [start + DAY_MS, start + 2 * DAY_MS]);
  });

  itInTime('periods that were missed are entered at their own instants', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const start = ledger.wall;
    await ledger.store.write([ada.startCycle(10, 1), ada.subtract(1)]);
    ledger.wall = start + 3 * DAY_MS + 5;
    await ledger.store.write([ada.renew()]);
    assert.deepEqual(await historyOf(ledger.store, ada), [
      ...Array(3).fill('+10 renew'),
      '-1 subtract',
      '+10 start-cycle',
    ]);
    const created = (await transactionsOf(ledger.store, ada)).map(({ createdAt }) => createdAt - start);
    assert.deepEqual(created, [3 * DAY_MS, 2 * DAY_MS, DAY_MS, 0, 0]);
    const { cycles } = await ledger.store.cycles(ada.key);
    assert.deepEqual(
      cycles.map(({ period, remaining, end }) => [period, remaining, end - start]),
      [[3, 10, 4 * DAY_MS]],
    );
  });

  itInTime('renewals are due from the end on, the longest overdue first, as many as are asked for', async (ledger) => {
    const { account, other } = ledger;
    const [weekly, daily, twoDays] = [new EndUser(account, 1), new EndUser(other, 2), new EndUser(account, 3)];
    const [stopped, oneTime, eternal] = [new EndUser(account, 4), new EndUser(account, 5), new EndUser(account, 6)];
    const start = ledger.wall;
    await ledger.store.write([weekly.startCycle(1, 7), twoDays.startCycle(1, 2), daily.startCycle(1, 1)]);
    await ledger.store.write([stopped.startCycle(1, 1), stopped.stopCycle(), oneTime.add(1, 1)]);
    await ledger.store.write([eternal.startCycle(1, VALIDITY_DAYS_MAX)]);
    const dueAt = async (instant: number, limit = 10) => {
      ledger.wall = instant;
      return ledger.store.renewalsDue(limit);
    };
    assert.deepEqual(await dueAt(start + DAY_MS - 1), []);
    assert.deepEqual(await dueAt(start + DAY_MS), [daily.key]);
    assert.deepEqual(await dueAt(start + 2 * DAY_MS - 1), [daily.key]);
    assert.deepEqual(await dueAt(start + 7 * DAY_MS), [daily.key, twoDays.key, weekly.key]);
    assert.deepEqual(await dueAt(start + 7 * DAY_MS, 2), [daily.key, twoDays.key]);
    assert.deepEqual(await ledger.store.write([daily.renew(), weekly.subtract(1)]), [ACCEPTED, ACCEPTED]);
    assert.deepEqual(await ledger.store.renewalsDue(10), [twoDays.key], 'who was renewed is not due');
    await ledger.store.write([twoDays.renew()]);
    assert.deepEqual(await ledger.store.renewalsDue(10), []);
  });

  itInTime('looking for what is due moves no clock', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const start = ledger.wall;
    await ledger.store.write([ada.add(10, 1)]);
    ledger.wall = start + DAY_MS;
    await ledger.store.renewalsDue(1);
    ledger.wall = start;
    assert.equal(await balanceOf(ledger.store, ada), 10);
  });
}

function catchingUp({ itInTime }: Contract): void {
  itInTime('ten years of missed days hold up nobody else, and asking again comes to their end', async (ledger) => {
    const { account, other } = ledger;
    const [slow, quick, fresh] = [new EndUser(account, 1), new EndUser(account, 2), new EndUser(other, 1)];
    const start = ledger.wall;
    await ledger.store.write([slow.startCycle(5, 1), quick.add(7, TEN_YEARS_DAYS * 2)]);
    ledger.wall = start + TEN_YEARS_DAYS * DAY_MS + 1;
    const batch = [
      slow.subtract(2),
      quick.subtract(3),
      slow.renew(),
      fresh.add(9),
      slow.subtract(5),
      fresh.subtract(9),
    ];
    assert.deepEqual(await ledger.store.write(batch), [null, ACCEPTED, null, ACCEPTED, null, ACCEPTED]);
    assert.equal(await balanceOf(ledger.store, slow), 5, 'who reads sees the last period, stored or not');
    const [subtracted, refused] = await askUntilAnswered(ledger, slow);
    assert.deepEqual(subtracted, ACCEPTED);
    assert.deepEqual(refused, { refused: 'InsufficientFunds', requested: 4, available: 3 });
    const [subtraction, ...rest] = await transactionsOf(ledger.store, slow);
    assert.equal(subtraction?.amount, -2);
    assert.deepEqual(
      rest.map(({ createdAt }) => (createdAt - start) / DAY_MS),
      Array.from({ length: TEN_YEARS_DAYS + 1 }, (_, day) => TEN_YEARS_DAYS - day),
    );
    assert.equal(await balanceOf(ledger.store, slow), 3);
    assert.equal(await balanceOf(ledger.store, quick), 4);
    assert.deepEqual(await ledger.store.renewalsDue(1), []);
  });

  itInTime('a ledger that is closed while it catches up goes on where it was', async (ledger) => {
    const slow = new EndUser(ledger.account, 1);
    await ledger.store.write([slow.startCycle(5, 1)]);
    ledger.wall += TEN_YEARS_DAYS * DAY_MS;
    assert.deepEqual(await ledger.store.write([slow.renew()]), [null]);
    await ledger.reopen();
    assert.deepEqual(await ledger.store.renewalsDue(10), [slow.key]);
    await askUntilAnswered(ledger, slow);
    assert.equal((await transactionsOf(ledger.store, slow)).length, TEN_YEARS_DAYS + 2);
  });
}

/** Subtracts 2 and then 4 credits. */
async function askUntilAnswered({ store }: Ledger, slow: EndUser): Promise<readonly (Outcome | null)[]> {
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const outcomes = await store.write([slow.subtract(2), slow.subtract(4)]);
    if (outcomes[0] !== null) return outcomes;
    assert.equal(outcomes[1], null, 'what comes later in the batch is not answered before');
  }
  throw new Error(`not answered after ${ROUNDS_MAX} batches`);
}

/** What may have seen the later time before the clock is set back. */
const WITNESSES: readonly (readonly [who: string, look: (ledger: Ledger, ada: EndUser) => Promise<unknown>])[] = [
  ['a write', ({ store, other }) => store.write([new EndUser(other, 9).add(1)])],
  ['a read of cycles', ({ store }, ada) => store.cycles(ada.key)],
  ['a read of transactions', ({ store }, ada) => store.transactions(ada.key, { from: null, limit: 1 })],
  ['a refused write', ({ store }, ada) => store.write([ada.subtract(1)])],
];

function backwards({ it, itInTime }: Contract): void {
  for (const [who, look] of WITNESSES) {
    itInTime(`what ${who} found over does not come back when the clock is set back`, async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.store.write([ada.add(10, 1)]);
      ledger.wall += DAY_MS;
      await look(ledger, ada);
      ledger.wall -= DAY_MS;
      assert.equal(await balanceOf(ledger.store, ada), 0);
      const refused = { refused: 'InsufficientFunds', requested: 1, available: 0 };
      assert.deepEqual(await ledger.store.write([ada.subtract(1)]), [refused]);
    });

    itInTime(`what ${who} found over does not come back when the ledger is opened again`, async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.store.write([ada.add(10, 1)]);
      ledger.wall += DAY_MS;
      await look(ledger, ada);
      ledger.wall -= DAY_MS;
      await ledger.reopen();
      assert.equal(await balanceOf(ledger.store, ada), 0);
      const refused = { refused: 'InsufficientFunds', requested: 1, available: 0 };
      assert.deepEqual(await ledger.store.write([ada.subtract(1)]), [refused]);
    });
  }

  itInTime('transactions stay in order when the clock is set back, or stands still', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const start = ledger.wall;
    for (const step of [0, 5, -1_000, 0, -DAY_MS, 3]) {
      ledger.wall += step;
      await ledger.store.write([ada.add(2), ada.subtract(1)]);
    }
    await ledger.reopen();
    await ledger.store.write([ada.add(2), ada.subtract(1)]);
    const transactions = (await transactionsOf(ledger.store, ada)).toReversed();
    const ids = transactions.map(({ id }) => id);
    assert.deepEqual(ids, ids.toSorted());
    assert.equal(new Set(ids).size, 14);
    const created = transactions.map(({ createdAt }) => createdAt - start);
    assert.deepEqual(created, [0, 0, ...Array(12).fill(5)]);
  });

  itInTime('a cycle that renewed is not unrenewed by a clock that is set back', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.store.write([ada.startCycle(10, 1), ada.subtract(7)]);
    ledger.wall += DAY_MS;
    await ledger.store.write([ada.renew()]);
    ledger.wall -= 12 * DAY_MS;
    await ledger.reopen();
    assert.deepEqual(await ledger.store.write([ada.subtract(10)]), [ACCEPTED]);
  });

  it('a ledger that is opened again holds what it held', async (ledger) => {
    const [ada, bob] = [new EndUser(ledger.account, 1), new EndUser(ledger.other, 1)];
    await ledger.store.write([ada.add(10), ada.startCycle(20), bob.add(5), ada.subtract(13), bob.subtract(1)]);
    const before = [await transactionsOf(ledger.store, ada), await transactionsOf(ledger.store, bob)];
    const { cycles } = await ledger.store.cycles(ada.key);
    await ledger.reopen();
    assert.deepEqual([await transactionsOf(ledger.store, ada), await transactionsOf(ledger.store, bob)], before);
    assert.deepEqual((await ledger.store.cycles(ada.key)).cycles, cycles);
    assert.deepEqual(await ledger.store.write([ada.subtract(17), bob.subtract(4)]), [ACCEPTED, ACCEPTED]);
  });
}
