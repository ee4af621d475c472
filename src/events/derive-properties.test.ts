// Tests the events of random histories. The events must not depend on when they are derived or in how many calls, and
// their amounts must add up to the balance plus the held credits.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { effort } from '../../test/effort.ts';
import { ADA, type MemoryLedger } from '../../test/ledger/ledger-builders.ts';
import { histories } from '../../test/ledger/random-histories.ts';
import { REFERENCE_TYPES, type ReferenceEvent, referenceEvents } from '../../test/model/reference-events.ts';
import { atItsEnd } from '../ledger/balance.ts';
import { balanceAt } from '../ledger/history.ts';
import { heldBy } from '../ledger/hold.ts';
import { DAY_MS, type Instant } from '../ledger/instant.ts';
import { NEVER, nextEventAt } from '../ledger/next-event.ts';
import { isByTime, type Posting } from '../ledger/posting.ts';
import {
  type Derivation,
  type EventSettings,
  type EventState,
  type LedgerEvent,
  THRESHOLDS_MAX,
  type Threshold,
} from '../store/event-log.ts';
import { stateOfText, stateText } from '../store/state-text.ts';
import { wholeTransactions } from '../store/transaction-history.ts';
import { deriveEvents } from './derive.ts';

type Transaction = readonly Posting[];

const RUNS = effort(200, 1_000);

const thresholds: fc.Arbitrary<Threshold> = fc.oneof(
  fc.integer({ min: 1, max: 60 }).map((credits) => ({ credits })),
  fc.integer({ min: 1, max: 100 }).map((percent) => ({ percent })),
);
const settings: fc.Arbitrary<EventSettings> = fc.record({
  expiringDays: fc.integer({ min: 1, max: 5 }),
  thresholds: fc.uniqueArray(thresholds, { maxLength: THRESHOLDS_MAX, selector: (each) => JSON.stringify(each) }),
});
const later = fc.constantFrom(0, 1, DAY_MS, 3 * DAY_MS, 400 * DAY_MS);

function transactionsOf({ postings }: MemoryLedger): readonly Transaction[] {
  return [...wholeTransactions(postings, ({ transactionId }) => transactionId)];
}

function inOneGo({ postings }: MemoryLedger, until: Instant, settings: EventSettings): Derivation {
  return deriveEvents({ user: ADA, from: null, postings, until, settings });
}

class Steps {
  readonly events: LedgerEvent[] = [];
  readonly #settings: EventSettings;
  #from: EventState | null = null;
  latest: Derivation | null = null;

  constructor(settings: EventSettings) {
    this.#settings = settings;
  }

  derive(postings: readonly Posting[], until: Instant | null): Derivation {
    const latest = deriveEvents({ user: ADA, from: this.#from, postings, until, settings: this.#settings });
    this.events.push(...latest.events);
    this.#from = { ...latest.next, state: stateOfText(stateText(latest.next.state, latest.next.at)) };
    this.latest = latest;
    return latest;
  }
}

/**
 * The last instant before the next request; `end` if there are no more requests. Ignores renewals and lapses, because
 * they can be stored late.
 */
function quietUntil(coming: readonly Transaction[], end: Instant): Instant {
  const request = coming.find(([first]) => first !== undefined && !isByTime(first.kind));
  return request?.[0] === undefined ? end : request[0].createdAt - 1;
}

test('the events of random histories do not depend on when they are derived or in how many calls', () => {
  const places = fc.array(fc.tuple(fc.nat({ max: 3 }), fc.nat({ max: 5 }), fc.nat({ max: 99 })), {
    minLength: 60,
    maxLength: 60,
  });
  fc.assert(
    fc.property(histories, settings, later, places, (ledger, settings, after, choices) => {
      const end = ledger.now + after;
      const expected = inOneGo(ledger, end, settings);
      const steps = new Steps(settings);
      const transactions = transactionsOf(ledger);
      let open: Posting[] = [];
      for (const [index, transaction] of transactions.entries()) {
        open.push(...transaction);
        const [cut = 0, wait = 0, share = 0] = choices[index % choices.length] ?? [];
        if (cut === 0) continue;
        steps.derive(open, null);
        open = [];
        const latest = quietUntil(transactions.slice(index + 1), end);
        const { dueAt } = steps.latest as Derivation;
        const from = transaction[0]?.createdAt ?? 0;
        const some = from + Math.floor(((latest - from) * share) / 100);
        const untils = [[], [some], [latest], [dueAt ?? latest], [(dueAt ?? some) - 1, dueAt ?? some], [from, some]];
        for (const until of untils[wait] ?? []) steps.derive([], Math.min(until, latest));
      }
      steps.derive(open, end);
      assert.deepEqual(steps.events, expected.events);
      const ids = new Set(expected.events.map(({ id }) => id));
      assert.equal(ids.size, expected.events.length, 'IDs are unique');
      assert.deepEqual(steps.latest?.next, expected.next);
      assert.equal(steps.latest?.dueAt, expected.dueAt);
    }),
    { numRuns: RUNS },
  );
});

test('in random histories, the amounts of all events add up to the balance plus the held credits', () => {
  fc.assert(
    fc.property(histories, settings, (ledger, settings) => {
      const { events } = inOneGo(ledger, ledger.now, settings);
      const state = { cycles: ledger.cycles, holds: ledger.holds };
      const at = Math.min(ledger.now, nextEventAt(state) - 1);
      const held = ledger.holds.reduce((sum, hold) => sum + heldBy(hold), 0);
      const sum = events.reduce((total, event) => total + signed(event), 0);
      assert.equal(sum, balanceAt(state, at).balance + held);
      const last = events.at(-1);
      const hasNoHolds = ledger.postings.every(({ kind }) => kind !== 'hold');
      if (last !== undefined && hasNoHolds) assert.equal(last.data.balance, balanceAt(state, at).balance);
    }),
    { numRuns: RUNS },
  );
});

function signed({ type, data }: LedgerEvent): number {
  const amount = Number(data.amount);
  switch (type) {
    case 'credits.added':
    case 'credits.refunded':
    case 'cycle.started':
      return amount;
    case 'cycle.renewed':
      return amount - Number(data.rolled_over);
    case 'credits.subtracted':
    case 'credits.expired':
      return -amount;
    default:
      return 0;
  }
}

test('the `credits.expired` and `balance.*` events of random histories agree with a reference implementation', () => {
  let compared = 0;
  fc.assert(
    fc.property(histories, settings, later, (ledger, settings, after) => {
      const until = ledger.now + after;
      const expected = referenceEvents(ledger.postings, until, settings);
      const { events } = inOneGo(ledger, until, settings);
      assert.deepEqual(events.filter(({ type }) => REFERENCE_TYPES.includes(type)).map(comparable), expected);
      compared += expected.length;
    }),
    { numRuns: RUNS },
  );
  assert(compared > 5 * RUNS, `the histories have many events, not ${compared}`);
});

function comparable({ type, at, data }: LedgerEvent): ReferenceEvent {
  const { balance } = data;
  if (type === 'credits.expired')
    return { type, at, balance, amount: Number(data.amount), of: [String(data.cycle_id)] };
  const of = type === 'balance.low' ? [String(data.threshold)] : ((data.thresholds ?? []) as readonly string[]);
  return { type, at, balance, amount: Number(data.previous_balance), of };
}

test('no time-driven event happens before `dueAt`, and one happens at `dueAt` unless all credits roll over or are held', () => {
  let due = 0;
  fc.assert(
    fc.property(histories, settings, (ledger, settings) => {
      const steps = new Steps(settings);
      for (const transaction of transactionsOf(ledger)) {
        const { next, dueAt } = steps.derive(transaction, null);
        const wait = (until: Instant) => deriveEvents({ user: ADA, from: next, postings: [], until, settings });
        const blocked = nextEventAt(next.state);
        if (dueAt === null) {
          assert.deepEqual(wait(blocked === NEVER ? NEVER : blocked + 400 * DAY_MS).events, []);
          continue;
        }
        due += 1;
        assert(dueAt > next.at && dueAt < blocked);
        assert.deepEqual(wait(dueAt - 1).events, []);
        assert.equal(wait(dueAt - 1).dueAt, dueAt);
        const then = wait(dueAt);
        assert.notEqual(then.dueAt, dueAt);
        if (then.events.length === 0) assert.equal(isNothingLost(next, dueAt, settings), true);
        assert.deepEqual(
          then.events.filter(({ at }) => at !== dueAt),
          [],
        );
      }
    }),
    { numRuns: RUNS / 2 },
  );
  assert(due > RUNS, `events are often due, not ${due} times`);
});

/** Nothing happens if the credits of the cycle roll over, or are held beyond the end of the cycle. */
function isNothingLost({ state }: EventState, at: Instant, { expiringDays }: EventSettings): boolean {
  return state.cycles.some((cycle) => {
    const { end, remaining, held, plan } = atItsEnd(cycle, state.holds);
    const left = remaining - held;
    return (end === at && left === 0) || (end - expiringDays * DAY_MS === at && left <= plan.rolloverMax);
  });
}
