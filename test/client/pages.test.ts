// Tests the client's transactions iterator on the real service.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Scrip, type Transaction } from '../../client/src/scrip.ts';
import { MovableClock, type Scrip as Service, someone, startScrip } from '../http/running-service.ts';

const COUNT = 10;

const clock = new MovableClock('2026-11-20T08:00:00.000Z');
let service: Service;
let scrip: Scrip;
before(async () => {
  service = await startScrip({ clock });
  scrip = new Scrip({ apiKey: service.writeKey, baseUrl: service.url });
});
after(() => service.stop());

async function endUserWithTransactions(): Promise<string> {
  const end_user_id = someone();
  for (let amount = 1; amount <= COUNT; amount += 1) {
    await scrip.add({ end_user_id, amount });
    clock.advance(1_000);
  }
  return end_user_id;
}

async function all(transactions: AsyncIterable<Transaction>): Promise<Transaction[]> {
  return Array.fromAsync(transactions);
}

test('the transactions iterator returns the same list for every page size', async () => {
  const end_user_id = await endUserWithTransactions();
  const { transactions } = await scrip.getAllUserTransactions({ end_user_id });
  assert.equal(transactions.length, COUNT);
  for (const pageSize of [1, 3, COUNT - 1, COUNT, COUNT + 1, 1000])
    assert.deepEqual(
      await all(scrip.transactions({ end_user_id }, { pageSize })),
      transactions,
      `pages of ${pageSize}`,
    );
  assert.deepEqual(await all(scrip.transactions({ end_user_id: someone() })), []);
});

test('the transactions iterator ignores transactions that are stored during the iteration, and neither skips nor repeats any other transaction', async () => {
  const end_user_id = await endUserWithTransactions();
  const amounts: number[] = [];
  for await (const { amount } of scrip.transactions({ end_user_id }, { pageSize: 2 })) {
    amounts.push(amount);
    await scrip.add({ end_user_id, amount: 1000 });
  }
  assert.deepEqual(amounts, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
});

test('next_cursor is null on the last page, a string on all other pages, and absent if a request has neither limit nor cursor', async () => {
  const end_user_id = await endUserWithTransactions();
  const first = await scrip.getAllUserTransactions({ end_user_id, limit: 6 });
  assert.equal(first.transactions.length, 6);
  const cursor = first.next_cursor ?? assert.fail('there is a next page');
  const last = await scrip.getAllUserTransactions({ end_user_id, limit: 6, cursor });
  assert.deepEqual([last.transactions.length, last.next_cursor], [4, null]);
  assert.equal('next_cursor' in (await scrip.getAllUserTransactions({ end_user_id })), false);
});

test('the transactions iterator includes a transaction at the instant `from`, and excludes a transaction at the instant `to`', async () => {
  const end_user_id = await endUserWithTransactions();
  const { transactions } = await scrip.getAllUserTransactions({ end_user_id });
  const at = (amount: number) => transactions[COUNT - amount]?.created_at ?? assert.fail();
  const between = await all(scrip.transactions({ end_user_id, from: at(3), to: new Date(at(6)) }, { pageSize: 2 }));
  assert.deepEqual(
    between.map(({ amount }) => amount),
    [5, 4, 3],
  );
});
