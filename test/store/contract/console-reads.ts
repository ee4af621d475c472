// Contract tests for what the console reads of one account, page by page. Its totals are in `overview.ts`, its charts in
// `charts.ts`.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ConsoleStore, HistoryTransaction } from '../../../src/store/console-store.ts';
import { InvalidCursor } from '../../../src/store/store-fault.ts';
import type { Contract, ContractLedger } from '../store-contract.ts';
import { EndUser, noted } from '../temporary-ledger.ts';

const FIRST_PAGE = { from: null, limit: 100 };
const UNKNOWN_ACCOUNT = 4_040;

export function consoleReadContract(contract: Contract): void {
  endUserContract(contract);
  recentContract(contract);
  historyContract(contract);
  noteContract(contract);
}

function endUserContract({ it }: Contract): void {
  it('An account has its name, and an unknown one has none', async ({ console, account, other }) => {
    assert.equal(await console.nameOf(account), 'first');
    assert.equal(await console.nameOf(other), 'second');
    assert.equal(await console.nameOf(UNKNOWN_ACCOUNT), null);
  });

  it('End users are listed in the order of their UUIDs, with their latest activity, page by page', async (ledger) => {
    const { account, other } = ledger;
    const people = [7, 3, 250, 1, 16].map((index) => new EndUser(account, index));
    await ledger.write([
      ...people.map((user) => user.add(5)),
      new EndUser(other, 2).add(1),
      new EndUser(UNKNOWN_ACCOUNT, 4).add(1),
    ]);
    const all = people.map(({ key }) => key.endUser).sort();
    for (const state of ['fresh', 'changed', 'opened again'] as const) {
      if (state === 'changed') await ledger.write([new EndUser(account, 3).subtract(1)]);
      if (state === 'opened again') await ledger.reopen();
      for (const limit of [1, 2, 4, 5, 100])
        assert.deepEqual(await endUsersOf(ledger.console, account, limit), all, `${limit} at a time, ${state}`);
      const { endUsers } = await ledger.console.endUsers(account, { after: null, prefix: '', limit: 100 });
      for (const { endUser, latestActivity } of endUsers) {
        const { transactions } = await ledger.transactions({ account, endUser }, { limit: 1 });
        assert.equal(latestActivity, transactions[0]?.createdAt);
      }
    }
  });

  it('The lowest and the highest UUID are listed as others are', async (ledger) => {
    const { console, account } = ledger;
    const people = ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff'];
    await ledger.write(people.map((uuid) => new EndUser(account, uuid).add(5)));
    for (const limit of [1, 2]) assert.deepEqual(await endUsersOf(console, account, limit), people);
  });

  it('End users are found by how their UUIDs begin', async (ledger) => {
    const { console, account } = ledger;
    await ledger.write([1, 2, 0xfe].map((index) => new EndUser(account, index).add(5)));
    const found = async (prefix: string, after: string | null = null) => {
      const { endUsers } = await console.endUsers(account, { after, prefix, limit: 10 });
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

  it('An end user that was refused everything is not listed', async (ledger) => {
    const { account } = ledger;
    const [refused, given] = [new EndUser(account, 1), new EndUser(account, 2)];
    const keyed = { ...refused.subtract(5), idempotency: { key: 'k', requestId: '1' } };
    await ledger.write([refused.subtract(5), keyed, refused.stopCycle(), refused.settle(), given.add(1)]);
    for (const isReopened of [false, true]) {
      if (isReopened) await ledger.reopen();
      assert.deepEqual(await endUsersOf(ledger.console, account, 10), [given.key.endUser]);
      assert.deepEqual((await ledger.console.recent(account, 10)).length, 1);
    }
  });

  it('A cursor that no list of end users has given out is refused', async (ledger) => {
    const { console, account } = ledger;
    await ledger.write([new EndUser(account, 1).add(5)]);
    for (const after of ['', '0', "'; --", '00000000-0000-4000-8000-00000000000', '../..', '\u0000'])
      await assert.rejects(console.endUsers(account, { after, prefix: '', limit: 10 }), InvalidCursor);
    assert.equal(ledger.trouble(), null);
  });
}

function recentContract({ it }: Contract): void {
  it('The latest transactions of an account are those of all its end users, and of no other account', async (ledger) => {
    const { account, other } = ledger;
    const people = Array.from({ length: 4 }, (_, index) => new EndUser(account, index));
    const [ada, bob] = people as [EndUser, EndUser];
    for (let round = 1; round <= 5; round++) {
      await later(ledger);
      await ledger.write(people.map((user) => user.add(round)));
      await ledger.write(Array.from({ length: 90 }, (_, index) => new EndUser(other, index).add(1)));
    }
    await later(ledger);
    await ledger.write([ada.startCycle(9), ada.stopCycle()]);
    await later(ledger);
    await ledger.write([bob.subtract(10)]);
    const added = [5, 4, 3, 2, 1].flatMap((amount) => Array(4).fill(`add ${amount}`));
    const expected = ['subtract -10', 'stop-cycle 0', 'start-cycle 9', ...added];
    for (const isConsumed of [false, true]) {
      if (isConsumed) await ledger.consumeFeed();
      for (const limit of [1, 3, 22, 100]) {
        const recent = await ledger.console.recent(account, limit);
        const names = recent.map(({ kind, amount }) => `${kind} ${amount}`);
        assert.deepEqual(names, expected.slice(0, limit), isConsumed ? 'consumed' : 'not consumed');
        const ids = recent.map(({ id }) => id);
        assert.deepEqual(ids, ids.toSorted().toReversed());
      }
    }
    const [latest] = await ledger.console.recent(account, 1);
    const [listed] = (await ledger.transactions(bob.key, { limit: 1 })).transactions;
    assert.deepEqual(latest, { ...listed, note: null, endUser: bob.key.endUser });
    assert.deepEqual(await ledger.console.recent(UNKNOWN_ACCOUNT, 10), []);
  });

  it('The latest transactions are found in a part of the feed that was consumed and in the rest', async (ledger) => {
    const { account, other } = ledger;
    const [ada, eve] = [new EndUser(account, 1), new EndUser(other, 1)];
    const amounts: number[] = [];
    for (let round = 1; round <= 60; round++) {
      await later(ledger);
      await ledger.write([ada.add(round), ...Array.from({ length: round % 5 }, () => eve.add(1))]);
      amounts.unshift(round);
      if (round % 20 === 7) await ledger.consumeFeed();
      if (round % 6 !== 1) continue;
      for (const limit of [1, 5, 100]) {
        const recent = await ledger.console.recent(account, limit);
        assert.deepEqual(
          recent.map(({ amount }) => amount),
          amounts.slice(0, limit),
        );
      }
    }
  });
}

function historyContract({ it }: Contract): void {
  it('A history has what each transaction drew on, its actor, and the stops', async (ledger) => {
    const ada = new EndUser(ledger.account, 1, 'user:12');
    await ledger.write([ada.add(10, 5), ada.startCycle(10, 9), ada.subtract(15), ada.stopCycle()]);
    const { transactions, next } = await ledger.console.history(ada.key, FIRST_PAGE);
    const { state } = await ledger.load(ada.key);
    const [first, second] = state.cycles.map(({ id, period }) => ({ cycleId: id, period }));
    const listed = transactions.map(({ kind, amount, actor, postings }) => ({ kind, amount, actor, postings }));
    const actor = 'user:12';
    const drawn = [
      { ...first, amount: -10 },
      { ...second, amount: -5 },
    ];
    assert.deepEqual(listed, [
      { kind: 'stop-cycle', amount: 0, actor, postings: [{ ...second, amount: 0 }] },
      { kind: 'subtract', amount: -15, actor, postings: drawn },
      { kind: 'start-cycle', amount: 10, actor, postings: [{ ...second, amount: 10 }] },
      { kind: 'add', amount: 10, actor, postings: [{ ...first, amount: 10 }] },
    ]);
    assert.equal(next, null);
  });

  it('Pages of a history hold each transaction once and whole, whatever is written meanwhile', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(1), ada.add(1), ada.add(1), ada.subtract(3), ada.startCycle(5), ada.stopCycle()]);
    await ledger.write([ada.add(4), ada.subtract(7)]);
    const { transactions: all } = await ledger.console.history(ada.key, FIRST_PAGE);
    assert.equal(all.length, 8);
    for (const limit of [1, 2, 3, 7, 8, 9]) {
      const before = (await ledger.console.history(ada.key, FIRST_PAGE)).transactions;
      const pages = await historyPages(ledger.console, ada, limit);
      assert.deepEqual(pages.flat(), before);
      for (const page of pages.slice(0, -1)) assert.equal(page.length, limit);
      assert.equal(pages.length, Math.ceil(before.length / limit));
      await ledger.write([ada.add(1)]);
    }
  });

  it('A cursor that no history has given out, or one of another end user, shows nothing', async (ledger) => {
    const [ada, eve] = [new EndUser(ledger.account, 1), new EndUser(ledger.other, 1)];
    await ledger.write([ada.add(5), ada.add(6), eve.add(7), eve.add(8)]);
    const { next } = await ledger.console.history(ada.key, { from: null, limit: 1 });
    assert(next !== null);
    for (const from of ['', '-1', '0', '1e3', '999999999999', "1'; --", 'ffffffff', '9'.repeat(40), '\u0000'])
      await assert.rejects(ledger.console.history(ada.key, { from, limit: 100 }), InvalidCursor, from);
    const stolen = await ledger.console.history(eve.key, { from: next, limit: 100 }).catch((error) => error);
    if (!(stolen instanceof InvalidCursor))
      for (const { amount } of stolen.transactions) assert(amount >= 7, 'nothing of the other account');
    assert.equal(ledger.trouble(), null);
  });

  it('An end user that was never given anything has no history', async (ledger) => {
    const { key } = new EndUser(ledger.account, 404);
    const { state, transactions, next } = await ledger.console.history(key, FIRST_PAGE);
    assert.deepEqual([state.cycles, transactions, next], [[], [], null]);
  });
}

function noteContract({ it }: Contract): void {
  it('A note is kept with its transaction, and with no other', async (ledger) => {
    const { account } = ledger;
    const ada = new EndUser(account, 1, 'user:12');
    const long = `${'ü'.repeat(499)}🦉`;
    const replaced = 'it\'s \\ "1"';
    await ledger.write([
      noted(ada.add(10, 5), 'goodwill, ticket 4711'),
      noted(ada.startCycle(10, 9), null),
      noted(ada.subtract(15), long),
      noted(ada.startCycle(10, 9, 'replace'), replaced),
      ada.add(1),
    ]);
    await ledger.reopen();
    const { transactions } = await ledger.console.history(ada.key, FIRST_PAGE);
    const notes = transactions.map(({ kind, note }) => [kind, note]);
    assert.deepEqual(notes, [
      ['add', null],
      ['start-cycle', replaced],
      ['stop-cycle', replaced],
      ['subtract', long],
      ['start-cycle', null],
      ['add', 'goodwill, ticket 4711'],
    ]);
    const recent = await ledger.console.recent(account, 10);
    assert.deepEqual(
      recent.map(({ kind, note }) => [kind, note]),
      notes,
    );
  });
}

/** What different end users do in the same millisecond has no order. */
async function later(ledger: ContractLedger): Promise<void> {
  ledger.wall += 1_000;
  await sleep(2);
}

async function endUsersOf(console: ConsoleStore, account: number, limit: number): Promise<string[]> {
  const all: string[] = [];
  for (let after: string | null = null; ; ) {
    const { endUsers, next } = await console.endUsers(account, { after, prefix: '', limit });
    all.push(...endUsers.map(({ endUser }) => endUser));
    assert(endUsers.length > 0 || next === null);
    if (next === null) return all;
    after = next;
  }
}

async function historyPages(
  console: ConsoleStore,
  { key }: EndUser,
  limit: number,
): Promise<(readonly HistoryTransaction[])[]> {
  const pages = [];
  for (let from: string | null = null; ; ) {
    const page = await console.history(key, { from, limit });
    pages.push(page.transactions);
    if (page.next === null) return pages;
    from = page.next;
  }
}
