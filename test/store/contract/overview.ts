// Contract tests for the console's account overview: its daily totals are exact, even beyond 64 bits.

import assert from 'node:assert/strict';
import { AMOUNT_MAX } from '../../../src/ledger/amount.ts';
import { DAY_MS, HOUR_MS } from '../../../src/ledger/instant.ts';
import type { Overview, OverviewDay } from '../../../src/store/console-store.ts';
import type { Contract, ContractLedger } from '../store-contract.ts';
import { daysPlan, EndUser, idsOf, NOON } from '../temporary-ledger.ts';

const DAYS = { days: 30 };
const UNKNOWN_ACCOUNT = 4_040;

export function overviewContract(contract: Contract): void {
  sums(contract);
  actors(contract);
  days(contract);
  lag(contract);
}

async function overviewOf(ledger: ContractLedger, account: number, request = DAYS): Promise<Overview> {
  await ledger.consumeFeed();
  return ledger.console.overview(account, request);
}

function sums({ it }: Contract): void {
  it('the overview of an account without transactions has only zeros, and its last day is today', async (ledger) => {
    const { asOf, outstanding, days } = await ledger.console.overview(ledger.account, DAYS);
    assert.deepEqual([outstanding, days.length], [0n, 30]);
    assert.equal(days.at(-1)?.day, asOf - (asOf % DAY_MS));
    days.forEach(({ day }, index) => {
      assert.equal(day, (days[0] as OverviewDay).day + index * DAY_MS);
    });
    assert(
      days.every(({ day: _, transactions, ...credits }) => sum(Object.values(credits)) === 0n && transactions === 0),
    );
  });

  it('an overview adds up the transactions of its own account only', async (ledger) => {
    const { account, other } = ledger;
    const people = Array.from({ length: 60 }, (_, index) => new EndUser(account, index));
    await ledger.write(people.map((user, index) => user.add(100, 10 + (index % 7))));
    await ledger.write(people.map((user) => user.startCycle(50, 31)));
    await ledger.write(people.slice(0, 20).map((user) => user.subtract(120)));
    await ledger.write(people.slice(0, 5).map((user) => user.subtract(30)));
    await ledger.write([...people.slice(5, 7).map((user) => user.subtract(31)), new EndUser(other, 1).add(7)]);
    const { outstanding, days } = await overviewOf(ledger, account);
    assert.deepEqual(totalOf(days), {
      added: 6_000n,
      started: 3_000n,
      spent: 2_550n,
      expired: 0n,
      renewed: 0n,
      transactions: 145,
    });
    assert.equal(outstanding, 6_450n);
    assert.equal((await overviewOf(ledger, other)).outstanding, 7n);
    assert.equal((await overviewOf(ledger, UNKNOWN_ACCOUNT)).outstanding, 0n);
  });

  it('an overview counts a subtraction from several cycles as one transaction, and does not count stops', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(1), ada.add(2), ada.startCycle(3), ada.subtract(6), ada.stopCycle()]);
    assert.equal(totalOf((await overviewOf(ledger, ledger.account)).days).transactions, 4);
  });

  it('totals are exact beyond 64 bits, even after the ledger is reopened', async (ledger) => {
    const { account } = ledger;
    const people = Array.from({ length: 1_100 }, (_, index) => new EndUser(account, index));
    for (let from = 0; from < people.length; from += 100)
      await ledger.write(people.slice(from, from + 100).map((user) => user.add(AMOUNT_MAX)));
    const all = 1_100n * BigInt(AMOUNT_MAX);
    assert(all > 2n ** 63n);
    for (const isReopened of [false, true]) {
      if (isReopened) await ledger.reopen();
      const { outstanding, days } = await overviewOf(ledger, account);
      assert.deepEqual([outstanding, totalOf(days).added], [all, all]);
    }
    await ledger.write([(people[0] as EndUser).subtract(AMOUNT_MAX)]);
    assert.equal((await overviewOf(ledger, account)).outstanding, all - BigInt(AMOUNT_MAX));
  });
}

function actors({ it }: Contract): void {
  it('an overview shows the totals of each actor, and can show the daily totals of a single actor', async (ledger) => {
    const { account } = ledger;
    const [byKey, byUser] = [new EndUser(account, 1, 'key:1'), new EndUser(account, 1, 'user:7')];
    await ledger.write([byKey.add(100), byKey.subtract(30), byKey.startCycle(50), byUser.add(7), byKey.subtract(1)]);
    await ledger.consumeFeed();
    const all = await ledger.console.overview(account, { days: 2 });
    assert.deepEqual(all.actors, [
      { actor: 'key:1', granted: 150n, spent: 31n, transactions: 4 },
      { actor: 'user:7', granted: 7n, spent: 0n, transactions: 1 },
    ]);
    const one = await ledger.console.overview(account, { days: 2, actor: 'user:7' });
    const { added, spent, expired, transactions } = totalOf(one.days);
    assert.deepEqual([added, spent, expired, transactions], [7n, 0n, 0n, 1]);
    assert.deepEqual([one.actors, one.outstanding], [all.actors, all.outstanding]);
    assert.deepEqual(totalOf((await ledger.console.overview(account, { days: 2, actor: 'key:9' })).days), totalOf([]));
  });
}

function days({ itInTime }: Contract): void {
  itInTime(
    'each day of an overview shows the credits added, started, spent, renewed and expired on that day',
    async (ledger) => {
      const { account } = ledger;
      const [ada, bob] = [new EndUser(account, 1), new EndUser(account, 2)];
      await ledger.write([ada.add(100, 2), bob.startCycle(10, 1)]);
      ledger.wall += DAY_MS;
      await ledger.write([bob.settle(), ada.subtract(30)]);
      ledger.wall += DAY_MS;
      await ledger.write([bob.settle(), bob.stopCycle(), bob.subtract(4)]);
      ledger.wall += DAY_MS + HOUR_MS;
      await ledger.write([ada.add(5, 1)]);
      const { asOf, outstanding, days } = await overviewOf(ledger, account, { days: 4 });
      assert.equal(asOf, ledger.wall);
      assert.equal(outstanding, 5n);
      const today = NOON - (NOON % DAY_MS);
      const none = { added: 0n, started: 0n, spent: 0n, expired: 0n, renewed: 0n };
      assert.deepEqual(days, [
        { ...none, day: today, added: 100n, started: 10n, transactions: 2 },
        { ...none, day: today + DAY_MS, spent: 30n, expired: 10n, renewed: 10n, transactions: 2 },
        { ...none, day: today + 2 * DAY_MS, spent: 4n, expired: 80n, renewed: 10n, transactions: 2 },
        { ...none, day: today + 3 * DAY_MS, added: 5n, expired: 6n, transactions: 1 },
      ]);
      const [yesterday] = (await ledger.console.overview(account, { days: 2 })).days;
      assert.deepEqual(yesterday, days[2]);
    },
  );

  itInTime(
    'credits count as outstanding until the end of the hour in which they expire, and then as expired',
    async (ledger) => {
      const { account } = ledger;
      ledger.wall = NOON + 15 * 60_000;
      await ledger.write([new EndUser(account, 1).add(10, 1)]);
      const at = async (wall: number) => {
        ledger.wall = wall;
        const { outstanding, days } = await overviewOf(ledger, account, { days: 2 });
        return [outstanding, totalOf(days).expired];
      };
      assert.deepEqual(await at(NOON + DAY_MS), [10n, 0n]);
      assert.deepEqual(await at(NOON + DAY_MS + HOUR_MS - 1), [10n, 0n]);
      assert.deepEqual(await at(NOON + DAY_MS + HOUR_MS), [0n, 10n]);
    },
  );

  itInTime('credits that roll over count neither as renewed nor as expired', async (ledger) => {
    const { account } = ledger;
    const ada = new EndUser(account, 1);
    await ledger.write([ada.startPlan(daysPlan(100, 1, 30)), ada.subtract(20)]);
    ledger.wall += DAY_MS + HOUR_MS;
    await ledger.write([ada.settle()]);
    const { outstanding, days } = await overviewOf(ledger, account, { days: 2 });
    assert.equal(outstanding, 130n);
    assert.deepEqual(
      days.map(({ started, spent, renewed, expired }) => ({ started, spent, renewed, expired })),
      [
        { started: 100n, spent: 20n, renewed: 0n, expired: 0n },
        { started: 0n, spent: 0n, renewed: 100n, expired: 50n },
      ],
    );
  });

  itInTime(
    'refunded credits of an ended cycle count as expired, or as outstanding if the refund has a validity',
    async (ledger) => {
      const { account } = ledger;
      const ada = new EndUser(account, 1);
      const [, spent] = idsOf(await ledger.write([ada.add(100, 1), ada.subtract(100)]));
      ledger.wall += 2 * DAY_MS;
      const counted = async () => {
        ledger.wall += HOUR_MS;
        const { outstanding, days } = await overviewOf(ledger, account, { days: 5 });
        const { added, spent, expired } = totalOf(days);
        assert.equal(added, spent + expired + outstanding);
        return { spent, expired, outstanding };
      };
      await ledger.write([ada.refund(spent as string, 40)]);
      assert.deepEqual(await counted(), { spent: 60n, expired: 40n, outstanding: 0n });
      await ledger.write([ada.refund(spent as string, 60, 1)]);
      assert.deepEqual(await counted(), { spent: 0n, expired: 40n, outstanding: 60n });
      ledger.wall += DAY_MS;
      assert.deepEqual(await counted(), { spent: 0n, expired: 100n, outstanding: 0n });
    },
  );

  itInTime('a renewal that is stored late is counted on the day on which it was due', async (ledger) => {
    const { account } = ledger;
    const ada = new EndUser(account, 1);
    await ledger.write([ada.startCycle(10, 1)]);
    ledger.wall += 3 * DAY_MS;
    await ledger.write([ada.settle()]);
    const { days } = await overviewOf(ledger, account, { days: 4 });
    assert.deepEqual(
      days.map(({ renewed, expired }) => [renewed, expired]),
      [
        [0n, 0n],
        [10n, 10n],
        [10n, 10n],
        [10n, 0n],
      ],
      'the last period ended within the current hour',
    );
  });
}

function lag({ itInTime }: Contract): void {
  itInTime('an overview reports the instant up to which it includes all transactions', async (ledger) => {
    const { account } = ledger;
    const ada = new EndUser(account, 1);
    const [first, second] = [ledger.wall, ledger.wall + HOUR_MS];
    await ledger.write([ada.add(10)]);
    ledger.wall = second;
    await ledger.write([ada.add(20)]);
    const before = await ledger.console.overview(account, DAYS);
    assert(
      before.asOf <= first,
      `the overview claims to be complete up to ${before.asOf - first} ms after the first addition`,
    );
    assert.equal(before.outstanding, 0n);
    await ledger.consumeFeed();
    const all = await ledger.console.overview(account, DAYS);
    assert.deepEqual([all.outstanding, all.asOf], [30n, second]);
    ledger.wall += HOUR_MS;
    const quiet = await ledger.console.overview(account, DAYS);
    assert.equal(quiet.asOf, ledger.wall, 'without new transactions, the overview is up to date');
    await ledger.write([ada.subtract(1)]);
    const behind = await ledger.console.overview(account, DAYS);
    assert(behind.asOf >= second && behind.asOf <= ledger.wall);
    assert.equal(behind.outstanding, 30n);
    await ledger.consumeFeed();
    await ledger.withTools((tools) => tools.rebuildTotals());
    const { asOf, outstanding } = await ledger.console.overview(account, DAYS);
    assert(
      outstanding === 29n || asOf <= first,
      'an overview does not claim to be complete while the totals are rebuilt',
    );
  });
}

type Totals = Omit<OverviewDay, 'day'>;

export function totalOf(days: readonly OverviewDay[]): Totals {
  const none: Totals = { added: 0n, started: 0n, spent: 0n, expired: 0n, renewed: 0n, transactions: 0 };
  return days.reduce(
    (total, day) => ({
      added: total.added + day.added,
      started: total.started + day.started,
      spent: total.spent + day.spent,
      expired: total.expired + day.expired,
      renewed: total.renewed + day.renewed,
      transactions: total.transactions + day.transactions,
    }),
    none,
  );
}

function sum(credits: readonly bigint[]): bigint {
  return credits.reduce((total, each) => total + each, 0n);
}
