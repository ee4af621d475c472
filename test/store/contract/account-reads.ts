// The contract of what the console reads of one account, and of nobody else's, page by page. Its totals are in `overview.ts`.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import { type AccountReads, type HistoryTransaction, InvalidCursor } from '../../../src/store/account-reads.ts';
import type { Store } from '../../../src/store/store.ts';
import type { Contract, Ledger } from '../store-contract.ts';
import { EndUser, NOON, noted } from '../temporary-ledger.ts';

const FIRST_PAGE = { from: null, limit: 100, since: null };
const NOBODY = 4_040;

export function accountReadsContract(contract: Contract): void {
  endUserContract(contract);
  recentContract(contract);
  historyContract(contract);
  noteContract(contract);
}

function endUserContract({ it }: Contract): void {
  it('an account has its name, and one that is not there has none', async ({ store, account, other }) => {
    assert.equal(await store.accountReads.nameOf(account), 'first');
    assert.equal(await store.accountReads.nameOf(other), 'second');
    assert.equal(await store.accountReads.nameOf(NOBODY), null);
  });

  it('end users are listed in the order of their UUIDs, with their latest activity, page by page', async (ledger) => {
    const { store, account, other } = ledger;
    const people = [7, 3, 250, 1, 16].map((index) => new EndUser(account, index));
    await store.write([
      ...people.map((user) => user.add(5)),
      new EndUser(other, 2).add(1),
      new EndUser(NOBODY, 4).add(1),
    ]);
    await store.write([new EndUser(account, 3).subtract(1)]);
    const all = people.map(({ key }) => key.endUser).sort();
    for (const limit of [1, 2, 4, 5, 100]) assert.deepEqual(await endUsersOf(store.accountReads, account, limit), all);
    const { endUsers } = await store.accountReads.endUsers(account, { after: null, prefix: '', limit: 100 });
    for (const { endUser, latestActivity } of endUsers) {
      const { transactions } = await store.transactions({ account, endUser }, { from: null, limit: 1 });
      assert.equal(latestActivity, transactions[0]?.createdAt);
    }
  });

  it('end users are found by how their UUIDs begin', async ({ store, account }) => {
    await store.write([1, 2, 0xfe].map((index) => new EndUser(account, index).add(5)));
    const found = async (prefix: string, after: string | null = null) => {
      const { endUsers } = await store.accountReads.endUsers(account, { after, prefix, limit: 10 });
      return endUsers.map(({ endUser }) => Number.parseInt(endUser.slice(-4), 16));
    };
    const whole = new EndUser(account, 0xfe).key.endUser;
    assert.deepEqual(await found('0'), [1, 2, 0xfe]);
    assert.deepEqual(await found('00000000-0000-4'), [1, 2, 0xfe]);
    assert.deepEqual(await found(whole.slice(0, -2)), [1, 2, 0xfe]);
    assert.deepEqual(await found(whole.slice(0, -1)), [0xfe]);
    assert.deepEqual(await found(whole.toUpperCase()), [0xfe]);
    assert.deepEqual(await found('0', new EndUser(account, 1).key.endUser), [2, 0xfe]);
    for (const nobody of ['1', `${whole.slice(0, -2)}ff`, `${whole}0`, 'ada', '%', "'"])
      assert.deepEqual(await found(nobody), [], nobody);
    const last = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    assert.deepEqual(await found('', last), []);
    assert.deepEqual(await found('0', last), []);
  });

  it('an end user who was refused everything is not listed', async ({ store, account }) => {
    await store.write([new EndUser(account, 1).subtract(5), new EndUser(account, 2).add(1)]);
    const { endUsers } = await store.accountReads.endUsers(account, { after: null, prefix: '', limit: 10 });
    assert.deepEqual(
      endUsers.map(({ endUser }) => endUser),
      [new EndUser(account, 2).key.endUser],
    );
  });

  it('a place in the list that is none is refused as such', async ({ store, account }) => {
    await store.write([new EndUser(account, 1).add(5)]);
    for (const after of ['', '0', "'; --", '00000000-0000-4000-8000-00000000000', '../..', '\u0000'])
      await assert.rejects(store.accountReads.endUsers(account, { after, prefix: '', limit: 10 }), InvalidCursor);
    assert.equal(store.trouble(), null);
  });
}

function recentContract({ it }: Contract): void {
  it('the latest transactions of an account are those of all its end users, and of nobody else’s', async (ledger) => {
    const { store, account, other } = ledger;
    const people = Array.from({ length: 4 }, (_, index) => new EndUser(account, index));
    for (let round = 1; round <= 5; round++) {
      await later(ledger);
      await store.write(people.map((user) => user.add(round)));
      await store.write(Array.from({ length: 90 }, (_, index) => new EndUser(other, index).add(1)));
    }
    await later(ledger);
    await store.write([people[0]?.startCycle(9) ?? assert.fail(), people[0]?.stopCycle() ?? assert.fail()]);
    await later(ledger);
    await store.write([people[1]?.subtract(10) ?? assert.fail()]);
    for (const limit of [1, 3, 22, 100]) {
      const recent = await store.accountReads.recent(account, limit);
      const expected = [
        'subtract -10',
        'stop-cycle 0',
        'start-cycle 9',
        ...[5, 4, 3, 2, 1].flatMap((n) => Array(4).fill(`add ${n}`)),
      ];
      assert.deepEqual(
        recent.map(({ kind, amount }) => `${kind} ${amount}`),
        expected.slice(0, limit),
      );
      assert.deepEqual(
        recent.map(({ id }) => id),
        recent
          .map(({ id }) => id)
          .sort()
          .reverse(),
      );
    }
    const [latest] = await store.accountReads.recent(account, 1);
    const [told] = (await store.transactions(people[1]?.key ?? assert.fail(), { from: null, limit: 1 })).transactions;
    assert.deepEqual(latest, { ...told, note: null, endUser: people[1]?.key.endUser });
    assert.deepEqual(await store.accountReads.recent(NOBODY, 10), []);
  });
}

function historyContract({ it, itInTime }: Contract): void {
  it('a history tells what each transaction drew on, who did it, and the stops', async ({ store, account }) => {
    const ada = new EndUser(account, 1, 'user:12');
    await store.write([ada.add(10, 5), ada.startCycle(10, 9), ada.subtract(15), ada.stopCycle()]);
    const { cycles, transactions, next } = await store.accountReads.history(ada.key, FIRST_PAGE);
    const [first, second] = cycles.map(({ id, period }) => ({ cycleId: id, period }));
    const told = transactions.map(({ kind, amount, actor, postings }) => ({ kind, amount, actor, postings }));
    const actor = 'user:12';
    assert.deepEqual(told, [
      { kind: 'stop-cycle', amount: 0, actor, postings: [{ ...second, amount: 0 }] },
      {
        kind: 'subtract',
        amount: -15,
        actor,
        postings: [
          { ...first, amount: -10 },
          { ...second, amount: -5 },
        ],
      },
      { kind: 'start-cycle', amount: 10, actor, postings: [{ ...second, amount: 10 }] },
      { kind: 'add', amount: 10, actor, postings: [{ ...first, amount: 10 }] },
    ]);
    assert.equal(next, null);
  });

  it('pages of a history hold each transaction once and whole, whatever is written meanwhile', async (ledger) => {
    const { store, account } = ledger;
    const ada = new EndUser(account, 1);
    await store.write([ada.add(1), ada.add(1), ada.add(1), ada.subtract(3), ada.startCycle(5), ada.stopCycle()]);
    await store.write([ada.add(4), ada.subtract(7)]);
    const { transactions: all } = await store.accountReads.history(ada.key, FIRST_PAGE);
    assert.equal(all.length, 8);
    for (const limit of [1, 2, 3, 7, 8, 9]) {
      const before = (await store.accountReads.history(ada.key, FIRST_PAGE)).transactions;
      const pages = await historyPages(store, ada, limit);
      assert.deepEqual(pages.flat(), before);
      for (const page of pages.slice(0, -1)) assert.equal(page.length, limit);
      assert.equal(pages.length, Math.ceil(before.length / limit));
      await store.write([ada.add(1)]);
    }
  });

  it('a place in a history that is none, or is another’s, tells nothing of anybody', async ({
    store,
    account,
    other,
  }) => {
    const [ada, eve] = [new EndUser(account, 1), new EndUser(other, 1)];
    await store.write([ada.add(5), ada.add(6), eve.add(7), eve.add(8)]);
    const { next } = await store.accountReads.history(ada.key, { ...FIRST_PAGE, limit: 1 });
    assert(next !== null);
    for (const from of ['', '-1', '0', '1e3', '999999999999', "1'; --", 'ffffffff', '9'.repeat(40), '\u0000'])
      await assert.rejects(store.accountReads.history(ada.key, { ...FIRST_PAGE, from }), InvalidCursor, from);
    const stolen = await store.accountReads.history(eve.key, { ...FIRST_PAGE, from: next }).catch((error) => error);
    if (!(stolen instanceof InvalidCursor))
      for (const { amount } of stolen.transactions) assert(amount >= 7, 'nothing of the other account');
    assert.equal(store.trouble(), null);
  });

  it('an end user never heard of has no history', async ({ store, account }) => {
    const { key } = new EndUser(account, 404);
    const { cycles, transactions, next } = await store.accountReads.history(key, FIRST_PAGE);
    assert.deepEqual([cycles, transactions, next], [[], [], null]);
    assert.deepEqual((await store.accountReads.cyclesSince(key, 0)).cycles, []);
  });

  itInTime(
    'a history since an instant leaves out what was before, and its cycles are those that end later',
    async (ledger) => {
      const { store, account } = ledger;
      const ada = new EndUser(account, 1);
      await store.write([ada.add(10, 1), ada.startCycle(20, 2)]);
      ledger.wall += 5 * DAY_MS;
      await store.write([ada.renew(), ada.add(30, 10)]);
      const since = async (instant: number) => {
        const { transactions } = await store.accountReads.history(ada.key, { ...FIRST_PAGE, since: instant });
        const { cycles, now } = await store.accountReads.cyclesSince(ada.key, instant);
        assert.equal(now, ledger.wall);
        return [transactions.map(({ amount }) => amount), cycles.map(({ end }) => (end - NOON) / DAY_MS)];
      };
      assert.deepEqual(await since(0), [
        [30, 20, 20, 20, 10],
        [1, 2, 4, 6, 15],
      ]);
      assert.deepEqual(await since(NOON + 2 * DAY_MS), [
        [30, 20, 20],
        [4, 6, 15],
      ]);
      assert.deepEqual(await since(NOON + 2 * DAY_MS + 1), [
        [30, 20],
        [4, 6, 15],
      ]);
    },
  );
}

function noteContract({ it }: Contract): void {
  it('a note is kept with what it is about, and only with that', async (ledger) => {
    const { account } = ledger;
    const ada = new EndUser(account, 1, 'user:12');
    const long = `${'ü'.repeat(499)}🦉`;
    const replaced = 'it\'s \\ "1"';
    await ledger.store.write([
      noted(ada.add(10, 5), 'goodwill, ticket 4711'),
      noted(ada.startCycle(10, 9), null),
      noted(ada.subtract(15), long),
      noted(ada.startCycle(10, 9, 'replace'), replaced),
      ada.add(1),
    ]);
    await ledger.reopen();
    const { transactions } = await ledger.store.accountReads.history(ada.key, FIRST_PAGE);
    const notes = transactions.map(({ kind, note }) => [kind, note]);
    assert.deepEqual(notes, [
      ['add', null],
      ['start-cycle', replaced],
      ['stop-cycle', replaced],
      ['subtract', long],
      ['start-cycle', null],
      ['add', 'goodwill, ticket 4711'],
    ]);
    const recent = await ledger.store.accountReads.recent(account, 10);
    assert.deepEqual(
      recent.map(({ kind, note }) => [kind, note]),
      notes,
    );
  });
}

/** What different end users do in the same millisecond has no order. */
async function later(ledger: Ledger): Promise<void> {
  ledger.wall += 1_000;
  await sleep(3);
}

async function endUsersOf(reads: AccountReads, account: number, limit: number): Promise<string[]> {
  const all: string[] = [];
  for (let after: string | null = null; ; ) {
    const { endUsers, next } = await reads.endUsers(account, { after, prefix: '', limit });
    all.push(...endUsers.map(({ endUser }) => endUser));
    assert(endUsers.length > 0 || next === null);
    if (next === null) return all;
    after = next;
  }
}

async function historyPages(store: Store, { key }: EndUser, limit: number): Promise<(readonly HistoryTransaction[])[]> {
  const pages = [];
  for (let from: string | null = null; ; ) {
    const page = await store.accountReads.history(key, { from, limit, since: null });
    pages.push(page.transactions);
    if (page.next === null) return pages;
    from = page.next;
  }
}
