// Contract tests for lists of end users: for any page size, each end user appears once, in order, with a balance that
// excludes expired credits.

import assert from 'node:assert/strict';
import { deriveEvents } from '../../../src/events/derive.ts';
import { DAY_MS, HOUR_MS, INSTANT_MAX, VALIDITY_DAYS_MAX } from '../../../src/ledger/instant.ts';
import type { EndUserList, ListedEndUser } from '../../../src/store/end-user-lists.ts';
import { InvalidCursor } from '../../../src/store/store-fault.ts';
import { effort } from '../../effort.ts';
import { Random } from '../../load/random.ts';
import type { Contract, ContractLedger } from '../store-contract.ts';
import { balanceOf, EndUser, NOON, problemsOf } from '../temporary-ledger.ts';

const UNKNOWN_ACCOUNT = 4_040;

export function endUserListContract(contract: Contract): void {
  lists(contract);
  searches(contract);
  lag(contract);
  time(contract);
}

async function listed(
  { console, account }: ContractLedger,
  list: EndUserList,
  limit = 1_000,
): Promise<readonly ListedEndUser[]> {
  const all: ListedEndUser[] = [];
  for (let after: string | null = null; ; ) {
    const { endUsers, next } = await console.endUsers(account, { list, after, limit });
    all.push(...endUsers);
    assert(endUsers.length === limit || next === null, 'every page before the last page is full');
    if (next === null) return all;
    after = next;
  }
}

async function numbersIn(ledger: ContractLedger, list: EndUserList, limit?: number): Promise<number[]> {
  return (await listed(ledger, list, limit)).map(({ endUser }) => Number.parseInt(endUser.slice(-4), 16));
}

function lists({ it, itInTime }: Contract): void {
  itInTime('each list of end users has the right order for any page size', async (ledger) => {
    const { account, other } = ledger;
    const people = [7, 3, 250, 1, 16, 9].map((number) => new EndUser(account, number));
    const [seven, three, rich, one, sixteen, nine] = people as [EndUser, EndUser, EndUser, EndUser, EndUser, EndUser];
    const inOrder = [
      [seven.add(5, 3)],
      [three.add(100), three.subtract(100)],
      [rich.add(9_000), rich.startCycle(1, 2)],
      [one.startCycle(40, 5), one.subtract(1)],
      [sixteen.add(5, 2)],
      [nine.add(7), nine.subtract(7)],
      [new EndUser(other, 2).add(1), new EndUser(UNKNOWN_ACCOUNT, 4).add(1)],
    ];
    for (const commands of inOrder) {
      ledger.wall += 1_000;
      await ledger.write(commands);
    }
    const expected: readonly (readonly [EndUserList, number[]])[] = [
      [{ by: 'activity' }, [9, 16, 1, 250, 3, 7]],
      [{ by: 'balance' }, [250, 1, 16, 7, 9, 3]],
      [{ by: 'low-balance', balanceMax: 39 }, [7, 16, 1]],
      [{ by: 'low-balance', balanceMax: 5 }, [7, 16]],
      [{ by: 'no-credits' }, [9, 3]],
      [{ by: 'expiry', until: NOON + 4 * DAY_MS }, [16, 7]],
      [{ by: 'expiry', until: INSTANT_MAX }, [16, 7, 250]],
      [{ by: 'id', prefix: '' }, [1, 3, 7, 9, 16, 250]],
    ];
    for (const state of ['fresh', 'opened again', 'rebuilt'] as const) {
      if (state === 'opened again') await ledger.reopen();
      if (state === 'rebuilt') await ledger.withTools((tools) => tools.rebuildTotals());
      await ledger.consumeFeed();
      for (const [list, numbers] of expected)
        for (const limit of [1, 2, 5, 6, 1_000])
          assert.deepEqual(await numbersIn(ledger, list, limit), numbers, `${list.by}, ${limit} at a time, ${state}`);
      assert.deepEqual(await ledger.console.endUserCounts(account), { endUsers: 6, withCredits: 4 });
    }
    assert.deepEqual(await ledger.console.endUserCounts(other), { endUsers: 1, withCredits: 1 });
  });

  it('a list of end users shows the balance and the latest activity of each end user', async (ledger) => {
    const { account } = ledger;
    const random = new Random(21);
    const people = Array.from({ length: 25 }, (_, number) => new EndUser(account, number));
    for (let round = 0; round < 6; round++) {
      await ledger.write(
        people.flatMap((user) => [
          random.pick([user.add(1 + random.below(50)), user.startCycle(9), user.stopCycle(), user.subtract(1)]),
          user.subtract(1 + random.below(30)),
        ]),
      );
      if (round % 2 === 0) await ledger.consumeFeed();
    }
    await ledger.consumeFeed();
    const all = await listed(ledger, { by: 'id', prefix: '' });
    for (const { endUser, balance, latestActivity } of all) {
      const { transactions } = await ledger.history({ account, endUser }, { limit: 1 });
      assert.equal(balance, await balanceOf(ledger.store, new EndUser(account, endUser)));
      assert.equal(latestActivity, transactions[0]?.createdAt);
    }
    const withCredits = all.filter(({ balance }) => balance > 0).length;
    assert.deepEqual(await ledger.console.endUserCounts(account), { endUsers: all.length, withCredits });
  });

  it('a list of end users shows each of them exactly once, even if several have the same sort key', async (ledger) => {
    const { account } = ledger;
    const people = Array.from({ length: 30 }, (_, number) => new EndUser(account, number));
    await ledger.write(people.map((user) => user.add(10, 3)));
    await ledger.consumeFeed();
    for (const list of [
      { by: 'activity' },
      { by: 'balance' },
      { by: 'low-balance', balanceMax: 10 },
      { by: 'expiry', until: INSTANT_MAX },
    ] as const) {
      const numbers = await numbersIn(ledger, list, 7);
      assert.deepEqual(
        numbers.toSorted((a, b) => a - b),
        people.map((_, number) => number),
        list.by,
      );
    }
  });

  it('an end user whose requests were all refused does not appear in any list', async (ledger) => {
    const { account } = ledger;
    const [refused, given] = [new EndUser(account, 1), new EndUser(account, 2)];
    const keyed = { ...refused.subtract(5), idempotency: { key: 'k', requestId: '1' } };
    await ledger.write([refused.subtract(5), keyed, refused.stopCycle(), refused.settle(), given.add(1)]);
    await ledger.consumeFeed();
    assert.deepEqual(await numbersIn(ledger, { by: 'id', prefix: '' }), [2]);
    assert.equal((await ledger.console.recent(account, 10)).length, 1);
    assert.deepEqual(await ledger.console.endUserCounts(UNKNOWN_ACCOUNT), { endUsers: 0, withCredits: 0 });
  });
}

function searches({ it }: Contract): void {
  it('end users can be found by a prefix of their UUIDs', async (ledger) => {
    const { console, account } = ledger;
    await ledger.write([1, 2, 0xfe].map((index) => new EndUser(account, index).add(5)));
    await ledger.consumeFeed();
    const found = async (prefix: string, after: string | null = null) => {
      const { endUsers } = await console.endUsers(account, { list: { by: 'id', prefix }, after, limit: 10 });
      return endUsers.map(({ endUser }) => Number.parseInt(endUser.slice(-4), 16));
    };
    const whole = new EndUser(account, 0xfe).key.endUser;
    assert.deepEqual(await found('0'), [1, 2, 0xfe]);
    assert.deepEqual(await found('00000000-0000-4'), [1, 2, 0xfe]);
    assert.deepEqual(await found(whole.slice(0, -2)), [1, 2, 0xfe]);
    assert.deepEqual(await found(whole.slice(0, -1)), [0xfe]);
    assert.deepEqual(await found(whole.toUpperCase()), [0xfe]);
    assert.deepEqual(await found('0', new EndUser(account, 1).key.endUser), [2, 0xfe]);
    for (const unknown of ['1', `${whole.slice(0, -2)}ff`, `${whole}0`, 'ada', '%', "'"])
      assert.deepEqual(await found(unknown), [], unknown);
    const last = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    assert.deepEqual(await found('', last), []);
    assert.deepEqual(await found('0', last), []);
  });

  it('an end user whose UUID is all zeros is on the first page of each list', async (ledger) => {
    const nil = new EndUser(ledger.account, '00000000-0000-0000-0000-000000000000');
    await ledger.write([nil.add(5)]);
    await ledger.consumeFeed();
    for (const list of [{ by: 'id', prefix: '' }, { by: 'activity' }, { by: 'balance' }] as const)
      assert.deepEqual(await numbersIn(ledger, list), [0], list.by);
  });

  it('an invalid cursor for a list of end users is refused', async (ledger) => {
    const { console, account } = ledger;
    await ledger.write([new EndUser(account, 1).add(5)]);
    await ledger.consumeFeed();
    const uuid = '00000000-0000-4000-8000-000000000000';
    for (const after of [
      '',
      '0',
      "'; --",
      '00000000-0000-4000-8000-00000000000',
      '../..',
      '\u0000',
      `-1.${uuid}`,
      `1e3.${uuid}`,
      `99999999999999999.${uuid}`,
      `1.1.1.${uuid}`,
    ])
      for (const list of [{ by: 'id', prefix: '' }, { by: 'activity' }, { by: 'balance' }] as const)
        await assert.rejects(console.endUsers(account, { list, after, limit: 10 }), InvalidCursor, after);
    assert.equal(ledger.trouble(), null);
  });
}

function lag({ it, itInTime }: Contract): void {
  itInTime('a list of end users reports the instant up to which it includes all transactions', async (ledger) => {
    const { account, console } = ledger;
    const ada = new EndUser(account, 1);
    const page = () => console.endUsers(account, { list: { by: 'activity' }, after: null, limit: 10 });
    assert.equal((await page()).asOf, ledger.wall);
    const first = ledger.wall;
    await ledger.write([ada.add(10)]);
    ledger.wall += HOUR_MS;
    await ledger.write([ada.add(20)]);
    const before = await page();
    assert.deepEqual(before.endUsers, []);
    assert(before.asOf <= first);
    await ledger.consumeFeed();
    const after = await page();
    assert.deepEqual([after.asOf, after.endUsers[0]?.balance], [ledger.wall, 30]);
    ledger.wall += HOUR_MS;
    assert.equal((await page()).asOf, ledger.wall, 'without new transactions, the list is up to date');
    await ledger.write([ada.subtract(1)]);
    const behind = await page();
    assert.equal(behind.endUsers[0]?.balance, 30);
    assert(behind.asOf < ledger.wall);
  });

  itInTime('a list that still contains expired credits reports an instant before the expiry', async (ledger) => {
    const { account, console } = ledger;
    const page = () => console.endUsers(account, { list: { by: 'activity' }, after: null, limit: 10 });
    await ledger.write([new EndUser(account, 1).add(10, 1)]);
    await ledger.consumeFeed();
    const expiry = ledger.wall + DAY_MS;
    ledger.wall += 2 * DAY_MS;
    const { asOf, endUsers } = await page();
    assert.deepEqual([asOf, endUsers[0]?.balance], [expiry - 1, 10]);
    await ledger.consumeFeed();
    const later = await page();
    assert.deepEqual([later.asOf, later.endUsers[0]?.balance], [ledger.wall, 0]);
  });

  it('summaries that are derived while writes are running match the postings', async (ledger) => {
    const { account } = ledger;
    const people = Array.from({ length: 200 }, (_, number) => new EndUser(account, number));
    const random = new Random(22);
    let isOver = false;
    const summarizing = (async () => {
      while (!isOver) {
        await ledger.store.updateTotals();
        await ledger.events.deriveNext(deriveEvents);
      }
    })();
    for (let round = 0; round < effort(12, 60); round++)
      await ledger.write(
        Array.from({ length: 20 }, () => random.pick(people)).flatMap((user) => [
          user.add(3),
          user.subtract(1 + random.below(3)),
        ]),
      );
    isOver = true;
    await summarizing;
    await ledger.consumeFeed();
    const all = await listed(ledger, { by: 'id', prefix: '' });
    for (const { endUser, balance } of all)
      assert.equal(balance, await balanceOf(ledger.store, new EndUser(account, endUser)));
    assert.deepEqual(problemsOf(await ledger.audit()), []);
  });

  it('summaries are not updated if there are no new postings', async (ledger) => {
    assert.equal(await ledger.events.deriveNext(deriveEvents), false);
    await ledger.write([new EndUser(ledger.account, 1).add(5)]);
    await ledger.consumeFeed();
    assert.equal(await ledger.events.deriveNext(deriveEvents), false);
  });
}

function time({ itInTime }: Contract): void {
  itInTime(
    'the audit accepts a summary that is derived only up to the instant of a lapse, even if the lapse was stored after the cycle of the hold had ended',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.write([ada.add(18, 6), ada.hold(10, 86_400)]);
      await ledger.consumeFeed();
      ledger.wall += 10 * DAY_MS;
      await ledger.reopen();
      await ledger.write([ada.settle()]);
      await ledger.reopen();
      const balances: number[] = [];
      for (let isMore: boolean | null = true; isMore; ) {
        isMore = await ledger.events.deriveNext(deriveEvents);
        assert.deepEqual(problemsOf(await ledger.audit()), []);
        balances.push(...(await listed(ledger, { by: 'activity' })).map(({ balance }) => balance));
      }
      assert.deepEqual([balances[0], balances.at(-1)], [18, 0], 'the summary is derived up to the lapse first');
    },
  );

  itInTime(
    'the balances in a list of end users exclude expired credits and include renewed credits',
    async (ledger) => {
      const { account } = ledger;
      const [ada, bob, eve] = [new EndUser(account, 1), new EndUser(account, 2), new EndUser(account, 3)];
      await ledger.write([
        ada.add(10, 1),
        ada.add(5, 3),
        bob.startCycle(20, 2),
        bob.subtract(8),
        eve.add(1, VALIDITY_DAYS_MAX),
      ]);
      const balances = async (at: number, isSettled = false) => {
        ledger.wall = at;
        if (isSettled) await ledger.write([bob.settle()]);
        await ledger.consumeFeed();
        assert.deepEqual(problemsOf(await ledger.audit()), []);
        const all = await listed(ledger, { by: 'id', prefix: '' });
        const { withCredits } = await ledger.console.endUserCounts(account);
        return [
          ...all.map(({ balance, expiresAt }) => [balance, expiresAt && (expiresAt - NOON) / DAY_MS]),
          withCredits,
        ];
      };
      assert.deepEqual(await balances(NOON), [[15, 1], [12, null], [1, null], 3]);
      assert.deepEqual(await balances(NOON + DAY_MS - 1), [[15, 1], [12, null], [1, null], 3]);
      assert.deepEqual(await balances(NOON + DAY_MS), [[5, 3], [12, null], [1, null], 3]);
      assert.deepEqual(await balances(NOON + 2 * DAY_MS, true), [[5, 3], [20, null], [1, null], 3]);
      assert.deepEqual(await balances(NOON + 3 * DAY_MS), [[0, null], [20, null], [1, null], 2]);
      await ledger.write([bob.stopCycle()]);
      assert.deepEqual(await balances(NOON + 3 * DAY_MS), [[0, null], [20, 4], [1, null], 2]);
      assert.deepEqual(await balances(NOON + 4 * DAY_MS), [[0, null], [0, null], [1, null], 1]);
      ledger.wall = NOON + 4_000 * DAY_MS;
      assert.deepEqual(problemsOf(await ledger.audit()), [], 'the audit accepts summaries that are not up to date');
    },
  );
}
