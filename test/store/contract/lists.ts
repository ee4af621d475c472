// Contract tests for lists of transactions: while a list is read page by page, new transactions and renewals do not
// change the rest of the list.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Command } from '../../../src/ledger/command.ts';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import type { Transaction } from '../../../src/ledger/posting.ts';
import { dueCount, dueTransactions } from '../../../src/ledger/settle.ts';
import { type IdRange, idsBetween, instantOf } from '../../../src/ledger/transaction-id.ts';
import { effort } from '../../effort.ts';
import type { Contract, ContractLedger } from '../store-contract.ts';
import { EndUser, EVERYTHING } from '../temporary-ledger.ts';

export const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
export const RUNS = Number(process.env.RUNS ?? effort(5, 12));

export interface Step {
  readonly ms: number;
  readonly kinds: readonly ('add' | 'subtract' | 'start' | 'stop' | 'settle' | 'many')[];
}

export const step: fc.Arbitrary<Step> = fc.record({
  ms: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2_000 }), fc.integer({ min: 1, max: 9 * DAY_MS })),
  kinds: fc.array(fc.constantFrom('add', 'subtract', 'start', 'stop', 'settle', 'many'), { maxLength: 4 }),
});

export async function take(ledger: ContractLedger, ada: EndUser, { ms, kinds }: Step): Promise<void> {
  ledger.wall += ms;
  const commands = kinds.flatMap((kind): Command[] => {
    if (kind === 'add') return [ada.add(40, 30)];
    if (kind === 'subtract') return [ada.subtract(3)];
    if (kind === 'start') return [ada.startCycle(9, 1 + (ms % 3), 'replace')];
    if (kind === 'stop') return [ada.stopCycle()];
    if (kind === 'settle') return [ada.settle()];
    return [ada.add(200), ...Array.from({ length: 130 }, () => ada.subtract(1))];
  });
  if (commands.length > 0) await ledger.write(commands);
}

async function listed(
  ledger: ContractLedger,
  { key }: EndUser,
  limit: number,
  within: IdRange = EVERYTHING,
): Promise<Transaction[]> {
  let page = await ledger.transactions(key, { limit, within });
  const due = dueTransactions(page.state, Math.min(page.now, instantOf(within.last)));
  const all = [...due.filter(({ id }) => id >= within.first && id <= within.last), ...page.transactions];
  while (page.next !== null) {
    assert.equal(page.transactions.length, limit, 'a page is full if another page follows');
    page = await ledger.transactions(key, { from: page.next, limit, within });
    assert(page.transactions.length > 0, 'only an empty list has an empty page');
    all.push(...page.transactions);
  }
  return all;
}

export function listContract({ itInTime }: Contract): void {
  itInTime(
    'once a transaction has been listed, that transaction and all older ones in the list never change',
    async (ledger) => {
      let users = 0;
      let seen = 0;
      const walk = fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 12 }),
        fc.array(fc.tuple(fc.nat(), fc.integer({ min: 1, max: 300 }), step), { minLength: 1, maxLength: 10 }),
        fc.oneof(fc.constant(0), fc.integer({ min: DAY_MS, max: 20 * DAY_MS })),
        async (before, between, late) => {
          const ada = new EndUser(ledger.account, ++users);
          for (const each of before) await take(ledger, ada, each);
          ledger.wall += late;
          const all = await listed(ledger, ada, 1_000);
          const ids = all.map(({ id }) => id);
          assert.deepEqual(ids, ids.toSorted().toReversed(), 'latest first');
          for (const [nth, limit, meanwhile] of between) {
            await take(ledger, ada, meanwhile);
            const index = nth % (all.length + 1);
            const last = all[index]?.id;
            if (last === undefined) continue;
            assert.deepEqual(await listed(ledger, ada, limit, { ...EVERYTHING, last }), all.slice(index));
            seen += all.length - index;
          }
        },
      );
      await fc.assert(walk, { seed: SEED, numRuns: RUNS, endOnFailure: true });
      assert(seen > RUNS, `${seen} transactions were listed again`);
    },
  );

  itInTime('a list for a time range contains all stored and all due transactions in that range', async (ledger) => {
    const walk = fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 10 }),
      fc.array(fc.tuple(fc.nat(), fc.nat(), fc.integer({ min: -1, max: 1 })), { minLength: 1, maxLength: 5 }),
      fc.oneof(fc.constant(0), fc.integer({ min: DAY_MS, max: 20 * DAY_MS })),
      fc.uuid({ version: 4 }),
      async (before, ranges, late, endUser) => {
        const ada = new EndUser(ledger.account, Number.parseInt(endUser.slice(0, 8), 16));
        for (const each of before) await take(ledger, ada, each);
        ledger.wall += late;
        const all = await listed(ledger, ada, 1_000);
        const times = all.map(({ createdAt }) => createdAt);
        for (const [a, b, shift] of ranges) {
          const pick = (n: number) => (times[n % (times.length || 1)] ?? ledger.wall) + shift;
          const [from = 0, to = 0] = [pick(a), pick(b)].toSorted((x, y) => x - y);
          const expected = all.filter(({ createdAt: at }) => at >= from && at <= to);
          assert.deepEqual(await listed(ledger, ada, 7, idsBetween(from, to)), expected);
        }
      },
    );
    await fc.assert(walk, { seed: SEED, numRuns: RUNS, endOnFailure: true });
  });

  itInTime(
    'a list of transactions shows the same renewals while several batches store years of due renewals',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.write([ada.add(5), ada.startCycle(10, 1)]);
      ledger.wall += 3 * 365 * DAY_MS;
      const { state, now } = await ledger.load(ada.key);
      assert.equal(dueCount(state, now), 3 * 365);
      const all = await listed(ledger, ada, 100);
      assert.equal(all.length, 2 + 3 * 365);
      // If more renewals are due than one batch can store, the batch stores only the oldest ones.
      await ledger.write([ada.settle()]);
      assert.deepEqual(await listed(ledger, ada, 300), all);
      ledger.wall += 5 * DAY_MS;
      for (let batch = 0; batch < 3; batch++) await ledger.write([ada.subtract(1)]);
      const last = all[0]?.id as string;
      assert.deepEqual(await listed(ledger, ada, 1_000, { ...EVERYTHING, last }), all);
    },
  );
}
