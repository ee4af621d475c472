// Checks the invariants of one end user: recomputes the cycles and holds from all postings, and compares them with the
// stored cycles and holds.

import { AMOUNT_MAX } from './amount.ts';
import { apply } from './apply.ts';
import type { EndUserKey } from './command.ts';
import { brokenRules, type Cycle, hasEnded, isActiveRecurring, isLive } from './cycle.ts';
import { type Refundable, refundableByPeriod } from './decide-refund.ts';
import { type Hold, lapseOrder } from './hold.ts';
import type { Instant } from './instant.ts';
import { type Invariant, InvariantViolation } from './invariant.ts';
import { nextEvent } from './next-event.ts';
import { planText, scheduledText } from './plan.ts';
import {
  type Actor,
  CHANGE_ACTOR,
  isByTime,
  LAPSE_ACTOR,
  type Posting,
  type PostingKind,
  periodName,
  RENEWAL_ACTOR,
} from './posting.ts';
import { EMPTY_STATE, type EndUserState } from './state.ts';
import { instantOf, type TransactionId } from './transaction-id.ts';

export interface Finding {
  readonly invariant: Invariant;
  readonly user: EndUserKey;
  readonly message: string;
}

type Fault = readonly [invariant: Invariant, message: string];

interface AuditedEndUser {
  readonly user: EndUserKey;
  /** All stored cycles, including ended ones, each in its latest period. */
  readonly cycles: readonly Cycle[];
  /** All stored holds, in the order in which they lapse. */
  readonly holds: readonly Hold[];
  /**
   * All postings, oldest first. The audit reads each posting only once. It keeps only refunds and the postings of the
   * current transaction in memory.
   */
  readonly postings: Iterable<Posting>;
  /** Returns the postings of a transaction; an empty array if the transaction does not exist. */
  readonly find: (id: TransactionId) => readonly Posting[];
}

/** @param now the time of the ledger's clock; a posting with a later time is a finding */
export function* audit(audited: AuditedEndUser, now: Instant): Generator<Finding> {
  const { user, cycles, holds, postings, find } = audited;
  const stored = new Map<string, Cycle>();
  for (const cycle of cycles) {
    if (stored.has(cycle.id)) yield { invariant: 3, user, message: `cycle ${cycle.id} is stored twice` };
    stored.set(cycle.id, cycle);
  }
  const fold = new AuditFold(stored, find, now);
  for (const posting of postings) {
    for (const [invariant, message] of fold.add(posting)) yield { invariant, user, message };
  }
  for (const [invariant, message] of fold.end(holds)) yield { invariant, user, message };
  for (const [invariant, message] of faultsOfBalance(cycles, fold.unexpired, now)) yield { invariant, user, message };
}

/**
 * The audit removes ended cycles from its state when the state has more cycles than this number. Otherwise, checking an
 * end user with thousands of ended cycles would be slow. After a removal, the limit is this number plus twice the
 * number of remaining cycles.
 */
const PRUNED_ABOVE = 32;

class AuditFold {
  /** The sum of the amounts of all postings to periods that have not ended at `#now`. */
  unexpired = 0n;
  readonly #stored: Map<string, Cycle>;
  readonly #now: Instant;
  readonly #find: AuditedEndUser['find'];
  /** What can still be refunded of each transaction with a refund, by `periodName`. */
  readonly #refundable = new Map<TransactionId, Map<string, Refundable>>();
  #state: EndUserState = EMPTY_STATE;
  #pruneAbove = PRUNED_ABOVE;
  #transaction: Posting[] = [];

  constructor(stored: Map<string, Cycle>, find: AuditedEndUser['find'], now: Instant) {
    this.#stored = stored;
    this.#find = find;
    this.#now = now;
  }

  *add(posting: Posting): Generator<Fault> {
    if (posting.transactionId !== this.#transaction[0]?.transactionId) yield* this.#captureFaults();
    for (const [invariant, fault] of this.#faultsOf(posting))
      yield [invariant, `transaction ${posting.transactionId} ${fault}`];
    this.#transaction.push(posting);
    if (posting.expiresAt > this.#now) this.unexpired += BigInt(posting.amount);
    try {
      this.#state = apply(this.#state, posting);
    } catch (error) {
      if (!(error instanceof InvariantViolation)) throw error;
      yield [error.invariant, `transaction ${posting.transactionId} breaks the rule that ${error.message}`];
    }
    if (this.#state.cycles.length > this.#pruneAbove) yield* this.#prune(posting.createdAt);
  }

  *end(holds: readonly Hold[]): Generator<Fault> {
    yield* this.#captureFaults();
    yield* this.#compare(this.#state.cycles);
    yield* holdDifferences(this.#state.holds, holds);
    for (const cycle of this.#stored.values()) {
      for (const [invariant, rule] of brokenRules(cycle))
        yield [invariant, `cycle ${cycle.id} breaks the rule that ${rule}`];
      yield [1, `cycle ${cycle.id} has no posting that opens it`];
    }
  }

  *#prune(at: Instant): Generator<Fault> {
    const { cycles } = this.#state;
    yield* this.#compare(cycles.filter((cycle) => !isLive(cycle, at)));
    this.#state = { cycles: cycles.filter((cycle) => isLive(cycle, at)), holds: this.#state.holds };
    this.#pruneAbove = 2 * this.#state.cycles.length + PRUNED_ABOVE;
  }

  *#compare(expected: readonly Cycle[]): Generator<Fault> {
    for (const cycle of expected) {
      const stored = this.#stored.get(cycle.id);
      this.#stored.delete(cycle.id);
      if (stored === undefined) yield [1, `cycle ${cycle.id} is not stored`];
      else yield* differences(cycle, stored, this.#now);
    }
  }

  *#faultsOf(posting: Posting): Generator<Fault> {
    const { transactionId, createdAt, actor, kind } = posting;
    if (createdAt !== instantOf(transactionId)) yield [4, 'has a time that differs from the time in its ID'];
    if (createdAt > this.#now) yield [4, 'is later than the clock of the ledger'];
    if (actor === '') yield [4, 'has no actor'];
    if (ACTORS.some((each) => (each.kind === kind) !== (each.actor === actor)))
      yield [4, `has the kind ${kind}, but the actor ${actor}`];
    const latestId = this.#transaction[0]?.transactionId;
    if (latestId !== undefined && transactionId < latestId) yield [4, 'is stored after a later transaction'];
    if (transactionId !== latestId) this.#transaction = [];
    yield* faultsWithin(this.#transaction, posting);
    const due = nextEvent(this.#state, createdAt);
    if (isByTime(kind) && !due?.some((event) => isSame(event, posting)))
      yield [3, `is a ${nounFor(kind)} that was not due`];
    if (!isByTime(kind) && due?.[0]) yield [3, `comes before a ${nounFor(due[0].kind)} that was already due`];
    if (posting.reference !== null && !REFERRING.has(kind))
      yield [4, `has the kind ${kind}, but refers to a transaction`];
    if (posting.holdExpiresAt !== null && kind !== 'hold') yield [4, `has the expiry of a hold, but the kind ${kind}`];
    if (kind === 'hold' && !this.#isRunning(posting)) yield [1, 'holds credits of a period that is not running'];
    if (kind === 'refund') yield* this.#refundFaults(posting);
  }

  /** A capture spends the held credits of at least one period. Call this after all postings of a transaction. */
  *#captureFaults(): Generator<Fault> {
    const [first] = this.#transaction;
    if (first?.kind === 'capture' && !this.#transaction.some(({ held, amount }) => held < 0 && amount < 0))
      yield [1, `transaction ${first.transactionId} captures no held credits`];
  }

  #isRunning({ cycleId, period, createdAt, expiresAt }: Posting): boolean {
    const cycle = this.#state.cycles.find(({ id }) => id === cycleId);
    return cycle?.period === period && cycle.end === expiresAt && expiresAt > createdAt;
  }

  *#refundFaults(posting: Posting): Generator<Fault> {
    const { reference } = posting;
    if (reference === null) return;
    const periods =
      this.#refundable.get(reference) ?? new Map(refundableByPeriod({ postings: this.#find(reference), refunds: [] }));
    this.#refundable.set(reference, periods);
    if (posting.terms === null) yield* refundFaults(periods, posting);
    else if (posting.amount !== expiredIn(this.#transaction))
      yield [
        1,
        'opens a cycle whose amount differs from the number of credits that the refund returns to ended cycles and periods',
      ];
  }
}

/** Only postings of these kinds can have a `reference`. `apply` checks that all of them have a `reference`. */
const REFERRING: ReadonlySet<PostingKind> = new Set(['capture', 'release', 'lapse', 'refund', 'change-plan']);

const ACTORS: readonly { readonly kind: PostingKind; readonly actor: Actor }[] = [
  { kind: 'renew', actor: RENEWAL_ACTOR },
  { kind: 'change-plan', actor: CHANGE_ACTOR },
  { kind: 'lapse', actor: LAPSE_ACTOR },
];

/** @param periods what could be refunded before `posting`; this function subtracts `posting` */
function* refundFaults(periods: Map<string, Refundable>, posting: Posting): Generator<Fault> {
  const { transactionId, reference, amount, expiresAt } = posting;
  if (reference !== null && reference > transactionId)
    yield [4, `refunds transaction ${reference}, which is later than the refund`];
  const spent = periods.get(periodName(posting));
  if ((spent?.amount ?? 0) < amount)
    yield [1, `refunds more of transaction ${reference} to this period than can still be refunded`];
  if (spent === undefined) return;
  if (spent.expiresAt !== expiresAt) yield [4, 'has an expiry that differs from the end of the refunded period'];
  periods.set(periodName(posting), { ...spent, amount: spent.amount - amount });
}

function expiredIn(refund: readonly Posting[]): number {
  return refund.reduce((sum, { amount, createdAt, expiresAt }) => (expiresAt <= createdAt ? sum + amount : sum), 0);
}

function* faultsWithin(before: readonly Posting[], posting: Posting): Generator<Fault> {
  const [first] = before;
  if (first === undefined) return;
  const { cycleId, period } = posting;
  if (before.some((each) => each.cycleId === cycleId && each.period === period))
    yield [4, 'has two postings to the same period of a cycle'];
  if (posting.actor !== first.actor || posting.kind !== first.kind) yield [4, 'has conflicting actors or kinds'];
  if (posting.note !== first.note) yield [4, 'has two notes'];
  if (posting.reference !== first.reference) yield [4, 'refers to two transactions'];
}

function nounFor(kind: PostingKind): string {
  return kind === 'renew' ? 'renewal' : kind === 'change-plan' ? 'change of plan' : kind;
}

function isSame(a: Posting, b: Posting): boolean {
  const isSameKind = a.kind === b.kind;
  return isSameKind && a.transactionId === b.transactionId && a.cycleId === b.cycleId && a.period === b.period;
}

const FIELDS: readonly (readonly [field: keyof Cycle, invariant: Invariant])[] = [
  ['remaining', 1],
  ['held', 1],
  ['amount', 1],
  ['period', 3],
  ['status', 3],
  ['type', 3],
  ['start', 4],
  ['end', 4],
];

/** Does not compare `held` if the cycle has ended at `now`, because stores do not update `held` in an ended cycle. */
function* differences(expected: Cycle, stored: Cycle, now: Instant): Generator<Fault> {
  for (const [field, invariant] of FIELDS) {
    if (field === 'held' && hasEnded(expected, now)) continue;
    if (stored[field] !== expected[field])
      yield [
        invariant,
        `cycle ${stored.id} is stored with ${field} ${stored[field]}; its postings say ${expected[field]}`,
      ];
  }
  for (const [what, has, said] of [
    ['plan', planText(stored.plan), planText(expected.plan)],
    ['scheduled plan', scheduledText(stored.next), scheduledText(expected.next)],
  ])
    if (has !== said) yield [4, `cycle ${stored.id} is stored with the ${what} ${has}; its postings say ${said}`];
}

/** @param expected the open holds according to the postings, in the order in which they lapse */
function* holdDifferences(expected: readonly Hold[], stored: readonly Hold[]): Generator<Fault> {
  const open = new Map(expected.map((hold) => [hold.id, hold]));
  for (const [index, hold] of stored.entries()) {
    const previous = stored[index - 1];
    if (previous !== undefined && lapseOrder(previous, hold) > 0)
      yield [1, `hold ${hold.id} is stored after a hold that lapses later`];
    const said = open.get(hold.id);
    open.delete(hold.id);
    if (said === undefined) yield [1, `hold ${hold.id} is stored as open, but is not open according to its postings`];
    else if (JSON.stringify(hold) !== JSON.stringify(said))
      yield [1, `hold ${hold.id} is stored as ${JSON.stringify(hold)}; its postings say ${JSON.stringify(said)}`];
  }
  for (const id of open.keys()) yield [1, `hold ${id} is open, but not stored`];
}

function* faultsOfBalance(cycles: readonly Cycle[], unexpired: bigint, now: Instant): Generator<Fault> {
  let remaining = 0n;
  for (const cycle of cycles) if (!hasEnded(cycle, now)) remaining += BigInt(cycle.remaining);
  const credits = `the cycles that have not ended have ${remaining} remaining credits`;
  if (remaining !== unexpired) yield [2, `${credits}, but their postings sum to ${unexpired}`];
  if (remaining > BigInt(AMOUNT_MAX)) yield [2, `${credits}, more than 2^53−1`];
  const active = cycles.filter(isActiveRecurring);
  if (active.length > 1) yield [3, `${active.length} recurring cycles are active at the same time`];
}
