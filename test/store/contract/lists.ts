// The contract of lists: whoever goes through an end user's transactions by cursors sees what was there at the first page,
// each once, whatever is written, becomes due or is entered late between two pages. Random histories; a failure prints
// the seed that repeats it.

import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import type { TransactionObject } from '../../../src/http/objects.ts';
import { readCursor } from '../../../src/http/page-cursor.ts';
import { transactionList } from '../../../src/http/transaction-list.ts';
import type { Command } from '../../../src/ledger/command.ts';
import { DAY_MS, type Instant } from '../../../src/ledger/instant.ts';
import type { Contract, Ledger } from '../store-contract.ts';
import { EndUser } from '../temporary-ledger.ts';

const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const RUNS = Number(process.env.RUNS ?? 25);

interface Answer {
  readonly transactions: readonly TransactionObject[];
  readonly next_cursor?: string | null;
}

interface Bounds {
  readonly from: Instant | null;
  readonly to: Instant | null;
}

const EVERYTHING: Bounds = { from: null, to: null };

async function listOf({ store }: Ledger, { key }: EndUser, bounds = EVERYTHING): Promise<Answer> {
  const document = await transactionList(store, { user: key, ...bounds, page: null });
  return JSON.parse(typeof document === 'string' ? document : await text(document));
}

async function pageOf(
  { store }: Ledger,
  { key }: EndUser,
  limit: number,
  at: Bounds | string = EVERYTHING,
): Promise<Answer> {
  const { last: after, ...bounds } = typeof at === 'string' ? readCursor(at, key) : { ...at, last: null };
  const document = await transactionList(store, { user: key, ...bounds, page: { limit, after } });
  assert(typeof document === 'string', 'a page is not streamed');
  return JSON.parse(document);
}

/** What may happen: a batch of commands, a time that passes, or both. */
interface Step {
  readonly ms: number;
  readonly kinds: readonly ('add' | 'subtract' | 'start' | 'stop' | 'renew' | 'many')[];
}

const step: fc.Arbitrary<Step> = fc.record({
  ms: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2_000 }), fc.integer({ min: 1, max: 9 * DAY_MS })),
  kinds: fc.array(fc.constantFrom('add', 'subtract', 'start', 'stop', 'renew', 'many'), { maxLength: 4 }),
});
const limit = fc.oneof(fc.integer({ min: 1, max: 7 }), fc.integer({ min: 1, max: 1_000 }));

async function take(ledger: Ledger, ada: EndUser, { ms, kinds }: Step): Promise<void> {
  ledger.wall += ms;
  const commands = kinds.flatMap((kind): Command[] => {
    if (kind === 'add') return [ada.add(40, 30)];
    if (kind === 'subtract') return [ada.subtract(3)];
    if (kind === 'start') return [ada.startCycle(9, 1 + (ms % 3), 'replace')];
    if (kind === 'stop') return [ada.stopCycle()];
    if (kind === 'renew') return [ada.renew()];
    return [ada.add(200), ...Array.from({ length: 130 }, () => ada.subtract(1))];
  });
  if (commands.length > 0) await ledger.store.write(commands);
}

export function listContract({ itInTime }: Contract): void {
  itInTime('going through a list shows what was there at its first page, each once', async (ledger) => {
    let users = 0;
    let pagesSeen = 0;
    const walk = fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 12 }),
      fc.array(fc.tuple(limit, step), { minLength: 1, maxLength: 10 }),
      fc.tuple(fc.nat(), fc.nat(), fc.integer({ min: -1, max: 1 }), fc.boolean()),
      fc.oneof(fc.constant(0), fc.integer({ max: 20 * DAY_MS, min: DAY_MS })),
      async (before, between, [a, b, shift, isBounded], late) => {
        const ada = new EndUser(ledger.account, ++users);
        for (const each of before) await take(ledger, ada, each);
        // What becomes due now is stored between two pages, or never.
        ledger.wall += late;
        const all = (await listOf(ledger, ada)).transactions;
        const times = all.map(({ created_at }) => Date.parse(created_at)).toSorted((x, y) => x - y);
        const pick = (n: number) => (times[n % (times.length || 1)] ?? ledger.wall) + shift;
        const [from, to] = isBounded ? [pick(a), pick(b)].toSorted((x, y) => x - y) : [null, null];
        const bounds = { from: from ?? null, to: to ?? null };
        const expected = all.filter(
          ({ created_at: at }) =>
            (bounds.from === null || Date.parse(at) >= bounds.from) &&
            (bounds.to === null || Date.parse(at) < bounds.to),
        );
        assert.deepEqual(await listOf(ledger, ada, bounds), { end_user_id: ada.key.endUser, transactions: expected });
        const seen: TransactionObject[] = [];
        let cursor: string | null | undefined;
        for (let turn = 0; cursor !== null; turn++) {
          const [size, meanwhile] = between[turn % between.length] as [number, Step];
          const page = await pageOf(ledger, ada, size, cursor ?? bounds);
          assert(page.transactions.length <= size, 'a page keeps its limit');
          assert(cursor === undefined || page.transactions.length > 0, 'only a list of nothing has an empty page');
          if (page.next_cursor !== null)
            assert.equal(page.transactions.length, size, 'a page is full when one follows');
          seen.push(...page.transactions);
          cursor = page.next_cursor;
          pagesSeen += 1;
          // What happens later than the list is new to it all the same; within bounds, only what is not in them.
          if (cursor !== null && (turn < 30 || size > 50)) await take(ledger, ada, meanwhile);
        }
        assert.deepEqual(seen, expected);
      },
    );
    await fc.assert(walk, { seed: SEED, numRuns: RUNS, endOnFailure: true });
    assert(pagesSeen > RUNS, `${pagesSeen} pages`);
  });

  itInTime(
    'a renewal that was computed on one page is stored before the next, with years of others',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.store.write([ada.add(5), ada.startCycle(10, 1)]);
      ledger.wall += 3 * 365 * DAY_MS;
      const { transactions: all } = await listOf(ledger, ada);
      assert.equal(all.length, 2 + 3 * 365);
      const first = await pageOf(ledger, ada, 600);
      assert.deepEqual(first.transactions, all.slice(0, 600));
      // More than one batch may enter: the oldest come first, and the cursor's own transaction is not among them.
      await ledger.store.write([ada.renew()]);
      const second = await pageOf(ledger, ada, 300, first.next_cursor as string);
      ledger.wall += 5 * DAY_MS;
      await ledger.store.write([ada.subtract(1)]);
      await ledger.store.write([ada.subtract(1)]);
      const third = await pageOf(ledger, ada, 1_000, second.next_cursor as string);
      assert.deepEqual([...first.transactions, ...second.transactions, ...third.transactions], all);
      assert.equal(third.next_cursor, null);
    },
  );

  itInTime('a cursor of a transaction that is not there is refused', async (ledger) => {
    const [ada, bob] = [new EndUser(ledger.account, 1), new EndUser(ledger.account, 2)];
    await ledger.store.write([
      ada.add(5),
      ada.startCycle(3, 2),
      bob.add(1),
      ada.stopCycle(),
      ada.subtract(1),
      bob.add(2),
    ]);
    const [{ id = '' } = {}] = (await ledger.store.transactions(bob.key, { from: null, limit: 1 })).transactions;
    const { last } = readCursor((await pageOf(ledger, ada, 1)).next_cursor as string, ada.key);
    for (const after of [
      id,
      `${last.slice(0, -1)}${last.endsWith('0') ? 1 : 0}`,
      'ffffffff-ffff-ffff-ffff-ffffffffffff',
    ]) {
      const page = { limit: 5, after };
      await assert.rejects(transactionList(ledger.store, { user: ada.key, ...EVERYTHING, page }), {
        code: 'InvalidField',
      });
    }
  });
}
