// The line of the balance against the ledger itself: histories are made by the rules, the balance is looked at on the
// way, and the line, drawn afterwards from what is left, has to say the same.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { activeBalance } from '../../ledger/balance.ts';
import type { Command } from '../../ledger/command.ts';
import type { Cycle } from '../../ledger/cycle.ts';
import { decide } from '../../ledger/decide.ts';
import { DAY_MS, type Instant } from '../../ledger/instant.ts';
import type { Posting } from '../../ledger/posting.ts';
import { cyclesAt, settle } from '../../ledger/settle.ts';
import { transactionId } from '../../ledger/transaction-id.ts';
import { type BalanceOverTime, balanceOverTime, type Step } from './balance-over-time.ts';

const BEGIN = Date.UTC(2026, 0, 15, 9, 30, 0, 123);
const USER = { account: 1, endUser: '5f0c6f7e-0000-4000-8000-000000000001', actor: 'key:7' };

/** What the ledger would store of commands, each at its time, in days after the beginning. */
class Ledger {
  cycles: readonly Cycle[] = [];
  readonly postings: Posting[] = [];
  #sequence = 0;

  at(days: number, command: Omit<Command, 'account' | 'endUser' | 'actor'> & Record<string, unknown>): this {
    const now = instant(days);
    const settled = settle(this.cycles, now, 10_000);
    const nextId = () => transactionId({ at: now, sequence: ++this.#sequence, tail: 'aaaaaaaaaaaa' });
    const decision = decide(settled.cycles, { ...USER, ...command } as Command, { now, nextId });
    this.cycles = decision.cycles;
    this.postings.push(...settled.postings, ...decision.postings);
    return this;
  }

  /** From what a store would still find: cycles that have not ended at `from`, and the postings since. */
  draw(range: { from: number; now: number; to: number }): BalanceOverTime {
    const [from, now, to] = [instant(range.from), instant(range.now), instant(range.to)];
    const renewing = (cycle: Cycle) => cycle.type === 'recurring' && cycle.status === 'active';
    const cycles = this.cycles.filter((cycle) => cycle.end > from || renewing(cycle));
    const movements = this.postings.filter(({ createdAt }) => createdAt >= from);
    return balanceOverTime({ cycles, movements, now }, { from, to });
  }

  balance(at: Instant): number {
    return activeBalance(cyclesAt(this.cycles, at), at);
  }
}

function instant(days: number): Instant {
  return BEGIN + Math.round(days * DAY_MS);
}

function heightAt(steps: readonly Step[], at: Instant): number {
  const step = steps.findLast((one) => one.at <= at);
  assert(step, 'the line has begun');
  return step.balance;
}

function inDays(steps: readonly Step[]): [number, number][] {
  return steps.map(({ at, balance }) => [Math.round(((at - BEGIN) / DAY_MS) * 1_000) / 1_000, balance]);
}

const ADD = { kind: 'add', amount: 100, validityDays: 10 } as const;
const START = { kind: 'start-cycle', amount: 1_000, validityDays: 7, onActive: 'refuse' } as const;

test('an addition rises when it is made, falls as it is spent, and what is left falls when it expires', () => {
  const ledger = new Ledger().at(1, ADD).at(3, { kind: 'subtract', amount: 30 });
  const { past, future } = ledger.draw({ from: 0, now: 20, to: 30 });
  assert.deepEqual(inDays(past), [
    [0, 0],
    [1, 100],
    [3, 70],
    [11, 0],
  ]);
  assert.deepEqual(inDays(future), [[20, 0]]);
});

test('what was there before the line begins is there from its beginning', () => {
  const ledger = new Ledger().at(1, ADD).at(3, { kind: 'subtract', amount: 30 });
  assert.deepEqual(inDays(ledger.draw({ from: 5, now: 6, to: 6 }).past), [[5, 70]]);
});

test('a movement at the very instant at which the line begins is part of its beginning', () => {
  const ledger = new Ledger().at(1, ADD).at(3, { kind: 'subtract', amount: 30 });
  assert.deepEqual(inDays(ledger.draw({ from: 3, now: 4, to: 4 }).past), [[3, 70]]);
});

test('time alone lets credits expire, and renews the active cycle to its full amount', () => {
  const ledger = new Ledger().at(0, START).at(1, ADD).at(2, { kind: 'subtract', amount: 400 });
  const { future } = ledger.draw({ from: 0, now: 2, to: 23 });
  assert.deepEqual(inDays(future), [
    [2, 700],
    [7, 1_100],
    [11, 1_000],
  ]);
});

test('a stopped cycle does not renew', () => {
  const ledger = new Ledger().at(0, START).at(2, { kind: 'stop-cycle' });
  assert.deepEqual(inDays(ledger.draw({ from: 0, now: 3, to: 23 }).future), [
    [3, 1_000],
    [7, 0],
  ]);
});

test('an expiry at the last instant of the line shows, and one a millisecond later does not', () => {
  const ledger = new Ledger().at(0, ADD);
  assert.equal(ledger.draw({ from: 0, now: 1, to: 10 }).future.length, 2);
  assert.equal(ledger.draw({ from: 0, now: 1, to: 10 - 1 / DAY_MS }).future.length, 1);
});

test('renewals that are due and not yet stored are on the line, also when the service was down for years', () => {
  const ledger = new Ledger().at(0, START).at(1, { kind: 'subtract', amount: 400 });
  const { past, future } = ledger.draw({ from: 3_640, now: 3_670, to: 3_700 });
  assert.deepEqual(inDays(past), [[3_640, 1_000]]);
  assert.deepEqual(inDays(future), [[3_670, 1_000]]);
  assert.deepEqual(inDays(ledger.draw({ from: 0, now: 20, to: 20 }).past), [
    [0, 1_000],
    [1, 600],
    [7, 1_000],
  ]);
});

const commands = fc.oneof(
  fc.record({
    kind: fc.constant('add'),
    amount: fc.integer({ min: 1, max: 50 }),
    validityDays: fc.integer({ min: 1, max: 9 }),
  }),
  fc.record({ kind: fc.constant('subtract'), amount: fc.integer({ min: 1, max: 60 }) }),
  fc.record({
    kind: fc.constant('start-cycle'),
    amount: fc.integer({ min: 1, max: 50 }),
    validityDays: fc.integer({ min: 1, max: 6 }),
    onActive: fc.constantFrom('refuse', 'replace'),
  }),
  fc.record({ kind: fc.constant('stop-cycle') }),
);

test('at every moment of the past the line is what the balance was, and of the future what it will be', () => {
  const history = fc.array(fc.record({ after: fc.integer({ min: 0, max: 72 }), command: commands }), { maxLength: 30 });
  fc.assert(
    fc.property(history, fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 80 }), (history, from, rest) => {
      const ledger = new Ledger();
      const seen = new Map<Instant, number>();
      let hours = 0;
      const lookUntil = (until: number) => {
        // Half an hour past, so that what happens on the hour has happened.
        for (; hours < until; hours++)
          seen.set(instant((hours + 0.5) / 24), ledger.balance(instant((hours + 0.5) / 24)));
      };
      for (const { after, command } of history) {
        lookUntil(hours + after);
        ledger.at(hours / 24, command as never);
      }
      lookUntil(hours + rest + 1);
      const now = Math.max(hours / 24, from);
      lookUntil(now * 24);
      const { past, future } = ledger.draw({ from, now, to: now + 20 });
      for (const [at, balance] of seen)
        if (at >= instant(from)) assert.equal(heightAt(past, at), balance, `${(at - BEGIN) / DAY_MS} days on`);
      assert.equal(past.at(-1)?.balance, future[0]?.balance, 'the past ends where the future begins');
      for (let hour = 0; hour <= 20 * 24; hour++) {
        const at = instant(now + hour / 24);
        assert.equal(heightAt(future, at), ledger.balance(at), `in ${hour} hours`);
      }
    }),
    { numRuns: 300 },
  );
});
