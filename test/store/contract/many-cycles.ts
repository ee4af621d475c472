// A contract test for end users with many open cycles. On SQLite, many-cycles.test.ts repeats this test with 10,000
// cycles.

import assert from 'node:assert/strict';
import { effort } from '../../effort.ts';
import type { Contract } from '../store-contract.ts';
import { ACCEPTED, balanceOf, EndUser } from '../temporary-ledger.ts';
import type { TestLedger } from '../test-ledger.ts';

const CYCLES = effort(1_000, 2_000);
const ADDED_AT_ONCE = 500;

export function manyCyclesContract({ it }: Contract): void {
  it(`a subtraction from ${CYCLES} open cycles drains the oldest cycles first, and the pages of transactions are correct`, (ledger) =>
    assertManyCyclesRight(ledger, CYCLES));
}

export async function assertManyCyclesRight(ledger: TestLedger, count: number): Promise<void> {
  const ada = new EndUser(1, 1);
  for (let added = 0; added < count; added += ADDED_AT_ONCE)
    await ledger.write(Array.from({ length: ADDED_AT_ONCE }, (_, index) => ada.add(1 + ((added + index) % 9), 31)));
  const { cycles: before } = (await ledger.load(ada.key)).state;
  assert.deepEqual(
    before.map(({ amount }) => amount),
    Array.from({ length: count }, (_, index) => 1 + (index % 9)),
    'the oldest cycle is first',
  );
  const sum = (cycles: typeof before) => cycles.reduce((total, { remaining }) => total + remaining, 0);
  const balance = sum(before);
  assert.equal(await balanceOf(ledger, ada), balance);
  const half = sum(before.slice(0, count / 2));
  for (const command of [ada.subtract(half + 1), ada.add(7)])
    assert.deepEqual(await ledger.results([command]), [ACCEPTED]);
  const drained = before.map((cycle, index) => {
    if (index < count / 2) return { ...cycle, remaining: 0 };
    return index === count / 2 ? { ...cycle, remaining: cycle.remaining - 1 } : cycle;
  });
  assert.deepEqual((await ledger.load(ada.key)).state.cycles.slice(0, -1), drained);
  const { transactions, next } = await ledger.transactions(ada.key, { limit: 3 });
  assert.deepEqual(
    transactions.map(({ amount }) => amount),
    [7, -(half + 1), before.at(-1)?.amount],
  );
  const page = await ledger.transactions(ada.key, { from: next, limit: 2 });
  assert.deepEqual(
    page.transactions.map(({ id }) => id),
    [before.at(-2)?.id, before.at(-3)?.id],
  );
  await ledger.reopen();
  assert.equal(await balanceOf(ledger, ada), balance - half - 1 + 7);
}
