// Tests how the audit checks rollover, scheduled plans and changes of plan.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findingsOf, idAt, NOW, settling, startCycle, stopCycle, subtract } from '../../test/ledger/ledger-builders.ts';
import { type History, holdFor, type Stored, type Writable, written } from '../../test/ledger/written-history.ts';
import type { StartCycle } from './command.ts';
import type { Cycle } from './cycle.ts';
import { DAY_MS } from './instant.ts';
import type { Plan } from './plan.ts';
import type { Posting, PostingKind } from './posting.ts';

function later(amount: number, change: Partial<StartCycle> = {}): StartCycle {
  return startCycle(amount, { validityDays: 2, onActive: 'at_period_end', ...change });
}

const HISTORY: History = [
  [0, startCycle(50, { validityDays: 1, rolloverMax: 20 })],
  [0.1, subtract(35)],
  [1, settling()],
  [1.1, later(60)],
  [1.2, later(70, { rolloverMax: 5 })],
  [2, settling()],
  [2.1, later(80, { validityDays: null, validityMonths: 1, rolloverMax: 3 })],
];

const WRITTEN = written(HISTORY);

function one(kind: PostingKind, place = 0): Posting {
  const posting = WRITTEN.postings.filter((each) => each.kind === kind).at(place);
  assert(posting);
  return posting;
}

const [RENEWAL, REPLACED, USED, CHANGE, OPEN] = [
  one('renew'),
  one('schedule-plan', 0),
  one('schedule-plan', 1),
  one('change-plan'),
  one('schedule-plan', 2),
];
const [OLD, NEW] = [CHANGE, RENEWAL].map(({ cycleId }) => cycleId).reverse() as [string, string];

test('the audit finds nothing wrong with rollover, scheduled plans and changes of plan, whether it runs at the end of a history or later', () => {
  for (const days of [0, 1, 2, 30, 31, 400])
    assert.deepEqual(findingsOf({ ...WRITTEN, now: WRITTEN.now + days * DAY_MS }), []);
  assert.deepEqual([RENEWAL.amount, CHANGE.amount, CHANGE.reference], [65, 70, USED.transactionId]);
  assert.deepEqual(
    WRITTEN.cycles.map(({ status, next }) => [status, next?.id]),
    [
      ['superseded', undefined],
      ['active', OPEN.transactionId],
    ],
  );
});

test('the audit finds nothing wrong with a scheduled plan that was canceled because the active cycle was stopped or replaced', () => {
  for (const last of [stopCycle(), startCycle(9, { onActive: 'replace' })]) {
    const stored = written([...HISTORY, [2.2, last]]);
    for (const days of [0, 9]) assert.deepEqual(findingsOf({ ...stored, now: stored.now + days * DAY_MS }), []);
  }
});

type Row = readonly [what: string, posting: Posting, change: Partial<Posting>, invariant: number, said: string];

function planned(posting: Posting, change: Partial<Plan>): Partial<Posting> {
  const { terms } = posting;
  assert(terms);
  return { terms: { ...terms, plan: { ...terms.plan, ...change } } };
}

const KEEPS = 'breaks the rule that a renewal keeps the plan of the cycle';
const GRANTS = 'breaks the rule that a renewal grants the credits of the plan and the unused credits that roll over';
const NEXT_PERIOD = 'breaks the rule that a renewal opens the next period of the same cycle';
const MOVES = 'breaks the rule that scheduling a plan moves no credits';
const SCHEDULED = 'breaks the rule that a change of plan starts the plan that was scheduled last';
const OPENS = 'breaks the rule that a cycle opens with the credits of its plan and without held credits';
const TERMS = 'breaks the rule that a scheduled plan has terms';
const VALID = 'breaks the rule that a cycle is valid for a whole number of days or months';
const TOGETHER = 'breaks the rule that the credits of a plan plus the credits that can roll over are at most 2^53−1';
const NOT_DUE = 'is a change of plan that was not due';
const TIMED = 'has a time that differs from the time in its ID';

const ROWS: readonly Row[] = [
  ['a renewal rolls over one credit too many', RENEWAL, { amount: 66 }, 1, GRANTS],
  ['a renewal rolls over one credit too few', RENEWAL, { amount: 64 }, 1, GRANTS],
  ['a renewal rolls over nothing', RENEWAL, { amount: 50 }, 1, GRANTS],
  ['a renewal rolls over the maximum instead of the unused credits', RENEWAL, { amount: 70 }, 1, GRANTS],
  ['a renewal holds a credit', RENEWAL, { held: 1 }, 3, NEXT_PERIOD],
  ['a renewal has a plan with another rollover', RENEWAL, planned(RENEWAL, { rolloverMax: 19 }), 3, KEEPS],
  ['a renewal has a plan with other credits', RENEWAL, planned(RENEWAL, { amount: 51 }), 3, KEEPS],
  ['a renewal has a plan in months', RENEWAL, planned(RENEWAL, { validityDays: null, validityMonths: 1 }), 3, KEEPS],
  ['a renewal refers to a transaction', RENEWAL, { reference: OLD }, 4, 'has the kind renew, but refers to a'],
  ['a renewal has the actor `change`', RENEWAL, { actor: 'change' }, 4, 'has the kind renew, but the actor change'],
  [
    'a renewal is stored as a change of plan',
    RENEWAL,
    { kind: 'change-plan', actor: 'change', reference: OLD },
    3,
    SCHEDULED,
  ],
  ['a scheduled plan grants a credit', USED, { amount: 1 }, 1, MOVES],
  ['a scheduled plan spends a credit', USED, { amount: -1 }, 1, MOVES],
  ['a scheduled plan holds a credit', USED, { held: 1 }, 1, MOVES],
  ['a scheduled plan has no terms', USED, { terms: null }, 4, TERMS],
  ['a scheduled plan is one-time', USED, { terms: { type: 'one-time', plan: USED.terms?.plan as Plan } }, 4, TERMS],
  ['a scheduled plan is valid for 0 days', USED, planned(USED, { validityDays: 0 }), 4, VALID],
  [
    'a scheduled plan is valid for 121 months',
    USED,
    planned(USED, { validityDays: null, validityMonths: 121 }),
    4,
    VALID,
  ],
  [
    'the credits and rollover of a scheduled plan together exceed 2^53−1',
    USED,
    planned(USED, { rolloverMax: 2 ** 53 - 1 }),
    1,
    TOGETHER,
  ],
  [
    'a scheduled plan refers to a transaction',
    USED,
    { reference: OLD },
    4,
    'has the kind schedule-plan, but refers to a',
  ],
  [
    'a scheduled plan has the actor `change`',
    USED,
    { actor: 'change' },
    4,
    'has the kind schedule-plan, but the actor',
  ],
  ['a scheduled plan has no actor', USED, { actor: '' }, 4, 'has no actor'],
  [
    'a scheduled plan has the expiry of a hold',
    USED,
    { holdExpiresAt: USED.expiresAt },
    4,
    'has the expiry of a hold, but the kind',
  ],
  ['a plan is scheduled in the previous period', USED, { period: 0 }, 4, 'touches the current period of its cycle'],
  ['a plan is scheduled to follow a cycle that does not exist', USED, { cycleId: idAt(0) }, 4, 'earlier posting'],
  ['a plan is scheduled at another time', USED, { createdAt: USED.createdAt + 1 }, 4, TIMED],
  [
    'a scheduled plan expires later than its period',
    USED,
    { expiresAt: USED.expiresAt + 1 },
    4,
    'the expiry of a posting',
  ],
  [
    'a scheduled plan is stored as a cycle start',
    USED,
    { kind: 'start-cycle' },
    3,
    'at most one active recurring cycle',
  ],
  ['a change of plan grants one credit too many', CHANGE, { amount: 71 }, 1, OPENS],
  ['a change of plan grants one credit too few', CHANGE, { amount: 69 }, 1, OPENS],
  ['a change of plan holds a credit', CHANGE, { held: 1 }, 1, OPENS],
  [
    'a change of plan starts a plan with other credits',
    CHANGE,
    { amount: 71, ...planned(CHANGE, { amount: 71 }) },
    3,
    SCHEDULED,
  ],
  ['a change of plan has another rollover', CHANGE, planned(CHANGE, { rolloverMax: 6 }), 3, SCHEDULED],
  ['a change of plan has another validity', CHANGE, planned(CHANGE, { validityDays: 3 }), 3, SCHEDULED],
  ['a change of plan has no terms', CHANGE, { terms: null }, 3, SCHEDULED],
  ['a change of plan has no reference', CHANGE, { reference: null }, 3, SCHEDULED],
  [
    'a change of plan refers to the plan that was replaced',
    CHANGE,
    { reference: REPLACED.transactionId },
    3,
    SCHEDULED,
  ],
  ['a change of plan refers to itself', CHANGE, { reference: CHANGE.transactionId }, 3, SCHEDULED],
  ['a change of plan has the actor `renewal`', CHANGE, { actor: 'renewal' }, 4, 'has the kind change-plan, but the'],
  ['a change of plan has an API key as its actor', CHANGE, { actor: 'key:7' }, 4, 'has the kind change-plan, but the'],
  ['a change of plan is a millisecond late', CHANGE, { createdAt: CHANGE.createdAt + 1 }, 4, TIMED],
  [
    'a change of plan expires a millisecond late',
    CHANGE,
    { expiresAt: CHANGE.expiresAt + 1 },
    4,
    'a cycle starts when',
  ],
  ['a change of plan opens a second period', CHANGE, { period: 1 }, 3, NOT_DUE],
  ['a change of plan has a different ID', CHANGE, { transactionId: otherTail(NEW) }, 3, NOT_DUE],
  ['a change of plan opens a cycle with a different ID', CHANGE, { cycleId: otherTail(NEW) }, 3, NOT_DUE],
  ['a change of plan continues the old cycle', CHANGE, { cycleId: OLD }, 3, NOT_DUE],
  [
    'a change of plan is stored as a renewal',
    CHANGE,
    { kind: 'renew', actor: 'renewal' },
    3,
    'is a renewal that was not',
  ],
  [
    'a change of plan is stored as a cycle start',
    CHANGE,
    { kind: 'start-cycle', actor: 'key:7' },
    3,
    'comes before a change of',
  ],
];

function otherTail(id: string): string {
  return `${id.slice(0, 24)}cccccccccccc`;
}

for (const [what, posting, change, invariant, said] of ROWS) {
  test(`the audit finds that ${what}`, () => {
    const place = WRITTEN.postings.findIndex((each) => each.transactionId === posting.transactionId);
    const changed = { ...posting, ...change };
    const found = findingsOf({ ...WRITTEN, postings: WRITTEN.postings.with(place, changed) });
    const about = found.filter(({ message }) => message.startsWith(`transaction ${changed.transactionId} `));
    assert(
      about.some((each) => each.invariant === invariant && each.message.includes(said)),
      JSON.stringify(
        found.map((each) => `${each.invariant} ${each.message}`),
        null,
        2,
      ),
    );
  });
}

test('the audit finds an error in a scheduled plan only if the plan has begun or is still scheduled', () => {
  const change = planned(REPLACED, { amount: 61 });
  const at = (posting: Posting) => WRITTEN.postings.findIndex((each) => each.transactionId === posting.transactionId);
  const find = (posting: Posting, changed: Partial<Posting>) =>
    findingsOf({ ...WRITTEN, postings: WRITTEN.postings.with(at(posting), { ...posting, ...changed }) });
  assert.deepEqual(find(REPLACED, change), [], 'only the hash chain covers a plan that never began');
  assert.match(find(USED, planned(USED, { amount: 71 }))[0]?.message ?? '', /change of plan starts the plan that was/);
  assert.deepEqual(
    find(OPEN, planned(OPEN, { amount: 81 })).map(({ message }) => message),
    [
      `cycle ${NEW} is stored with the scheduled plan ${OPEN.transactionId}/80/1m/3; its postings say ${OPEN.transactionId}/81/1m/3`,
    ],
  );
});

const STORED: readonly (readonly [what: string, change: (cycle: Cycle) => Partial<Cycle>, said: string])[] = [
  ['is missing', () => ({ next: null }), 'is stored with the scheduled plan null'],
  [
    'names another transaction',
    ({ next }) => ({ next: next && { ...next, id: USED.transactionId } }),
    'scheduled plan',
  ],
  [
    'has other credits',
    ({ next }) => ({ next: next && { ...next, plan: { ...next.plan, amount: 79 } } }),
    'scheduled plan',
  ],
  [
    'has another rollover',
    ({ next }) => ({ next: next && { ...next, plan: { ...next.plan, rolloverMax: 0 } } }),
    'scheduled plan',
  ],
  ['belongs to a canceled cycle', () => ({ status: 'canceled' }), 'is stored with status canceled'],
];

for (const [what, change, said] of STORED) {
  test(`the audit finds that the scheduled plan of a stored cycle ${what}`, () => {
    const cycles = WRITTEN.cycles.map((cycle) => (cycle.id === NEW ? { ...cycle, ...change(cycle) } : cycle));
    const messages = findingsOf({ ...WRITTEN, cycles }).map(({ message }) => message);
    assert(
      messages.some((message) => message.startsWith(`cycle ${NEW} `) && message.includes(said)),
      messages.join('\n'),
    );
  });
}

function edited(edit: (postings: Writable<Posting>[]) => void, history = HISTORY): Stored {
  const stored = written(history);
  edit(stored.postings);
  return stored;
}

function messagesOf(stored: Stored): string {
  return findingsOf(stored)
    .map(({ message }) => message)
    .join('\n');
}

function without(kind: PostingKind, last = true) {
  return (postings: Writable<Posting>[]) => {
    const find = ({ kind: each }: Posting) => each === kind;
    postings.splice(last ? postings.findLastIndex(find) : postings.findIndex(find), 1);
  };
}

test('the audit finds that a change of plan is missing or was replaced with a renewal', () => {
  assert.match(messagesOf(edited(without('change-plan'))), /comes before a change of plan that was already due/);
  const renewed = edited((postings) => {
    const place = postings.findIndex(({ kind }) => kind === 'change-plan');
    const { terms } = RENEWAL;
    const id = RENEWAL.cycleId;
    const transactionId = `${CHANGE.transactionId.slice(0, 24)}${id.slice(24)}`;
    const expiresAt = CHANGE.createdAt + DAY_MS;
    Object.assign(postings[place] as Posting, { ...RENEWAL, transactionId, period: 2, amount: 70, terms, expiresAt });
    Object.assign(postings[place] as Posting, { createdAt: CHANGE.createdAt });
  });
  assert.match(messagesOf(renewed), /is a renewal that was not due/);
  assert.match(messagesOf(renewed), /a cycle is not renewed if another plan is scheduled/);
});

test('the audit finds that the posting of a scheduled plan is missing', () => {
  const stored = edited((postings) =>
    postings.splice(
      postings.findIndex((each) => each.transactionId === USED.transactionId),
      1,
    ),
  );
  assert.match(messagesOf(stored), /is a change of plan that was not due/);
  assert.match(messagesOf(stored), /a change of plan starts the plan that was scheduled last/);
  assert.match(
    messagesOf(edited(without('schedule-plan'))),
    /is stored with the scheduled plan .*; its postings say null/,
  );
});

test('the audit finds a plan that was scheduled to follow a canceled cycle', () => {
  const stored = edited(
    (postings) => {
      const stop = postings.findIndex(({ kind }) => kind === 'stop-cycle');
      const [stopping] = postings.splice(stop, 1) as [Posting];
      const [scheduling] = postings.slice(-1) as [Posting];
      const { transactionId, createdAt } = stopping;
      postings.splice(-1, 1, { ...stopping, transactionId: scheduling.transactionId, createdAt: scheduling.createdAt });
      postings.push({ ...scheduling, transactionId, createdAt });
    },
    [
      [0, startCycle(50, { validityDays: 1 })],
      [0.1, later(60)],
      [0.2, stopCycle()],
    ],
  );
  assert.match(messagesOf(stored), /only a cycle that renews can have a scheduled plan/);
});

test('the audit finds a change of plan after a stop that canceled the scheduled plan', () => {
  const stored = edited(
    (postings) => {
      const place = postings.findIndex(({ kind }) => kind === 'change-plan');
      const [, , scheduling] = postings as Posting[];
      assert(scheduling);
      const stop: Posting = {
        ...scheduling,
        kind: 'stop-cycle',
        terms: null,
        transactionId: idAt(NOW + 0.3 * DAY_MS, 99),
      };
      postings.splice(place, 0, { ...stop, createdAt: NOW + 0.3 * DAY_MS });
    },
    [
      [0, startCycle(50, { validityDays: 1 })],
      [0.1, subtract(1)],
      [0.2, later(60)],
      [1, settling()],
    ],
  );
  assert.match(messagesOf(stored), /is a change of plan that was not due/);
});

test('the audit accepts a rollover of credits whose hold had lapsed, and finds a rollover of credits that were still held', () => {
  const start: History = [[0, startCycle(50, { validityDays: 1, rolloverMax: 50 })]];
  const lapsed = written([...start, [0.1, holdFor(10, 0.5)], [1, settling()]]);
  const open = written([...start, [0.1, holdFor(10, 1)], [1, settling()]]);
  for (const [stored, amount] of [
    [lapsed, 100],
    [open, 90],
  ] as const) {
    assert.deepEqual(findingsOf(stored), []);
    const renewal = stored.postings.find(({ kind }) => kind === 'renew') as Writable<Posting>;
    assert.equal(renewal.amount, amount);
    renewal.amount = 190 - amount;
    assert.match(messagesOf(stored), /a renewal grants the credits of the plan and the unused credits that roll over/);
  }
});
