// The contract of pages: whole transactions, each once, latest first, whatever is written meanwhile.

import assert from 'node:assert/strict';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import type { Transaction } from '../../../src/ledger/posting.ts';
import { type IdRange, idsBetween } from '../../../src/ledger/transaction-id.ts';
import type { Store } from '../../../src/store/store.ts';
import type { Contract } from '../store-contract.ts';
import { EndUser, historyOf, transactionsOf } from '../temporary-ledger.ts';

/** What `fill` leaves: some subtractions draw on one cycle, some on several, and stops lie between and on top. */
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

async function fill(store: Store, user: EndUser): Promise<void> {
  await store.write([user.add(1), user.subtract(1), user.add(10), user.add(10), user.add(10), user.subtract(25)]);
  await store.write([user.startCycle(40), user.stopCycle(), user.subtract(42), user.startCycle(6), user.subtract(1)]);
  await store.write([user.stopCycle()]);
}

export function pageContract({ it, itInTime }: Contract): void {
  it('stops are not listed', async ({ store, account }) => {
    const ada = new EndUser(account, 1);
    await fill(store, ada);
    assert.deepEqual(await historyOf(store, ada), FILLED);
  });

  for (const limit of [1, 2, 3, FILLED.length - 1, FILLED.length, FILLED.length + 1]) {
    it(`pages of ${limit} hold each transaction once and whole`, async ({ store, account, other }) => {
      const [ada, beside] = [new EndUser(account, 1), new EndUser(other, 1)];
      await fill(store, ada);
      await store.write([beside.add(1), ada.add(3), beside.add(1)]);
      const all = await transactionsOf(store, ada);
      assert.equal(all.length, FILLED.length + 1);
      const pages = await pagesOf(store, ada, limit);
      assert.deepEqual(pages.flat(), all);
      for (const page of pages.slice(0, -1)) assert.equal(page.length, limit);
      assert.equal(pages.length, Math.ceil(all.length / limit), 'no page is empty');
    });
  }

  it('a page goes on where it was, whatever is written meanwhile', async ({ store, account }) => {
    const ada = new EndUser(account, 1);
    await fill(store, ada);
    const all = await transactionsOf(store, ada);
    const seen: Transaction[] = [];
    for (let from: string | null = null; ; ) {
      const page = await store.transactions(ada.key, { from, limit: 2 });
      seen.push(...page.transactions);
      if (page.next === null) break;
      from = page.next;
      await store.write([ada.add(2), ada.subtract(1)]);
    }
    assert.deepEqual(seen, all);
    assert.equal((await transactionsOf(store, ada)).length, all.length + 8);
  });

  it('a page that was asked for twice is the same', async ({ store, account }) => {
    const ada = new EndUser(account, 1);
    await fill(store, ada);
    const { next } = await store.transactions(ada.key, { from: null, limit: 3 });
    const once = await store.transactions(ada.key, { from: next, limit: 3 });
    await store.write([ada.add(2)]);
    const twice = await store.transactions(ada.key, { from: next, limit: 3 });
    assert.deepEqual([twice.transactions, twice.next], [once.transactions, once.next]);
  });

  it('where one end user’s page goes on, nobody else finds anything but their own', async ({
    store,
    account,
    other,
  }) => {
    const ada = new EndUser(account, 1);
    await fill(store, ada);
    const { next } = await store.transactions(ada.key, { from: null, limit: 3 });
    assert(next !== null);
    for (const stranger of [new EndUser(other, 1), new EndUser(account, 2)]) {
      await store.write([stranger.add(1)]);
      const page = await store.transactions(stranger.key, { from: next, limit: 3 });
      const own = await transactionsOf(store, stranger);
      assert.equal(own.length, 1);
      assert.deepEqual(page.transactions, page.transactions.length === 0 ? [] : own);
    }
  });

  itInTime('a range of ids begins and ends where it says, whatever the size of the pages', async (ledger) => {
    const { store, account, other } = ledger;
    const [ada, beside] = [new EndUser(account, 1), new EndUser(other, 1)];
    // Enough for several landmarks, some of which are in the middle of a transaction.
    await store.write([ada.add(3), ada.add(100), ada.startCycle(7, 2), beside.add(1)]);
    for (let round = 0; round < 150; round++) {
      ledger.wall += (round % 3) * 1_000;
      await store.write([ada.add(2, 500), beside.add(1), ada.subtract(3), ada.stopCycle(), ada.startCycle(5)]);
    }
    ledger.wall += 40 * DAY_MS;
    await store.write([ada.add(1)]);
    const all = await transactionsOf(store, ada);
    assert(all.length > 300);
    for (const [index, last] of [...all.entries()].filter(([index]) => index % 23 === 0)) {
      const first = all[Math.min(index + (index % 60), all.length - 1)] as Transaction;
      const within = { first: first.id, last: last.id };
      const expected = all.slice(index, all.indexOf(first) + 1);
      for (const limit of [1 + (index % 30), 1_000])
        assert.deepEqual((await pagesOf(store, ada, limit, within)).flat(), expected);
      const sameTime = all.filter(({ createdAt }) => createdAt >= first.createdAt && createdAt <= last.createdAt);
      const between = idsBetween(first.createdAt, last.createdAt);
      assert.deepEqual((await pagesOf(store, ada, 1_000, between)).flat(), sameTime);
      const page = await store.transactions(ada.key, { from: null, limit: 1, within });
      assert.deepEqual(page.transactions, [last]);
    }
  });

  it('a range in which nothing happened is empty', async ({ store, account }) => {
    const ada = new EndUser(account, 1);
    const within = idsBetween(0, 5);
    assert.deepEqual(await pagesOf(store, ada, 3, within), [[]], 'nobody ever heard of');
    await fill(store, ada);
    const at = (await transactionsOf(store, ada)).map(({ createdAt }) => createdAt);
    const [latest, earliest] = [Math.max(...at), Math.min(...at)];
    for (const empty of [within, idsBetween(latest + 1, latest + 9), idsBetween(earliest - 9, earliest - 1)])
      assert.deepEqual(await pagesOf(store, ada, 3, empty), [[]]);
  });

  it('a page comes with the cycles of the same moment', async ({ store, account }) => {
    const ada = new EndUser(account, 1);
    await store.write([ada.add(10), ada.startCycle(5)]);
    const { now, cycles } = await store.transactions(ada.key, { from: null, limit: 1 });
    const read = await store.cycles(ada.key);
    assert.deepEqual(cycles, read.cycles);
    assert(now <= read.now && now >= (cycles[1]?.start ?? Number.POSITIVE_INFINITY));
  });
}

async function pagesOf(
  store: Store,
  { key }: EndUser,
  limit: number,
  within?: IdRange,
): Promise<(readonly Transaction[])[]> {
  const pages = [];
  for (let from: string | null = null; ; ) {
    const page = await store.transactions(key, { from, limit, ...(within && { within }) });
    pages.push(page.transactions);
    if (page.next === null) return pages;
    from = page.next;
  }
}
