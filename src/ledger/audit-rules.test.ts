// The rules of the audit one by one, on ledgers made by hand: what each finds, in which words, and what it lets pass.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AMOUNT_MAX } from './amount.ts';
import { audit, type Finding } from './audit.ts';
import type { Cycle } from './cycle.ts';
import { DAY_MS } from './instant.ts';
import type { Posting } from './posting.ts';
import { renewalId, transactionId } from './transaction-id.ts';

interface Ledger {
  readonly cycles: readonly Cycle[];
  /** Latest first, as stores read them. */
  readonly postings: readonly Posting[];
  readonly now: number;
}

const START = Date.UTC(2026, 0, 15, 9, 30, 0, 123);
const USER = { account: 1, endUser: '5f0c6f7e-0000-4000-8000-000000000001' };

function findings({ cycles, postings, now }: Ledger): Finding[] {
  return [...audit(USER, cycles, postings, now)];
}

/** A one-time cycle of so many credits with the posting that opened it. */
function added(amount: number, sequence: number): { cycle: Cycle; posting: Posting } {
  const id = transactionId({ at: START, sequence, tail: 'aaaaaaaaaaaa' });
  const ends = START + DAY_MS;
  const cycle = { id, period: 0, amount, remaining: amount, start: START, end: ends, validityDays: 1 } as const;
  const posting = { transactionId: id, cycleId: id, period: 0, amount, createdAt: START, expiresAt: ends } as const;
  return {
    cycle: { ...cycle, type: 'one-time', status: 'active' },
    posting: { ...posting, kind: 'add', actor: 'key:7', note: null },
  };
}

/** A subtraction from the cycle of `added(100, 1)`. */
function subtracted(amount: number, at: number, sequence: number): Posting {
  const id = transactionId({ at, sequence, tail: 'aaaaaaaaaaaa' });
  return { ...added(100, 1).posting, transactionId: id, kind: 'subtract', amount: -amount, createdAt: at };
}

/** The period of a daily cycle with its opening; there is a start, and renewals. */
function daily(period: number, change: Partial<Cycle> = {}): { cycle: Cycle; posting: Posting } {
  const { cycle, posting } = added(100, 1);
  const [start, end] = [START + period * DAY_MS, START + (period + 1) * DAY_MS];
  const changed: Cycle = { ...cycle, type: 'recurring', period, start, end, ...change };
  const opening: Posting = { ...posting, period, amount: changed.amount, createdAt: start, expiresAt: end };
  return {
    cycle: changed,
    posting:
      period === 0
        ? { ...opening, kind: 'start-cycle' }
        : { ...opening, kind: 'renew', transactionId: renewalId(cycle.id, start), actor: 'renewal' },
  };
}

const END = START + DAY_MS;
const [FIRST, SECOND] = [added(100, 1), added(5, 2)];
const CYCLE = `cycle ${FIRST.cycle.id}`;
const [RENEWED, NEXT, SMALLER] = [daily(0, { status: 'renewed' }), daily(1), daily(1, { amount: 50, remaining: 50 })];

const OPENING = `transaction ${FIRST.posting.transactionId}`;
const STOP: Posting = { ...subtracted(0, START, 2), kind: 'stop-cycle', amount: 0 };

/** Ledgers made by hand, each with one fault, some of which no other rule notices; and their sound neighbours. Postings latest first. */
const BY_HAND: readonly (readonly [what: string, ledger: Ledger, found: readonly (readonly [number, string])[]])[] = [
  [
    'a subtraction a millisecond before the end of its cycle',
    {
      cycles: [{ ...FIRST.cycle, remaining: 90 }],
      postings: [subtracted(10, END - 1, 1), FIRST.posting],
      now: END,
    },
    [],
  ],
  [
    'a subtraction at the end of its cycle',
    { cycles: [{ ...FIRST.cycle, remaining: 90 }], postings: [subtracted(10, END, 1), FIRST.posting], now: END },
    [[4, `transaction ${subtracted(10, END, 1).transactionId} lies outside the time of its cycle`]],
  ],
  [
    'a subtraction before the addition that it draws on',
    { cycles: [{ ...FIRST.cycle, remaining: 90 }], postings: [FIRST.posting, subtracted(10, START, 0)], now: START },
    [
      [1, `transaction ${FIRST.posting.transactionId} left ${CYCLE} with -10 of 100 credits before it`],
      [1, `transaction ${subtracted(10, START, 0).transactionId} touches ${CYCLE} before it was started`],
    ],
  ],
  [
    'a subtraction a millisecond before its cycle began',
    {
      cycles: [{ ...FIRST.cycle, remaining: 90 }],
      postings: [FIRST.posting, subtracted(10, START - 1, 3)],
      now: START,
    },
    [
      [1, `transaction ${FIRST.posting.transactionId} left ${CYCLE} with -10 of 100 credits before it`],
      [4, `transaction ${subtracted(10, START - 1, 3).transactionId} lies outside the time of its cycle`],
      [1, `transaction ${subtracted(10, START - 1, 3).transactionId} touches ${CYCLE} before it was started`],
    ],
  ],
  [
    'a subtraction that gives',
    {
      cycles: [{ ...FIRST.cycle, remaining: 95 }],
      postings: [subtracted(-5, START, 3), subtracted(10, START, 2), FIRST.posting],
      now: START,
    },
    [[1, `transaction ${subtracted(-5, START, 3).transactionId} subtracts 5 credits`]],
  ],
  [
    'a subtraction of nothing',
    { cycles: [FIRST.cycle], postings: [{ ...subtracted(1, START, 3), amount: 0 }, FIRST.posting], now: START },
    [[1, `transaction ${subtracted(1, START, 3).transactionId} subtracts 0 credits`]],
  ],
  [
    'a transaction with two notes',
    {
      cycles: [
        { ...FIRST.cycle, remaining: 90 },
        { ...SECOND.cycle, remaining: SECOND.cycle.amount - 1 },
      ],
      postings: [
        { ...subtracted(1, START, 3), cycleId: SECOND.cycle.id, note: 'for Ada' },
        { ...subtracted(10, START, 3), note: 'for Bob' },
        SECOND.posting,
        FIRST.posting,
      ],
      now: START,
    },
    [[4, `transaction ${subtracted(10, START, 3).transactionId} has two notes`]],
  ],
  [
    'a transaction that touches a cycle twice',
    {
      cycles: [{ ...FIRST.cycle, remaining: 90 }],
      postings: [subtracted(6, START, 2), subtracted(4, START, 2), FIRST.posting],
      now: START,
    },
    [[4, `transaction ${subtracted(4, START, 2).transactionId} touches the same cycle twice`]],
  ],
  [
    'a stop that moves credits',
    {
      cycles: [daily(0, { status: 'canceled', remaining: 90 }).cycle],
      postings: [{ ...subtracted(10, START, 2), kind: 'stop-cycle' }, daily(0).posting],
      now: START,
    },
    [[1, `transaction ${subtracted(10, START, 2).transactionId} moves -10 credits by a stop`]],
  ],
  [
    'a transaction that stops one cycle and spends from another',
    {
      cycles: [
        { ...FIRST.cycle, remaining: 90 },
        { ...SECOND.cycle, type: 'recurring', status: 'canceled' },
      ],
      postings: [
        { ...subtracted(0, START, 3), kind: 'stop-cycle', amount: 0, cycleId: SECOND.cycle.id },
        subtracted(10, START, 3),
        { ...SECOND.posting, kind: 'start-cycle' },
        FIRST.posting,
      ],
      now: START,
    },
    [[4, `transaction ${subtracted(10, START, 3).transactionId} was done by two, or is of two kinds`]],
  ],
  [
    'an addition that time is said to have made',
    { cycles: [FIRST.cycle], postings: [{ ...FIRST.posting, actor: 'renewal' }], now: START },
    [[4, `transaction ${FIRST.posting.transactionId} is a add, and was done by renewal`]],
  ],
  [
    'a renewal that somebody is said to have made',
    {
      cycles: [RENEWED.cycle, NEXT.cycle],
      postings: [{ ...NEXT.posting, actor: 'key:7' }, RENEWED.posting],
      now: END,
    },
    [[4, `transaction ${NEXT.posting.transactionId} is a renew, and was done by key:7`]],
  ],
  [
    'a used-up cycle that nothing started',
    { cycles: [{ ...FIRST.cycle, remaining: 0 }], postings: [], now: START },
    [[1, `${CYCLE} has no posting that starts it`]],
  ],
  [
    'a live cycle with a credit less',
    { cycles: [{ ...FIRST.cycle, remaining: 89 }], postings: [subtracted(10, START, 2), FIRST.posting], now: START },
    [
      [1, `transaction ${FIRST.posting.transactionId} left ${CYCLE} with -1 of 100 credits before it`],
      [1, `${CYCLE} holds 89 credits, and its postings sum to 90`],
      [2, 'the active balance is 89, and its postings sum to 90'],
    ],
  ],
  [
    'an addition that its cycle does not start with',
    { cycles: [daily(0).cycle], postings: [{ ...daily(0).posting, kind: 'renew', actor: 'renewal' }], now: START },
    [
      [4, `transaction ${FIRST.posting.transactionId} is not the transaction that starts its cycle`],
      [3, `transaction ${FIRST.posting.transactionId} is a kind (renew) that does not start such a cycle`],
    ],
  ],
  [
    'an addition at another time than its own',
    { cycles: [FIRST.cycle], postings: [{ ...FIRST.posting, createdAt: START + 1 }], now: START + 1 },
    [
      [4, `transaction ${FIRST.posting.transactionId} happened at another time than its id says`],
      [4, `transaction ${FIRST.posting.transactionId} starts a cycle at another time than the cycle says`],
    ],
  ],
  [
    'two periods that abut',
    { cycles: [RENEWED.cycle, NEXT.cycle], postings: [NEXT.posting, RENEWED.posting], now: END },
    [],
  ],
  [
    'a period smaller than the one before',
    { cycles: [RENEWED.cycle, SMALLER.cycle], postings: [SMALLER.posting, RENEWED.posting], now: END },
    [[3, `${CYCLE} and its next period do not abut`]],
  ],
  [
    'a period without the one before',
    { cycles: [NEXT.cycle], postings: [NEXT.posting], now: END },
    [[3, `${CYCLE} (period 1) has no period before it`]],
  ],
  [
    'a cycle that is stored twice',
    { cycles: [FIRST.cycle, FIRST.cycle], postings: [FIRST.posting], now: START },
    [[3, `${CYCLE} is stored twice`]],
  ],
  [
    'a cycle that ends before its days are over',
    {
      cycles: [{ ...FIRST.cycle, validityDays: 2 }],
      postings: [FIRST.posting],
      now: START,
    },
    [[1, `${CYCLE} breaks the rule that a cycle ends its validity after its start`]],
  ],
  [
    'an addition that is still to come',
    { cycles: [FIRST.cycle], postings: [FIRST.posting], now: START - 1 },
    [[4, `${OPENING} is later than the clock of the ledger`]],
  ],
  [
    'an addition by nobody',
    { cycles: [FIRST.cycle], postings: [{ ...FIRST.posting, actor: '' }], now: START },
    [[4, `${OPENING} does not say who did it`]],
  ],
  [
    'a posting without its cycle',
    { cycles: [], postings: [FIRST.posting], now: START },
    [
      [4, `${OPENING} touches ${CYCLE}, which is not there`],
      [2, 'the active balance is 0, and its postings sum to 100'],
    ],
  ],
  [
    'an addition that ends later than its cycle',
    { cycles: [FIRST.cycle], postings: [{ ...FIRST.posting, expiresAt: END + 1 }], now: START },
    [[4, `${OPENING} expires at another time than its cycle ends`]],
  ],
  [
    'an addition of less than its cycle',
    { cycles: [FIRST.cycle], postings: [{ ...FIRST.posting, amount: 90 }], now: END },
    [
      [1, `${OPENING} starts a cycle of 100 credits with 90`],
      [1, `${CYCLE} holds 100 credits, and its postings sum to 90`],
    ],
  ],
  [
    'a subtraction after which as much is left as before',
    { cycles: [FIRST.cycle], postings: [subtracted(10, START, 2), FIRST.posting], now: END },
    [
      [1, `transaction ${subtracted(10, START, 2).transactionId} left ${CYCLE} with 110 of 100 credits before it`],
      [1, `${CYCLE} holds 100 credits, and its postings sum to 90`],
    ],
  ],
  [
    'additions in the wrong order',
    { cycles: [FIRST.cycle, SECOND.cycle], postings: [FIRST.posting, SECOND.posting], now: START },
    [[4, `transaction ${SECOND.posting.transactionId} is stored before an earlier one`]],
  ],
  [
    'a stop that did not cancel',
    { cycles: [daily(0).cycle], postings: [STOP, daily(0).posting], now: START },
    [[3, `${CYCLE} was stopped, and is not canceled`]],
  ],
  [
    'a canceled cycle that nobody stopped',
    { cycles: [daily(0, { status: 'canceled' }).cycle], postings: [daily(0).posting], now: START },
    [[3, `${CYCLE} is canceled, and nobody stopped it`]],
  ],
  [
    'a renewed cycle that did not go on',
    { cycles: [RENEWED.cycle], postings: [RENEWED.posting], now: END },
    [[3, `${CYCLE} is renewed, and has no next period`]],
  ],
  [
    'a canceled cycle that went on',
    {
      cycles: [daily(0, { status: 'canceled' }).cycle, NEXT.cycle],
      postings: [NEXT.posting, STOP, daily(0).posting],
      now: END,
    },
    [[3, `${CYCLE} has a next period, and is not renewed`]],
  ],
];

for (const [what, ledger, found] of BY_HAND) {
  test(`the audit finds ${found.length === 0 ? 'nothing wrong with ' : ''}${what}`, () => {
    const all = findings(ledger).map(({ invariant, message }) => [invariant, message]);
    assert.deepEqual(all, found);
  });
}

test('the audit finds an end user with more than 2^53−1 credits, however exactly they add up', () => {
  const [most, one] = [added(AMOUNT_MAX, 1), added(1, 2)];
  assert.deepEqual(findings({ cycles: [most.cycle], postings: [most.posting], now: START }), []);
  const both = { cycles: [most.cycle, one.cycle], postings: [one.posting, most.posting], now: START };
  assert.deepEqual(
    findings(both).map(({ invariant, message }) => [invariant, message]),
    [[2, 'the active balance is 9007199254740992, past 2^53−1']],
  );
  assert.deepEqual(findings({ ...both, now: START + DAY_MS }), [], 'what has ended is not held');
});

test('the audit finds two active cycles', () => {
  const [first, second] = [added(5, 1), added(6, 2)];
  const recurring = ({ cycle, posting }: ReturnType<typeof added>) => ({
    cycle: { ...cycle, type: 'recurring' as const },
    posting: { ...posting, kind: 'start-cycle' as const },
  });
  const [one, two] = [recurring(first), recurring(second)];
  assert.deepEqual(findings({ cycles: [one.cycle], postings: [one.posting], now: START }), []);
  assert.deepEqual(
    findings({ cycles: [one.cycle, two.cycle], postings: [two.posting, one.posting], now: START }).map(
      ({ invariant, message }) => [invariant, message],
    ),
    [[3, '2 recurring cycles are active at once']],
  );
});
