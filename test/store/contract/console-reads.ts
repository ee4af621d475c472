// Contract tests for the reads of the console: account names, recent activity and histories. Totals are in
// `overview.ts`, charts in `charts.ts`.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import { idsBetween } from '../../../src/ledger/transaction-id.ts';
import {
  type ConsoleStore,
  type HistoryRequest,
  type HistoryTransaction,
  NAMED_CYCLES_MAX,
} from '../../../src/store/console-store.ts';
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
  it('The name of an account can be read, and an unknown account has none', async ({ console, account, other }) => {
    assert.equal(await console.nameOf(account), 'first');
    assert.equal(await console.nameOf(other), 'second');
    assert.equal(await console.nameOf(UNKNOWN_ACCOUNT), null);
  });
}

function recentContract({ it }: Contract): void {
  it('The recent activity of an account lists each end user once, so that a busy end user cannot fill it', async (ledger) => {
    const { account, other } = ledger;
    const [ada, bob, eve] = [new EndUser(account, 1), new EndUser(account, 2), new EndUser(account, 3)];
    await ledger.write([ada.add(9), new EndUser(other, 1).add(7)]);
    await later(ledger);
    await ledger.write([eve.add(5), eve.startCycle(4), eve.stopCycle()]);
    await later(ledger);
    await ledger.write([bob.add(1_000)]);
    for (let round = 0; round < 5; round++) await ledger.write(Array.from({ length: 100 }, () => bob.subtract(1)));
    await later(ledger);
    await ledger.write([noted(ada.add(1), 'why'), ada.subtract(10)]);
    await ledger.consumeFeed();
    const expected = ['subtract -10 of 1', 'subtract -1 of 2', 'stop-cycle 0 of 3'];
    for (const limit of [1, 2, 3, 100]) {
      const recent = await ledger.console.recent(account, limit);
      const names = recent.map(({ kind, amount, endUser }) => `${kind} ${amount} of ${Number(endUser.at(-1))}`);
      assert.deepEqual(names, expected.slice(0, limit));
    }
    const [latest] = await ledger.console.recent(account, 1);
    const [listed] = (await ledger.transactions(ada.key, { limit: 1 })).transactions;
    assert.deepEqual(latest, { ...listed, note: null, endUser: ada.key.endUser });
    assert.deepEqual(await ledger.console.recent(UNKNOWN_ACCOUNT, 10), []);
  });
}

function historyContract({ it, itInTime }: Contract): void {
  it('The history of an end user shows the postings and the actor of each transaction, including stops', async (ledger) => {
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

  it('Pages of a history contain each transaction once and whole, for any page size', async (ledger) => {
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

  it('An invalid cursor of a history is refused, and the cursor of another end user shows none of its transactions', async (ledger) => {
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

  itInTime('A history can be limited to one kind of transaction and to a range of time', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const begin = ledger.wall;
    for (let day = 0; day < 20; day++) {
      await ledger.write([ada.add(10, 30), ada.subtract(1), ada.subtract(2)]);
      if (day === 7) await ledger.write([ada.startCycle(50, 5)]);
      ledger.wall += DAY_MS;
    }
    const { transactions: all } = await ledger.console.history(ada.key, FIRST_PAGE);
    const days = (from: number, to: number) => idsBetween(begin + from * DAY_MS, begin + to * DAY_MS - 1);
    const wanted: readonly (Partial<HistoryRequest> & { count: number })[] = [
      { kind: 'add', count: 20 },
      { kind: 'start-cycle', count: 1 },
      { kind: 'renew', count: 2 },
      { kind: 'stop-cycle', count: 0 },
      { within: days(3, 5), count: 6 },
      { within: days(3, 5), kind: 'subtract', count: 4 },
      { within: days(0, 1), kind: 'start-cycle', count: 0 },
      { within: days(-9, 0), count: 0 },
      { within: days(20, 90), count: 0 },
    ];
    for (const { count, ...request } of wanted) {
      const { kind, within } = request;
      const expected = all.filter(
        (one) => (!kind || one.kind === kind) && (!within || (one.id >= within.first && one.id <= within.last)),
      );
      assert.equal(expected.length, count, JSON.stringify(request));
      for (const limit of [1, 3, 100])
        assert.deepEqual((await historyPages(ledger.console, ada, limit, request)).flat(), expected);
    }
  });

  it('A page of a history of one kind reads a bounded number of postings, and may therefore be empty', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(9), ada.add(100_000)]);
    for (let batch = 0; batch < 14; batch++) await ledger.write(Array.from({ length: 400 }, () => ada.subtract(1)));
    const pages = await historyPages(ledger.console, ada, 100, { kind: 'add' });
    assert.deepEqual(
      pages.map((page) => page.map(({ amount }) => amount)),
      [[], [100_000, 9]],
    );
  });

  it('A history includes the type, amount and validity of every cycle that it names', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(10, 5), ada.startCycle(20, 9), ada.subtract(15)]);
    await ledger.write(Array.from({ length: 5 }, () => ada.subtract(1)));
    await ledger.write([ada.startCycle(40, 7, 'replace'), ada.subtract(11), ada.add(3, 2)]);
    for (const limit of [1, 3, 100]) {
      for (let from: string | null = null; ; ) {
        const page = await ledger.console.history(ada.key, { from, limit });
        for (const { postings } of page.transactions)
          for (const { cycleId } of postings) assert(page.openings.has(cycleId), `limit ${limit}`);
        const named = [...page.openings.values()].map(
          ({ type, amount, validityDays }) => `${type} ${amount} ${validityDays}`,
        );
        const possible = ['one-time 10 5', 'recurring 20 9', 'recurring 40 7', 'one-time 3 2'];
        if (limit === 100) assert.deepEqual(named.toSorted(), possible.toSorted());
        else assert(named.every((name) => possible.includes(name)));
        if (page.next === null) break;
        from = page.next;
      }
    }
  });

  it('A history includes the terms of only the first few cycles of a subtraction from many cycles', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    for (let batch = 0; batch < 3; batch++) await ledger.write(Array.from({ length: 500 }, () => ada.add(1)));
    await ledger.write([ada.subtract(1_500)]);
    const { transactions, openings } = await ledger.console.history(ada.key, { from: null, limit: 1 });
    assert.equal(transactions[0]?.postings.length, 1_500);
    const first = transactions[0]?.postings.slice(0, NAMED_CYCLES_MAX).map(({ cycleId }) => cycleId);
    assert.deepEqual([...openings.keys()].toSorted(), first);
  });

  it('An unknown end user has an empty history', async (ledger) => {
    const { key } = new EndUser(ledger.account, 404);
    const { state, transactions, next } = await ledger.console.history(key, FIRST_PAGE);
    assert.deepEqual([state.cycles, transactions, next], [[], [], null]);
  });
}

function noteContract({ it }: Contract): void {
  it('A note is stored with its own transaction only', async (ledger) => {
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
    await ledger.consumeFeed();
    const [recent] = await ledger.console.recent(account, 10);
    assert.deepEqual([recent?.kind, recent?.note], notes[0]);
  });
}

/** Moves the clock, because transactions of different end users in the same millisecond have no order. */
async function later(ledger: ContractLedger): Promise<void> {
  ledger.wall += 1_000;
  await sleep(2);
}

async function historyPages(
  console: ConsoleStore,
  { key }: EndUser,
  limit: number,
  request: Partial<HistoryRequest> = {},
): Promise<(readonly HistoryTransaction[])[]> {
  const pages = [];
  for (let from: string | null = null; ; ) {
    const page = await console.history(key, { ...request, from, limit });
    pages.push(page.transactions);
    if (page.next === null) return pages;
    from = page.next;
  }
}
