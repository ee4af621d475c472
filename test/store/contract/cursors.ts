// Contract tests for the cursors of lists. A client that follows the cursors gets every transaction that existed when
// the client read the first page, and gets no transaction twice.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { readCursor } from '../../../src/http/api/cursor.ts';
import type { PageAsked } from '../../../src/http/api/list-request.ts';
import { transactionList } from '../../../src/http/api/transaction-list.ts';
import { DAY_MS, type Instant } from '../../../src/ledger/instant.ts';
import type { Contract, ContractLedger } from '../store-contract.ts';
import { EndUser } from '../temporary-ledger.ts';
import { RUNS, SEED, type Step, step, take } from './lists.ts';

interface Listed {
  readonly transactions: readonly { readonly transaction_id: string; readonly created_at: string }[];
  readonly next_cursor?: string | null;
}

interface Bounds {
  readonly from: Instant | null;
  readonly to: Instant | null;
}

const UNBOUNDED: Bounds = { from: null, to: null };

async function listOf(
  ledger: ContractLedger,
  { key: user }: EndUser,
  bounds = UNBOUNDED,
  page: PageAsked | null = null,
) {
  const document = await transactionList(ledger, { user, ...bounds, page }, (read) => read());
  return JSON.parse((await Array.fromAsync(document)).join('')) as Listed;
}

async function pageOf(ledger: ContractLedger, user: EndUser, limit: number, at: Bounds | string): Promise<Listed> {
  const { last: after, ...bounds } = typeof at === 'string' ? readCursor(at, user.key) : { ...at, last: null };
  return listOf(ledger, user, bounds, { limit, after });
}

const short = fc.integer({ min: 1, max: 7 });
const limits = fc.oneof(short, fc.integer({ min: 1, max: 1_000 }));
/** The first page is short, so that almost every list has several pages. */
const turns = fc.tuple(fc.tuple(short, step), fc.array(fc.tuple(limits, step), { minLength: 1, maxLength: 9 }));
const additions: Step = { ms: 1_000, kinds: ['add', 'add', 'add'] };
/** A list whose pages have one transaction each. */
const MANY_PAGES: [Step[], [number, Step][], [number, number, number, boolean], number] = [
  Array.from({ length: 5 }, () => additions),
  [[1, additions]],
  [0, 0, 0, false],
  0,
];

export function cursorContract({ itInTime }: Contract): void {
  itInTime(
    'the pages of a list contain exactly the transactions that existed when the first page was read, and each of them only once',
    async (ledger) => {
      let users = 0;
      let pagesSeen = 0;
      const walk = fc.asyncProperty(
        fc.array(step, { minLength: 4, maxLength: 12 }),
        turns.map(([first, rest]) => [first, ...rest]),
        fc.tuple(fc.nat(), fc.nat(), fc.integer({ min: -1, max: 1 }), fc.boolean()),
        fc.oneof(fc.constant(0), fc.integer({ min: DAY_MS, max: 20 * DAY_MS })),
        async (before, between, [a, b, shift, isBounded], late) => {
          const ada = new EndUser(ledger.account, ++users);
          for (const each of before) await take(ledger, ada, each);
          // Renewals become due here, and a write between two pages may store them.
          ledger.wall += late;
          const all = (await listOf(ledger, ada)).transactions;
          const times = all.map(({ created_at }) => Date.parse(created_at)).toSorted((x, y) => x - y);
          const pick = (n: number) => (times[n % (times.length || 1)] ?? ledger.wall) + shift;
          const [from = null, to = null] = isBounded ? [pick(a), pick(b)].toSorted((x, y) => x - y) : [];
          const bounds = { from, to };
          const isWithin = (at: Instant) => (from === null || at >= from) && (to === null || at < to);
          const expected = all.filter(({ created_at }) => isWithin(Date.parse(created_at)));
          assert.deepEqual((await listOf(ledger, ada, bounds)).transactions, expected);
          const seen: unknown[] = [];
          let cursor: string | null | undefined;
          for (let turn = 0; cursor !== null; turn++) {
            const [limit, meanwhile] = between[turn % between.length] as [number, Step];
            const page = await pageOf(ledger, ada, limit, cursor ?? bounds);
            assert(page.transactions.length <= limit, 'a page has at most `limit` transactions');
            assert(cursor === undefined || page.transactions.length > 0, 'only an empty list has an empty page');
            if (page.next_cursor !== null)
              assert.equal(page.transactions.length, limit, 'a page is full if another page follows');
            seen.push(...page.transactions);
            cursor = page.next_cursor ?? null;
            pagesSeen += 1;
            // To save time, from the 31st page on, the test writes only after pages of more than 50 transactions.
            if (cursor !== null && (turn < 30 || limit > 50)) await take(ledger, ada, meanwhile);
          }
          assert.deepEqual(seen, expected);
        },
      );
      await fc.assert(walk, { seed: SEED, numRuns: RUNS, endOnFailure: true, examples: [MANY_PAGES] });
      assert(pagesSeen > RUNS, `${pagesSeen} pages`);
    },
  );

  itInTime('a cursor is refused if its transaction is not in the list', async (ledger) => {
    const [ada, bob] = [new EndUser(ledger.account, 1), new EndUser(ledger.account, 2)];
    await ledger.write([ada.add(5), ada.startCycle(3, 2), bob.add(1), ada.stopCycle(), ada.subtract(1), bob.add(2)]);
    const [{ id = '' } = {}] = (await ledger.transactions(bob.key, { limit: 1 })).transactions;
    const { last } = readCursor((await pageOf(ledger, ada, 1, UNBOUNDED)).next_cursor as string, ada.key);
    const neighbour = `${last.slice(0, -1)}${last.endsWith('0') ? 1 : 0}`;
    for (const after of [id, neighbour, 'ffffffff-ffff-ffff-ffff-ffffffffffff'])
      await assert.rejects(listOf(ledger, ada, UNBOUNDED, { limit: 5, after }), { code: 'InvalidField' });
  });
}
