// Contract tests for `stop-cycle`, with and without an active cycle.

import assert from 'node:assert/strict';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import type { Contract } from '../store-contract.ts';
import { ACCEPTED, balanceOf, EndUser, historyOf, type Result } from '../temporary-ledger.ts';
import { twoMinutes } from './time.ts';

const NOT_FOUND: Result = { refused: 'CycleNotFound' };

export function stopContract({ it, itInTime }: Contract): void {
  it('stopping a cycle returns the canceled cycle, even the second time, but a stop is refused if the end user has no cycle to stop', async (ledger) => {
    const [ada, bob] = [new EndUser(ledger.account, 1), new EndUser(ledger.account, 2)];
    await ledger.write([ada.startCycle(30, 7), ada.subtract(10), bob.add(5)]);
    const [active] = (await ledger.load(ada.key)).state.cycles;
    assert(active);
    const stopped: Result = { refused: null, cycle: { ...active, status: 'canceled' } };
    assert.deepEqual(await ledger.results([ada.stopCycle()]), [stopped]);
    assert.deepEqual(await ledger.results([ada.stopCycle(), bob.stopCycle()]), [stopped, NOT_FOUND]);
    assert.equal(await balanceOf(ledger, ada), 20, 'the credits of a stopped cycle remain until its end');
    const [started] = await ledger.write([ada.startCycle(5, 7)]);
    assert.equal(started?.refused, null, 'after a stop, a new cycle can start immediately');
  });

  it('a second stop of a cycle returns the cycle with its current remaining credits, and stores nothing', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.startCycle(30, 7), ada.stopCycle(), ada.subtract(12)]);
    const before = await ledger.audit();
    const [again] = await ledger.write([ada.stopCycle()]);
    assert(again?.refused === null);
    assert.deepEqual([again.cycle?.remaining, again.cycle?.status], [18, 'canceled']);
    assert.equal((await ledger.audit()).postings, before.postings);
  });

  it('after a cycle has been stopped and another cycle has started, a stop always applies to the newer cycle', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const [, , second] = await ledger.write([ada.startCycle(30, 7), ada.stopCycle(), ada.startCycle(5, 7)]);
    assert(second?.refused === null && second.cycle);
    await ledger.reopen();
    const stopped: Result = { refused: null, cycle: { ...second.cycle, status: 'canceled' } };
    assert.deepEqual(await ledger.results([ada.stopCycle(), ada.stopCycle()]), [stopped, stopped]);
    const { cycles } = (await ledger.load(ada.key)).state;
    assert.deepEqual(
      cycles.map(({ status, remaining }) => [status, remaining]),
      [
        ['superseded', 30],
        ['canceled', 5],
      ],
    );
  });

  itInTime('the credits of a stopped cycle remain until its end, and the cycle is not renewed', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const start = ledger.wall;
    await ledger.write([ada.startCycle(10, 1)]);
    await ledger.write([ada.stopCycle()]);
    ledger.wall = start + DAY_MS - 1;
    assert.equal(await balanceOf(ledger, ada), 10);
    ledger.wall = start + DAY_MS;
    assert.equal(await balanceOf(ledger, ada), 0);
    assert.deepEqual(await ledger.due(), []);
    assert.deepEqual(await ledger.results([ada.stopCycle()]), [NOT_FOUND]);
    assert.deepEqual(await historyOf(ledger, ada), ['+10 start-cycle']);
  });

  itInTime(
    'after a stopped cycle has ended and its end user has been settled, the end user is no longer due',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.write([ada.startCycle(10, 1)]);
      await twoMinutes(ledger);
      await ledger.write([ada.stopCycle()]);
      ledger.wall += DAY_MS;
      for (const user of await ledger.due()) await ledger.write([{ kind: 'settle', ...user }]);
      assert.deepEqual(await ledger.due(), []);
      assert.deepEqual(await historyOf(ledger, ada), ['+10 start-cycle']);
    },
  );

  itInTime(
    'stopping a cycle again returns the same cycle until the millisecond before the cycle ends',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      const start = ledger.wall;
      const [, first] = await ledger.results([ada.startCycle(10, 1), ada.stopCycle()]);
      ledger.wall = start + DAY_MS - 1;
      assert.deepEqual(await ledger.results([ada.stopCycle()]), [first]);
      ledger.wall = start + DAY_MS;
      assert.deepEqual(await ledger.results([ada.stopCycle()]), [NOT_FOUND]);
    },
  );

  itInTime(
    'after the most recently stopped cycle has ended, a stop is refused, even if a cycle that was stopped earlier has not ended yet',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.write([ada.startCycle(30, 7), ada.stopCycle(), ada.startCycle(5, 1), ada.stopCycle()]);
      ledger.wall += DAY_MS;
      assert.deepEqual(await ledger.results([ada.stopCycle(), ada.subtract(30)]), [NOT_FOUND, ACCEPTED]);
    },
  );

  itInTime(
    'stopping a cycle with due renewals stores the renewals, and the cycle ends with the period of the last renewal',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      const start = ledger.wall;
      await ledger.write([ada.startCycle(10, 1), ada.subtract(4)]);
      ledger.wall = start + 2 * DAY_MS + 1;
      const [stopped] = await ledger.write([ada.stopCycle()]);
      assert(stopped?.refused === null && stopped.cycle);
      const { period, remaining, end, status } = stopped.cycle;
      assert.deepEqual([period, remaining, end, status], [2, 10, start + 3 * DAY_MS, 'canceled']);
      ledger.wall = start + 3 * DAY_MS;
      assert.equal(await balanceOf(ledger, ada), 0);
      assert.deepEqual(await historyOf(ledger, ada), ['+10 renew', '+10 renew', '-4 subtract', '+10 start-cycle']);
    },
  );
}
