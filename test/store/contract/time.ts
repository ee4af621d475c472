// Contract tests for time: expiry, renewals, and the ledger's time, which never goes backwards.

import assert from 'node:assert/strict';
import { cyclesAt } from '../../../src/ledger/balance.ts';
import { DAY_MS, VALIDITY_DAYS_MAX } from '../../../src/ledger/instant.ts';
import type { Transaction } from '../../../src/ledger/posting.ts';
import { dueTransactions } from '../../../src/ledger/settle.ts';
import { effort } from '../../effort.ts';
import type { Contract, ContractLedger } from '../store-contract.ts';
import { ACCEPTED, balanceOf, EndUser, historyOf, type Result, transactionsOf } from '../temporary-ledger.ts';

/** Enough days that two batches cannot store all missed daily renewals of one end user. */
const MISSED_DAYS = effort(2_100, 3_653);
/** Enough days that one batch cannot store all missed daily renewals of ten end users. */
const MISSED_TOGETHER_DAYS = effort(250, 400);
const ROUNDS_MAX = 100;

export function timeContract(contract: Contract): void {
  endings(contract);
  renewals(contract);
  shownRenewals(contract);
  catchingUp(contract);
  backwards(contract);
}

const MINUTE_MS = 60_000;
const DAY_SECONDS = DAY_MS / 1_000;

/**
 * Lets two minutes pass and writes once a minute, so that a store that defers balances flushes them. The flushed rows
 * also contain the instant at which each end user is next due.
 */
export async function twoMinutes(ledger: ContractLedger): Promise<void> {
  const beside = new EndUser(ledger.other, 999);
  for (let minute = 0; minute < 2; minute++) {
    ledger.wall += MINUTE_MS;
    await ledger.write([beside.add(1)]);
  }
}

function endings({ itInTime }: Contract): void {
  itInTime('credits can be spent until the millisecond before they expire', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const start = ledger.wall;
    await ledger.write([ada.add(10, 1), ada.add(5, 2)]);
    ledger.wall = start + DAY_MS - 1;
    assert.equal(await balanceOf(ledger, ada), 15);
    assert.deepEqual(await ledger.results([ada.subtract(1)]), [ACCEPTED]);
    ledger.wall = start + DAY_MS;
    assert.equal((await ledger.load(ada.key)).state.cycles.length, 1, 'a cycle that ends now is over');
    const refused: Result = { refused: 'InsufficientFunds', requested: 6, available: 5 };
    assert.deepEqual(await ledger.results([ada.subtract(6)]), [refused]);
  });
}

function renewals({ itInTime }: Contract): void {
  itInTime(
    'a cycle is renewed exactly at its end, and by default its remaining credits do not roll over',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      const start = ledger.wall;
      await ledger.write([ada.startCycle(10, 1), ada.subtract(4)]);
      ledger.wall = start + DAY_MS - 1;
      assert.deepEqual(await ledger.results([ada.settle()]), [ACCEPTED]);
      assert.deepEqual(await historyOf(ledger, ada), ['-4 subtract', '+10 start-cycle']);
      ledger.wall = start + DAY_MS;
      assert.equal(await balanceOf(ledger, ada), 10, 'a read shows a renewal before the renewal is stored');
      assert.deepEqual(await ledger.results([ada.subtract(10)]), [ACCEPTED]);
      const [, renewal] = await transactionsOf(ledger, ada);
      assert.equal(renewal?.kind, 'renew');
      assert.deepEqual([renewal?.createdAt, renewal?.expiresAt], [start + DAY_MS, start + 2 * DAY_MS]);
    },
  );

  itInTime('missed renewals are stored with the instants at which they were due', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const start = ledger.wall;
    await ledger.write([ada.startCycle(10, 1), ada.subtract(1)]);
    ledger.wall = start + 3 * DAY_MS + 5;
    await ledger.write([ada.settle()]);
    const expected = [...Array(3).fill('+10 renew'), '-1 subtract', '+10 start-cycle'];
    assert.deepEqual(await historyOf(ledger, ada), expected);
    const created = (await transactionsOf(ledger, ada)).map(({ createdAt }) => createdAt - start);
    assert.deepEqual(created, [3 * DAY_MS, 2 * DAY_MS, DAY_MS, 0, 0]);
    const { cycles } = (await ledger.load(ada.key)).state;
    assert.deepEqual(
      cycles.map(({ period, remaining, end }) => [period, remaining, end - start]),
      [[3, 10, 4 * DAY_MS]],
    );
  });

  itInTime(
    'a renewed cycle keeps its ID, and is spent after credits that were added during its previous period',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.write([ada.startCycle(10, 2)]);
      ledger.wall += DAY_MS;
      await ledger.write([ada.add(5, 9)]);
      ledger.wall += DAY_MS;
      await ledger.write([ada.subtract(7)]);
      const { cycles } = (await ledger.load(ada.key)).state;
      const [, , start] = (await transactionsOf(ledger, ada)).toReversed();
      assert.deepEqual(
        cycles.map(({ type, remaining }) => [type, remaining]),
        [
          ['one-time', 0],
          ['recurring', 8],
        ],
      );
      assert.equal(start?.kind, 'renew');
      assert.notEqual(cycles[1]?.id, start.id, 'a cycle keeps the ID of the transaction that started it');
    },
  );

  itInTime('at most the requested number of due end users are listed, the longest overdue first', async (ledger) => {
    const { account, other } = ledger;
    const [weekly, daily, twoDays] = [new EndUser(account, 1), new EndUser(other, 2), new EndUser(account, 3)];
    const [stopped, oneTime, eternal] = [new EndUser(account, 4), new EndUser(account, 5), new EndUser(account, 6)];
    const start = ledger.wall;
    await ledger.write([weekly.startCycle(1, 7), twoDays.startCycle(1, 2), daily.startCycle(1, 1)]);
    await ledger.write([stopped.startCycle(1, 1), stopped.stopCycle(), oneTime.add(1, 1)]);
    await ledger.write([eternal.startCycle(1, VALIDITY_DAYS_MAX)]);
    await twoMinutes(ledger);
    const dueAt = async (instant: number, limit = 10) => {
      ledger.wall = instant;
      return ledger.due(limit);
    };
    assert.deepEqual(await dueAt(start + DAY_MS - 1), []);
    assert.deepEqual(await dueAt(start + DAY_MS), [daily.key]);
    assert.deepEqual(await dueAt(start + 2 * DAY_MS - 1), [daily.key]);
    assert.deepEqual(await dueAt(start + 7 * DAY_MS), [daily.key, twoDays.key, weekly.key]);
    const two = await dueAt(start + 7 * DAY_MS, 2);
    assert.equal(two.length, 2);
    assert.deepEqual(two[0], daily.key);
    assert.deepEqual(await ledger.results([daily.settle(), weekly.subtract(1)]), [ACCEPTED, ACCEPTED]);
    assert.deepEqual(await ledger.due(), [twoDays.key], 'a settled end user is no longer due');
    await ledger.write([twoDays.settle()]);
    assert.deepEqual(await ledger.due(), []);
  });

  itInTime(
    'an end user whose cycle started after other transactions is listed as due when the renewal of the cycle is due',
    async (ledger) => {
      const [ada, bob] = [new EndUser(ledger.account, 1), new EndUser(ledger.account, 2)];
      await ledger.write([ada.add(10), bob.add(10)]);
      await ledger.write([ada.subtract(1)]);
      await ledger.write([ada.startCycle(3, 1), bob.subtract(1)]);
      await twoMinutes(ledger);
      ledger.wall += DAY_MS;
      assert.deepEqual(await ledger.due(), [ada.key]);
      await ledger.reopen();
      assert.deepEqual(await ledger.due(), [ada.key]);
      await ledger.write([ada.startCycle(4, 2, 'replace')]);
      assert.deepEqual(await ledger.due(), []);
      ledger.wall += 2 * DAY_MS;
      assert.deepEqual(await ledger.due(), [ada.key]);
    },
  );

  itInTime('listing due end users does not advance the time of the ledger', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const start = ledger.wall;
    await ledger.write([ada.add(10, 1)]);
    ledger.wall = start + DAY_MS;
    await ledger.due(1);
    ledger.wall = start;
    assert.equal(await balanceOf(ledger, ada), 10);
  });
}

async function shownOf(ledger: ContractLedger, { key }: EndUser): Promise<readonly Transaction[]> {
  const { state, now, transactions } = await ledger.transactions(key);
  return [...dueTransactions(state, now), ...transactions];
}

function shownRenewals({ itInTime }: Contract): void {
  itInTime(
    'a write that is running when a read shows a due renewal is never stored before that renewal',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.write([ada.startCycle(100, 1)]);
      const shown: (readonly Transaction[])[] = [];
      for (let round = 0; round < effort(12, 20); round++) {
        ledger.wall += DAY_MS - 1;
        const reads: Promise<unknown>[] = [];
        const read = () => reads.push(shownOf(ledger, ada).then((list) => shown.push(list)));
        const first = ledger.write([ada.subtract(1)]);
        const second = round % 3 === 0 ? ledger.write([ada.subtract(2), ada.add(1, 9)]) : null;
        // The period of the cycle ends while the writes are running.
        ledger.wall += 1;
        for (let times = 0; times <= round % 4; times++) read();
        const third = round % 2 === 0 ? ledger.write([ada.subtract(3)]) : null;
        read();
        await Promise.all([first, second, third, ...reads]);
        if (round % 5 !== 0) continue;
        ledger.wall += DAY_MS;
        const list = await shownOf(ledger, ada);
        assert.equal(list[0]?.kind, 'renew');
        shown.push(list);
      }
      await ledger.write([ada.settle()]);
      const all = await transactionsOf(ledger, ada);
      for (const list of shown)
        assert.deepEqual(list, all.slice(all.length - list.length), 'nothing is inserted into a list that was shown');
    },
  );

  itInTime(
    'every kind of read shows a due renewal, and counts earlier subtractions in the previous period',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.write([ada.startCycle(100, 1), ada.subtract(30)]);
      ledger.wall += DAY_MS;
      const [loaded, page, history, past] = await Promise.all([
        ledger.load(ada.key),
        ledger.transactions(ada.key),
        ledger.history(ada.key),
        ledger.store.statesAt(ada.key, [ledger.wall]),
      ]);
      const current = cyclesAt(loaded.state, loaded.now);
      assert.deepEqual(
        current.map(({ period, remaining }) => [period, remaining]),
        [[1, 100]],
      );
      for (const { state, now, transactions } of [page, history]) {
        assert.deepEqual(
          [...dueTransactions(state, now), ...transactions].map(({ kind, amount }) => [kind, amount]),
          [
            ['renew', 100],
            ['subtract', -30],
            ['start-cycle', 100],
          ],
        );
      }
      assert.deepEqual([past.now, past.states], [loaded.now, [loaded.state]]);
    },
  );
}

function catchingUp({ itInTime }: Contract): void {
  itInTime(
    'years of missed renewals are stored in several batches, and do not delay other end users',
    async (ledger) => {
      const { account, other } = ledger;
      const [slow, quick, fresh] = [new EndUser(account, 1), new EndUser(account, 2), new EndUser(other, 1)];
      const start = ledger.wall;
      await ledger.write([slow.startCycle(5, 1), quick.add(7, MISSED_DAYS * 2)]);
      ledger.wall = start + MISSED_DAYS * DAY_MS + 1;
      const slowly = [slow.subtract(2), slow.settle(), slow.subtract(5)] as const;
      const batch = [slowly[0], quick.subtract(3), slowly[1], fresh.add(9), slowly[2], fresh.subtract(9)];
      assert.deepEqual(await ledger.results(batch), [null, ACCEPTED, null, ACCEPTED, null, ACCEPTED]);
      assert.equal(await balanceOf(ledger, slow), 5, 'a read shows the current period, whether or not it is stored');
      const [subtracted, refused] = await askUntilDecided(ledger, slow);
      assert.deepEqual(subtracted, ACCEPTED);
      assert.deepEqual(refused, { refused: 'InsufficientFunds', requested: 4, available: 3 });
      const [subtraction, ...rest] = await transactionsOf(ledger, slow);
      assert.equal(subtraction?.amount, -2);
      assert.deepEqual(
        rest.map(({ createdAt }) => (createdAt - start) / DAY_MS),
        Array.from({ length: MISSED_DAYS + 1 }, (_, day) => MISSED_DAYS - day),
      );
      assert.equal(await balanceOf(ledger, slow), 3);
      assert.equal(await balanceOf(ledger, quick), 4);
      assert.deepEqual(await ledger.due(), []);
    },
  );

  itInTime(
    'a batch stores a bounded number of missed renewals, no matter how many end users have missed renewals',
    async (ledger) => {
      const users = Array.from({ length: 10 }, (_, index) => new EndUser(ledger.account, index));
      await ledger.write(users.map((user) => user.startCycle(5, 1)));
      await twoMinutes(ledger);
      const before = (await ledger.audit()).postings;
      ledger.wall += MISSED_TOGETHER_DAYS * DAY_MS;
      let entered = before;
      for (let round = 0; (await ledger.due()).length > 0; round++) {
        assert(round < ROUNDS_MAX, 'each batch stores some renewals');
        const outcomes = await ledger.write(users.map((user) => user.settle()));
        const { postings } = await ledger.audit();
        assert(postings - entered <= 2_000, `one batch stored ${postings - entered} renewals`);
        assert(postings > entered || outcomes.every((outcome) => outcome !== null));
        entered = postings;
      }
      assert.equal(entered - before, users.length * MISSED_TOGETHER_DAYS);
    },
  );

  itInTime(
    'a ledger that is closed before it has stored all missed renewals stores the rest after it is reopened',
    async (ledger) => {
      const slow = new EndUser(ledger.account, 1);
      await ledger.write([slow.startCycle(5, 1)]);
      ledger.wall += MISSED_DAYS * DAY_MS;
      assert.deepEqual(await ledger.results([slow.settle()]), [null]);
      await ledger.reopen();
      assert.deepEqual(await ledger.due(), [slow.key]);
      await askUntilDecided(ledger, slow);
      assert.equal((await transactionsOf(ledger, slow)).length, MISSED_DAYS + 2);
    },
  );
}

async function askUntilDecided(ledger: ContractLedger, slow: EndUser): Promise<readonly (Result | null)[]> {
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const outcomes = await ledger.results([slow.subtract(2), slow.subtract(4)]);
    if (outcomes[0] !== null) return outcomes;
    assert.equal(outcomes[1], null, 'a command is not decided before an earlier command of the same end user');
  }
  throw new Error(`not decided after ${ROUNDS_MAX} batches`);
}

const CLOCK_READS: readonly (readonly [
  what: string,
  look: (ledger: ContractLedger, ada: EndUser) => Promise<unknown>,
])[] = [
  ['a write', (ledger) => ledger.write([new EndUser(ledger.other, 9).add(1)])],
  ['a read of cycles', (ledger, ada) => ledger.load(ada.key)],
  ['a read of transactions', (ledger, ada) => ledger.transactions(ada.key, { limit: 1 })],
  ['a refused write', (ledger, ada) => ledger.write([ada.subtract(1)])],
];

function backwards({ it, itInTime }: Contract): void {
  for (const [what, look] of CLOCK_READS)
    for (const isReopened of [false, true]) {
      const when = isReopened ? 'the ledger is reopened with an earlier clock' : 'the clock is set back';
      itInTime(`credits that had expired at the time of ${what} stay expired when ${when}`, async (ledger) => {
        const ada = new EndUser(ledger.account, 1);
        await ledger.write([ada.add(10, 1)]);
        ledger.wall += DAY_MS;
        await look(ledger, ada);
        ledger.wall -= DAY_MS;
        if (isReopened) await ledger.reopen();
        assert.equal(await balanceOf(ledger, ada), 0);
        const refused = { refused: 'InsufficientFunds', requested: 1, available: 0 };
        assert.deepEqual(await ledger.results([ada.subtract(1)]), [refused]);
      });
    }

  itInTime('transactions stay in order if the clock is set back or does not advance', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const start = ledger.wall;
    for (const step of [0, 5, -1_000, 0, -DAY_MS, 3]) {
      ledger.wall += step;
      await ledger.write([ada.add(2), ada.subtract(1)]);
    }
    await ledger.reopen();
    await ledger.write([ada.add(2), ada.subtract(1)]);
    const transactions = (await transactionsOf(ledger, ada)).toReversed();
    const ids = transactions.map(({ id }) => id);
    assert.deepEqual(ids, ids.toSorted());
    assert.equal(new Set(ids).size, 14);
    const created = transactions.map(({ createdAt }) => createdAt - start);
    assert.deepEqual(created, [0, 0, ...Array(12).fill(5)]);
  });

  itInTime(
    'transactions at the same instant have ascending IDs, even if the first one also stores the lapse of a hold on an ended cycle',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      for (let round = 0; round < 8; round++) {
        await ledger.write([ada.add(10, 2)]);
        const [hold] = await ledger.write([ada.hold(10, 5 * DAY_SECONDS), ada.add(5, 2), ada.hold(5, DAY_SECONDS)]);
        assert(hold?.refused === null && hold.transactionId !== null);
        ledger.wall += 3 * DAY_MS;
        const [captured] = await ledger.write([ada.capture(hold.transactionId)]);
        const [added] = await ledger.write([ada.add(1, 1)]);
        assert(captured?.refused === null && captured.transactionId !== null);
        assert(added?.refused === null && added.transactionId !== null);
        assert(
          captured.transactionId < added.transactionId,
          'the ID of the addition sorts after the ID of the capture',
        );
        ledger.wall += 3 * DAY_MS;
      }
    },
  );

  itInTime('setting the clock back does not undo a renewal', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.startCycle(10, 1), ada.subtract(7)]);
    ledger.wall += DAY_MS;
    await ledger.write([ada.settle()]);
    ledger.wall -= 12 * DAY_MS;
    await ledger.reopen();
    assert.deepEqual(await ledger.results([ada.subtract(10)]), [ACCEPTED]);
  });

  it('a reopened ledger has the same content as before', async (ledger) => {
    const [ada, bob] = [new EndUser(ledger.account, 1), new EndUser(ledger.other, 1)];
    await ledger.write([ada.add(10), ada.startCycle(20), bob.add(5), ada.subtract(13), bob.subtract(1)]);
    const before = [await transactionsOf(ledger, ada), await transactionsOf(ledger, bob)];
    const { state } = await ledger.load(ada.key);
    await ledger.reopen();
    assert.deepEqual([await transactionsOf(ledger, ada), await transactionsOf(ledger, bob)], before);
    assert.deepEqual((await ledger.load(ada.key)).state, state);
    assert.deepEqual(await ledger.results([ada.subtract(17), bob.subtract(4)]), [ACCEPTED, ACCEPTED]);
  });
}
