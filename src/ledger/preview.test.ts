// Tests that a preview of `/start-cycle` shows the effect of the request, but changes nothing itself.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { add, hold, MemoryLedger, NOW, startCycle, stopCycle, subtract } from '../../test/ledger/ledger-builders.ts';
import { histories, starts } from '../../test/ledger/random-histories.ts';
import { AMOUNT_MAX } from './amount.ts';
import { activeBalance, cyclesAt } from './balance.ts';
import type { Command, StartCycle } from './command.ts';
import { type Cycle, spendable } from './cycle.ts';
import { balanceAt } from './history.ts';
import { DAY_MS } from './instant.ts';
import { type Preview, previewOf } from './preview.ts';

const END = NOW + DAY_MS;

function preview(ledger: MemoryLedger, command: StartCycle): Preview {
  const result = previewOf(ledger.state, command, ledger.now);
  assert(result.refused === null, `a preview, not ${result.refused}`);
  return result;
}

function later(amount: number, change: Partial<StartCycle> = {}): StartCycle {
  return startCycle(amount, { validityDays: 3, onActive: 'at_period_end', ...change });
}

function withDaily(...commands: readonly Command[]): MemoryLedger {
  const ledger = new MemoryLedger();
  for (const command of [startCycle(100, { validityDays: 1, rolloverMax: 50 }), subtract(60), ...commands])
    assert.equal(ledger.run(command).refused, null);
  return ledger;
}

function numbersOf({ startsAt, balance, balanceAtStart, expiring }: Preview): readonly number[] {
  return [startsAt, balance, balanceAtStart, expiring];
}

const PREVIEWS: readonly (readonly [
  what: string,
  commands: readonly Command[],
  command: StartCycle,
  ...numbers: number[],
])[] = [
  ['a change of plan', [], later(7), END, 40, 7, 40],
  ['a change of plan with credits that outlast the period', [add(5, { validityDays: 2 })], later(7), END, 45, 12, 40],
  [
    'a change of plan with added credits that expire with the period',
    [add(5, { validityDays: 1 })],
    later(7),
    END,
    45,
    7,
    40,
  ],
  ['a change of plan that replaces a scheduled plan', [later(9)], later(7), END, 40, 7, 40],
  ['a change of plan with a hold that lapses before the end of the period', [hold(10)], later(7), END, 30, 7, 40],
  [
    'a change of plan with a hold that lapses at the end of the period',
    [hold(10, { expiresInSeconds: 86_400 })],
    later(7),
    END,
    30,
    7,
    30,
  ],
  ['a replacement', [], startCycle(7, { onActive: 'replace' }), NOW, 47, 47, 0],
  ['a replacement that cancels a scheduled plan', [later(9)], startCycle(7, { onActive: 'replace' }), NOW, 47, 47, 0],
  ['a cycle start after a stop', [stopCycle()], startCycle(7), NOW, 47, 47, 0],
  ['a change of plan that begins immediately because the cycle was stopped', [stopCycle()], later(7), NOW, 47, 47, 0],
];

for (const [what, commands, command, ...numbers] of PREVIEWS) {
  test(`the preview of ${what} shows the start of the new cycle, the balances, and the credits that expire`, () => {
    assert.deepEqual(numbersOf(preview(withDaily(...commands), command)), numbers);
  });
}

test('a preview includes due renewals and changes of plan that are not stored yet', () => {
  const ledger = withDaily();
  ledger.now = END + DAY_MS;
  assert.deepEqual(numbersOf(preview(ledger, later(7))), [END + 2 * DAY_MS, 150, 7, 150]);
  const changed = withDaily(later(9));
  changed.now = END;
  assert.deepEqual(numbersOf(preview(changed, later(7))), [END + 3 * DAY_MS, 9, 7, 9]);
  assert.deepEqual(numbersOf(preview(changed, startCycle(7, { onActive: 'replace' }))), [END, 16, 16, 0]);
});

test('a preview for an end user without credits shows a new cycle that starts immediately', () => {
  const ledger = new MemoryLedger();
  const { cycles, ...numbers } = preview(ledger, startCycle(7));
  assert.deepEqual(numbers, { refused: null, startsAt: NOW, balance: 7, balanceAtStart: 7, expiring: 0 });
  assert.deepEqual(
    cycles.map(({ amount, start, type }) => [amount, start, type]),
    [[7, NOW, 'recurring']],
  );
});

test('the preview of a request that would be refused is the refusal', () => {
  const ledger = withDaily();
  const [cycle] = ledger.cycles;
  assert.deepEqual(previewOf(ledger.state, startCycle(7), NOW), { refused: 'CycleAlreadyActive', cycle });
  assert.deepEqual(previewOf(ledger.state, later(AMOUNT_MAX, { rolloverMax: 1 }), NOW), {
    refused: 'BalanceTooLarge',
    requested: AMOUNT_MAX,
    available: AMOUNT_MAX - 1,
  });
});

test('a preview changes nothing', () => {
  const ledger = withDaily(later(9));
  ledger.now = END;
  const before = structuredClone({ state: ledger.state, postings: ledger.postings });
  preview(ledger, later(7));
  assert.deepEqual({ state: ledger.state, postings: ledger.postings }, before);
});

function withoutIds(cycles: readonly Cycle[], known: ReadonlySet<string>): readonly unknown[] {
  const idOf = (id: string) => (known.has(id) ? id : 'new');
  return cycles.map((cycle) => ({
    ...cycle,
    id: idOf(cycle.id),
    next: cycle.next && { ...cycle.next, id: idOf(cycle.next.id) },
  }));
}

test('in random histories, a preview shows exactly the effect of the same request', () => {
  const seen = { refused: 0, later: 0, atOnce: 0 };
  fc.assert(
    fc.property(histories, starts, (ledger, command) => {
      const { state, now } = ledger;
      const shown = previewOf(state, command, now);
      const settled = cyclesAt(state, now);
      const outcome = ledger.run(command);
      if (shown.refused !== null || outcome.refused !== null) {
        seen.refused += 1;
        assert.deepEqual(shown, outcome);
        return;
      }
      const known = new Set(settled.flatMap(({ id, next }) => [id, ...(next === null ? [] : [next.id])]));
      const after = cyclesAt(ledger.state, now);
      assert.deepEqual(withoutIds(shown.cycles, known), withoutIds(after, known));
      assert.equal(shown.balance, activeBalance(after, now));
      const { cycle } = outcome;
      assert(cycle);
      const isLater = cycle.next !== null;
      seen[isLater ? 'later' : 'atOnce'] += 1;
      assert.equal(shown.startsAt, isLater ? cycle.end : now);
      assert.equal(shown.balanceAtStart, balanceAt(ledger.state, shown.startsAt).balance);
      const last = cyclesAt(ledger.state, shown.startsAt - 1).find(({ id }) => id === cycle.id);
      assert.equal(shown.expiring, isLater ? spendable(last as Cycle) : 0);
    }),
    { numRuns: 1_000 },
  );
  for (const [what, count] of Object.entries(seen)) assert(count > 20, `${what}: ${count}`);
});
