// Contract tests for two queries of the console: an account's name, and its recent activity.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Contract, ContractLedger } from '../store-contract.ts';
import { EndUser, noted } from '../temporary-ledger.ts';

const UNKNOWN_ACCOUNT = 4_040;

export function consoleReadContract(contract: Contract): void {
  accountNames(contract);
  recentActivity(contract);
}

function accountNames({ it }: Contract): void {
  it('the name of an account can be read, and an unknown account has no name', async ({ console, account, other }) => {
    assert.equal(await console.nameOf(account), 'first');
    assert.equal(await console.nameOf(other), 'second');
    assert.equal(await console.nameOf(UNKNOWN_ACCOUNT), null);
  });
}

function recentActivity({ it }: Contract): void {
  it('the recent activity of an account lists each end user once, even an end user with many transactions', async (ledger) => {
    const { account, other } = ledger;
    const [ada, bob, eve] = [new EndUser(account, 1), new EndUser(account, 2), new EndUser(account, 3)];
    await ledger.write([ada.add(9), new EndUser(other, 1).add(7)]);
    await later(ledger);
    await ledger.write([eve.add(5), eve.startCycle(4), eve.stopCycle()]);
    await later(ledger);
    await ledger.write([bob.add(1_000)]);
    for (let round = 0; round < 5; round++) await ledger.write(Array.from({ length: 100 }, () => bob.subtract(1)));
    await later(ledger);
    await ledger.write([noted(ada.add(1), 'why'), ada.subtract(10)]);
    await ledger.consumeFeed();
    const expected = ['subtract -10 of 1', 'subtract -1 of 2', 'stop-cycle 0 of 3'];
    for (const limit of [1, 2, 3, 100]) {
      const recent = await ledger.console.recent(account, limit);
      const names = recent.map(({ kind, amount, endUser }) => `${kind} ${amount} of ${Number(endUser.at(-1))}`);
      assert.deepEqual(names, expected.slice(0, limit));
    }
    const [latest] = await ledger.console.recent(account, 1);
    const [listed] = (await ledger.transactions(ada.key, { limit: 1 })).transactions;
    const [shown] = (await ledger.history(ada.key)).transactions;
    const postings = latest?.postings.map(({ cycleId, period, amount, held }) => ({ cycleId, period, amount, held }));
    assert.deepEqual({ ...latest, postings }, { ...listed, postings: shown?.postings, endUser: ada.key.endUser });
    assert.deepEqual(await ledger.console.recent(UNKNOWN_ACCOUNT, 10), []);
  });
}

/** Lets time pass, because transactions of different end users in the same millisecond have no defined order. */
async function later(ledger: ContractLedger): Promise<void> {
  ledger.wall += 1_000;
  await sleep(2);
}
