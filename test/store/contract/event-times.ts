// Contract tests for time-driven events, and for the settings of an account that affect its events.

import assert from 'node:assert/strict';
import { deriveEvents } from '../../../src/events/derive.ts';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import type { Contract } from '../store-contract.ts';
import { daysPlan, EndUser } from '../temporary-ledger.ts';
import { logOf, textsOf } from './events.ts';

export function eventTimeContract(contract: Contract): void {
  time(contract);
  settings(contract);
}

function time({ itInTime }: Contract): void {
  itInTime('credits that expire cause events even if nothing is written', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const start = ledger.wall;
    await ledger.write([ada.add(10, 20), ada.add(5, 30)]);
    await ledger.deriveEvents();
    const latest = (await logOf(ledger)).at(-1)?.position ?? null;
    const since = async () => (await logOf(ledger, { after: latest })).map(({ type, at }) => [type, at - start]);
    ledger.wall = start + 13 * DAY_MS - 1;
    await ledger.deriveEvents();
    assert.deepEqual(await since(), []);
    ledger.wall = start + 13 * DAY_MS;
    await ledger.deriveEvents();
    assert.deepEqual(await since(), [['credits.expiring', 13 * DAY_MS]]);
    ledger.wall = start + 20 * DAY_MS;
    await ledger.deriveEvents();
    ledger.wall = start + 31 * DAY_MS;
    await ledger.deriveEvents();
    assert.deepEqual(await since(), [
      ['credits.expiring', 13 * DAY_MS],
      ['credits.expired', 20 * DAY_MS],
      ['credits.expiring', 23 * DAY_MS],
      ['credits.expired', 30 * DAY_MS],
      ['balance.exhausted', 30 * DAY_MS],
    ]);
  });

  itInTime('the events of an end user are not derived again if no further events are due', async (ledger) => {
    const [ada, bob] = [new EndUser(ledger.account, 1), new EndUser(ledger.account, 2)];
    await ledger.write([ada.add(10, 1), bob.startCycle(5, 1)]);
    ledger.wall += 2 * DAY_MS;
    await ledger.deriveEvents();
    const derived: string[] = [];
    await ledger.deriveEvents((input) => {
      derived.push(input.user.endUser);
      return deriveEvents(input);
    });
    assert.deepEqual(derived, []);
  });

  for (const isDerivedBefore of [true, false])
    itInTime(
      `the event for an expiry comes before the event for a write at the same instant, if events are derived ${isDerivedBefore ? 'before' : 'after'} the write`,
      async (ledger) => {
        const ada = new EndUser(ledger.account, 1);
        await ledger.write([ada.add(10, 1), ada.add(5, 2)]);
        await ledger.deriveEvents();
        ledger.wall += DAY_MS;
        if (isDerivedBefore) await ledger.deriveEvents();
        await ledger.write([ada.subtract(2)]);
        await ledger.deriveEvents();
        assert.deepEqual((await textsOf(ledger)).slice(2), ['credits.expired 10 of 5', 'credits.subtracted 2 of 3']);
      },
    );

  itInTime('the events that happened while no server was running are derived in order', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.startPlan(daysPlan(20, 2)), ada.add(5, 3), ada.subtract(4)]);
    ledger.wall += 5 * DAY_MS;
    await ledger.reopen();
    await ledger.deriveEvents();
    await ledger.write([ada.settle()]);
    await ledger.deriveEvents();
    assert.deepEqual(await textsOf(ledger), [
      'cycle.started 20 of 20',
      'credits.added 5 of 25',
      'credits.subtracted 4 of 21',
      'credits.expired 16 of 25',
      'cycle.renewed 20 of 25',
      'credits.expired 5 of 20',
      'credits.expired 20 of 20',
      'cycle.renewed 20 of 20',
    ]);
  });

  itInTime('if credits of many end users expire at once, each end user gets an event', async (ledger) => {
    const people = Array.from({ length: 150 }, (_, index) => new EndUser(ledger.account, index));
    await ledger.write(people.map((user) => user.add(10, 1)));
    await ledger.deriveEvents();
    ledger.wall += DAY_MS;
    await ledger.deriveEvents();
    const expired = await logOf(ledger, { types: ['credits.expired'] });
    assert.deepEqual(
      expired.map(({ data }) => JSON.parse(data).end_user_id).sort(),
      people.map(({ key }) => key.endUser).sort(),
    );
  });
}

function settings({ it, itInTime }: Contract): void {
  it('a balance that falls below a threshold of the account causes an event', async (ledger) => {
    const [ada, other] = [new EndUser(ledger.account, 1), new EndUser(ledger.other, 1)];
    await ledger.withAccounts((queries) =>
      queries
        .insertInto('thresholds')
        .values(['5', '20', '50%'].map((below) => ({ account: ledger.account, below, created_at: ledger.wall })))
        .execute(),
    );
    await ledger.write([ada.add(100), other.add(100), ada.subtract(50), other.subtract(99)]);
    await ledger.write([ada.subtract(31), ada.subtract(1), ada.add(10)]);
    await ledger.deriveEvents();
    const low = await logOf(ledger, { types: ['balance.low', 'balance.recovered'] });
    assert.deepEqual(
      low.map(({ type, data }) => {
        const { threshold, thresholds, previous_balance, balance } = JSON.parse(data);
        return [type, threshold ?? thresholds, previous_balance, balance];
      }),
      [
        ['balance.low', '20', 50, 19],
        ['balance.low', '50%', 50, 19],
        ['balance.recovered', ['20', '50%'], 18, 28],
      ],
    );
    assert.deepEqual(await logOf(ledger, { account: ledger.other, types: ['balance.low'] }), []);
  });

  itInTime('an account can set how many days before an expiry the credits.expiring event occurs', async (ledger) => {
    const [ada, other] = [new EndUser(ledger.account, 1), new EndUser(ledger.other, 1)];
    const start = ledger.wall;
    await ledger.withAccounts((queries) =>
      queries.updateTable('accounts').set({ expiring_days: 2 }).where('account', '=', ledger.account).execute(),
    );
    await ledger.write([ada.add(10, 30), other.add(10, 30)]);
    ledger.wall += 29 * DAY_MS;
    await ledger.deriveEvents();
    const instants = async (account: number) =>
      (await logOf(ledger, { account, types: ['credits.expiring'] })).map(({ at }) => (at - start) / DAY_MS);
    assert.deepEqual([await instants(ledger.account), await instants(ledger.other)], [[28], [23]]);
  });
}
