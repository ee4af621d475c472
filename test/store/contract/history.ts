// Contract tests for an end user's history: its pages show all transactions with all stored details.

import assert from 'node:assert/strict';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import { termsText } from '../../../src/ledger/posting.ts';
import { idsBetween } from '../../../src/ledger/transaction-id.ts';
import { InvalidCursor } from '../../../src/store/store-fault.ts';
import {
  HISTORY_POSTINGS_MAX,
  type HistoryRequest,
  type HistoryTransaction,
} from '../../../src/store/transaction-history.ts';
import type { Contract, ContractLedger } from '../store-contract.ts';
import { EndUser, idsOf, keyed, noted, replayed } from '../temporary-ledger.ts';

const BATCH_COMMANDS = 500;

export function historyContract(contract: Contract): void {
  pages(contract);
  filters(contract);
  references(contract);
  notes(contract);
}

function pages({ it, itInTime }: Contract): void {
  it('a history includes the stops of cycles, and shows the actor and the cycles of each transaction', async (ledger) => {
    const ada = new EndUser(ledger.account, 1, 'user:12');
    await ledger.write([ada.add(10, 5), ada.startCycle(10, 9), ada.subtract(15), ada.stopCycle()]);
    const { transactions, next } = await ledger.history(ada.key);
    const { state } = await ledger.load(ada.key);
    const [first, second] = state.cycles.map(({ id, period }) => ({ cycleId: id, period }));
    const listed = transactions.map(({ kind, amount, actor, postings }) => ({ kind, amount, actor, postings }));
    const actor = 'user:12';
    const drawn = [
      { ...first, amount: -10, held: 0 },
      { ...second, amount: -5, held: 0 },
    ];
    assert.deepEqual(listed, [
      { kind: 'stop-cycle', amount: 0, actor, postings: [{ ...second, amount: 0, held: 0 }] },
      { kind: 'subtract', amount: -15, actor, postings: drawn },
      { kind: 'start-cycle', amount: 10, actor, postings: [{ ...second, amount: 10, held: 0 }] },
      { kind: 'add', amount: 10, actor, postings: [{ ...first, amount: 10, held: 0 }] },
    ]);
    assert.equal(next, null);
  });

  it('pages of a history contain each transaction exactly once, and never split a transaction', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(1), ada.add(1), ada.add(1), ada.subtract(3), ada.startCycle(5), ada.stopCycle()]);
    await ledger.write([ada.add(4), ada.subtract(7)]);
    const { transactions: all } = await ledger.history(ada.key);
    assert.equal(all.length, 8);
    for (const limit of [1, 2, 3, 7, 8, 9]) {
      const before = (await ledger.history(ada.key)).transactions;
      const pages = await historyPages(ledger, ada, limit);
      assert.deepEqual(pages.flat(), before);
      for (const page of pages.slice(0, -1)) assert.equal(page.length, limit);
      assert.equal(pages.length, Math.ceil(before.length / limit));
      await ledger.write([ada.add(1)]);
    }
  });

  it("a history cursor that Scrip never issued is refused, and a cursor from another end user's history shows none of the other end user's transactions", async (ledger) => {
    const [ada, eve] = [new EndUser(ledger.account, 1), new EndUser(ledger.other, 1)];
    await ledger.write([ada.add(5), ada.add(6), eve.add(7), eve.add(8)]);
    const { next } = await ledger.history(ada.key, { limit: 1 });
    assert(next !== null);
    for (const from of ['', '-1', '0', '1e3', '999999999999', "1'; --", 'ffffffff', '9'.repeat(40), '\u0000'])
      await assert.rejects(ledger.history(ada.key, { from }), InvalidCursor, from);
    const stolen = await ledger.history(eve.key, { from: next }).catch((error) => error);
    if (!(stolen instanceof InvalidCursor))
      for (const { amount } of stolen.transactions) assert(amount >= 7, 'no transaction of the other account is shown');
    assert.equal(ledger.trouble(), null);
  });

  itInTime('a history can be filtered by kind and by time', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const begin = ledger.wall;
    for (let day = 0; day < 20; day++) {
      await ledger.write([ada.add(10, 30), ada.subtract(1), ada.subtract(2)]);
      if (day === 7) await ledger.write([ada.startCycle(50, 5)]);
      ledger.wall += DAY_MS;
    }
    const { transactions: all } = await ledger.history(ada.key);
    const days = (from: number, to: number) => idsBetween(begin + from * DAY_MS, begin + to * DAY_MS - 1);
    const wanted: readonly (Partial<HistoryRequest> & { count: number })[] = [
      { kinds: ['add'], count: 20 },
      { kinds: ['add', 'renew'], count: 22 },
      { kinds: [], count: 0 },
      { kinds: ['start-cycle'], count: 1 },
      { kinds: ['renew'], count: 2 },
      { kinds: ['stop-cycle'], count: 0 },
      { within: days(3, 5), count: 6 },
      { within: days(3, 5), kinds: ['subtract'], count: 4 },
      { within: days(0, 1), kinds: ['start-cycle'], count: 0 },
      { within: days(-9, 0), count: 0 },
      { within: days(20, 90), count: 0 },
    ];
    for (const { count, ...request } of wanted) {
      const { kinds, within } = request;
      const expected = all.filter(
        (one) => (!kinds || kinds.includes(one.kind)) && (!within || (one.id >= within.first && one.id <= within.last)),
      );
      assert.equal(expected.length, count, JSON.stringify(request));
      for (const limit of [1, 3, 100])
        assert.deepEqual((await historyPages(ledger, ada, limit, request)).flat(), expected);
    }
  });

  it('a history includes the original type and plan of each cycle that it shows, even if the cycle has ended', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(10, 5), ada.startCycle(20, 9), ada.subtract(15)]);
    await ledger.write(Array.from({ length: 5 }, () => ada.subtract(1)));
    await ledger.write([ada.startCycle(40, 7, 'replace'), ada.subtract(11), ada.add(3, 2)]);
    for (const limit of [1, 3, 100]) {
      for (let from: string | null = null; ; ) {
        const page = await ledger.history(ada.key, { from, limit });
        for (const { postings } of page.transactions)
          for (const { cycleId } of postings) assert(page.terms.has(cycleId), `limit ${limit}`);
        const named = [...page.terms.values()].map(termsText);
        const possible = ['one-time/10/5d', 'recurring/20/9d', 'recurring/40/7d', 'one-time/3/2d'];
        if (limit === 100) assert.deepEqual(named.toSorted(), possible.toSorted());
        else assert(named.every((name) => possible.includes(name)));
        if (page.next === null) break;
        from = page.next;
      }
    }
  });

  it('the history of an end user without transactions is empty', async (ledger) => {
    const { key } = new EndUser(ledger.account, 404);
    const { state, transactions, next } = await ledger.history(key);
    assert.deepEqual([state.cycles, transactions, next], [[], [], null]);
  });
}

function filters({ it }: Contract): void {
  it('a history can be filtered by a prefix of the notes', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const texts = ['job 1', 'job 12', 'Job 1', 'a job 1', 'job', 'job_1', 'job%', null, '%', '_', 'ü', 'u\u0308', "'"];
    await ledger.write([noted(ada.add(100), 'job 1')]);
    for (const text of texts) await ledger.write([noted(ada.subtract(1), text)]);
    const { transactions: all } = await ledger.history(ada.key);
    for (const notePrefix of ['job 1', 'job', 'j', '%', '_', 'job_', 'ü', 'u', 'x', "'"]) {
      const expected = all.filter(({ note }) => note?.startsWith(notePrefix));
      for (const limit of [1, 3, 100])
        assert.deepEqual((await historyPages(ledger, ada, limit, { notePrefix })).flat(), expected, notePrefix);
      const added = (await historyPages(ledger, ada, 100, { notePrefix, kinds: ['add', 'hold'] })).flat();
      assert.deepEqual(
        added,
        expected.filter(({ kind }) => kind === 'add'),
      );
    }
  });

  it('a page of a history that is filtered by kind or by a prefix of the notes reads a bounded number of postings', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([noted(ada.add(9), 'first'), ada.add(100_000)]);
    for (let written = 0; written <= HISTORY_POSTINGS_MAX; written += BATCH_COMMANDS)
      await ledger.write(Array.from({ length: BATCH_COMMANDS }, () => noted(ada.subtract(1), 'one of many')));
    const amounts = async (request: Partial<HistoryRequest>) =>
      (await historyPages(ledger, ada, 100, request)).map((page) => page.map(({ amount }) => amount));
    assert.deepEqual(await amounts({ kinds: ['add'] }), [[], [100_000, 9]]);
    assert.deepEqual(await amounts({ notePrefix: 'fir' }), [[], [9]]);
  });
}

function references({ it }: Contract): void {
  it('a history shows holds, captures and releases, the credits that can still be refunded, and the reference of each transaction', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(30, 9)]);
    const [, spent, first, second] = idsOf(
      await ledger.write([ada.add(30, 9), ada.subtract(32), ada.hold(10), ada.hold(5)]),
    );
    const [captured] = idsOf(await ledger.write([ada.capture(first as string, 7), ada.release(second as string)]));
    await ledger.write([ada.refund(spent as string, 4), ada.refund(captured as string)]);
    const { transactions } = await ledger.history(ada.key);
    const listed = transactions.map(({ kind, amount, refundable, reference, postings }) => {
      const held = postings.map((posting) => posting.held);
      return [kind, amount, refundable, reference, held];
    });
    assert.deepEqual(listed, [
      ['refund', 7, null, captured, [0]],
      ['refund', 4, null, spent, [0, 0]],
      ['release', 0, null, second, [-5]],
      ['capture', -7, 0, first, [-10]],
      ['hold', 0, null, null, [5]],
      ['hold', 0, null, null, [10]],
      ['subtract', -32, 28, null, [0, 0]],
      ['add', 30, null, null, [0]],
      ['add', 30, null, null, [0]],
    ]);
    for (const limit of [1, 4]) assert.deepEqual((await historyPages(ledger, ada, limit)).flat(), transactions);
    const { transactions: ends } = await ledger.history(ada.key, { kinds: ['capture', 'release'] });
    assert.deepEqual(ends, transactions.slice(2, 4));
  });
}

function notes({ it, itInTime }: Contract): void {
  itInTime('a history shows the note of every write, and no note for renewals and lapses', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([noted(ada.startCycle(10, 1), 'start'), noted(ada.add(10, 9), 'add')]);
    const [spent, first, second] = idsOf(
      await ledger.write([
        noted(ada.subtract(1), 'subtract'),
        noted(ada.hold(1), 'hold 1'),
        noted(ada.hold(2, 60), 'hold 2'),
        noted(ada.hold(3, 60), 'hold 3'),
      ]),
    );
    await ledger.write([
      noted(ada.capture(first as string), 'capture'),
      noted(ada.release(second as string), 'release'),
    ]);
    await ledger.write([noted(ada.refund(spent as string), 'refund')]);
    ledger.wall += DAY_MS;
    await ledger.write([noted(ada.stopCycle(), 'stop')]);
    await ledger.reopen();
    const { transactions } = await ledger.history(ada.key);
    assert.deepEqual(
      transactions.map(({ kind, note }) => [kind, note]),
      [
        ['stop-cycle', 'stop'],
        ['renew', null],
        ['lapse', null],
        ['refund', 'refund'],
        ['release', 'release'],
        ['capture', 'capture'],
        ['hold', 'hold 3'],
        ['hold', 'hold 2'],
        ['hold', 'hold 1'],
        ['subtract', 'subtract'],
        ['add', 'add'],
        ['start-cycle', 'start'],
      ],
    );
    const listed = (await ledger.transactions(ada.key)).transactions.map(({ id, note }) => [id, note]);
    const notes = new Map(transactions.map(({ id, note }) => [id, note]));
    assert.deepEqual(
      listed,
      listed.map(([id]) => [id, notes.get(id as string)]),
      'the list of transactions shows the same notes',
    );
  });

  it('reusing an idempotency key with another note is refused', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const [first] = await ledger.write([keyed(noted(ada.add(10), 'a'), 'k', '1')]);
    assert(first);
    assert.deepEqual(await ledger.write([keyed(noted(ada.add(10), 'a'), 'k', '2')]), [replayed(first, '1')]);
    for (const note of ['b', null])
      assert.deepEqual(await ledger.results([keyed(noted(ada.add(10), note), 'k', '3')]), [
        { refused: 'IdempotencyKeyReused' },
      ]);
  });

  it('a note is stored exactly as sent, and only with its own write', async (ledger) => {
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
    const { transactions } = await ledger.history(ada.key);
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

async function historyPages(
  ledger: ContractLedger,
  { key }: EndUser,
  limit: number,
  request: Partial<HistoryRequest> = {},
): Promise<(readonly HistoryTransaction[])[]> {
  const pages = [];
  for (let from: string | null = null; ; ) {
    const page = await ledger.history(key, { ...request, from, limit });
    pages.push(page.transactions);
    if (page.next === null) return pages;
    from = page.next;
  }
}
