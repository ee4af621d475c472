// The invariants of the ledger, recomputed from its postings. `scrip verify` runs this over a whole store; the code
// below is the list.
//
//   1  The postings of a cycle sum to what remains in it, and 0 <= remaining <= amount.
//   2  The active balance is the sum over the cycles that have not ended, and equals the sum of their postings.
//   3  An end user has at most one active recurring cycle, and its periods abut.
//   4  Postings agree with their transaction and their cycle, and times never go backwards.

import { AMOUNT_MAX } from './amount.ts';
import type { EndUserKey } from './command.ts';
import { brokenRules, type Cycle, hasEnded } from './cycle.ts';
import { type Instant, isInstant } from './instant.ts';
import { type Posting, RENEWAL_ACTOR } from './posting.ts';
import { instantOf, renewalId } from './transaction-id.ts';

export interface Finding {
  readonly invariant: 1 | 2 | 3 | 4;
  readonly user: EndUserKey;
  /** What is wrong with what, as a sentence. */
  readonly message: string;
}

interface Tally {
  readonly cycle: Cycle;
  /** What the cycle held before the postings that were read so far. */
  held: number;
  isOpened: boolean;
  isStopped: boolean;
}

/**
 * Checks one end user.
 *
 * @param cycles all of them, the ended ones too, as stored
 * @param postings all of them, latest first; read once, never held
 * @param now the latest instant that the store has given out
 */
export function* audit(
  user: EndUserKey,
  cycles: readonly Cycle[],
  postings: Iterable<Posting>,
  now: Instant,
): Generator<Finding> {
  const found = (invariant: Finding['invariant'], message: string): Finding => ({ invariant, user, message });
  const tallies = new Map<string, Tally>();
  for (const cycle of cycles) {
    const key = keyOf(cycle.id, cycle.period);
    if (tallies.has(key)) yield found(3, `${nameOf(cycle)} is stored twice`);
    tallies.set(key, { cycle, held: cycle.remaining, isOpened: false, isStopped: false });
    for (const rule of brokenRules(cycle)) yield found(1, `${nameOf(cycle)} breaks the rule that ${rule}`);
  }
  let unexpired = 0n;
  let later: Posting | null = null;
  for (const posting of postings) {
    for (const [invariant, message] of faultsOf(posting, tallies, now))
      yield found(invariant, `transaction ${posting.transactionId} ${message}`);
    if (later !== null) {
      for (const message of faultsBeside(later, posting))
        yield found(4, `transaction ${posting.transactionId} ${message}`);
    }
    later = posting;
    if (posting.expiresAt > now) unexpired += BigInt(posting.amount);
  }
  let balance = 0n;
  for (const tally of tallies.values()) {
    for (const [invariant, message] of faultsOfCycle(tally, tallies))
      yield found(invariant, `${nameOf(tally.cycle)} ${message}`);
    if (!hasEnded(tally.cycle, now)) balance += BigInt(tally.cycle.remaining);
  }
  if (balance !== unexpired) yield found(2, `the active balance is ${balance}, and its postings sum to ${unexpired}`);
  if (balance > BigInt(AMOUNT_MAX)) yield found(2, `the active balance is ${balance}, past 2^53−1`);
  const active = cycles.filter((cycle) => cycle.type === 'recurring' && cycle.status === 'active');
  if (active.length > 1) yield found(3, `${active.length} recurring cycles are active at once`);
}

type Fault = readonly [invariant: Finding['invariant'], message: string];

/** Unlike that of any other cycle or period. Most cycles have one period, and need no text of their own. */
function keyOf(id: string, period: number): string {
  return period === 0 ? id : `${id} ${period}`;
}

function nameOf({ id, period }: { id: string; period: number }): string {
  return period === 0 ? `cycle ${id}` : `cycle ${id} (period ${period})`;
}

/** What must hold of two postings of which one comes right before the other: the order of time, and one hand to a transaction. */
function* faultsBeside(later: Posting, earlier: Posting): Generator<string> {
  if (earlier.transactionId > later.transactionId) yield 'is stored before an earlier one';
  if (earlier.transactionId !== later.transactionId) return;
  if (earlier.cycleId === later.cycleId && earlier.period === later.period) yield 'touches the same cycle twice';
  if (earlier.actor !== later.actor || earlier.kind !== later.kind) yield 'was done by two, or is of two kinds';
  if (earlier.note !== later.note) yield 'has two notes';
}

/** Checks a posting by itself and against its cycle, and takes it back from what the cycle held. */
function* faultsOf(posting: Posting, tallies: ReadonlyMap<string, Tally>, now: Instant): Generator<Fault> {
  const { createdAt, transactionId, actor, amount, kind } = posting;
  if (createdAt !== instantOf(transactionId)) yield [4, 'happened at another time than its id says'];
  if (createdAt > now) yield [4, 'is later than the clock of the ledger'];
  if (actor === '') yield [4, 'does not say who did it'];
  if ((actor === RENEWAL_ACTOR) !== (kind === 'renew')) yield [4, `is a ${kind}, and was done by ${actor}`];
  const tally = tallies.get(keyOf(posting.cycleId, posting.period));
  if (tally === undefined) {
    yield [4, `touches ${nameOf({ id: posting.cycleId, period: posting.period })}, which is not there`];
    return;
  }
  const { cycle } = tally;
  if (posting.expiresAt !== cycle.end) yield [4, 'expires at another time than its cycle ends'];
  if (createdAt < cycle.start || createdAt >= cycle.end) yield [4, 'lies outside the time of its cycle'];
  if (tally.isOpened) yield [1, `touches ${nameOf(cycle)} before it was started`];
  if (kind === 'subtract' && amount >= 0) yield [1, `subtracts ${amount} credits`];
  if (kind === 'stop-cycle' && amount !== 0) yield [1, `moves ${amount} credits by a stop`];
  tally.held -= amount;
  if (tally.held < 0 || tally.held > cycle.amount)
    yield [1, `left ${nameOf(cycle)} with ${tally.held} of ${cycle.amount} credits before it`];
  if (kind === 'stop-cycle') tally.isStopped = true;
  else if (kind !== 'subtract') yield* faultsOfOpening(posting, tally);
}

function* faultsOfOpening({ kind, amount, createdAt, transactionId }: Posting, tally: Tally): Generator<Fault> {
  const { cycle } = tally;
  tally.isOpened = true;
  if (amount !== cycle.amount) yield [1, `starts a cycle of ${cycle.amount} credits with ${amount}`];
  if (createdAt !== cycle.start) yield [4, 'starts a cycle at another time than the cycle says'];
  // A start that is no instant, which is reported of the cycle, is in no id.
  const expected = kind === 'renew' && isInstant(cycle.start) ? renewalId(cycle.id, cycle.start) : cycle.id;
  if (transactionId !== expected) yield [4, 'is not the transaction that starts its cycle'];
  if ((kind === 'renew') !== cycle.period > 0 || (kind === 'add') !== (cycle.type === 'one-time')) {
    yield [3, `is a kind (${kind}) that does not start such a cycle`];
  }
}

function* faultsOfCycle(
  { cycle, held, isOpened, isStopped }: Tally,
  tallies: ReadonlyMap<string, Tally>,
): Generator<Fault> {
  if (!isOpened) yield [1, 'has no posting that starts it'];
  if (held !== 0) yield [1, `holds ${cycle.remaining} credits, and its postings sum to ${cycle.remaining - held}`];
  const isCanceled = cycle.status === 'canceled';
  if (isStopped !== isCanceled)
    yield [3, isStopped ? 'was stopped, and is not canceled' : 'is canceled, and nobody stopped it'];
  const next = tallies.get(keyOf(cycle.id, cycle.period + 1))?.cycle;
  const isRenewed = cycle.status === 'renewed';
  if (isRenewed !== (next !== undefined))
    yield [3, isRenewed ? 'is renewed, and has no next period' : 'has a next period, and is not renewed'];
  if (next && (next.start !== cycle.end || next.amount !== cycle.amount)) yield [3, 'and its next period do not abut'];
  if (cycle.period > 0 && !tallies.has(keyOf(cycle.id, cycle.period - 1))) yield [3, 'has no period before it'];
}
