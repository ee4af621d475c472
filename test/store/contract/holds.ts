// Contract tests for holds: each hold ends exactly once, by a capture, a release or a lapse.

import assert from 'node:assert/strict';
import type { HoldResult, Outcome } from '../../../src/ledger/command.ts';
import { OPEN_HOLDS_MAX } from '../../../src/ledger/hold.ts';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import { instantOf } from '../../../src/ledger/transaction-id.ts';
import type { Contract, ContractLedger } from '../store-contract.ts';
import {
  ACCEPTED,
  balanceOf,
  EndUser,
  historyOf,
  keyed,
  type Result,
  replayed,
  transactionsOf,
} from '../temporary-ledger.ts';
import { twoMinutes } from './time.ts';

const NOT_FOUND: Result = { refused: 'HoldNotFound' };
const UNKNOWN_HOLD = '019c13ec-9e00-4000-8002-000000000000';
const MINUTE_MS = 60_000;

export function holdContract(contract: Contract): void {
  endings(contract);
  refusals(contract);
  endedCycles(contract);
  lapses(contract);
  repetitions(contract);
  manyHolds(contract);
}

async function held(ledger: ContractLedger, user: EndUser, amount: number, seconds = 900): Promise<HoldResult> {
  const [outcome] = await ledger.write([user.hold(amount, seconds)]);
  return holdIn(outcome);
}

function holdIn(outcome: Outcome | null | undefined): HoldResult {
  assert(outcome?.refused === null && outcome.hold, 'the outcome has a hold');
  return outcome.hold;
}

async function cyclesOf(ledger: ContractLedger, { key }: EndUser): Promise<(readonly [number, number])[]> {
  const { state } = await ledger.load(key);
  return state.cycles.map(({ remaining, held }) => [remaining, held]);
}

/** Returns one string for each transaction, such as `capture -3, holds -5`, latest first. */
async function allOf(ledger: ContractLedger, { key }: EndUser): Promise<string[]> {
  const { transactions } = await ledger.history(key);
  return transactions.map(({ kind, amount, postings }) => {
    const held = postings.reduce((sum, posting) => sum + posting.held, 0);
    return held === 0 ? `${kind} ${amount}` : `${kind} ${amount}, holds ${held}`;
  });
}

function endings({ it }: Contract): void {
  it('a hold sets aside the oldest credits so that nothing else can spend them, and is not listed as a transaction', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(10, 5), ada.add(10, 4)]);
    const [outcome] = await ledger.write([ada.hold(15, 60)]);
    const { id, createdAt, ...rest } = holdIn(outcome);
    assert(outcome?.refused === null);
    assert.deepEqual([id, createdAt], [outcome.transactionId, instantOf(id)]);
    const nothing = { captured: 0, returned: 0, expired: 0 };
    assert.deepEqual(rest, { expiresAt: createdAt + MINUTE_MS, status: 'open', amount: 15, ...nothing });
    assert.deepEqual(await cyclesOf(ledger, ada), [
      [10, 10],
      [10, 5],
    ]);
    const { state } = await ledger.load(ada.key);
    const [first, second] = state.cycles.map(({ id: cycleId, period, end }) => ({ cycleId, period, end }));
    const parts = [
      { ...first, amount: 10 },
      { ...second, amount: 5 },
    ];
    assert.deepEqual(state.holds, [{ id, expiresAt: createdAt + MINUTE_MS, parts }]);
    assert.equal(await balanceOf(ledger, ada), 5);
    const refused = { refused: 'InsufficientFunds', requested: 6, available: 5 };
    assert.deepEqual(await ledger.results([ada.subtract(6), ada.hold(6), ada.subtract(5)]), [
      refused,
      refused,
      ACCEPTED,
    ]);
    assert.deepEqual(await historyOf(ledger, ada), ['-5 subtract', '+10 add', '+10 add']);
    assert.deepEqual((await allOf(ledger, ada)).slice(0, 2), ['subtract -5', 'hold 0, holds 15']);
  });

  it('a capture spends the oldest credits of a hold and returns the rest to their cycles', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(10, 5), ada.add(10, 4)]);
    const { id, ...open } = await held(ledger, ada, 15);
    const [captured] = await ledger.write([ada.capture(id, 12)]);
    assert.deepEqual(holdIn(captured), { id, ...open, status: 'captured', captured: 12, returned: 3 });
    assert.deepEqual(await cyclesOf(ledger, ada), [
      [0, 0],
      [8, 0],
    ]);
    assert.deepEqual((await ledger.load(ada.key)).state.holds, []);
    const [listed] = await transactionsOf(ledger, ada);
    assert(captured?.refused === null);
    assert.deepEqual([listed?.id, listed?.kind, listed?.amount], [captured.transactionId, 'capture', -12]);
    assert.deepEqual(await ledger.results([ada.capture(id), ada.release(id)]), [NOT_FOUND, NOT_FOUND]);
  });

  it('a capture of more credits than were held draws the difference from the balance, and is refused if the balance is too small', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(10), ada.add(10)]);
    const { id } = await held(ledger, ada, 12);
    const refused = { refused: 'InsufficientFunds', requested: 21, available: 20 };
    assert.deepEqual(await ledger.results([ada.capture(id, 21)]), [refused]);
    assert.equal((await ledger.load(ada.key)).state.holds[0]?.id, id, 'the hold stays open');
    const { captured, returned } = holdIn((await ledger.write([ada.capture(id, 20)]))[0]);
    assert.deepEqual([captured, returned], [20, 0]);
    assert.deepEqual(await allOf(ledger, ada), ['capture -20, holds -12', 'hold 0, holds 12', 'add 10', 'add 10']);
    assert.equal(await balanceOf(ledger, ada), 0);
  });

  it('a release returns all credits of a hold and is not listed as a transaction', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(10), ada.startCycle(10)]);
    const { id, ...open } = await held(ledger, ada, 15);
    const [released] = await ledger.write([ada.release(id)]);
    assert.deepEqual(holdIn(released), { id, ...open, status: 'released', returned: 15 });
    assert.equal(await balanceOf(ledger, ada), 20);
    assert.deepEqual(await historyOf(ledger, ada), ['+10 start-cycle', '+10 add']);
    assert.deepEqual((await allOf(ledger, ada))[0], 'release 0, holds -15');
  });

  it('each command of a batch sees the holds, captures and releases of the earlier commands in the batch', async (ledger) => {
    const [ada, bob] = [new EndUser(ledger.account, 1), new EndUser(ledger.account, 2)];
    await ledger.write([ada.add(10), bob.add(10)]);
    const { id } = await held(ledger, ada, 4);
    const outcomes = await ledger.results([
      ada.hold(7),
      ada.capture(id, 1),
      ada.hold(9),
      bob.hold(10),
      ada.release(id),
      bob.subtract(1),
    ]);
    assert.deepEqual(
      outcomes.map((outcome) => outcome?.refused),
      ['InsufficientFunds', null, null, null, 'HoldNotFound', 'InsufficientFunds'],
    );
    assert.equal(await balanceOf(ledger, ada), 0);
  });

  it('open holds survive a restart and a crash, and are loaded in the order in which they lapse', async (ledger) => {
    const [ada, bob] = [new EndUser(ledger.account, 1), new EndUser(ledger.other, 1)];
    await ledger.write([ada.add(100), bob.add(100)]);
    const [late, soon] = [await held(ledger, ada, 1, 900), await held(ledger, ada, 2, 60)];
    await held(ledger, bob, 3);
    const ids = async () => (await ledger.load(ada.key)).state.holds.map(({ id }) => id);
    assert.deepEqual(await ids(), [soon.id, late.id]);
    await ledger.reopen();
    assert.deepEqual(await ids(), [soon.id, late.id]);
    await ledger.write([ada.capture(soon.id)]);
    const between = await held(ledger, ada, 4, 600);
    await ledger.crash();
    assert.deepEqual(await ids(), [between.id, late.id]);
    assert.equal(await balanceOf(ledger, ada), 100 - 2 - 1 - 4);
    assert.equal(await balanceOf(ledger, bob), 97);
  });
}

function refusals({ it }: Contract): void {
  it("a capture or release of another end user's hold is refused", async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const others = [new EndUser(ledger.account, 2), new EndUser(ledger.other, 1)];
    await ledger.write([ada.add(10), ...others.map((user) => user.add(10))]);
    const { id } = await held(ledger, ada, 4);
    for (const user of others)
      assert.deepEqual(await ledger.results([user.capture(id), user.release(id)]), [NOT_FOUND, NOT_FOUND]);
    assert.deepEqual(await ledger.results([ada.capture(UNKNOWN_HOLD), ada.release(UNKNOWN_HOLD)]), [
      NOT_FOUND,
      NOT_FOUND,
    ]);
    assert.equal(holdIn((await ledger.write([ada.release(id)]))[0]).returned, 4);
  });

  it('a hold for an end user without credits is refused and stores nothing', async (ledger) => {
    const unknown = new EndUser(ledger.account, 404);
    const none = { refused: 'InsufficientFunds', requested: 1, available: 0 };
    assert.deepEqual(await ledger.results([unknown.hold(1), unknown.capture(UNKNOWN_HOLD)]), [none, NOT_FOUND]);
    assert.equal((await ledger.audit()).endUsers, 0);
  });

  it('an end user with a thousand open holds cannot get another hold until one of the holds is closed', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(OPEN_HOLDS_MAX + 1), ada.add(OPEN_HOLDS_MAX)]);
    const ids: string[] = [];
    for (let count = 0; count < OPEN_HOLDS_MAX; count += 250)
      ids.push(...(await ledger.write(Array.from({ length: 250 }, () => ada.hold(1)))).map((each) => holdIn(each).id));
    assert.deepEqual(await ledger.results([ada.hold(1)]), [{ refused: 'TooManyHolds' }]);
    assert.deepEqual(await ledger.results([ada.subtract(2)]), [ACCEPTED]);
    await ledger.reopen();
    assert.deepEqual(await ledger.results([ada.hold(1), ada.subtract(1)]), [{ refused: 'TooManyHolds' }, ACCEPTED]);
    assert.deepEqual((await ledger.load(ada.key)).state.holds.map(({ id }) => id).toSorted(), ids.toSorted());
    await ledger.write([ada.release(ids[500] as string)]);
    assert.equal((await ledger.results([ada.hold(1)]))[0]?.refused, null);
    assert.equal(await balanceOf(ledger, ada), 2 * OPEN_HOLDS_MAX + 1 - OPEN_HOLDS_MAX - 3);
  });
}

function endedCycles({ itInTime }: Contract): void {
  itInTime(
    'held credits can still be captured after their cycle has ended, and expire if the capture does not spend them',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.write([ada.add(10, 1), ada.add(10, 3)]);
      const { id } = await held(ledger, ada, 16, 2 * 86_400);
      ledger.wall += DAY_MS;
      assert.equal(await balanceOf(ledger, ada), 4);
      const { captured, returned, expired } = holdIn((await ledger.write([ada.capture(id, 7)]))[0]);
      assert.deepEqual([captured, returned, expired], [7, 6, 3]);
      assert.equal(await balanceOf(ledger, ada), 10);
      await ledger.reopen();
      assert.deepEqual(await cyclesOf(ledger, ada), [[10, 0]]);
    },
  );

  itInTime('credits that were held in one period do not return to the next period', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.startCycle(10, 1)]);
    const { id } = await held(ledger, ada, 6, 3 * 86_400);
    ledger.wall += DAY_MS;
    assert.equal(await balanceOf(ledger, ada), 10, 'the next period is full');
    const { id: other } = await held(ledger, ada, 3, 2 * 86_400);
    const { returned, expired } = holdIn((await ledger.write([ada.release(id)]))[0]);
    assert.deepEqual([returned, expired], [0, 6]);
    assert.deepEqual(await cyclesOf(ledger, ada), [[10, 3]]);
    ledger.wall += DAY_MS;
    assert.equal(holdIn((await ledger.write([ada.capture(other, 2)]))[0]).expired, 1);
    assert.deepEqual(await cyclesOf(ledger, ada), [[10, 0]]);
  });

  itInTime(
    'after a capture of more credits than were held, the balance is correct even after the cycles that the capture drew from have ended',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.write([ada.add(10, 1), ada.add(5, 3)]);
      ledger.wall += DAY_MS - 1;
      const { id } = await held(ledger, ada, 2, 86_400);
      assert.equal(holdIn((await ledger.write([ada.capture(id, 6)]))[0]).captured, 6);
      ledger.wall += 1;
      assert.deepEqual(await cyclesOf(ledger, ada), [[5, 0]]);
      await ledger.crash();
      assert.deepEqual(await cyclesOf(ledger, ada), [[5, 0]]);
      assert.deepEqual((await ledger.load(ada.key)).state.holds, []);
      assert.equal(ledger.trouble(), null);
    },
  );
}

function lapses({ itInTime }: Contract): void {
  itInTime('a hold lapses exactly when it expires, no matter when the lapse is stored', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(10)]);
    const { id, expiresAt } = await held(ledger, ada, 4, 60);
    ledger.wall = expiresAt - 1;
    assert.equal(await balanceOf(ledger, ada), 6);
    assert.deepEqual(await ledger.due(), []);
    ledger.wall = expiresAt;
    assert.equal(
      await balanceOf(ledger, ada),
      10,
      'the balance includes the credits of the lapsed hold before the lapse is stored',
    );
    assert.deepEqual(await ledger.due(), [ada.key]);
    assert.deepEqual(await ledger.results([ada.capture(id)]), [NOT_FOUND]);
    ledger.wall += 5 * MINUTE_MS;
    await ledger.write([ada.settle()]);
    assert.deepEqual(await ledger.due(), []);
    const [lapse] = (await ledger.history(ada.key)).transactions;
    assert.deepEqual(
      [lapse?.kind, lapse?.createdAt, lapse?.actor, lapse?.reference],
      ['lapse', expiresAt, 'lapse', id],
    );
    assert.deepEqual(await historyOf(ledger, ada), ['+10 add']);
  });

  itInTime('a hold can be captured until a millisecond before it lapses', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(10)]);
    const [first, second] = [await held(ledger, ada, 4, 60), await held(ledger, ada, 5, 60)];
    ledger.wall = first.expiresAt - 1;
    assert.equal(holdIn((await ledger.write([ada.capture(first.id)]))[0]).captured, 4);
    ledger.wall = second.expiresAt;
    assert.deepEqual(await ledger.results([ada.capture(second.id), ada.subtract(6)]), [NOT_FOUND, ACCEPTED]);
  });

  itInTime(
    'lapses and renewals that became due while Scrip was stopped are stored in order, each with the instant at which it was due',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      const start = ledger.wall;
      await ledger.write([ada.add(10, 2), ada.startCycle(10, 1)]);
      for (const hours of [36, 12, 24, 80]) await held(ledger, ada, 3, hours * 3_600);
      ledger.wall = start + 4 * DAY_MS + 5;
      await ledger.reopen();
      assert.equal(await balanceOf(ledger, ada), 10);
      await ledger.write([ada.settle()]);
      const { transactions } = await ledger.history(ada.key);
      const entered = transactions.map(({ kind, createdAt }) => `${kind} ${(createdAt - start) / 3_600_000}`);
      assert.deepEqual(entered.slice(0, 8), [
        'renew 96',
        'lapse 80',
        'renew 72',
        'renew 48',
        'lapse 36',
        'lapse 24',
        'renew 24',
        'lapse 12',
      ]);
      assert.deepEqual(await cyclesOf(ledger, ada), [[10, 0]]);
    },
  );

  itInTime(
    'an end user is due when an open hold lapses, but not when a closed hold would have lapsed',
    async (ledger) => {
      const users = [1, 2, 3, 4].map((index) => new EndUser(ledger.account, index));
      const [ada, bob, eve, max] = users as [EndUser, EndUser, EndUser, EndUser];
      await ledger.write(users.map((user) => user.add(10)));
      const start = ledger.wall;
      const { id } = await held(ledger, ada, 1, 1_200);
      await held(ledger, bob, 1, 1_800);
      await held(ledger, eve, 1, 600);
      const { id: short } = await held(ledger, max, 1, 60);
      await twoMinutes(ledger);
      await ledger.write([ada.capture(id), max.release(short)]);
      const settled = async (at: number) => {
        ledger.wall = at;
        const due = await ledger.due();
        for (const user of due) await ledger.write([{ kind: 'settle', ...user }]);
        assert.deepEqual(await ledger.due(), [], 'a settled end user is no longer due');
        return due.filter(({ endUser }) => endUser !== ada.key.endUser && endUser !== max.key.endUser);
      };
      assert.deepEqual(await settled(start + 600_000 - 1), []);
      assert.deepEqual(await settled(start + 600_000), [eve.key]);
      assert.deepEqual(await settled(start + 1_800_000 - 1), []);
      assert.deepEqual(await settled(start + 1_800_000), [bob.key]);
    },
  );
}

function repetitions({ it }: Contract): void {
  it('repeating a hold, capture or release with its idempotency key returns the same transaction and changes nothing', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(20)]);
    const twice = async (command: ReturnType<EndUser['hold']>, key: string) => {
      const [first] = await ledger.write([keyed(command, key, '1')]);
      assert(first?.refused === null);
      assert.deepEqual(await ledger.write([keyed(command, key, '2')]), [replayed(first, '1')]);
      await ledger.reopen();
      assert.deepEqual(await ledger.write([keyed(command, key, '3')]), [replayed(first, '1')]);
      return holdIn(first).id;
    };
    const first = await twice(ada.hold(5), 'a');
    const second = await twice(ada.hold(6), 'b');
    await twice(ada.capture(first, 3), 'c');
    await twice(ada.release(second), 'd');
    assert.equal(await balanceOf(ledger, ada), 17);
    const reused = [{ refused: 'IdempotencyKeyReused' }];
    assert.deepEqual(await ledger.results([keyed(ada.hold(5, 60), 'a', '4')]), reused);
    assert.deepEqual(await ledger.results([keyed(ada.capture(first, 2), 'c', '4')]), reused);
    assert.deepEqual(await ledger.results([keyed(ada.capture(first), 'c', '4')]), reused);
  });
}

function manyHolds({ it }: Contract): void {
  it('of a thousand concurrent holds of 1 credit on a balance of 100, exactly 100 are accepted', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(60), ada.add(40)]);
    // Only eight concurrent batches, because a store may use one connection per batch.
    const writes = Array.from({ length: 8 }, () => ledger.write(Array.from({ length: 125 }, () => ada.hold(1))));
    const outcomes = (await Promise.all(writes)).flat();
    const accepted = outcomes.filter((outcome) => outcome?.refused === null);
    assert.equal(accepted.length, 100);
    assert(outcomes.every((outcome) => outcome?.refused === null || outcome?.refused === 'InsufficientFunds'));
    assert.equal(await balanceOf(ledger, ada), 0);
    assert.equal((await ledger.load(ada.key)).state.holds.length, 100);
  });

  it('of several concurrent captures and releases of one hold, exactly one is accepted', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(100)]);
    for (let round = 0; round < 5; round++) {
      const { id } = await held(ledger, ada, 10);
      const commands = [ada.capture(id, 3), ada.release(id), ada.capture(id), ada.capture(id, 3), ada.release(id)];
      const outcomes = (await Promise.all(commands.map((command) => ledger.results([command])))).flat();
      const accepted = outcomes.filter((outcome) => outcome?.refused === null);
      assert.equal(accepted.length, 1);
      assert.equal(outcomes.filter((outcome) => outcome?.refused === 'HoldNotFound').length, commands.length - 1);
    }
    assert.deepEqual((await ledger.load(ada.key)).state.holds, []);
  });
}
