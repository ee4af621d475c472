// Contract tests for refunds: a refund returns credits to the cycles that they came from, and never returns more
// credits than were spent.

import assert from 'node:assert/strict';
import type { Outcome, RefundResult, WriteCommand } from '../../../src/ledger/command.ts';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import { effort } from '../../effort.ts';
import type { Contract, ContractLedger } from '../store-contract.ts';
import {
  balanceOf,
  daysPlan,
  EndUser,
  historyOf,
  idsOf,
  keyed,
  type Result,
  replayed,
  transactionsOf,
} from '../temporary-ledger.ts';

const UNKNOWN = '019c13ec-9e00-4000-8002-000000000000';
const NOT_FOUND: Result = { refused: 'TransactionNotFound' };
const NOT_REFUNDABLE: Result = { refused: 'NotRefundable' };

export function refundContract(contract: Contract): void {
  amounts(contract);
  refusals(contract);
  endedCycles(contract);
  repetitions(contract);
  lookUps(contract);
}

async function done(ledger: ContractLedger, command: WriteCommand): Promise<string> {
  const [id] = idsOf(await ledger.write([command]));
  assert(id, 'the command is accepted');
  return id;
}

function refundIn(outcome: Outcome | null | undefined): RefundResult {
  assert(outcome?.refused === null && outcome.refund, 'the outcome has a refund');
  return outcome.refund;
}

async function remainsOf(ledger: ContractLedger, { key }: EndUser): Promise<number[]> {
  return (await ledger.load(key)).state.cycles.map(({ remaining }) => remaining);
}

function tooLarge(requested: number | null, refundable: number): Result {
  return { refused: 'RefundTooLarge', requested, refundable };
}

function amounts({ it }: Contract): void {
  it('a partial refund first returns the credits that were spent last, as if less had been spent', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(10, 9), ada.add(10, 8), ada.startCycle(10, 7)]);
    const spent = await done(ledger, ada.subtract(25));
    assert.deepEqual(await remainsOf(ledger, ada), [0, 0, 5]);
    const [outcome] = await ledger.write([ada.refund(spent, 7)]);
    assert.deepEqual(refundIn(outcome), { restored: 7, expired: 0 });
    assert.deepEqual(await remainsOf(ledger, ada), [0, 2, 10]);
    assert.deepEqual(refundIn((await ledger.write([ada.refund(spent)]))[0]), { restored: 18, expired: 0 });
    assert.deepEqual(await remainsOf(ledger, ada), [10, 10, 10]);
    const expected = ['+18 refund', '+7 refund', '-25 subtract', '+10 start-cycle', '+10 add', '+10 add'];
    assert.deepEqual(await historyOf(ledger, ada), expected);
  });

  it('the refunds of a transaction never exceed the credits that it spent, even within one batch', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(50)]);
    const spent = await done(ledger, ada.subtract(20));
    assert.deepEqual(await ledger.results([ada.refund(spent, 21)]), [tooLarge(21, 20)]);
    const refused = (outcome: Result | null) => outcome?.refused;
    const batch = [ada.refund(spent, 8), ada.refund(spent, 8), ada.refund(spent, 8), ada.refund(spent, 4)];
    assert.deepEqual((await ledger.results(batch)).map(refused), [null, null, 'RefundTooLarge', null]);
    await ledger.reopen();
    assert.deepEqual(await ledger.results([ada.refund(spent, 1), ada.refund(spent)]), [
      tooLarge(1, 0),
      tooLarge(null, 0),
    ]);
    assert.equal(await balanceOf(ledger, ada), 50);
  });

  it('a refund of a capture returns only the credits that the capture spent, not those that the capture returned', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(10), ada.add(10)]);
    const hold = await done(ledger, ada.hold(18));
    const captured = await done(ledger, ada.capture(hold, 13));
    assert.deepEqual(await ledger.results([ada.refund(captured, 14)]), [tooLarge(14, 13)]);
    assert.equal(refundIn((await ledger.write([ada.refund(captured, 5)]))[0]).restored, 5);
    assert.deepEqual(await remainsOf(ledger, ada), [2, 10]);
    assert.equal(refundIn((await ledger.write([ada.refund(captured)]))[0]).restored, 8);
    assert.equal(await balanceOf(ledger, ada), 20);
  });

  it('refunds of two transactions do not affect each other, even within one batch', async (ledger) => {
    const [ada, bob] = [new EndUser(ledger.account, 1), new EndUser(ledger.other, 1)];
    await ledger.write([ada.add(100), bob.add(100)]);
    const [first, second] = [await done(ledger, ada.subtract(10)), await done(ledger, ada.subtract(20))];
    const other = await done(ledger, bob.subtract(30));
    const outcomes = await ledger.write([
      ada.refund(second),
      bob.refund(other, 29),
      ada.refund(first, 9),
      ada.subtract(1),
      bob.refund(first),
    ]);
    assert.deepEqual(
      outcomes.map((outcome) => outcome?.refused ?? null),
      [null, null, null, null, 'TransactionNotFound'],
    );
    assert.deepEqual([await balanceOf(ledger, ada), await balanceOf(ledger, bob)], [98, 99]);
  });
}

function refusals({ it, itInTime }: Contract): void {
  it("a refund of another end user's transaction is refused", async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const others = [new EndUser(ledger.account, 2), new EndUser(ledger.other, 1), new EndUser(ledger.account, 404)];
    await ledger.write([ada.add(10), ...others.slice(0, 2).map((user) => user.add(10))]);
    const spent = await done(ledger, ada.subtract(5));
    for (const user of others) assert.deepEqual(await ledger.results([user.refund(spent)]), [NOT_FOUND]);
    assert.deepEqual(await ledger.results([ada.refund(UNKNOWN)]), [NOT_FOUND]);
    assert.deepEqual(await ledger.results([ada.refund(`${spent.slice(0, -1)}${spent.endsWith('0') ? 1 : 0}`)]), [
      NOT_FOUND,
    ]);
  });

  itInTime('only subtractions and captures can be refunded', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const added = await done(ledger, ada.add(50));
    const started = await done(ledger, ada.startCycle(10, 1));
    const spent = await done(ledger, ada.subtract(5));
    const [open, released] = [await done(ledger, ada.hold(3, 60)), await done(ledger, ada.hold(2))];
    const refunded = await done(ledger, ada.refund(spent));
    const release = await done(ledger, ada.release(released));
    const stopped = await done(ledger, ada.stopCycle());
    const restarted = await done(ledger, ada.startCycle(10, 1));
    ledger.wall += DAY_MS;
    await ledger.write([ada.settle()]);
    const { transactions } = await ledger.history(ada.key);
    const byTime = transactions.filter(({ kind }) => kind === 'renew' || kind === 'lapse').map(({ id }) => id);
    assert.equal(byTime.length, 2);
    for (const id of [added, started, open, refunded, release, stopped, restarted, ...byTime])
      assert.deepEqual(await ledger.results([ada.refund(id)]), [NOT_REFUNDABLE], id);
  });
}

function endedCycles({ itInTime }: Contract): void {
  itInTime(
    'a refund returns no credits to a cycle that has ended, and is not listed if it returns no credits at all',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.write([ada.add(10, 1), ada.add(10, 3)]);
      const [first, second] = [await done(ledger, ada.subtract(4)), await done(ledger, ada.subtract(9))];
      ledger.wall += DAY_MS - 1;
      assert.deepEqual(refundIn((await ledger.write([ada.refund(first, 1)]))[0]), { restored: 1, expired: 0 });
      ledger.wall += 1;
      assert.deepEqual(refundIn((await ledger.write([ada.refund(first)]))[0]), { restored: 0, expired: 3 });
      assert.deepEqual(refundIn((await ledger.write([ada.refund(second)]))[0]), { restored: 3, expired: 6 });
      assert.deepEqual(await remainsOf(ledger, ada), [10]);
      const expected = ['+3 refund', '+1 refund', '-9 subtract', '-4 subtract', '+10 add', '+10 add'];
      assert.deepEqual(await historyOf(ledger, ada), expected);
      const pages: string[] = [];
      for (let from: string | null = null; ; ) {
        const page = await ledger.transactions(ada.key, { from, limit: 1 });
        pages.push(...page.transactions.map(({ kind }) => kind));
        if (page.next === null) break;
        from = page.next;
      }
      assert.equal(pages.length, expected.length);
      const { transactions } = await ledger.history(ada.key);
      const all = transactions.map(({ kind, amount }) => `${kind} ${amount}`);
      assert.deepEqual(all.slice(0, 3), ['refund 3', 'refund 0', 'refund 1']);
    },
  );

  itInTime('a refund with a validity returns the credits of ended cycles in a new cycle', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(10, 1), ada.add(10, 3)]);
    const spent = await done(ledger, ada.subtract(14));
    ledger.wall += DAY_MS;
    const [outcome] = await ledger.write([ada.refund(spent, 13, 5)]);
    assert.deepEqual(refundIn(outcome), { restored: 13, expired: 0 });
    assert.deepEqual(await remainsOf(ledger, ada), [10, 9]);
    const [, opened] = (await ledger.load(ada.key)).state.cycles;
    assert(outcome?.refused === null && opened);
    assert.deepEqual(
      [opened.id, opened.type, opened.end],
      [outcome.transactionId, 'one-time', ledger.wall + 5 * DAY_MS],
    );
    assert.deepEqual(refundIn((await ledger.write([ada.refund(spent)]))[0]), { restored: 0, expired: 1 });
    const { transactions, terms } = await ledger.history(ada.key, { kinds: ['refund'] });
    assert.deepEqual(terms.get(opened.id), { type: 'one-time', plan: daysPlan(9, 5) });
    assert.deepEqual(
      transactions.map(({ amount, postings }) => [amount, postings.map((posting) => posting.amount)]),
      [
        [0, [1]],
        [13, [4, 9, 9]],
      ],
    );
    await ledger.write([ada.subtract(19)]);
    assert.equal(await balanceOf(ledger, ada), 0);
  });

  itInTime('a refund of credits from an earlier period adds nothing to the current period', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.startCycle(10, 1)]);
    const spent = await done(ledger, ada.subtract(6));
    ledger.wall += DAY_MS;
    await ledger.write([ada.subtract(3)]);
    assert.deepEqual(refundIn((await ledger.write([ada.refund(spent)]))[0]), { restored: 0, expired: 6 });
    assert.deepEqual(await remainsOf(ledger, ada), [7]);
  });
}

function repetitions({ it }: Contract): void {
  it('repeating a refund with its idempotency key returns the same transaction and refunds nothing more', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(10)]);
    const spent = await done(ledger, ada.subtract(8));
    const [first] = await ledger.write([keyed(ada.refund(spent, 3), 'k', '1')]);
    assert(first);
    assert.deepEqual(await ledger.write([keyed(ada.refund(spent, 3), 'k', '2')]), [replayed(first, '1')]);
    await ledger.reopen();
    assert.deepEqual(await ledger.write([keyed(ada.refund(spent, 3), 'k', '3')]), [replayed(first, '1')]);
    const reused = [{ refused: 'IdempotencyKeyReused' }];
    for (const other of [ada.refund(spent, 4), ada.refund(spent), ada.refund(spent, 3, 5), ada.refund(UNKNOWN, 3)])
      assert.deepEqual(await ledger.results([keyed(other, 'k', '4')]), reused);
    assert.equal(await balanceOf(ledger, ada), 5);
  });

  it('many concurrent refunds of one subtraction return its credits only once', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(100)]);
    const spent = await done(ledger, ada.subtract(60));
    // Only ten concurrent batches, because a store may use one connection per batch.
    const all = Array.from({ length: 4 }, () => ledger.write(Array.from({ length: 5 }, () => ada.refund(spent))));
    const parts = Array.from({ length: 6 }, () => ledger.write(Array.from({ length: 10 }, () => ada.refund(spent, 7))));
    const outcomes = (await Promise.all([...parts, ...all])).flat();
    const restored = outcomes.map((outcome) => (outcome?.refused === null ? (outcome.refund?.restored ?? 0) : 0));
    assert.equal(
      restored.reduce((sum, amount) => sum + amount, 0),
      60,
    );
    assert.equal(await balanceOf(ledger, ada), 100);
  });
}

function lookUps({ it }: Contract): void {
  it('looking up a transaction by its ID also finds its refunds, in the order in which they were written', async (ledger) => {
    const [ada, bob] = [new EndUser(ledger.account, 1, 'user:7'), new EndUser(ledger.account, 2)];
    await ledger.write([ada.add(10), ada.add(10), ada.add(10), bob.add(1)]);
    const spent = await done(ledger, ada.subtract(25));
    await ledger.write([ada.refund(spent, 2), bob.subtract(1), ada.refund(spent, 10)]);
    const found = await ledger.store.find(ada.key, spent);
    const amounts = (postings: readonly { amount: number }[] | undefined) => postings?.map(({ amount }) => amount);
    assert.deepEqual(amounts(found?.postings), [-10, -10, -5]);
    assert.deepEqual(amounts(found?.refunds), [2, 3, 7]);
    for (const { transactionId, kind, actor } of found?.postings ?? [])
      assert.deepEqual([transactionId, kind, actor], [spent, 'subtract', 'user:7']);
    for (const { reference, kind } of found?.refunds ?? []) assert.deepEqual([reference, kind], [spent, 'refund']);
    for (const [user, id] of [
      [bob, spent],
      [ada, UNKNOWN],
      [new EndUser(ledger.account, 404), spent],
      [new EndUser(ledger.other, 1), spent],
    ] as const)
      assert.equal(await ledger.store.find(user.key, id), null);
  });

  it('each subtraction in a long history can be looked up and refunded', async (ledger) => {
    const [ada, beside] = [new EndUser(ledger.account, 1), new EndUser(ledger.other, 1)];
    await ledger.write([ada.add(100_000)]);
    for (let batch = 0; batch < effort(8, 20); batch++)
      await ledger.write(Array.from({ length: 60 }, (_, index) => (index % 3 ? ada.subtract(2) : beside.add(1))));
    const ids = (await transactionsOf(ledger, ada)).map(({ id }) => id);
    for (const [index, id] of ids.entries()) {
      if (index % 37 !== 0 || index === ids.length - 1) continue;
      const found = await ledger.store.find(ada.key, id);
      assert.deepEqual(
        found?.postings.map(({ transactionId, amount }) => [transactionId, amount]),
        [[id, -2]],
      );
      assert.equal(refundIn((await ledger.write([ada.refund(id)]))[0]).restored, 2);
      assert.deepEqual(await ledger.results([ada.refund(id)]), [tooLarge(null, 0)]);
    }
  });
}
