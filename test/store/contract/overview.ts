// The contract of what the console shows of a whole account: totals by day that are exact, also past 64 bits.

import assert from 'node:assert/strict';
import { AMOUNT_MAX } from '../../../src/ledger/amount.ts';
import { DAY_MS, HOUR_MS } from '../../../src/ledger/instant.ts';
import type { OverviewDay } from '../../../src/store/account-reads.ts';
import type { Contract } from '../store-contract.ts';
import { EndUser, NOON } from '../temporary-ledger.ts';

const DAYS = { days: 30 };
const NOBODY = 4_040;

export function overviewContract({ it, itInTime }: Contract): void {
  it('an overview of an account where nothing happened is of zeros, today last', async ({ store, account }) => {
    const { asOf, outstanding, endUsersWithCredits, days } = await store.accountReads.overview(account, DAYS);
    assert.deepEqual([outstanding, endUsersWithCredits, days.length], [0n, 0, 30]);
    assert.equal(days.at(-1)?.day, asOf - (asOf % DAY_MS));
    days.forEach(({ day }, index) => {
      assert.equal(day, (days[0] as OverviewDay).day + index * DAY_MS);
    });
    assert(days.every((day) => sumOf(day) === 0n && day.transactions === 0));
  });

  it('an overview sums what happened in its account alone', async ({ store, account, other }) => {
    const people = Array.from({ length: 60 }, (_, index) => new EndUser(account, index));
    await store.write(people.map((user, index) => user.add(100, 10 + (index % 7))));
    await store.write(people.map((user) => user.startCycle(50, 31)));
    await store.write(people.slice(0, 20).map((user) => user.subtract(120)));
    await store.write(people.slice(0, 5).map((user) => user.subtract(30)));
    await store.write([...people.slice(5, 7).map((user) => user.subtract(31)), new EndUser(other, 1).add(7)]);
    const { outstanding, endUsersWithCredits, days } = await store.accountReads.overview(account, DAYS);
    const { day: _, ...total } = totalOf(days);
    assert.deepEqual(total, {
      added: 6_000n,
      started: 3_000n,
      spent: 2_550n,
      expired: 0n,
      renewed: 0n,
      transactions: 145,
    });
    assert.deepEqual([outstanding, endUsersWithCredits], [6_450n, 55]);
    assert.equal((await store.accountReads.overview(other, DAYS)).outstanding, 7n);
    assert.equal((await store.accountReads.overview(NOBODY, DAYS)).outstanding, 0n);
  });

  it('totals are exact past 64 bits, and in a ledger that was opened again', async (ledger) => {
    const people = Array.from({ length: 1_100 }, (_, index) => new EndUser(ledger.account, index));
    for (let from = 0; from < people.length; from += 100)
      await ledger.store.write(people.slice(from, from + 100).map((user) => user.add(AMOUNT_MAX)));
    const all = 1_100n * BigInt(AMOUNT_MAX);
    assert(all > 2n ** 63n);
    for (const isReopened of [false, true]) {
      if (isReopened) await ledger.reopen();
      const { outstanding, endUsersWithCredits, days } = await ledger.store.accountReads.overview(ledger.account, DAYS);
      assert.deepEqual([outstanding, endUsersWithCredits, totalOf(days).added], [all, 1_100, all]);
    }
    await ledger.store.write([(people[0] as EndUser).subtract(AMOUNT_MAX)]);
    const { outstanding, endUsersWithCredits } = await ledger.store.accountReads.overview(ledger.account, DAYS);
    assert.deepEqual([outstanding, endUsersWithCredits], [all - BigInt(AMOUNT_MAX), 1_099]);
  });

  itInTime('each day has what was added, started, spent and renewed in it, and what expired', async (ledger) => {
    const { store, account } = ledger;
    const [ada, bob] = [new EndUser(account, 1), new EndUser(account, 2)];
    await store.write([ada.add(100, 2), bob.startCycle(10, 1)]);
    ledger.wall += DAY_MS;
    await store.write([bob.renew(), ada.subtract(30)]);
    ledger.wall += DAY_MS;
    await store.write([bob.renew(), bob.stopCycle(), bob.subtract(4)]);
    ledger.wall += DAY_MS + HOUR_MS;
    await store.write([ada.add(5, 1)]);
    const { asOf, outstanding, endUsersWithCredits, days } = await store.accountReads.overview(account, { days: 4 });
    assert.equal(asOf, ledger.wall);
    assert.deepEqual([outstanding, endUsersWithCredits], [5n, 1]);
    const today = NOON - (NOON % DAY_MS);
    const none = { added: 0n, started: 0n, spent: 0n, expired: 0n, renewed: 0n };
    assert.deepEqual(days, [
      { ...none, day: today, added: 100n, started: 10n, transactions: 2 },
      { ...none, day: today + DAY_MS, spent: 30n, expired: 10n, renewed: 10n, transactions: 2 },
      { ...none, day: today + 2 * DAY_MS, spent: 4n, expired: 80n, renewed: 10n, transactions: 2 },
      { ...none, day: today + 3 * DAY_MS, added: 5n, expired: 6n, transactions: 1 },
    ]);
    const [yesterday] = (await store.accountReads.overview(account, { days: 2 })).days;
    assert.deepEqual(yesterday, days[2]);
  });

  itInTime('credits count until the hour is over in which they end, and then have expired', async (ledger) => {
    const { store, account } = ledger;
    ledger.wall = NOON + 15 * 60_000;
    await store.write([new EndUser(account, 1).add(10, 1)]);
    const at = async (wall: number) => {
      ledger.wall = wall;
      const { outstanding, endUsersWithCredits, days } = await store.accountReads.overview(account, { days: 2 });
      return [outstanding, endUsersWithCredits, totalOf(days).expired];
    };
    assert.deepEqual(await at(NOON + DAY_MS), [10n, 1, 0n]);
    assert.deepEqual(await at(NOON + DAY_MS + HOUR_MS - 1), [10n, 1, 0n]);
    assert.deepEqual(await at(NOON + DAY_MS + HOUR_MS), [0n, 0, 10n]);
  });

  itInTime('who is given new credits within the hour in which the last ones ended counts once', async (ledger) => {
    const { store, account } = ledger;
    const ada = new EndUser(account, 1);
    ledger.wall = NOON + 15 * 60_000;
    await store.write([ada.add(10, 1)]);
    ledger.wall += DAY_MS + 60_000;
    assert.deepEqual((await store.cycles(ada.key)).cycles, [], 'what is looked at in between changes nothing');
    await store.write([ada.add(1, 5)]);
    assert.equal((await store.accountReads.overview(account, DAYS)).endUsersWithCredits, 1);
    ledger.wall += HOUR_MS;
    assert.equal((await store.accountReads.overview(account, DAYS)).endUsersWithCredits, 1);
  });

  it('adding up again changes nothing in a ledger that is whole', async ({ store, account }) => {
    const ada = new EndUser(account, 1);
    await store.write([ada.add(100), ada.startCycle(20), ada.subtract(110)]);
    const before = await store.accountReads.overview(account, DAYS);
    await store.addUpTotals();
    assert.deepEqual({ ...(await store.accountReads.overview(account, DAYS)), asOf: before.asOf }, before);
  });
}

function sumOf({ added, started, spent, expired, renewed }: OverviewDay): bigint {
  return added + started + spent + expired + renewed;
}

function totalOf(days: readonly OverviewDay[]): OverviewDay {
  return days.reduce((sum, day) => ({
    day: day.day,
    added: sum.added + day.added,
    started: sum.started + day.started,
    spent: sum.spent + day.spent,
    expired: sum.expired + day.expired,
    renewed: sum.renewed + day.renewed,
    transactions: sum.transactions + day.transactions,
  }));
}
