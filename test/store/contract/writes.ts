// The contract of `write` and of the reads beside it: what each command answers and leaves behind, alone and in a batch.

import assert from 'node:assert/strict';
import { AMOUNT_MAX } from '../../../src/ledger/amount.ts';
import { ACCEPTED, type Outcome } from '../../../src/ledger/command.ts';
import type { Cycle } from '../../../src/ledger/cycle.ts';
import { DAY_MS, INSTANT_MAX, VALIDITY_DAYS_MAX } from '../../../src/ledger/instant.ts';
import type { Contract } from '../store-contract.ts';
import { balanceOf, EndUser, historyOf, transactionsOf } from '../temporary-ledger.ts';

const COMB = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const NOTHING_THERE: Outcome = { refused: 'InsufficientFunds', requested: 1, available: 0 };

/** Room in the largest batch that group commit makes. */
const BATCH_COMMANDS = 512;

export function writeContract({ it }: Contract): void {
  it('added credits are one cycle and one transaction', async ({ store, account }) => {
    const ada = new EndUser(account, 1, 'key:77');
    assert.deepEqual(await store.write([ada.add(100, 10)]), [ACCEPTED]);
    const { now, cycles } = await store.cycles(ada.key);
    const [cycle] = cycles as [Cycle];
    const { id, start } = cycle;
    const end = start + 10 * DAY_MS;
    const rest = { type: 'one-time', status: 'active', amount: 100, remaining: 100, validityDays: 10 };
    assert.deepEqual(cycles, [{ id, period: 0, start, end, ...rest }]);
    assert(start <= now);
    assert.deepEqual(await transactionsOf(store, ada), [
      { id, kind: 'add', amount: 100, createdAt: start, expiresAt: end, actor: 'key:77' },
    ]);
  });

  it('a subtraction drains the cycle that started first, and is one transaction', async ({ store, account }) => {
    const ada = new EndUser(account, 1);
    await store.write([ada.add(10, 300), ada.add(10, 10), ada.add(10, 20)]);
    assert.deepEqual(await store.write([ada.subtract(15)]), [ACCEPTED]);
    const { cycles } = await store.cycles(ada.key);
    assert.deepEqual(remains(cycles), [0, 5, 10]);
    const [subtraction] = await transactionsOf(store, ada);
    assert.equal(subtraction?.amount, -15);
    assert.equal(subtraction?.expiresAt, cycles[0]?.end, 'it expires with the last of the cycles that it drew on');
  });

  it('a subtraction takes all there is, and one credit more is refused and changes nothing', async (ledger) => {
    const { store, account } = ledger;
    const ada = new EndUser(account, 1);
    await store.write([ada.add(10), ada.add(20)]);
    assert.deepEqual(await store.write([ada.subtract(31)]), [
      { refused: 'InsufficientFunds', requested: 31, available: 30 },
    ]);
    assert.deepEqual(await historyOf(store, ada), ['+20 add', '+10 add']);
    assert.deepEqual(await store.write([ada.subtract(30)]), [ACCEPTED]);
    assert.equal(await balanceOf(store, ada), 0);
  });

  it('credits past 2^53−1 are refused with the room that is left, and that much is taken', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const { store } = ledger;
    await store.write([ada.add(AMOUNT_MAX), ada.subtract(5)]);
    const tooLarge = { refused: 'BalanceTooLarge', requested: 6, available: 5 };
    assert.deepEqual(await store.write([ada.add(6), ada.startCycle(6), ada.add(5)]), [tooLarge, tooLarge, ACCEPTED]);
    assert.equal(await balanceOf(store, ada), AMOUNT_MAX);
  });

  it('amounts of 2^53−1 are kept to the credit, also when the ledger is opened again', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const bob = new EndUser(ledger.account, 2);
    await ledger.store.write([ada.add(AMOUNT_MAX), ada.subtract(AMOUNT_MAX - 1), bob.startCycle(AMOUNT_MAX)]);
    await ledger.reopen();
    assert.equal(await balanceOf(ledger.store, ada), 1);
    assert.equal(await balanceOf(ledger.store, bob), AMOUNT_MAX);
    assert.deepEqual(await historyOf(ledger.store, ada), [`-${AMOUNT_MAX - 1} subtract`, `+${AMOUNT_MAX} add`]);
    assert.deepEqual(await ledger.store.write([ada.subtract(1), bob.subtract(AMOUNT_MAX)]), [ACCEPTED, ACCEPTED]);
  });

  it('the longest validity ends at the last instant', async ({ store, account }) => {
    const ada = new EndUser(account, 1);
    await store.write([ada.add(1, VALIDITY_DAYS_MAX), ada.startCycle(2, VALIDITY_DAYS_MAX)]);
    const { cycles } = await store.cycles(ada.key);
    assert.deepEqual(
      cycles.map(({ end }) => end),
      [INSTANT_MAX, INSTANT_MAX],
    );
  });

  it('a started cycle is the answer, and a second start is refused with it', async ({ store, account }) => {
    const ada = new EndUser(account, 1);
    const started = accepted(await store.write([ada.startCycle(30, 7)]));
    assert.deepEqual((await store.cycles(ada.key)).cycles, [started]);
    const { id, start, ...rest } = started;
    const fields = { period: 0, type: 'recurring', status: 'active', amount: 30, remaining: 30, validityDays: 7 };
    assert.deepEqual(rest, { ...fields, end: start + 7 * DAY_MS });
    assert.deepEqual(await store.write([ada.startCycle(30, 7)]), [{ refused: 'CycleAlreadyActive', cycle: started }]);
    assert.deepEqual(await historyOf(store, ada), ['+30 start-cycle']);
    assert.equal((await transactionsOf(store, ada))[0]?.id, id);
  });

  it('a cycle is replaced in one step, and what was left of it can still be spent', async ({ store, account }) => {
    const ada = new EndUser(account, 1);
    const first = accepted(await store.write([ada.startCycle(30, 7)]));
    const second = accepted(await store.write([ada.startCycle(40, 7, 'replace')]));
    assert.notEqual(second.id, first.id);
    const { cycles } = await store.cycles(ada.key);
    assert.deepEqual(cycles, [{ ...first, status: 'canceled' }, second]);
    assert.deepEqual(await store.write([ada.subtract(70)]), [ACCEPTED]);
  });

  it('a replacement that is refused leaves the active cycle as it was', async ({ store, account }) => {
    const ada = new EndUser(account, 1);
    const active = accepted(await store.write([ada.startCycle(30, 7)]));
    const outcomes = await store.write([ada.startCycle(AMOUNT_MAX, 7, 'replace')]);
    const available = AMOUNT_MAX - 30;
    assert.deepEqual(outcomes, [{ refused: 'BalanceTooLarge', requested: AMOUNT_MAX, available }]);
    assert.deepEqual((await store.cycles(ada.key)).cycles, [active]);
  });

  it('a stopped cycle is the answer, also to a second stop, and without one there is a refusal', async (ledger) => {
    const { store, account } = ledger;
    const [ada, bob] = [new EndUser(account, 1), new EndUser(account, 2)];
    await store.write([ada.startCycle(30, 7), ada.subtract(10), bob.add(5)]);
    const [{ cycles }] = [await store.cycles(ada.key)];
    const stopped: Outcome = { refused: null, cycle: { ...(cycles[0] as Cycle), status: 'canceled' } };
    assert.deepEqual(await store.write([ada.stopCycle()]), [stopped]);
    const notFound: Outcome = { refused: 'CycleNotFound' };
    assert.deepEqual(await store.write([ada.stopCycle(), bob.stopCycle()]), [stopped, notFound]);
    assert.equal(await balanceOf(store, ada), 20);
    const [again] = await store.write([ada.startCycle(5, 7)]);
    assert.equal(again?.refused, null, 'after a stop a new cycle may start at once');
  });

  it('the commands of a batch are decided in order, each seeing what came before', async ({ store, account }) => {
    const ada = new EndUser(account, 1);
    const outcomes = await store.write([
      ada.subtract(1),
      ada.add(10),
      ada.subtract(15),
      ada.startCycle(10),
      ada.subtract(15),
      ada.stopCycle(),
      ada.startCycle(3),
      ada.startCycle(4),
      ada.subtract(8),
      ada.subtract(1),
    ]);
    assert.deepEqual(
      outcomes.map((outcome) => outcome?.refused),
      [
        'InsufficientFunds',
        null,
        'InsufficientFunds',
        null,
        null,
        null,
        null,
        'CycleAlreadyActive',
        null,
        'InsufficientFunds',
      ],
    );
    assert.deepEqual(outcomes[2], { refused: 'InsufficientFunds', requested: 15, available: 10 });
    const expected = ['-8 subtract', '+3 start-cycle', '-15 subtract', '+10 start-cycle', '+10 add'];
    assert.deepEqual(await historyOf(store, ada), expected);
    assert.deepEqual(await store.write([ada.subtract(1)]), [NOTHING_THERE]);
  });

  it('in a batch of many end users a refusal changes nothing for those beside it', async ({
    store,
    account,
    other,
  }) => {
    const people = Array.from(
      { length: BATCH_COMMANDS / 4 },
      (_, index) => new EndUser(index % 2 ? account : other, index),
    );
    await store.write(people.map((user, index) => user.add(10 + index)));
    const wanted = (index: number) => (index % 3 === 0 ? 11 + index : 10 + index);
    const outcomes = await store.write([
      ...people.map((user, index) => user.subtract(wanted(index))),
      ...people.map((user) => user.add(1)),
      ...people.map((user) => user.startCycle(2)),
      ...people.map((user) => user.startCycle(3)),
    ]);
    assert.equal(outcomes.length, BATCH_COMMANDS);
    for (const [index, user] of people.entries()) {
      const isRefused = index % 3 === 0;
      const refusals = [0, 1, 2, 3].map((round) => outcomes[index + round * people.length]?.refused);
      assert.deepEqual(
        refusals,
        [isRefused ? 'InsufficientFunds' : null, null, null, 'CycleAlreadyActive'],
        `${index}`,
      );
      assert.equal(await balanceOf(store, user), (isRefused ? 10 + index : 0) + 3, `end user ${index}`);
    }
  });

  it('a batch in which all is refused changes nothing', async ({ store, account }) => {
    const [ada, bob] = [new EndUser(account, 1), new EndUser(account, 2)];
    await store.write([ada.add(5)]);
    const outcomes = await store.write([ada.subtract(6), bob.subtract(1), bob.stopCycle()]);
    assert.deepEqual(
      outcomes.map((outcome) => outcome?.refused),
      ['InsufficientFunds', 'InsufficientFunds', 'CycleNotFound'],
    );
    assert.deepEqual(await historyOf(store, ada), ['+5 add']);
    assert.deepEqual(await store.write([ada.subtract(5)]), [ACCEPTED]);
  });

  it('the same end user in two accounts is two', async ({ store, account, other }) => {
    const [ours, theirs] = [new EndUser(account, 1), new EndUser(other, 1)];
    await store.write([ours.add(10), ours.startCycle(20), theirs.add(1)]);
    assert.deepEqual(await store.write([theirs.subtract(2), theirs.stopCycle(), ours.subtract(30)]), [
      { refused: 'InsufficientFunds', requested: 2, available: 1 },
      { refused: 'CycleNotFound' },
      ACCEPTED,
    ]);
    assert.deepEqual(await historyOf(store, theirs), ['+1 add']);
    assert.deepEqual(await historyOf(store, ours), ['-30 subtract', '+20 start-cycle', '+10 add']);
    assert.equal((await store.cycles(theirs.key)).cycles.length, 1);
  });

  it('an end user never heard of has nothing, and asking leaves no trace', async ({ store, account }) => {
    const nobody = new EndUser(account, 404);
    assert.deepEqual((await store.cycles(nobody.key)).cycles, []);
    const { cycles, transactions, next } = await store.transactions(nobody.key, { from: null, limit: 1 });
    assert.deepEqual({ cycles, transactions, next }, { cycles: [], transactions: [], next: null });
    assert.deepEqual(await store.write([nobody.subtract(1), nobody.renew()]), [NOTHING_THERE, ACCEPTED]);
    const { endUsers, postings } = await store.audit(() => {});
    assert.deepEqual({ endUsers, postings }, { endUsers: 0, postings: 0 });
    await store.write([new EndUser(account, 1).add(1)]);
    assert.equal((await store.audit(() => {})).endUsers, 1, 'one of whom it has heard does leave a trace');
  });

  it('transactions have ids of their own that sort as they happened', async ({ store, account }) => {
    const ada = new EndUser(account, 1);
    for (let batch = 0; batch < 5; batch++)
      await store.write([ada.add(9), ada.subtract(1), ada.add(9), ada.subtract(2)]);
    const ids = (await transactionsOf(store, ada)).map(({ id }) => id);
    assert.equal(new Set(ids).size, 20);
    assert.deepEqual(ids, ids.toSorted().toReversed(), 'latest first');
    for (const id of ids) assert.match(id, COMB);
  });

  it('a store in which all is well has no trouble to tell of, also after refusals', async ({ store, account }) => {
    await store.write([new EndUser(account, 1).subtract(1)]);
    assert.equal(store.trouble(), null);
  });
}

function remains(cycles: readonly Cycle[]): number[] {
  return cycles.map(({ remaining }) => remaining);
}

function accepted([outcome]: readonly (Outcome | null)[]): Cycle {
  assert(outcome?.refused === null && outcome.cycle !== null, 'the command is answered with a cycle');
  return outcome.cycle;
}
