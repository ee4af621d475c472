// Contract tests for reading the data of end users with plans. Balances and histories reflect rollovers and changes of
// plan as soon as they are due; overviews and lists of end users reflect them only after they are stored.

import assert from 'node:assert/strict';
import { balanceAt } from '../../../src/ledger/history.ts';
import { DAY_MS, HOUR_MS, type Instant } from '../../../src/ledger/instant.ts';
import { termsText } from '../../../src/ledger/posting.ts';
import { dueTransactions } from '../../../src/ledger/settle.ts';
import type { Contract, ContractLedger } from '../store-contract.ts';
import { daysPlan, EndUser, monthsPlan } from '../temporary-ledger.ts';
import { totalOf } from './overview.ts';

export function planReadContract(contract: Contract): void {
  reads(contract);
  totals(contract);
  summaries(contract);
}

async function balancesAt(ledger: ContractLedger, { key }: EndUser, at: readonly Instant[]): Promise<number[]> {
  const { states } = await ledger.store.statesAt(key, at);
  return states.map((state, index) => balanceAt(state, at[index] as Instant).balance);
}

function reads({ itInTime }: Contract): void {
  itInTime(
    'a balance at a past or future instant reflects rollovers and changes of plan, whether or not they are stored',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      const start = ledger.wall;
      await ledger.write([ada.startPlan(daysPlan(10, 2, 4)), ada.subtract(7)]);
      ledger.wall = start + DAY_MS;
      await ledger.write([ada.startPlan(monthsPlan(40, 1, 20), 'at_period_end')]);
      await ledger.write([ada.stopCycle(), ada.startPlan(daysPlan(8, 2, 3))]);
      ledger.wall += DAY_MS / 2;
      await ledger.write([ada.subtract(9), ada.startPlan(monthsPlan(40, 1, 20), 'at_period_end')]);
      const days = [0, 1, 1.5, 2, 3, 4, 33];
      const instants = days.map((day) => start + day * DAY_MS);
      // The monthly plan begins on day 3 (3 February), and its first period has 28 days.
      const expected = [3, 11, 2, 2, 40, 40, 60];
      for (const day of [1.5, 2.5, 3, 40]) {
        ledger.wall = start + day * DAY_MS;
        assert.deepEqual(await balancesAt(ledger, ada, instants), expected, `on day ${day}`);
      }
      await ledger.write([ada.settle()]);
      assert.deepEqual(await balancesAt(ledger, ada, instants), expected, 'after everything was stored');
      await ledger.reopen();
      assert.deepEqual(await balancesAt(ledger, ada, instants), expected, 'after a restart');
    },
  );

  itInTime(
    'a history includes the state from which a due change of plan is derived, and lists the change after it has been stored',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.write([ada.startPlan(daysPlan(10, 1)), ada.startPlan(daysPlan(20, 1, 9), 'at_period_end')]);
      ledger.wall += 2 * DAY_MS;
      const { state, now, transactions } = await ledger.history(ada.key);
      const due = [...dueTransactions(state, now)];
      assert.deepEqual(
        due.map(({ kind, amount }) => [kind, amount]),
        [
          ['renew', 29],
          ['change-plan', 20],
        ],
      );
      await ledger.write([ada.settle()]);
      const stored = await ledger.history(ada.key);
      assert.deepEqual(
        stored.transactions.map(({ id }) => id),
        [...due, ...transactions].map(({ id }) => id),
      );
      assert.deepEqual([...stored.terms.values()].map(termsText).sort(), ['recurring/10/1d', 'recurring/20/1d/9']);
    },
  );
}

function totals({ itInTime }: Contract): void {
  itInTime(
    'an overview counts a change of plan as a renewal, and does not count the scheduling of the plan',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.write([ada.startPlan(daysPlan(10, 1, 5)), ada.subtract(2)]);
      ledger.wall += DAY_MS;
      await ledger.write([ada.startPlan(daysPlan(40, 1), 'at_period_end')]);
      ledger.wall += DAY_MS + HOUR_MS;
      await ledger.write([ada.settle()]);
      await ledger.consumeFeed();
      const { days, outstanding } = await ledger.console.overview(ledger.account, { days: 9 });
      const { started, renewed, spent, transactions } = totalOf(days);
      assert.deepEqual([started, renewed, spent, transactions, outstanding], [10n, 50n, 2n, 4, 40n]);
    },
  );
}

function summaries({ itInTime }: Contract): void {
  itInTime('lists of end users show the credits of renewals only after the renewals are stored', async (ledger) => {
    const { account } = ledger;
    const [rolling, changing] = [new EndUser(account, 1), new EndUser(account, 2)];
    await ledger.write([rolling.startPlan(daysPlan(10, 1, 100)), rolling.add(1, 400)]);
    await ledger.write([changing.startPlan(daysPlan(10, 3)), changing.startPlan(daysPlan(7, 1, 20), 'at_period_end')]);
    ledger.wall += 5.5 * DAY_MS;
    const balances = async () => {
      await ledger.consumeFeed();
      assert.deepEqual((await ledger.audit()).store, []);
      const list = { by: 'balance' } as const;
      const { endUsers } = await ledger.console.endUsers(account, { list, after: null, limit: 10 });
      return endUsers.map(({ balance }) => balance);
    };
    assert.deepEqual(await balances(), [11, 10]);
    await ledger.write([rolling.settle(), changing.settle()]);
    assert.deepEqual(await balances(), [61, 21]);
    ledger.wall += 2 * DAY_MS;
    assert.deepEqual((await ledger.audit()).store, [], 'a summary may be older than the due renewals');
  });
}
