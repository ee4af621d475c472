// Contract tests for plans: periods of calendar months, credits that roll over, and changes of plan at the end of a
// period.

import assert from 'node:assert/strict';
import type { Outcome } from '../../../src/ledger/command.ts';
import type { Cycle } from '../../../src/ledger/cycle.ts';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import { scheduledText } from '../../../src/ledger/plan.ts';
import { termsText } from '../../../src/ledger/posting.ts';
import { dueTransactions } from '../../../src/ledger/settle.ts';
import type { Contract, ContractLedger } from '../store-contract.ts';
import {
  balanceOf,
  daysPlan,
  EndUser,
  historyOf,
  keyed,
  monthsPlan,
  type Result,
  replayed,
  resultOf,
  transactionsOf,
} from '../temporary-ledger.ts';
import { twoMinutes } from './time.ts';

export function planContract(contract: Contract): void {
  months(contract);
  rollover(contract);
  schedules(contract);
  changes(contract);
}

const TEN_DAYS_S = (10 * DAY_MS) / 1_000;

function cycleIn(outcome: Outcome | null | undefined): Cycle {
  assert(outcome?.refused === null && outcome.cycle);
  return outcome.cycle;
}

async function cyclesOf(ledger: ContractLedger, user: EndUser): Promise<readonly Cycle[]> {
  return (await ledger.load(user.key)).state.cycles;
}

export async function dueOf(ledger: ContractLedger, user: EndUser): Promise<string[]> {
  const { state, now } = await ledger.transactions(user.key);
  return [...dueTransactions(state, now)].map(({ amount, kind }) => `+${amount} ${kind}`);
}

const INTERRUPTIONS: readonly (readonly [when: string, happens: (ledger: ContractLedger) => Promise<void>])[] = [
  ['without an interruption', async () => {}],
  ['after a restart', (ledger) => ledger.reopen()],
  ['after a crash', (ledger) => ledger.crash()],
  ['after a flush of the balances', twoMinutes],
];

function months({ itInTime }: Contract): void {
  itInTime(
    'monthly periods end on the day of the month on which the cycle started, or on the last day of a shorter month',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.write([ada.startPlan(monthsPlan(10, 1))]);
      ledger.wall = Date.UTC(2026, 5, 15);
      await ledger.write([ada.settle()]);
      const transactions = (await transactionsOf(ledger, ada)).toReversed();
      assert.deepEqual(
        transactions.map(({ kind, expiresAt }) => [kind, new Date(expiresAt).toISOString().slice(0, 16)]),
        [
          ['start-cycle', '2026-02-28T12:00'],
          ['renew', '2026-03-31T12:00'],
          ['renew', '2026-04-30T12:00'],
          ['renew', '2026-05-31T12:00'],
          ['renew', '2026-06-30T12:00'],
        ],
      );
      await ledger.reopen();
      const [cycle] = await cyclesOf(ledger, ada);
      assert.deepEqual([cycle?.period, cycle?.plan, cycle?.next], [4, monthsPlan(10, 1), null]);
    },
  );

  itInTime(
    'credits that are valid for months expire on the same day of a later month, or on the last day of a shorter month',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      const months = { ...ada.add(10), validityDays: null, validityMonths: 13 } as const;
      const [outcome] = await ledger.write([months]);
      assert.equal(outcome?.refused, null);
      ledger.wall = Date.UTC(2027, 1, 28, 12) - 1;
      assert.equal(await balanceOf(ledger, ada), 10);
      ledger.wall += 1;
      assert.equal(await balanceOf(ledger, ada), 0);
    },
  );
}

function rollover({ itInTime }: Contract): void {
  itInTime('unused credits roll over to the next period up to the maximum of the plan', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.startPlan(daysPlan(10, 1, 15)), ada.subtract(4)]);
    ledger.wall += DAY_MS;
    assert.equal(await balanceOf(ledger, ada), 16, 'before the renewal is stored');
    await ledger.write([ada.subtract(1)]);
    ledger.wall += DAY_MS;
    assert.deepEqual(await dueOf(ledger, ada), ['+25 renew']);
    await ledger.write([ada.settle()]);
    assert.deepEqual(await historyOf(ledger, ada), [
      '+25 renew',
      '-1 subtract',
      '+16 renew',
      '-4 subtract',
      '+10 start-cycle',
    ]);
    const [cycle] = await cyclesOf(ledger, ada);
    assert.deepEqual([cycle?.amount, cycle?.remaining, cycle?.plan], [25, 25, daysPlan(10, 1, 15)]);
  });

  for (const [when, happens] of INTERRUPTIONS)
    itInTime(`${when}, unused credits roll over through several missed renewals`, async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.write([ada.startPlan(daysPlan(10, 1, 25)), ada.subtract(8)]);
      await happens(ledger);
      ledger.wall += 4 * DAY_MS;
      const due = ['+35 renew', '+32 renew', '+22 renew', '+12 renew'];
      assert.deepEqual(await dueOf(ledger, ada), due);
      assert.equal(await balanceOf(ledger, ada), 35);
      await ledger.write([ada.subtract(35)]);
      assert.deepEqual(await historyOf(ledger, ada), ['-35 subtract', ...due, '-8 subtract', '+10 start-cycle']);
    });

  itInTime('held credits do not roll over, unless the hold lapses before the end of the period', async (ledger) => {
    const [ada, bob] = [new EndUser(ledger.account, 1), new EndUser(ledger.account, 2)];
    const users = [ada, bob];
    await ledger.write(users.map((user) => user.startPlan(daysPlan(10, 1, 100))));
    await ledger.write([ada.hold(4, TEN_DAYS_S), bob.hold(4, 60), bob.hold(3, TEN_DAYS_S)]);
    ledger.wall += DAY_MS;
    assert.deepEqual(await Promise.all(users.map((user) => dueOf(ledger, user))), [['+16 renew'], ['+17 renew']]);
    assert.deepEqual(await Promise.all(users.map((user) => balanceOf(ledger, user))), [16, 17]);
    await ledger.write(users.map((user) => user.settle()));
    const latest = await Promise.all(users.map(async (user) => (await historyOf(ledger, user))[0]));
    assert.deepEqual(latest, ['+16 renew', '+17 renew']);
  });
}

function schedules({ it, itInTime }: Contract): void {
  it('scheduling a plan stores the plan with the active cycle, moves no credits, and is not listed as a transaction', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const active = cycleIn((await ledger.write([ada.startPlan(daysPlan(10, 7))]))[0]);
    const [outcome] = await ledger.write([ada.startPlan(monthsPlan(20, 1, 5), 'at_period_end')]);
    assert(outcome?.refused === null && outcome.transactionId);
    const scheduled = { ...active, next: { id: outcome.transactionId, plan: monthsPlan(20, 1, 5) } };
    assert.deepEqual(cycleIn(outcome), scheduled);
    assert.deepEqual(await cyclesOf(ledger, ada), [scheduled]);
    await ledger.reopen();
    assert.deepEqual(await cyclesOf(ledger, ada), [scheduled]);
    assert.deepEqual(await historyOf(ledger, ada), ['+10 start-cycle']);
    const { transactions, terms } = await ledger.history(ada.key);
    assert.deepEqual(
      transactions.map(({ kind, amount, postings }) => [kind, amount, postings]),
      [
        ['schedule-plan', 0, [{ cycleId: active.id, period: 0, amount: 0, held: 0 }]],
        ['start-cycle', 10, [{ cycleId: active.id, period: 0, amount: 10, held: 0 }]],
      ],
    );
    assert.deepEqual(
      [...terms].map(([id, each]) => [id, termsText(each)]),
      [[active.id, 'recurring/10/7d']],
    );
  });

  it('scheduling a plan again with the same idempotency key returns the same cycle and stores nothing', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.startPlan(daysPlan(10, 7))]);
    const schedule = ada.startPlan(monthsPlan(20, 1), 'at_period_end');
    const [first] = await ledger.write([keyed(schedule, 'change', 'request-1')]);
    await ledger.write([ada.stopCycle()]);
    const [again] = await ledger.write([keyed(schedule, 'change', 'request-2')]);
    assert.deepEqual(resultOf(again as Outcome), replayed(resultOf(first as Outcome) as Result, 'request-1'));
    assert.deepEqual(
      (await cyclesOf(ledger, ada)).map(({ next }) => next),
      [null],
    );
  });

  for (const [what, isOneBatch] of [
    ['one batch', true],
    ['several batches', false],
  ] as const)
    itInTime(
      `in ${what}, scheduling a plan replaces the plan that was scheduled before, and a stop cancels the scheduled plan`,
      async (ledger) => {
        const { account } = ledger;
        const [changed, stopped, replaced] = [
          new EndUser(account, 1),
          new EndUser(account, 2),
          new EndUser(account, 3),
        ];
        const commands = [changed, stopped, replaced].flatMap((user) => [
          user.startPlan(daysPlan(10, 7)),
          user.startPlan(daysPlan(20, 7), 'at_period_end'),
          user.startPlan(daysPlan(30, 7), 'at_period_end'),
        ]);
        commands.push(stopped.stopCycle(), replaced.startPlan(daysPlan(40, 9), 'replace'));
        for (const batch of isOneBatch ? [commands] : commands.map((command) => [command])) {
          const results = await ledger.results(batch);
          assert(results.every((result) => result?.refused === null));
        }
        const seen = async (user: EndUser) =>
          (await cyclesOf(ledger, user)).map(({ status, next }) => [status, scheduledText(next)?.split('/').slice(1)]);
        const expected = [
          [['active', ['30', '7d']]],
          [['canceled', undefined]],
          [
            ['superseded', undefined],
            ['active', undefined],
          ],
        ];
        const all = () => Promise.all([changed, stopped, replaced].map(seen));
        assert.deepEqual(await all(), expected);
        await twoMinutes(ledger);
        await ledger.reopen();
        assert.deepEqual(await all(), expected);
        ledger.wall += 7 * DAY_MS;
        const balances = await Promise.all([changed, stopped, replaced].map((user) => balanceOf(ledger, user)));
        assert.deepEqual(balances, [30, 0, 40]);
        await ledger.write([changed, stopped, replaced].map((user) => user.settle()));
        assert.deepEqual(await ledger.due(), []);
        assert.deepEqual(await historyOf(ledger, changed), ['+30 change-plan', '+10 start-cycle']);
        assert.deepEqual(await historyOf(ledger, stopped), ['+10 start-cycle']);
      },
    );

  itInTime(
    'after the balance of a cycle has been flushed, a plan can still be scheduled, and the cycle can still be stopped',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.write([ada.startPlan(daysPlan(10, 7))]);
      await twoMinutes(ledger);
      const steps = [
        { commands: [ada.startPlan(daysPlan(20, 7), 'at_period_end')], expected: ['active', 10, 20] },
        { commands: [ada.startPlan(daysPlan(30, 7), 'at_period_end'), ada.subtract(1)], expected: ['active', 9, 30] },
        { commands: [ada.stopCycle()], expected: ['canceled', 9, undefined] },
      ];
      for (const { commands, expected } of steps) {
        await ledger.write(commands);
        await twoMinutes(ledger);
        await ledger.reopen();
        const [cycle] = await cyclesOf(ledger, ada);
        assert.deepEqual([cycle?.status, cycle?.remaining, cycle?.next?.plan.amount], expected);
      }
    },
  );

  itInTime(
    'a plan that is scheduled in the same batch as a renewal begins at the end of the new period',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.write([ada.startPlan(daysPlan(10, 1))]);
      await twoMinutes(ledger);
      ledger.wall += DAY_MS;
      await ledger.write([ada.startPlan(daysPlan(20, 1), 'at_period_end')]);
      await twoMinutes(ledger);
      await ledger.reopen();
      assert.deepEqual(
        (await cyclesOf(ledger, ada)).map(({ period, next }) => [period, next?.plan]),
        [[1, daysPlan(20, 1)]],
      );
      ledger.wall += DAY_MS;
      await ledger.write([ada.subtract(20)]);
      assert.deepEqual(await historyOf(ledger, ada), [
        '-20 subtract',
        '+20 change-plan',
        '+10 renew',
        '+10 start-cycle',
      ]);
    },
  );
}

function changes({ itInTime }: Contract): void {
  for (const [when, happens] of INTERRUPTIONS)
    itInTime(`${when}, a scheduled plan begins as a new cycle when the period ends`, async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      const start = ledger.wall;
      const [first] = await ledger.write([ada.startPlan(daysPlan(10, 2, 50)), ada.subtract(3)]);
      await happens(ledger);
      const [second] = await ledger.write([ada.startPlan(monthsPlan(40, 1), 'at_period_end')]);
      await happens(ledger);
      ledger.wall = start + 2 * DAY_MS - 1;
      assert.equal(await balanceOf(ledger, ada), 7);
      assert.deepEqual(await ledger.due(), []);
      ledger.wall += 1;
      assert.equal(await balanceOf(ledger, ada), 40, 'nothing rolls over to another plan');
      assert.deepEqual(await dueOf(ledger, ada), ['+40 change-plan']);
      await ledger.write([ada.settle()]);
      assert.deepEqual(await ledger.due(), []);
      const [change] = (await ledger.history(ada.key)).transactions;
      assert(change && second?.refused === null);
      assert.deepEqual(
        [change.kind, change.amount, change.actor, change.createdAt, change.reference],
        ['change-plan', 40, 'change', start + 2 * DAY_MS, second.transactionId],
      );
      const cycles = await cyclesOf(ledger, ada);
      assert.deepEqual(
        cycles.map(({ id, type, plan, next, end }) => [id, type, plan, next, new Date(end).toISOString().slice(0, 10)]),
        [[change.id, 'recurring', monthsPlan(40, 1), null, '2026-03-02']],
      );
      assert.notEqual(change.id, cycleIn(first).id);
      assert.deepEqual(cycleIn((await ledger.write([ada.stopCycle()]))[0]).id, change.id);
    });

  for (const [when, happens] of INTERRUPTIONS)
    itInTime(
      `${when}, a missed change of plan and the missed renewals after it are stored in order`,
      async (ledger) => {
        const ada = new EndUser(ledger.account, 1);
        await ledger.write([ada.startPlan(daysPlan(10, 2)), ada.startPlan(daysPlan(40, 3, 30), 'at_period_end')]);
        await happens(ledger);
        ledger.wall += 9 * DAY_MS;
        const due = ['+70 renew', '+70 renew', '+40 change-plan'];
        assert.deepEqual(await dueOf(ledger, ada), due);
        assert.equal(await balanceOf(ledger, ada), 70);
        await ledger.write([ada.subtract(60), ada.startPlan(daysPlan(5, 1), 'at_period_end')]);
        assert.deepEqual(await historyOf(ledger, ada), ['-60 subtract', ...due, '+10 start-cycle']);
        await happens(ledger);
        ledger.wall += 5 * DAY_MS;
        assert.equal(await balanceOf(ledger, ada), 5);
        await ledger.write([ada.settle()]);
        const { transactions } = await ledger.history(ada.key, { kinds: ['change-plan', 'schedule-plan'] });
        assert.deepEqual(
          transactions.map(({ kind }) => kind),
          ['change-plan', 'schedule-plan', 'change-plan', 'schedule-plan'],
        );
        assert.deepEqual(
          [transactions[0]?.reference, transactions[2]?.reference],
          [transactions[1]?.id, transactions[3]?.id],
        );
      },
    );

  itInTime('holds stay open when the plan changes, and can still be captured and still lapse', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.startPlan(daysPlan(10, 1)), ada.startPlan(daysPlan(20, 30), 'at_period_end')]);
    const [held] = await ledger.write([ada.hold(4, TEN_DAYS_S), ada.hold(3, TEN_DAYS_S)]);
    assert(held?.refused === null && held.transactionId);
    await twoMinutes(ledger);
    ledger.wall += DAY_MS;
    const [captured] = await ledger.write([ada.capture(held.transactionId, 4)]);
    assert.equal(captured?.refused, null);
    assert.equal(await balanceOf(ledger, ada), 20);
    await ledger.reopen();
    ledger.wall += 10 * DAY_MS;
    await ledger.write([ada.settle()]);
    assert.equal(await balanceOf(ledger, ada), 20);
    assert.deepEqual((await ledger.load(ada.key)).state.holds, []);
  });

  itInTime('end users with a due change of plan are listed as due, the longest overdue first', async (ledger) => {
    const { account } = ledger;
    const [early, late] = [new EndUser(account, 1), new EndUser(account, 2)];
    await ledger.write([late.startPlan(monthsPlan(10, 1)), early.startPlan(daysPlan(10, 1))]);
    await ledger.write([late, early].map((user) => user.startPlan(daysPlan(20, 100), 'at_period_end')));
    await twoMinutes(ledger);
    ledger.wall += 27 * DAY_MS;
    assert.deepEqual(await ledger.due(), [early.key]);
    ledger.wall += DAY_MS;
    assert.deepEqual(await ledger.due(), [early.key, late.key]);
    await ledger.write([early.settle(), late.settle()]);
    assert.deepEqual(await ledger.due(), []);
  });
}
