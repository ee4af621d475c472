// Contract tests for the data of a balance chart: a state, and the postings after it, which lead to the present cycles.

import assert from 'node:assert/strict';
import { applyAll } from '../../../src/ledger/apply.ts';
import type { Cycle } from '../../../src/ledger/cycle.ts';
import { balanceSteps } from '../../../src/ledger/history.ts';
import { DAY_MS, HOUR_MS, type Instant } from '../../../src/ledger/instant.ts';
import type { Posting } from '../../../src/ledger/posting.ts';
import { type EndUserState, liveState } from '../../../src/ledger/state.ts';
import { CHART_CYCLES_MAX, CHART_POSTINGS_MAX, type ChartHistory } from '../../../src/store/console-store.ts';
import type { Contract, ContractLedger } from '../store-contract.ts';
import { balanceOf, EndUser } from '../temporary-ledger.ts';

/** Enough transactions for several snapshots. */
const ROUNDS = 450;

export function chartContract({ it, itInTime }: Contract): void {
  it('Applying the postings of a balance chart to its state gives the present cycles of the end user', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const beside = new EndUser(ledger.other, 1);
    const instants: Instant[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      if (round % 10 === 0) ledger.wall += 3 * HOUR_MS;
      const rare = round % 50 === 0 ? [ada.startCycle(40, 2, 'replace')] : [];
      await ledger.write([ada.add(5, 1 + (round % 3)), beside.add(1), ...rare, ada.subtract(3)]);
      if (round % 60 === 0) instants.push((await ledger.load(ada.key)).now);
    }
    for (const since of [0, ...instants, ledger.wall + DAY_MS]) await assertLeadsToPresent(ledger, ada, since);
    await ledger.reopen();
    for (const since of [0, ...instants]) await assertLeadsToPresent(ledger, ada, since);
  });

  itInTime('A balance chart contains exactly the postings since its first instant', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const start = ledger.wall;
    await ledger.write([ada.add(10, 1), ada.startCycle(20, 2)]);
    ledger.wall += 5 * DAY_MS;
    await ledger.write([ada.settle(), ada.add(30, 10)]);
    const since = async (instant: Instant) => {
      const { state, postings, since, now } = await chartOf(ledger, ada, instant);
      assert.deepEqual([since, now], [instant, ledger.wall]);
      return [state.cycles.map(({ remaining }) => remaining), postings.map(({ amount }) => amount)];
    };
    assert.deepEqual(await since(0), [[], [10, 20, 20, 20, 30]]);
    assert.deepEqual(await since(start), [[], [10, 20, 20, 20, 30]]);
    const [, atFirst] = await since(start + 1);
    assert.deepEqual(atFirst, [20, 20, 30]);
    const [, atRenewal] = await since(start + 2 * DAY_MS);
    assert.deepEqual(atRenewal, [20, 20, 30]);
    const [, afterRenewal] = await since(start + 2 * DAY_MS + 1);
    assert.deepEqual(afterRenewal, [20, 30]);
    assert.deepEqual((await since(ledger.wall + 1))[1], []);
  });

  itInTime(
    'A balance chart shows, for each instant, the balance that a read returned at that instant',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      const shown: [at: Instant, balance: number][] = [];
      await ledger.write([ada.startCycle(50, 3)]);
      for (let round = 0; round < 200; round++) {
        ledger.wall += round % 7 === 0 ? DAY_MS : HOUR_MS;
        if (round % 3 === 0) await ledger.write([ada.add(5, 2), ada.subtract(4)]);
        if (round % 41 === 0) await ledger.write([ada.stopCycle(), ada.startCycle(30, 2)]);
        shown.push([ledger.wall, await balanceOf(ledger, ada)]);
      }
      const since = (shown[60] as [Instant, number])[0];
      const chart = await chartOf(ledger, ada, since);
      const steps = balanceSteps(chart, { from: chart.since, to: chart.now });
      for (const [at, balance] of shown.slice(60))
        assert.equal(steps.findLast((step) => step.at <= at)?.balance, balance, new Date(at).toISOString());
    },
  );

  itInTime(
    'A balance chart includes credits that ended between the instant of a renewal and its late entry',
    async (ledger) => {
      const start = ledger.wall;
      // So many end users that some of their renewals would be followed by a snapshot.
      const users = Array.from({ length: 400 }, (_, index) => new EndUser(ledger.account, index));
      await ledger.write(users.map((user) => user.add(7, 2)));
      await ledger.write(users.map((user) => user.startCycle(5, 1)));
      ledger.wall = start + 3 * DAY_MS - 1;
      await ledger.write(users.map((user) => user.settle()));
      for (const user of users) {
        const { state, now } = await chartOf(ledger, user, start + 2 * DAY_MS + 1);
        const remaining = state.cycles.reduce((sum, cycle) => sum + cycle.remaining, 0);
        assert.deepEqual([remaining, now], [7 + 5, ledger.wall], user.key.endUser);
      }
    },
  );

  it('A balance chart is limited to the latest postings in whole transactions, and reports the instant of the first one', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(1)]);
    for (let batch = 0; batch < 6; batch++) {
      ledger.wall += 1_000;
      const pairs = Array.from({ length: 100 }, () => [ada.add(1), ada.add(1), ada.subtract(2)]);
      await ledger.write(pairs.flat());
    }
    const { postings, since } = await chartOf(ledger, ada, 0);
    assert(postings.length >= CHART_POSTINGS_MAX && postings.length <= CHART_POSTINGS_MAX + 1);
    assert.equal(since, (postings[0] as Posting).createdAt);
    assert(since > 0);
    const [first, second] = postings as [Posting, Posting];
    if (first.kind === 'subtract') assert.equal(second.transactionId, first.transactionId, 'a subtraction is whole');
    await assertLeadsToPresent(ledger, ada, 0);
  });

  it('An end user with more cycles than the limit of a balance chart has no chart', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    for (let left = CHART_CYCLES_MAX; left > 0; left -= 500)
      await ledger.write(Array.from({ length: Math.min(left, 500) }, () => ada.add(1)));
    assert.notEqual(await ledger.console.chartHistory(ada.key, 0), null);
    await ledger.write([ada.add(1)]);
    assert.equal(await ledger.console.chartHistory(ada.key, 0), null);
  });

  it('An unknown end user has an empty balance chart', async (ledger) => {
    const { state, postings } = await chartOf(ledger, new EndUser(ledger.account, 404), 0);
    assert.deepEqual([state.cycles, postings], [[], []]);
  });
}

async function chartOf(ledger: ContractLedger, { key }: EndUser, since: Instant): Promise<ChartHistory> {
  const chart = await ledger.console.chartHistory(key, since);
  assert(chart !== null);
  return chart;
}

async function assertLeadsToPresent(ledger: ContractLedger, user: EndUser, since: Instant): Promise<void> {
  const { state, postings, now, since: from } = await chartOf(ledger, user, since);
  assert(from >= since);
  const ids = postings.map(({ transactionId }) => transactionId);
  assert.deepEqual(ids, ids.toSorted(), 'oldest first');
  assert(postings.every(({ createdAt }) => createdAt >= from));
  const { state: present } = await ledger.load(user.key);
  assert.deepEqual(cyclesOf(applyAll(state, postings), now), cyclesOf(present, now));
}

function cyclesOf(state: EndUserState, now: Instant): Cycle[] {
  return liveState(state, now).cycles.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}
