// Contract tests for pages of transactions, latest first: each transaction is on exactly one page, even if other
// transactions are written while the pages are read.

import assert from 'node:assert/strict';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import type { Transaction } from '../../../src/ledger/posting.ts';
import { dueTransactions } from '../../../src/ledger/settle.ts';
import { type IdRange, idsBetween } from '../../../src/ledger/transaction-id.ts';
import { effort } from '../../effort.ts';
import type { Contract } from '../store-contract.ts';
import { EndUser, EVERYTHING, historyOf, NOON, transactionsOf } from '../temporary-ledger.ts';
import type { TestLedger } from '../test-ledger.ts';

/**
 * The transactions that `fill` writes, latest first. The `stop-cycle` transactions are missing, because a list omits
 * them unless it is filtered by this kind.
 */
const FILLED = [
  '-1 subtract',
  '+6 start-cycle',
  '-42 subtract',
  '+40 start-cycle',
  '-25 subtract',
  '+10 add',
  '+10 add',
  '+10 add',
  '-1 subtract',
  '+1 add',
];

/** How many batches a test writes before it lists the transactions for ranges of IDs. */
const ROUNDS = effort(40, 300);

async function fill(ledger: TestLedger, user: EndUser): Promise<void> {
  await ledger.write([user.add(1), user.subtract(1), user.add(10), user.add(10), user.add(10), user.subtract(25)]);
  await ledger.write([user.startCycle(40), user.stopCycle(), user.subtract(42), user.startCycle(6), user.subtract(1)]);
  await ledger.write([user.stopCycle()]);
}

export function pageContract({ it, itInTime }: Contract): void {
  it('`stop-cycle` transactions are not listed', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await fill(ledger, ada);
    assert.deepEqual(await historyOf(ledger, ada), FILLED);
  });

  it('pages of any length contain each transaction exactly once, and never split a transaction', async (ledger) => {
    const [ada, beside] = [new EndUser(ledger.account, 1), new EndUser(ledger.other, 1)];
    await fill(ledger, ada);
    await ledger.write([beside.add(1), ada.add(3), beside.add(1)]);
    const all = await transactionsOf(ledger, ada);
    assert.equal(all.length, FILLED.length + 1);
    for (const limit of [1, 2, 3, FILLED.length - 1, FILLED.length, FILLED.length + 1]) {
      const pages = await pagesOf(ledger, ada, limit);
      assert.deepEqual(pages.flat(), all);
      for (const page of pages.slice(0, -1)) assert.equal(page.length, limit);
      assert.equal(pages.length, Math.ceil(all.length / limit), 'no page is empty');
    }
  });

  it('the next page of transactions continues where the previous page ended, even if transactions were written in between', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await fill(ledger, ada);
    const all = await transactionsOf(ledger, ada);
    const seen: Transaction[] = [];
    for (let from: string | null = null; ; ) {
      const page = await ledger.transactions(ada.key, { from, limit: 2 });
      seen.push(...page.transactions);
      if (page.next === null) break;
      from = page.next;
      await ledger.write([ada.add(2), ada.subtract(1)]);
    }
    assert.deepEqual(seen, all);
    assert.equal((await transactionsOf(ledger, ada)).length, all.length + 8);
  });

  it('a page of transactions is the same when it is read again', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await fill(ledger, ada);
    const { next } = await ledger.transactions(ada.key, { limit: 3 });
    const once = await ledger.transactions(ada.key, { from: next, limit: 3 });
    await ledger.write([ada.add(2)]);
    const twice = await ledger.transactions(ada.key, { from: next, limit: 3 });
    assert.deepEqual([twice.transactions, twice.next], [once.transactions, once.next]);
  });

  it('a cursor never shows transactions of one end user in the list of another end user', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await fill(ledger, ada);
    const { next } = await ledger.transactions(ada.key, { limit: 3 });
    assert(next !== null);
    for (const stranger of [new EndUser(ledger.other, 1), new EndUser(ledger.account, 2)]) {
      await ledger.write([stranger.add(1)]);
      const page = await ledger.transactions(stranger.key, { from: next, limit: 3 });
      const own = await transactionsOf(ledger, stranger);
      assert.equal(own.length, 1);
      assert.deepEqual(page.transactions, page.transactions.length === 0 ? [] : own);
    }
  });

  itInTime(
    'a list for a range of transaction IDs contains exactly the transactions in the range, for any page size',
    async (ledger) => {
      const [ada, beside] = [new EndUser(ledger.account, 1), new EndUser(ledger.other, 1)];
      await ledger.write([ada.add(3), ada.add(100), ada.startCycle(7, 2), beside.add(1)]);
      for (let round = 0; round < ROUNDS; round++) {
        ledger.wall += (round % 3) * 1_000;
        const commands = [ada.add(2, 500), beside.add(1), ada.subtract(3), ada.stopCycle(), ada.startCycle(5)];
        await ledger.write(round % 4 === 0 ? commands : commands.slice(0, 3));
      }
      ledger.wall += 40 * DAY_MS;
      await ledger.write([ada.add(1)]);
      const all = await transactionsOf(ledger, ada);
      assert(all.length > ROUNDS);
      for (const [index, last] of [...all.entries()].filter(([index]) => index % 43 === 0)) {
        const first = all[Math.min(index + (index % 60), all.length - 1)] as Transaction;
        const within = { first: first.id, last: last.id };
        const expected = all.slice(index, all.indexOf(first) + 1);
        for (const limit of [1 + (index % 30), 1_000])
          assert.deepEqual((await pagesOf(ledger, ada, limit, within)).flat(), expected);
        const sameTime = all.filter(({ createdAt }) => createdAt >= first.createdAt && createdAt <= last.createdAt);
        const between = idsBetween(first.createdAt, last.createdAt);
        assert.deepEqual((await pagesOf(ledger, ada, 1_000, between)).flat(), sameTime);
        const page = await ledger.transactions(ada.key, { limit: 1, within });
        assert.deepEqual(page.transactions, [last]);
      }
    },
  );

  it('a list for a range of transaction IDs is correct even if the range begins or ends between the IDs of two transactions', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(1), ada.add(2), ada.subtract(3), ada.add(4)]);
    const [fourth, third, second] = await transactionsOf(ledger, ada);
    assert(second && third && fourth);
    const listed = async (first: string, last: string) => {
      const pages = await pagesOf(ledger, ada, 5, { first, last });
      return pages.flat().map(({ amount }) => amount);
    };
    assert.deepEqual(await listed(third.id, third.id), [-3]);
    const [before, behind] = [shifted(third.id, -1), shifted(third.id, 1)];
    assert.deepEqual(await listed(before, behind), [-3]);
    assert.deepEqual(await listed(second.id, before), [2]);
    assert.deepEqual(await listed(behind, fourth.id), [4]);
    assert.deepEqual(await listed(behind, behind), []);
    assert.deepEqual(await listed(fourth.id, second.id), [], 'a reversed range is empty');
  });

  it('a list for a range of transaction IDs is empty if the range contains no transactions', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const within = idsBetween(0, 5);
    assert.deepEqual(
      await pagesOf(ledger, ada, 3, within),
      [[]],
      'the list of an end user without transactions is empty',
    );
    await fill(ledger, ada);
    const at = (await transactionsOf(ledger, ada)).map(({ createdAt }) => createdAt);
    const [latest, earliest] = [Math.max(...at), Math.min(...at)];
    for (const empty of [within, idsBetween(latest + 1, latest + 9), idsBetween(earliest - 9, earliest - 1)])
      assert.deepEqual(await pagesOf(ledger, ada, 3, empty), [[]]);
  });

  itInTime('each page of transactions comes with the renewals that are due when the page is read', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(10), ada.startCycle(5, 2), ada.subtract(12)]);
    for (const days of [0, 1, 2, 7]) {
      ledger.wall += days * DAY_MS;
      const loaded = await ledger.load(ada.key);
      const due = [...dueTransactions(loaded.state, loaded.now)];
      assert.equal(due.length, Math.floor((ledger.wall - NOON) / (2 * DAY_MS)));
      let page = await ledger.transactions(ada.key, { limit: 1 });
      for (;;) {
        assert.deepEqual([page.now, [...dueTransactions(page.state, page.now)]], [loaded.now, due]);
        if (page.next === null) break;
        page = await ledger.transactions(ada.key, { from: page.next, limit: 1 });
      }
    }
  });
}

function shifted(id: string, by: 1 | -1): string {
  const tail = BigInt(`0x${id.slice(24)}`) + BigInt(by);
  assert(tail >= 0n && tail < 2n ** 48n, 'the shifted digits still fit into the ID');
  return id.slice(0, 24) + tail.toString(16).padStart(12, '0');
}

async function pagesOf(
  ledger: TestLedger,
  { key }: EndUser,
  limit: number,
  within: IdRange = EVERYTHING,
): Promise<(readonly Transaction[])[]> {
  const pages = [];
  for (let from: string | null = null; ; ) {
    const page = await ledger.transactions(key, { from, limit, within });
    pages.push(page.transactions);
    if (page.next === null) return pages;
    from = page.next;
  }
}
