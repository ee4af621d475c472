// Test data for the ledger rules: cycles, postings, commands and random histories of one end user. Cycles, states and
// postings are frozen, so a rule that modifies its arguments fails its test.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { batchOf, decideBatch } from '../../src/ledger/batch.ts';
import type { Add, Command, Outcome, Settle, StartCycle, StopCycle, Subtract } from '../../src/ledger/command.ts';
import { type Cycle, endOf } from '../../src/ledger/cycle.ts';
import type { Moment } from '../../src/ledger/decide.ts';
import { NO_RECORDS } from '../../src/ledger/idempotency.ts';
import { DAY_MS, HOUR_MS, type Instant } from '../../src/ledger/instant.ts';
import { type Entry, openingOf, type Posting, postingTo, RENEWAL_ACTOR } from '../../src/ledger/posting.ts';
import { cycleChanges, type EndUserState, liveState } from '../../src/ledger/state.ts';
import { renewalId, transactionId } from '../../src/ledger/transaction-id.ts';

export const NOW: Instant = Date.UTC(2026, 0, 15, 9, 30, 0, 123);
export const ADA = { account: 1, endUser: '5f0c6f7e-0000-4000-8000-000000000001' };
export const ACTOR = 'key:7';
/** A limit above the number of due events in any test. */
export const EVENTS_MAX = 100_000;

export function idAt(at: Instant, sequence = 1): string {
  return transactionId({ at, sequence, tail: sequence.toString(16).padStart(12, 'a') });
}

/** A moment that issues the ids `idAt(now, firstSequence)`, `idAt(now, firstSequence + 1)` and so on. */
export function momentAt(now: Instant, firstSequence = 1): Moment {
  let sequence = firstSequence;
  return { now, nextId: () => idAt(now, sequence++) };
}

export function daysAgo(days: number): Instant {
  return NOW - days * DAY_MS;
}

/** An active, unspent cycle in its first period: by default 100 credits for 31 days from `NOW`. */
export function recurring(change: Partial<Cycle> = {}, sequence = 1): Cycle {
  const { start = NOW, validityDays = 31, amount = 100 } = change;
  return Object.freeze({
    id: idAt(start, sequence),
    period: 0,
    type: 'recurring',
    status: 'active',
    amount,
    remaining: amount,
    start,
    end: endOf(start, validityDays),
    validityDays,
    ...change,
  });
}

export function oneTime(change: Partial<Cycle> = {}, sequence = 1): Cycle {
  return recurring({ type: 'one-time', ...change }, sequence);
}

export function stateOf(...cycles: readonly Cycle[]): EndUserState {
  return Object.freeze({ cycles: Object.freeze(cycles) });
}

/** The posting that opened the current period of a cycle. */
export function opening(cycle: Cycle): Posting {
  const { id, period, start, type } = cycle;
  const by =
    period > 0
      ? { transactionId: renewalId(id, start), kind: 'renew' as const, actor: RENEWAL_ACTOR }
      : { transactionId: id, kind: type === 'one-time' ? ('add' as const) : ('start-cycle' as const), actor: ACTOR };
  return Object.freeze(openingOf(cycle, { ...by, note: null }));
}

/** The posting of a subtraction from `cycle`. */
export function drawing(cycle: Cycle, amount: number, at = cycle.start, sequence = 99): Posting {
  return Object.freeze(postingTo(cycle, -amount, entryAt('subtract', at, sequence)));
}

export function stopping(cycle: Cycle, at = cycle.start, sequence = 99): Posting {
  return Object.freeze(postingTo(cycle, 0, entryAt('stop-cycle', at, sequence)));
}

function entryAt(kind: Entry['kind'], createdAt: Instant, sequence: number): Entry {
  return { transactionId: idAt(createdAt, sequence), kind, createdAt, actor: ACTOR, note: null };
}

export function add(amount: number, change: Partial<Add> = {}): Add {
  return { ...ADA, actor: ACTOR, kind: 'add', amount, validityDays: 31, ...change };
}

export function subtract(amount: number, change: Partial<Subtract> = {}): Subtract {
  return { ...ADA, actor: ACTOR, kind: 'subtract', amount, ...change };
}

export function startCycle(amount: number, change: Partial<StartCycle> = {}): StartCycle {
  return { ...ADA, actor: ACTOR, kind: 'start-cycle', amount, validityDays: 31, onActive: 'refuse', ...change };
}

export function stopCycle(change: Partial<StopCycle> = {}): StopCycle {
  return { ...ADA, actor: ACTOR, kind: 'stop-cycle', ...change };
}

export function settling(user = ADA): Settle {
  return { ...user, kind: 'settle' };
}

/** An in-memory store for the end user `ADA`, with each cycle in its latest period and all postings. */
export class MemoryLedger {
  now: Instant;
  /** All cycles, including ended ones, in the order in which they were opened. */
  cycles: readonly Cycle[] = [];
  /** Oldest first. */
  readonly postings: Posting[] = [];
  #sequence = 1;

  constructor(now = NOW) {
    this.now = now;
  }

  /** The state that a store loads to decide a command at `now`. */
  get state(): EndUserState {
    const { cycles } = liveState({ cycles: this.cycles }, this.now);
    return stateOf(...cycles.toSorted((a, b) => a.start - b.start || (a.id < b.id ? -1 : 1)));
  }

  run(command: Command): Outcome {
    const moment = momentAt(this.now, this.#sequence);
    const loaded = { states: [this.state], records: NO_RECORDS };
    const { outcomes, changes } = decideBatch(batchOf([command]), loaded, moment, EVENTS_MAX);
    for (const { before, after, postings } of changes) {
      const { opened, changed } = cycleChanges(before, after);
      const changedTo = new Map(changed.map((change) => [change.before.id, change.after]));
      this.cycles = this.cycles.map((cycle) => changedTo.get(cycle.id) ?? cycle).concat(opened);
      for (const posting of postings) this.postings.push(Object.freeze(posting));
    }
    // A command uses at most two ids: a replacement stops one cycle and starts another.
    this.#sequence += 2;
    assert(outcomes[0], 'every command of a history is decided');
    return outcomes[0];
  }
}

const days = fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 4 }) }, fc.constant(2_932_897));
const amounts = fc.integer({ min: 1, max: 40 });
const commands: fc.Arbitrary<Command> = fc.oneof(
  fc.tuple(amounts, days).map(([amount, validityDays]) => add(amount, { validityDays })),
  amounts.map((amount) => subtract(amount)),
  amounts.map((amount) => subtract(amount)),
  fc
    .tuple(amounts, days, fc.constantFrom('refuse' as const, 'replace' as const))
    .map(([amount, validityDays, onActive]) => startCycle(amount, { validityDays, onActive })),
  fc.constant(stopCycle()),
  fc.constant(settling()),
);
/** The time between commands, often until exactly a cycle boundary or a millisecond before or after it. */
const pauses = fc.oneof(
  fc.constantFrom(0, 0, 1, DAY_MS - 1, DAY_MS, DAY_MS + 1, 2 * DAY_MS),
  fc.integer({ min: 0, max: 6 * HOUR_MS }),
  fc.integer({ min: 0, max: 9 * DAY_MS }),
);

/** Random commands at random instants. Time passes after the last command too, so renewals may be due at the end. */
export const histories: fc.Arbitrary<MemoryLedger> = fc
  .array(fc.tuple(commands, pauses), { minLength: 1, maxLength: 30, size: 'max' })
  .map((steps) => {
    const ledger = new MemoryLedger();
    for (const [command, pause] of steps) {
      ledger.run(command);
      ledger.now += pause;
    }
    return ledger;
  });
