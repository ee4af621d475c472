// Builds cycles, postings, commands and an in-memory ledger for tests. Cycles, states and postings are frozen, so a
// rule that modifies its arguments throws an error.

import assert from 'node:assert/strict';
import { audit, type Finding } from '../../src/ledger/audit.ts';
import { batchOf, decideBatch, referenceName } from '../../src/ledger/batch.ts';
import type {
  Accepted,
  Add,
  Capture,
  Command,
  Hold as HoldCommand,
  Outcome,
  Refund,
  Release,
  Settle,
  StartCycle,
  StopCycle,
  Subtract,
} from '../../src/ledger/command.ts';
import type { Cycle } from '../../src/ledger/cycle.ts';
import type { Moment } from '../../src/ledger/decision.ts';
import type { Hold } from '../../src/ledger/hold.ts';
import { NO_RECORDS } from '../../src/ledger/idempotency.ts';
import { DAY_MS, type Instant } from '../../src/ledger/instant.ts';
import { lapseOf } from '../../src/ledger/next-event.ts';
import { endOf, type Plan } from '../../src/ledger/plan.ts';
import { type Entry, openingOf, type Posting, postingOn, postingTo, RENEWAL_ACTOR } from '../../src/ledger/posting.ts';
import { cycleChanges, type EndUserState, liveState } from '../../src/ledger/state.ts';
import { FIRST_SEQUENCE, renewalId, transactionId } from '../../src/ledger/transaction-id.ts';

export const NOW: Instant = Date.UTC(2026, 0, 15, 9, 30, 0, 123);
export const ADA = { account: 1, endUser: '5f0c6f7e-0000-4000-8000-000000000001' };
export const ACTOR = 'key:7';
const MINUTE_MS = 60_000;
export const EVENTS_MAX = 100_000;

export function idAt(at: Instant, sequence = FIRST_SEQUENCE): string {
  assert(sequence >= FIRST_SEQUENCE, 'lower sequences belong to renewals and lapses');
  return transactionId({ at, sequence, tail: `aaaa${sequence.toString(16).padStart(8, '0')}` });
}

export function momentAt(now: Instant, firstSequence = FIRST_SEQUENCE): Moment {
  let sequence = firstSequence;
  return { now, nextId: () => idAt(now, sequence++) };
}

export function daysAgo(days: number): Instant {
  return NOW - days * DAY_MS;
}

export type CycleChange = Partial<Cycle & Omit<Plan, 'amount'>>;

export function recurring(change: CycleChange = {}, sequence = FIRST_SEQUENCE): Cycle {
  const { validityMonths = null, validityDays = validityMonths === null ? 31 : null, rolloverMax = 0, ...own } = change;
  const { start = NOW, amount = 100 } = own;
  const plan = own.plan ?? { amount, validityDays, validityMonths, rolloverMax };
  return Object.freeze({
    id: idAt(start, sequence),
    period: 0,
    type: 'recurring',
    status: 'active',
    amount,
    remaining: amount,
    held: 0,
    start,
    end: endOf(start, plan),
    plan,
    next: null,
    ...own,
  });
}

export function oneTime(change: CycleChange = {}, sequence = FIRST_SEQUENCE): Cycle {
  return recurring({ type: 'one-time', ...change }, sequence);
}

export function dayCycles(count: number, start: Instant): Cycle[] {
  return Array.from({ length: count }, (_, index) => oneTime({ start: start + index, validityDays: 1 }, 3));
}

export function stateOf(...cycles: readonly Cycle[]): EndUserState {
  return Object.freeze({ cycles: Object.freeze(cycles), holds: Object.freeze([]) });
}

export function opening(cycle: Cycle): Posting {
  const { id, period, start, type } = cycle;
  const by =
    period > 0
      ? { transactionId: renewalId(id, start), kind: 'renew' as const, actor: RENEWAL_ACTOR }
      : { transactionId: id, kind: type === 'one-time' ? ('add' as const) : ('start-cycle' as const), actor: ACTOR };
  return Object.freeze(openingOf(cycle, { ...by, note: null }));
}

export function drawing(cycle: Cycle, amount: number, at = cycle.start, sequence = 99): Posting {
  return Object.freeze(postingTo(cycle, -amount, entryAt('subtract', at, sequence)));
}

export function stopping(cycle: Cycle, at = cycle.start, sequence = 99): Posting {
  return Object.freeze(postingTo(cycle, 0, entryAt('stop-cycle', at, sequence)));
}

interface When {
  readonly at?: Instant;
  readonly sequence?: number;
}

export function holding(cycle: Cycle, amount: number, when: When & { readonly until?: Instant } = {}): Posting {
  const { at = cycle.start, sequence = 99, until = at + 15 * MINUTE_MS } = when;
  const posting = postingTo(cycle, 0, { ...entryAt('hold', at, sequence), holdExpiresAt: until });
  return Object.freeze({ ...posting, held: amount });
}

/** All postings must have the same transaction ID. */
export function holdOf(...postings: readonly [Posting, ...Posting[]]): Hold {
  const [{ transactionId: id, holdExpiresAt }] = postings;
  assert(holdExpiresAt !== null);
  const parts = postings.map(({ cycleId, period, held: amount, expiresAt: end }) => ({ cycleId, period, amount, end }));
  return { id, expiresAt: holdExpiresAt, parts };
}

export function capturing(
  held: Posting,
  spent = held.held,
  { at = held.createdAt, sequence = 100 }: When = {},
): Posting {
  return closing(held, -spent, entryAt('capture', at, sequence));
}

export function releasing(held: Posting, { at = held.createdAt, sequence = 100 }: When = {}): Posting {
  return closing(held, 0, entryAt('release', at, sequence));
}

export function lapsing(held: Posting): Posting {
  const [posting] = lapseOf(holdOf(held));
  assert(posting);
  return Object.freeze(posting);
}

function closing(held: Posting, amount: number, entry: Entry): Posting {
  // Turns -0 into 0.
  const change = { amount: amount || 0, held: -held.held };
  return Object.freeze(postingOn(held, change, { ...entry, reference: held.transactionId }));
}

export function refunding(spent: Posting, amount = -spent.amount, { at = spent.createdAt, sequence = 101 }: When = {}) {
  const entry = { ...entryAt('refund', at, sequence), reference: spent.transactionId };
  return Object.freeze(postingOn(spent, { amount, held: 0 }, entry));
}

export function reopening(spent: Posting, cycle: Cycle): Posting {
  return Object.freeze({ ...opening(cycle), kind: 'refund' as const, reference: spent.transactionId });
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

export function hold(amount: number, change: Partial<HoldCommand> = {}): HoldCommand {
  return { ...ADA, actor: ACTOR, kind: 'hold', amount, expiresInSeconds: 900, ...change };
}

export function capture(holdId: string, amount: number | null = null, change: Partial<Capture> = {}): Capture {
  return { ...ADA, actor: ACTOR, kind: 'capture', holdId, amount, ...change };
}

export function release(holdId: string, change: Partial<Release> = {}): Release {
  return { ...ADA, actor: ACTOR, kind: 'release', holdId, ...change };
}

export function refund(transactionId: string, amount: number | null = null, change: Partial<Refund> = {}): Refund {
  return { ...ADA, actor: ACTOR, kind: 'refund', transactionId, amount, validityDays: null, ...change };
}

export function settling(user = ADA): Settle {
  return { ...user, kind: 'settle' };
}

export interface StoredEndUser {
  readonly cycles: readonly Cycle[];
  readonly holds?: readonly Hold[];
  /** Oldest first. */
  readonly postings: readonly Posting[];
  readonly now: Instant;
}

export function findingsOf({ cycles, holds = [], postings, now }: StoredEndUser): Finding[] {
  const find = (id: string) => postings.filter(({ transactionId }) => transactionId === id);
  return [...audit({ user: ADA, cycles, holds, postings, find }, now)];
}

/**
 * The audit cannot check the amount of a posting if its period is no longer stored, or had already ended when the
 * posting was created. Only the hash chain covers such an amount.
 */
export function isAmountChecked(posting: Posting, { cycles, postings }: StoredEndUser): boolean {
  const { transactionId, kind, cycleId, period, createdAt, expiresAt, terms } = posting;
  if ((kind !== 'subtract' && kind !== 'capture' && kind !== 'refund') || terms !== null) return true;
  const hadEnded = expiresAt <= createdAt;
  if (!hadEnded) return cycles.some((cycle) => cycle.id === cycleId && cycle.period === period);
  // If the refund opened a new cycle, the amount of the new cycle shows how much was refunded to ended cycles.
  return postings.some((other) => other.transactionId === transactionId && other.terms !== null);
}

/** The audit cannot check a plan that was canceled before it began. */
export function isPlanChecked({ kind, transactionId: id }: Posting, { cycles, postings }: StoredEndUser): boolean {
  if (kind !== 'schedule-plan') return true;
  return (
    cycles.some(({ next }) => next?.id === id) ||
    postings.some((each) => each.kind === 'change-plan' && each.reference === id)
  );
}

/** Keeps all postings, but only the latest period of each cycle. */
export class MemoryLedger {
  now: Instant;
  cycles: readonly Cycle[] = [];
  holds: readonly Hold[] = [];
  readonly postings: Posting[] = [];
  #sequence = FIRST_SEQUENCE;

  constructor(now = NOW) {
    this.now = now;
  }

  get state(): EndUserState {
    const { cycles, holds } = liveState({ cycles: this.cycles, holds: this.holds }, this.now);
    return { ...stateOf(...cycles.toSorted((a, b) => a.start - b.start || (a.id < b.id ? -1 : 1))), holds };
  }

  find(id: string): Posting[] {
    return this.postings.filter(({ transactionId }) => transactionId === id);
  }

  accept(command: Command): Accepted {
    const outcome = this.run(command);
    assert(outcome.refused === null, `the command is accepted, not ${JSON.stringify(outcome)}`);
    return outcome;
  }

  transact(command: Command): string {
    const { transactionId } = this.accept(command);
    assert(transactionId !== null, 'the command creates a transaction');
    return transactionId;
  }

  run(command: Command): Outcome {
    const moment = momentAt(this.now, this.#sequence);
    const batch = batchOf([command]);
    const referenced = new Map(
      batch.references.map((reference) => {
        const refunds = this.postings.filter(
          (each) => each.kind === 'refund' && each.reference === reference.transaction,
        );
        return [referenceName(reference), { postings: this.find(reference.transaction), refunds }];
      }),
    );
    const loaded = { states: [this.state], records: NO_RECORDS, referenced };
    const { outcomes, changes } = decideBatch(batch, loaded, moment, EVENTS_MAX);
    for (const { before, after, postings } of changes) {
      this.holds = after.holds;
      const { opened, changed } = cycleChanges(before, after);
      const changedTo = new Map(changed.map((change) => [change.before.id, change.after]));
      this.cycles = this.cycles.map((cycle) => changedTo.get(cycle.id) ?? cycle).concat(opened);
      for (const posting of postings) this.postings.push(Object.freeze(posting));
    }
    // Replacing a cycle needs two transaction IDs: one for the stop and one for the start.
    this.#sequence += 2;
    assert(outcomes[0], 'every command of a history is decided');
    return outcomes[0];
  }
}
