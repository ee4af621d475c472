// Contract tests for `write`: the outcome and the effect of each command, alone and in a batch.

import assert from 'node:assert/strict';
import { AMOUNT_MAX } from '../../../src/ledger/amount.ts';
import type { Outcome } from '../../../src/ledger/command.ts';
import type { Cycle } from '../../../src/ledger/cycle.ts';
import { DAY_MS, INSTANT_MAX, VALIDITY_DAYS_MAX } from '../../../src/ledger/instant.ts';
import type { Contract } from '../store-contract.ts';
import {
  ACCEPTED,
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

const COMB = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const NOTHING_THERE: Result = { refused: 'InsufficientFunds', requested: 1, available: 0 };

/** The maximum number of commands in a group-commit batch. */
const BATCH_COMMANDS = 512;

export function writeContract(contract: Contract): void {
  additionsAndSubtractions(contract);
  transactionIds(contract);
  limits(contract);
  starts(contract);
  batches(contract);
}

function additionsAndSubtractions({ it }: Contract): void {
  it('an addition creates one cycle and one transaction', async (ledger) => {
    const ada = new EndUser(ledger.account, 1, 'key:77');
    assert.deepEqual(await ledger.results([ada.add(100, 10)]), [ACCEPTED]);
    const { now, state } = await ledger.load(ada.key);
    const [{ id, start }] = state.cycles as [Cycle];
    const end = start + 10 * DAY_MS;
    const rest = {
      type: 'one-time',
      status: 'active',
      amount: 100,
      remaining: 100,
      held: 0,
      plan: daysPlan(100, 10),
      next: null,
    };
    assert.deepEqual(state.cycles, [{ id, period: 0, start, end, ...rest }]);
    assert(start <= now);
    assert.deepEqual(await transactionsOf(ledger, ada), [
      { id, kind: 'add', amount: 100, createdAt: start, expiresAt: end, actor: 'key:77', note: null },
    ]);
  });

  it('a subtraction drains the cycle that started first, and creates one transaction', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(10, 300), ada.add(10, 10), ada.add(10, 20)]);
    assert.deepEqual(await ledger.results([ada.subtract(15)]), [ACCEPTED]);
    const { cycles } = (await ledger.load(ada.key)).state;
    assert.deepEqual(remains(cycles), [0, 5, 10]);
    const [subtraction] = await transactionsOf(ledger, ada);
    assert.equal(subtraction?.amount, -15);
    assert.equal(
      subtraction?.expiresAt,
      cycles[0]?.end,
      'the expiry of a subtraction is the latest end of the cycles that it draws from',
    );
  });

  it('a subtraction may take the whole balance, but a subtraction of one more credit is refused and changes nothing', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(10), ada.add(20)]);
    const refused = { refused: 'InsufficientFunds', requested: 31, available: 30 };
    assert.deepEqual(await ledger.results([ada.subtract(31)]), [refused]);
    assert.deepEqual(await historyOf(ledger, ada), ['+20 add', '+10 add']);
    assert.deepEqual(await ledger.results([ada.subtract(30)]), [ACCEPTED]);
    assert.equal(await balanceOf(ledger, ada), 0);
  });

  it('an unknown end user has no credits, and refused requests do not create the end user', async (ledger) => {
    const unknown = new EndUser(ledger.account, 404);
    assert.deepEqual((await ledger.load(unknown.key)).state.cycles, []);
    const { state, transactions, next } = await ledger.transactions(unknown.key, { limit: 1 });
    assert.deepEqual({ state, transactions, next }, { state: { cycles: [], holds: [] }, transactions: [], next: null });
    assert.deepEqual(await ledger.results([unknown.subtract(1), unknown.settle()]), [NOTHING_THERE, ACCEPTED]);
    const { endUsers, postings } = await ledger.audit();
    assert.deepEqual({ endUsers, postings }, { endUsers: 0, postings: 0 });
    await ledger.write([new EndUser(ledger.account, 1).add(1)]);
    assert.equal((await ledger.audit()).endUsers, 1, 'an addition creates the end user');
  });

  it('a store is still healthy after a refusal', async (ledger) => {
    await ledger.write([new EndUser(ledger.account, 1).subtract(1)]);
    assert.equal(ledger.trouble(), null);
  });
}

function transactionIds({ it }: Contract): void {
  it('an accepted write returns its transaction ID, and a write that stores nothing returns no transaction ID', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const [added, spent, hold, other] = await ledger.write([ada.add(10), ada.subtract(1), ada.hold(1), ada.hold(2)]);
    const ids = idsOf([added as Outcome, spent as Outcome, hold as Outcome, other as Outcome]);
    const ends = [ada.capture(ids[2] as string), ada.release(ids[3] as string), ada.refund(ids[1] as string)];
    ids.push(
      ...idsOf(await ledger.write([...ends, ada.startCycle(5), ada.startCycle(6, 5, 'replace'), ada.stopCycle()])),
    );
    const { transactions } = await ledger.history(ada.key);
    // The request that replaces a cycle also stores a `stop-cycle` transaction for the old cycle.
    const kinds = transactions.map(({ kind }) => kind).toReversed();
    const started = kinds.lastIndexOf('start-cycle');
    const expected = transactions.map(({ id }) => id).toReversed();
    assert.deepEqual(kinds.slice(started - 1), ['stop-cycle', 'start-cycle', 'stop-cycle']);
    assert.deepEqual(ids, expected.toSpliced(started - 1, 1));
    const nothing = await ledger.write([ada.stopCycle(), ada.settle(), ada.subtract(100)]);
    assert.deepEqual(idsOf(nothing), [null, null, null]);
  });

  it('a replay returns the transaction ID of the first request, even after the ledger is reopened', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const commands = [
      ada.add(10),
      ada.subtract(4),
      ada.startCycle(5),
      ada.stopCycle(),
      ada.stopCycle(),
      ada.subtract(99),
    ];
    const requests = (requestId: string) => commands.map((command, index) => keyed(command, `key ${index}`, requestId));
    const outcomes = await ledger.write(requests('1'));
    const expected = outcomes.map((outcome) => outcome && replayed(outcome, '1'));
    assert.deepEqual(await ledger.write(requests('2')), expected);
    await ledger.reopen();
    assert.deepEqual(await ledger.write(requests('3')), expected);
    assert.deepEqual(
      idsOf(outcomes).map((id) => id !== null),
      [true, true, true, true, false, false],
    );
  });
}

function limits({ it }: Contract): void {
  it('a write that would raise a balance above 2^53−1 is refused with the amount that still fits, and exactly that amount is accepted', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(AMOUNT_MAX), ada.subtract(5)]);
    const tooLarge = { refused: 'BalanceTooLarge', requested: 6, available: 5 };
    assert.deepEqual(await ledger.results([ada.add(6), ada.startCycle(6), ada.add(5)]), [tooLarge, tooLarge, ACCEPTED]);
    assert.equal(await balanceOf(ledger, ada), AMOUNT_MAX);
  });

  it('amounts of 2^53−1 are exact, even after the ledger is reopened', async (ledger) => {
    const [ada, bob] = [new EndUser(ledger.account, 1), new EndUser(ledger.account, 2)];
    await ledger.write([ada.add(AMOUNT_MAX), ada.subtract(AMOUNT_MAX - 1), bob.startCycle(AMOUNT_MAX)]);
    await ledger.reopen();
    assert.equal(await balanceOf(ledger, ada), 1);
    assert.equal(await balanceOf(ledger, bob), AMOUNT_MAX);
    assert.deepEqual(await historyOf(ledger, ada), [`-${AMOUNT_MAX - 1} subtract`, `+${AMOUNT_MAX} add`]);
    assert.deepEqual(await ledger.results([ada.subtract(1), bob.subtract(AMOUNT_MAX)]), [ACCEPTED, ACCEPTED]);
  });

  it('a cycle with the maximum validity ends at the latest possible instant', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(1, VALIDITY_DAYS_MAX), ada.startCycle(2, VALIDITY_DAYS_MAX)]);
    const { cycles } = (await ledger.load(ada.key)).state;
    assert.deepEqual(
      cycles.map(({ end }) => end),
      [INSTANT_MAX, INSTANT_MAX],
    );
  });
}

function starts({ it }: Contract): void {
  it('starting a cycle returns the cycle, and a second start is refused and returns the same cycle', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const started = cycleIn(await ledger.write([ada.startCycle(30, 7)]));
    assert.deepEqual((await ledger.load(ada.key)).state.cycles, [started]);
    const { id, start, ...rest } = started;
    const fields = {
      period: 0,
      type: 'recurring',
      status: 'active',
      amount: 30,
      remaining: 30,
      held: 0,
      plan: daysPlan(30, 7),
      next: null,
    };
    assert.deepEqual(rest, { ...fields, end: start + 7 * DAY_MS });
    assert.deepEqual(await ledger.results([ada.startCycle(30, 7)]), [
      { refused: 'CycleAlreadyActive', cycle: started },
    ]);
    assert.deepEqual(await historyOf(ledger, ada), ['+30 start-cycle']);
    assert.equal((await transactionsOf(ledger, ada))[0]?.id, id);
  });

  it('replacing a cycle stops the old cycle in the same write, and the remaining credits of the old cycle can still be spent', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const first = cycleIn(await ledger.write([ada.startCycle(30, 7)]));
    const second = cycleIn(await ledger.write([ada.startCycle(40, 7, 'replace')]));
    assert.notEqual(second.id, first.id);
    const { cycles } = (await ledger.load(ada.key)).state;
    assert.deepEqual(cycles, [{ ...first, status: 'superseded' }, second]);
    assert.deepEqual(await ledger.results([ada.subtract(70)]), [ACCEPTED]);
  });

  it('a refused replacement does not change the active cycle', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const active = cycleIn(await ledger.write([ada.startCycle(30, 7)]));
    const outcomes = await ledger.write([ada.startCycle(AMOUNT_MAX, 7, 'replace')]);
    const available = AMOUNT_MAX - 30;
    assert.deepEqual(outcomes, [{ refused: 'BalanceTooLarge', requested: AMOUNT_MAX, available }]);
    assert.deepEqual((await ledger.load(ada.key)).state.cycles, [active]);
  });
}

function batches({ it }: Contract): void {
  it('the commands of a batch are decided in order, and each command sees the effects of the earlier commands', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const outcomes = await ledger.write([
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
    const none = 'InsufficientFunds';
    assert.deepEqual(
      outcomes.map((outcome) => outcome?.refused),
      [none, null, none, null, null, null, null, 'CycleAlreadyActive', null, none],
    );
    assert.deepEqual(outcomes[2], { refused: none, requested: 15, available: 10 });
    const expected = ['-8 subtract', '+3 start-cycle', '-15 subtract', '+10 start-cycle', '+10 add'];
    assert.deepEqual(await historyOf(ledger, ada), expected);
    assert.deepEqual(await ledger.results([ada.subtract(1)]), [NOTHING_THERE]);
  });

  it('in a batch for many end users, a refusal for one end user does not affect the others', async (ledger) => {
    const { account, other } = ledger;
    const people = Array.from({ length: BATCH_COMMANDS / 4 }, (_, index) =>
      index % 2 ? new EndUser(account, index) : new EndUser(other, index),
    );
    await ledger.write(people.map((user, index) => user.add(10 + index)));
    const wanted = (index: number) => (index % 3 === 0 ? 11 + index : 10 + index);
    const outcomes = await ledger.write([
      ...people.map((user, index) => user.subtract(wanted(index))),
      ...people.map((user) => user.add(1)),
      ...people.map((user) => user.startCycle(2)),
      ...people.map((user) => user.startCycle(3)),
    ]);
    assert.equal(outcomes.length, BATCH_COMMANDS);
    for (const [index, user] of people.entries()) {
      const isRefused = index % 3 === 0;
      const refusals = [0, 1, 2, 3].map((round) => outcomes[index + round * people.length]?.refused);
      const expected = [isRefused ? 'InsufficientFunds' : null, null, null, 'CycleAlreadyActive'];
      assert.deepEqual(refusals, expected, `end user ${index}`);
      assert.equal(await balanceOf(ledger, user), (isRefused ? 10 + index : 0) + 3, `end user ${index}`);
    }
  });

  it('a batch of refused commands changes nothing', async (ledger) => {
    const [ada, bob] = [new EndUser(ledger.account, 1), new EndUser(ledger.account, 2)];
    await ledger.write([ada.add(5)]);
    const outcomes = await ledger.write([ada.subtract(6), bob.subtract(1), bob.stopCycle()]);
    assert.deepEqual(
      outcomes.map((outcome) => outcome?.refused),
      ['InsufficientFunds', 'InsufficientFunds', 'CycleNotFound'],
    );
    assert.deepEqual(await historyOf(ledger, ada), ['+5 add']);
    assert.deepEqual(await ledger.results([ada.subtract(5)]), [ACCEPTED]);
  });

  it('the same UUID in two accounts identifies two different end users', async (ledger) => {
    const [ours, theirs] = [new EndUser(ledger.account, 1), new EndUser(ledger.other, 1)];
    await ledger.write([ours.add(10), ours.startCycle(20), theirs.add(1)]);
    assert.deepEqual(await ledger.results([theirs.subtract(2), theirs.stopCycle(), ours.subtract(30)]), [
      { refused: 'InsufficientFunds', requested: 2, available: 1 },
      { refused: 'CycleNotFound' },
      ACCEPTED,
    ]);
    assert.deepEqual(await historyOf(ledger, theirs), ['+1 add']);
    assert.deepEqual(await historyOf(ledger, ours), ['-30 subtract', '+20 start-cycle', '+10 add']);
    assert.equal((await ledger.load(theirs.key)).state.cycles.length, 1);
  });

  it('transaction IDs are unique and sort in the order of the transactions, even within a batch', async (ledger) => {
    const [ada, bob] = [new EndUser(ledger.account, 1), new EndUser(ledger.other, 1)];
    for (let batch = 0; batch < 5; batch++)
      await ledger.write([
        ada.add(9),
        bob.add(4),
        ada.subtract(1),
        ada.add(8),
        ada.subtract(9),
        ada.startCycle(3, 5, 'replace'),
        bob.subtract(1),
        ada.subtract(2),
      ]);
    const transactions = await transactionsOf(ledger, ada);
    const ids = transactions.map(({ id }) => id);
    assert.deepEqual(ids, ids.toSorted().toReversed(), 'latest first');
    const ofOneBatch = [-2, 3, -9, 8, -1, 9];
    assert.deepEqual(
      transactions.map(({ amount }) => amount),
      Array(5).fill(ofOneBatch).flat(),
    );
    const all = [...ids, ...(await transactionsOf(ledger, bob)).map(({ id }) => id)];
    assert.equal(new Set(all).size, 5 * (6 + 2));
    for (const id of all) assert.match(id, COMB);
  });
}

function remains(cycles: readonly Cycle[]): number[] {
  return cycles.map(({ remaining }) => remaining);
}

function cycleIn([outcome]: readonly (Outcome | null)[]): Cycle {
  assert(outcome?.refused === null && outcome.cycle, 'the outcome has a cycle');
  return outcome.cycle;
}
