// Checks the invariants of one end user: folds all of its postings again, and compares the result with the stored
// cycles. `scrip verify` runs this for every end user.

import { AMOUNT_MAX } from './amount.ts';
import { apply } from './apply.ts';
import type { EndUserKey } from './command.ts';
import { brokenRules, type Cycle, hasEnded, isActiveRecurring, isLive } from './cycle.ts';
import type { Instant } from './instant.ts';
import { type Invariant, InvariantViolation } from './invariant.ts';
import { nextEvent } from './next-event.ts';
import { type Posting, RENEWAL_ACTOR } from './posting.ts';
import { EMPTY_STATE, type EndUserState } from './state.ts';
import { instantOf } from './transaction-id.ts';

export interface Finding {
  readonly invariant: Invariant;
  readonly user: EndUserKey;
  /** A sentence that says what is wrong. */
  readonly message: string;
}

type Fault = readonly [invariant: Invariant, message: string];

export interface AuditedEndUser {
  readonly user: EndUserKey;
  /** All stored cycles, including ended ones, each in its latest period. */
  readonly cycles: readonly Cycle[];
  /** All postings, oldest first. They are read once and not kept in memory. */
  readonly postings: Iterable<Posting>;
}

/** @param now the latest instant that the store has used */
export function* audit({ user, cycles, postings }: AuditedEndUser, now: Instant): Generator<Finding> {
  const stored = new Map<string, Cycle>();
  for (const cycle of cycles) {
    if (stored.has(cycle.id)) yield { invariant: 3, user, message: `cycle ${cycle.id} is stored twice` };
    stored.set(cycle.id, cycle);
  }
  const fold = new AuditFold(stored, now);
  for (const posting of postings) {
    for (const [invariant, message] of fold.add(posting)) yield { invariant, user, message };
  }
  for (const [invariant, message] of fold.end()) yield { invariant, user, message };
  for (const [invariant, message] of faultsOfBalance(cycles, fold.unexpired, now)) yield { invariant, user, message };
}

/**
 * The fold drops ended cycles when it has more cycles than this. Otherwise an end user with thousands of ended cycles
 * would be slow to check.
 */
const PRUNED_ABOVE = 32;

class AuditFold {
  /** The sum of the postings to cycles that have not ended. */
  unexpired = 0n;
  readonly #stored: Map<string, Cycle>;
  readonly #now: Instant;
  #state: EndUserState = EMPTY_STATE;
  #pruneAbove = PRUNED_ABOVE;
  #previous: Posting | null = null;

  constructor(stored: Map<string, Cycle>, now: Instant) {
    this.#stored = stored;
    this.#now = now;
  }

  *add(posting: Posting): Generator<Fault> {
    for (const [invariant, fault] of this.#faultsOf(posting))
      yield [invariant, `transaction ${posting.transactionId} ${fault}`];
    this.#previous = posting;
    if (posting.expiresAt > this.#now) this.unexpired += BigInt(posting.amount);
    try {
      this.#state = apply(this.#state, posting);
    } catch (error) {
      if (!(error instanceof InvariantViolation)) throw error;
      yield [error.invariant, `transaction ${posting.transactionId} breaks the rule that ${error.message}`];
    }
    if (this.#state.cycles.length > this.#pruneAbove) yield* this.#prune(posting.createdAt);
  }

  /** Cycles that are missing, differ from the postings, or should not be stored. */
  *end(): Generator<Fault> {
    yield* this.#compare(this.#state.cycles);
    for (const cycle of this.#stored.values()) {
      for (const [invariant, rule] of brokenRules(cycle))
        yield [invariant, `cycle ${cycle.id} breaks the rule that ${rule}`];
      yield [1, `cycle ${cycle.id} has no posting that opens it`];
    }
  }

  *#prune(at: Instant): Generator<Fault> {
    const { cycles } = this.#state;
    yield* this.#compare(cycles.filter((cycle) => !isLive(cycle, at)));
    this.#state = { cycles: cycles.filter((cycle) => isLive(cycle, at)) };
    this.#pruneAbove = 2 * this.#state.cycles.length + PRUNED_ABOVE;
  }

  *#compare(expected: readonly Cycle[]): Generator<Fault> {
    for (const cycle of expected) {
      const stored = this.#stored.get(cycle.id);
      this.#stored.delete(cycle.id);
      if (stored === undefined) yield [1, `cycle ${cycle.id} is not stored`];
      else yield* differences(cycle, stored);
    }
  }

  *#faultsOf(posting: Posting): Generator<Fault> {
    const { transactionId, createdAt, actor, kind } = posting;
    if (createdAt !== instantOf(transactionId)) yield [4, 'has a time that differs from the time in its id'];
    if (createdAt > this.#now) yield [4, 'is later than the clock of the ledger'];
    if (actor === '') yield [4, 'has no actor'];
    if ((actor === RENEWAL_ACTOR) !== (kind === 'renew')) yield [4, `has the kind ${kind}, but the actor ${actor}`];
    const previous = this.#previous;
    if (previous !== null && transactionId < previous.transactionId) yield [4, 'is stored after a later transaction'];
    if (previous?.transactionId === transactionId) yield* faultsWithin(previous, posting);
    const due = nextEvent(this.#state, createdAt);
    if (kind === 'renew' && !due?.some((event) => isSame(event, posting))) yield [3, 'is a renewal that was not due'];
    if (kind !== 'renew' && due !== null) yield [3, 'comes before a renewal that was already due'];
  }
}

/** Contradictions between two postings of one transaction. */
function* faultsWithin(a: Posting, b: Posting): Generator<Fault> {
  if (a.cycleId === b.cycleId && a.period === b.period) yield [4, 'touches the same cycle twice'];
  if (a.actor !== b.actor || a.kind !== b.kind) yield [4, 'has conflicting actors or kinds'];
  if (a.note !== b.note) yield [4, 'has two notes'];
}

function isSame(a: Posting, b: Posting): boolean {
  return a.transactionId === b.transactionId && a.cycleId === b.cycleId && a.period === b.period;
}

const FIELDS: readonly (readonly [field: keyof Cycle, invariant: Invariant])[] = [
  ['remaining', 1],
  ['amount', 1],
  ['period', 3],
  ['status', 3],
  ['type', 3],
  ['start', 4],
  ['end', 4],
  ['validityDays', 4],
];

function* differences(expected: Cycle, stored: Cycle): Generator<Fault> {
  for (const [field, invariant] of FIELDS) {
    if (stored[field] !== expected[field])
      yield [
        invariant,
        `cycle ${stored.id} is stored with ${field} ${stored[field]}; its postings say ${expected[field]}`,
      ];
  }
}

function* faultsOfBalance(cycles: readonly Cycle[], unexpired: bigint, now: Instant): Generator<Fault> {
  let balance = 0n;
  for (const cycle of cycles) if (!hasEnded(cycle, now)) balance += BigInt(cycle.remaining);
  if (balance !== unexpired) yield [2, `the active balance is ${balance}, but its postings sum to ${unexpired}`];
  if (balance > BigInt(AMOUNT_MAX)) yield [2, `the active balance is ${balance}, past 2^53−1`];
  const active = cycles.filter(isActiveRecurring);
  if (active.length > 1) yield [3, `${active.length} recurring cycles are active at once`];
}
