// Contract tests for the balance at any instant: a past balance is the balance that reads returned at that time, and a
// future balance assumes no further writes.

import assert from 'node:assert/strict';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { deriveEvents } from '../../../src/events/derive.ts';
import type { Command } from '../../../src/ledger/command.ts';
import { type BalancePoint, balanceAt, POINTS_MAX } from '../../../src/ledger/history.ts';
import { DAY_MS, HOUR_MS, INSTANT_MAX, type Instant } from '../../../src/ledger/instant.ts';
import { effort } from '../../effort.ts';
import { Random } from '../../load/random.ts';
import type { Contract, ContractLedger } from '../store-contract.ts';
import { EndUser, idsOf, problemsOf } from '../temporary-ledger.ts';

/** The number of steps in a random history. */
const STEPS = effort(60, 500);

export function statesAtContract(contract: Contract): void {
  instants(contract);
  random(contract);
  concurrent(contract);
}

async function pointsAt(
  ledger: ContractLedger,
  { key }: EndUser,
  at: readonly Instant[],
): Promise<readonly BalancePoint[]> {
  const { states } = await ledger.store.statesAt(key, at);
  assert.equal(states.length, at.length);
  return states.map((state, index) => balanceAt(state, at[index] as Instant));
}

async function pointNow(ledger: ContractLedger, { key }: EndUser): Promise<BalancePoint> {
  const { state, now } = await ledger.load(key);
  return balanceAt(state, now);
}

function instants({ it, itInTime }: Contract): void {
  itInTime(
    'a balance at an instant counts all transactions up to that millisecond and no later ones',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      const start = ledger.wall;
      await ledger.write([ada.add(10, 1), ada.subtract(1)]);
      ledger.wall += 1;
      const [hold] = idsOf(await ledger.write([ada.hold(4, 60)]));
      ledger.wall += 1;
      await ledger.write([ada.capture(hold as string, 3), ada.subtract(1)]);
      ledger.wall += 1;
      await ledger.write([ada.startCycle(20, 1)]);
      ledger.wall += 2 * DAY_MS;
      const points = await pointsAt(ledger, ada, [
        0,
        start - 1,
        start,
        start + 1,
        start + 2,
        start + 3,
        start + DAY_MS - 1,
        start + DAY_MS,
        start + DAY_MS + 2,
        start + DAY_MS + 3,
      ]);
      assert.deepEqual(
        points.map(({ balance, held }) => [balance, held]),
        [
          [0, 0],
          [0, 0],
          [9, 0],
          [5, 4],
          [5, 0],
          [25, 0],
          [25, 0],
          [20, 0],
          [20, 0],
          [20, 0],
        ],
      );
    },
  );

  itInTime(
    'a balance at an instant counts a hold only until the hold lapses, whether or not the lapse is stored',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      const start = ledger.wall;
      await ledger.write([ada.add(10), ada.hold(4, 60)]);
      ledger.wall += 3 * HOUR_MS;
      const at = [start + 59_999, start + 60_000, ledger.wall, ledger.wall + 1];
      const expected = [
        [6, 4],
        [10, 0],
        [10, 0],
        [10, 0],
      ];
      const shown = async () => (await pointsAt(ledger, ada, at)).map(({ balance, held }) => [balance, held]);
      assert.deepEqual(await shown(), expected);
      await ledger.write([ada.settle()]);
      assert.deepEqual(await shown(), expected);
    },
  );

  itInTime(
    'a balance at a future instant counts the renewals, lapses and expiries that are due by then',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.write([ada.add(10, 2), ada.startCycle(20, 1), ada.subtract(5), ada.hold(8, 36 * 3_600)]);
      const now = ledger.wall;
      const hours = [0, 12, 24, 35, 36, 47, 48, 72, 24 * 400];
      const points = await pointsAt(
        ledger,
        ada,
        hours.map((hour) => now + hour * HOUR_MS),
      );
      assert.deepEqual(
        points.map(({ balance, held }) => [balance, held]),
        [
          [17, 8],
          [17, 8],
          [20, 8],
          [20, 8],
          [25, 0],
          [25, 0],
          [20, 0],
          [20, 0],
          [20, 0],
        ],
      );
      for (const [index, hour] of hours.entries()) {
        ledger.wall = now + hour * HOUR_MS;
        assert.deepEqual(await pointNow(ledger, ada), points[index]);
      }
    },
  );

  it('for a future instant, `statesAt` returns the stored state, and an unknown end user has no credits at any instant', async (ledger) => {
    const [ada, unknown] = [new EndUser(ledger.account, 1), new EndUser(ledger.account, 404)];
    await ledger.write([ada.add(10), ada.hold(3)]);
    const { state } = await ledger.load(ada.key);
    const { now, states } = await ledger.store.statesAt(ada.key, [0, INSTANT_MAX]);
    assert.deepEqual(states, [{ cycles: [], holds: [] }, state]);
    assert(now < INSTANT_MAX);
    assert.deepEqual((await ledger.store.statesAt(ada.key, [])).states, []);
    const nothing = { balance: 0, held: 0 };
    const points = [0, now, INSTANT_MAX].map((at) => ({ at, ...nothing }));
    assert.deepEqual(await pointsAt(ledger, unknown, [0, now, INSTANT_MAX]), points);
    assert.equal((await ledger.audit()).endUsers, 1, 'reading stores nothing');
  });

  it('a balance that is read at a thousand instants changes only at the instants of transactions', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const { now: before } = await ledger.load(ada.key);
    ledger.wall += HOUR_MS;
    await sleep(2);
    await ledger.write([ada.add(10, 400), ada.subtract(3)]);
    const { now } = await ledger.load(ada.key);
    ledger.wall += HOUR_MS;
    const at = Array.from({ length: POINTS_MAX }, (_, index) => (index < 500 ? before - 500 + index : now + index));
    const points = await pointsAt(ledger, ada, at);
    assert.deepEqual(
      points.map(({ balance }) => balance),
      at.map((_, index) => (index < 500 ? 0 : 7)),
    );
  });
}

function commandOf(user: EndUser, random: Random, ids: { holds: string[]; spent: string[] }): Command {
  const any = (all: readonly string[]) =>
    all.length === 0 ? '019c13ec-9e00-4000-8002-000000000000' : random.pick(all);
  const amount = random.chance(0.5) ? null : 1 + random.below(9);
  return random.pick([
    user.add(1 + random.below(40), 1 + random.below(9)),
    user.subtract(1 + random.below(15)),
    user.subtract(1 + random.below(5)),
    user.startCycle(1 + random.below(30), 1 + random.below(3), 'replace'),
    user.stopCycle(),
    user.hold(1 + random.below(12), random.pick([1, 3_600, 86_400, 3 * 86_400, 1 + random.below(200_000)])),
    user.hold(1 + random.below(6), 60),
    user.capture(any(ids.holds), amount),
    user.release(any(ids.holds)),
    user.refund(any(ids.spent), amount, random.chance(0.5) ? 3 : null),
    user.settle(),
  ]);
}

function random({ itInTime }: Contract): void {
  itInTime(
    'the balance at each past instant of a random history is the balance that a read returned at that instant, and the audit never finds a problem',
    async (ledger) => {
      const random = new Random(1);
      const users = [new EndUser(ledger.account, 1), new EndUser(ledger.other, 1)];
      const shown = users.map((): BalancePoint[] => []);
      const ids = users.map(() => ({ holds: [] as string[], spent: [] as string[] }));
      for (let step = 0; step < STEPS; step++) {
        const index = random.below(users.length);
        const [user, own] = [users[index] as EndUser, ids[index] as (typeof ids)[0]];
        const commands = Array.from({ length: 1 + random.below(4) }, () => commandOf(user, random, own));
        const transactions = idsOf(await ledger.write(commands));
        for (const [place, { kind }] of commands.entries()) {
          const id = transactions[place];
          if (id && kind === 'hold') own.holds.push(id);
          if (id && (kind === 'subtract' || kind === 'capture')) own.spent.push(id);
        }
        own.holds.splice(0, own.holds.length - 6);
        own.spent.splice(0, own.spent.length - 6);
        // Reads and writes must be in different milliseconds: a write after a read, but in the same millisecond, would
        // change the balance at the instant of the read.
        ledger.wall += 1 + random.pick([0, 0, 1, 999, 59_999, random.below(HOUR_MS), random.below(DAY_MS), DAY_MS - 1]);
        for (const [place, each] of users.entries()) {
          const point = await pointNow(ledger, each);
          assert.equal(point.at, ledger.wall);
          shown[place]?.push(point);
        }
        ledger.wall += 1;
        if (random.chance(0.3)) await ledger.events.deriveNext(deriveEvents);
        if (step % 20 === 19) assert.deepEqual(problemsOf(await ledger.audit()), []);
        if (step % 50 === 49) await (step % 100 === 49 ? ledger.reopen() : ledger.crash());
      }
      for (const [place, user] of users.entries()) {
        const all = shown[place] as BalancePoint[];
        assert.deepEqual(
          await pointsAt(
            ledger,
            user,
            all.map(({ at }) => at),
          ),
          all,
        );
        for (const [index, point] of all.entries())
          if (index % 50 === 0) assert.deepEqual(await pointsAt(ledger, user, [point.at]), [point]);
      }
    },
  );
}

function concurrent({ it }: Contract): void {
  it('the balance at a past instant never changes, even while writes are running', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(1_000_000)]);
    let isOver = false;
    const writing = Array.from({ length: 3 }, async () => {
      while (!isOver) {
        await ledger.write([ada.subtract(1)]);
        await turn();
      }
    });
    const asked: BalancePoint[] = [];
    for (let round = 0; round < effort(8, 20); round++) {
      const { now } = await ledger.load(ada.key);
      ledger.wall += 1;
      while ((await ledger.load(ada.key)).now === now) await sleep(1);
      asked.push(...(await pointsAt(ledger, ada, [now])));
    }
    isOver = true;
    await Promise.all(writing);
    const at = asked.map((point) => point.at);
    assert.deepEqual(await pointsAt(ledger, ada, at), asked);
  });
}
