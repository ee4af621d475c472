// Tests the audit rules for amounts, cycles, renewals and transactions, with valid and faulty handwritten ledgers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { by, findings, left, type Row } from '../../test/ledger/audit-cases.ts';
import { drawing, NOW, oneTime, opening, recurring, stopping } from '../../test/ledger/ledger-builders.ts';
import { AMOUNT_MAX } from './amount.ts';
import { type Cycle, periodAfter } from './cycle.ts';
import { DAY_MS } from './instant.ts';
import type { Posting } from './posting.ts';

const END = NOW + DAY_MS;
const [BOUGHT, GIFT] = [oneTime({ validityDays: 1 }, 3), oneTime({ amount: 5, validityDays: 1 }, 4)];
const DAILY = recurring({ validityDays: 1 }, 3);
const NEXT = periodAfter(DAILY, 1);
const [ADDED, GIVEN, STARTED, RENEWED] = [BOUGHT, GIFT, DAILY, NEXT].map(opening) as [
  Posting,
  Posting,
  Posting,
  Posting,
];
const CYCLE = `cycle ${BOUGHT.id}`;

function canceled(cycle: Cycle): Cycle {
  return { ...cycle, status: 'canceled' };
}

const FIRST_DRAW = drawing(BOUGHT, 10, NOW, 6);
const STOP = stopping(DAILY, NOW, 6);
const OTHER_START = opening(recurring({ validityDays: 1 }, 7));

const SOUND: readonly Row[] = [
  [
    'a subtraction a millisecond before the end of its cycle',
    { cycles: [left(BOUGHT, 90)], postings: [ADDED, drawing(BOUGHT, 10, END - 1)], now: END },
  ],
  [
    'a subtraction from several cycles, whatever the order of its postings',
    {
      cycles: [left(BOUGHT, 0), left(GIFT, 4)],
      postings: [ADDED, GIVEN, drawing(GIFT, 1, NOW, 6), drawing(BOUGHT, 100, NOW, 6)],
      now: NOW,
    },
  ],
  ['a renewed cycle, stored in its latest period', { cycles: [NEXT], postings: [STARTED, RENEWED], now: END }],
  [
    'a cycle with renewals that are due and not stored yet',
    { cycles: [DAILY], postings: [STARTED], now: END + DAY_MS },
  ],
  [
    'a renewal at the instant of an addition',
    {
      cycles: [NEXT, oneTime({ start: END })],
      postings: [STARTED, RENEWED, opening(oneTime({ start: END }))],
      now: END,
    },
  ],
  [
    'a canceled cycle that has ended without a renewal',
    {
      cycles: [canceled(DAILY), oneTime({ start: END })],
      postings: [STARTED, STOP, opening(oneTime({ start: END }))],
      now: END,
    },
  ],
];

const AMOUNTS: readonly Row[] = [
  [
    'a subtraction of more than the remaining credits',
    { cycles: [left(BOUGHT, 0)], postings: [ADDED, drawing(BOUGHT, 101, NOW)], now: END },
    [1, by(drawing(BOUGHT, 1, NOW), 'breaks the rule that a transaction spends or holds only spendable credits')],
    [1, `${CYCLE} is stored with remaining 0; its postings say 100`],
  ],
  [
    'a cycle with one credit less than the sum of its postings',
    { cycles: [left(BOUGHT, 89)], postings: [ADDED, FIRST_DRAW], now: NOW },
    [1, `${CYCLE} is stored with remaining 89; its postings say 90`],
    [2, 'the cycles that have not ended have 89 remaining credits, but their postings sum to 90'],
  ],
  [
    'an ended cycle with one credit less than the sum of its postings',
    { cycles: [left(BOUGHT, 89)], postings: [ADDED, FIRST_DRAW], now: END },
    [1, `${CYCLE} is stored with remaining 89; its postings say 90`],
  ],
  [
    'an addition of fewer credits than its cycle starts with',
    { cycles: [BOUGHT], postings: [{ ...ADDED, amount: 90 }], now: END },
    [1, by(ADDED, 'breaks the rule that a cycle opens with the credits of its plan and without held credits')],
    [1, `${CYCLE} has no posting that opens it`],
  ],
  [
    'a stop that moves credits',
    { cycles: [canceled(left(DAILY, 90))], postings: [STARTED, { ...STOP, amount: -10 }], now: END },
    [1, by(STOP, 'breaks the rule that stopping a cycle moves no credits')],
    [1, `${CYCLE} is stored with remaining 90; its postings say 100`],
    [3, `${CYCLE} is stored with status canceled; its postings say active`],
  ],
  [
    'a used-up cycle without a posting',
    { cycles: [left(BOUGHT, 0)], postings: [], now: NOW },
    [1, `${CYCLE} has no posting that opens it`],
  ],
  [
    'a cycle without a posting and with a wrong end',
    { cycles: [{ ...BOUGHT, remaining: 0, end: END + 1 }], postings: [], now: NOW },
    [4, `${CYCLE} breaks the rule that a cycle ends when its validity ends`],
    [1, `${CYCLE} has no posting that opens it`],
  ],
  [
    'an addition whose cycle is not stored',
    { cycles: [], postings: [ADDED], now: NOW },
    [1, `${CYCLE} is not stored`],
    [2, 'the cycles that have not ended have 0 remaining credits, but their postings sum to 100'],
  ],
];

const CYCLES: readonly Row[] = [
  [
    'a cycle that is stored twice',
    { cycles: [BOUGHT, BOUGHT], postings: [ADDED], now: END },
    [3, `${CYCLE} is stored twice`],
  ],
  [
    'a stop that did not cancel its cycle',
    { cycles: [DAILY], postings: [STARTED, STOP], now: NOW },
    [3, `${CYCLE} is stored with status active; its postings say canceled`],
  ],
  [
    'a canceled cycle that no posting stopped',
    { cycles: [canceled(DAILY)], postings: [STARTED], now: NOW },
    [3, `${CYCLE} is stored with status canceled; its postings say active`],
  ],
  [
    'a renewed cycle that is stored in its previous period',
    { cycles: [DAILY], postings: [STARTED, RENEWED], now: END + DAY_MS },
    [3, `${CYCLE} is stored with period 0; its postings say 1`],
    [4, `${CYCLE} is stored with start ${NOW}; its postings say ${END}`],
    [4, `${CYCLE} is stored with end ${END}; its postings say ${END + DAY_MS}`],
  ],
  [
    'two active cycles',
    { cycles: [DAILY, recurring({ validityDays: 1 }, 7)], postings: [STARTED, OTHER_START], now: END },
    [3, by(OTHER_START, 'breaks the rule that an end user has at most one active recurring cycle')],
    [1, `cycle ${OTHER_START.cycleId} has no posting that opens it`],
    [3, '2 recurring cycles are active at the same time'],
  ],
  [
    'a one-time cycle that is stored as recurring and with a different validity',
    {
      cycles: [{ ...BOUGHT, type: 'recurring', plan: { ...BOUGHT.plan, validityDays: 2 } }],
      postings: [ADDED],
      now: END,
    },
    [3, `${CYCLE} is stored with type recurring; its postings say one-time`],
    [4, `${CYCLE} is stored with the plan 100/2d; its postings say 100/1d`],
  ],
];

const EARLY = { ...opening(periodAfter(DAILY, 1)), createdAt: END - 1 };
const LATE_ADD = opening(oneTime({ start: END }, 8));
const AFTER_NEXT = opening(periodAfter(DAILY, 2));

const RENEWALS: readonly Row[] = [
  [
    'a renewal a millisecond early',
    { cycles: [DAILY], postings: [STARTED, EARLY], now: END + DAY_MS },
    [4, by(EARLY, 'has a time that differs from the time in its ID')],
    [3, by(EARLY, 'is a renewal that was not due')],
    [3, by(EARLY, 'breaks the rule that a period starts when the previous period ends')],
  ],
  [
    'a renewal that is missing before an addition',
    { cycles: [DAILY, oneTime({ start: END }, 8)], postings: [STARTED, LATE_ADD], now: END },
    [3, by(LATE_ADD, 'comes before a renewal that was already due')],
  ],
  [
    'a renewal that is stored after an addition at the same instant',
    { cycles: [NEXT, oneTime({ start: END }, 8)], postings: [STARTED, LATE_ADD, RENEWED], now: END },
    [3, by(LATE_ADD, 'comes before a renewal that was already due')],
    [4, by(RENEWED, 'is stored after a later transaction')],
  ],
  [
    'a renewal that skipped a period',
    { cycles: [DAILY], postings: [STARTED, AFTER_NEXT], now: END + 2 * DAY_MS },
    [3, by(AFTER_NEXT, 'is a renewal that was not due')],
    [3, by(AFTER_NEXT, 'breaks the rule that a period starts when the previous period ends')],
  ],
  [
    'a renewal that is stored twice',
    { cycles: [NEXT], postings: [STARTED, RENEWED, RENEWED], now: END + DAY_MS },
    [4, by(RENEWED, 'has two postings to the same period of a cycle')],
    [3, by(RENEWED, 'is a renewal that was not due')],
    [3, by(RENEWED, 'breaks the rule that a period starts when the previous period ends')],
  ],
  [
    'a renewal of a canceled cycle',
    { cycles: [canceled(DAILY)], postings: [STARTED, STOP, RENEWED], now: END + DAY_MS },
    [3, by(RENEWED, 'is a renewal that was not due')],
    [3, by(RENEWED, 'breaks the rule that only an active recurring cycle is renewed')],
  ],
  [
    'a renewal with an ID that is not derived from its cycle',
    { cycles: [NEXT], postings: [STARTED, { ...RENEWED, transactionId: LATE_ADD.transactionId }], now: END },
    [3, by(LATE_ADD, 'is a renewal that was not due')],
  ],
  [
    'a renewal with an API key as its actor',
    { cycles: [NEXT], postings: [STARTED, { ...RENEWED, actor: 'key:7' }], now: END },
    [4, by(RENEWED, 'has the kind renew, but the actor key:7')],
  ],
];

const AT_END = drawing(BOUGHT, 10, END);
const [MORE, AGAIN] = [drawing(BOUGHT, 6, NOW, 6), drawing(BOUGHT, 4, NOW, 6)];

const TRANSACTIONS: readonly Row[] = [
  [
    'a subtraction at the end of its cycle',
    { cycles: [BOUGHT], postings: [ADDED, AT_END], now: END },
    [4, by(AT_END, 'breaks the rule that a posting is made between the start and the end of its cycle')],
  ],
  [
    'a subtraction before the addition that it draws on',
    { cycles: [BOUGHT], postings: [drawing(BOUGHT, 10, NOW, 2), ADDED], now: END },
    [
      4,
      by(
        drawing(BOUGHT, 10, NOW, 2),
        'breaks the rule that a posting touches only a cycle that an earlier posting opened',
      ),
    ],
  ],
  [
    'an addition that expires later than its validity allows',
    { cycles: [BOUGHT], postings: [{ ...ADDED, expiresAt: END + 1 }], now: END + 1 },
    [4, by(ADDED, 'breaks the rule that a cycle starts when it is opened, and ends when its validity ends')],
    [1, `${CYCLE} has no posting that opens it`],
  ],
  [
    'an addition with a time that does not match its ID',
    {
      cycles: [BOUGHT],
      postings: [{ ...ADDED, createdAt: NOW + 1, expiresAt: END + 1 }],
      now: END + 1,
    },
    [4, by(ADDED, 'has a time that differs from the time in its ID')],
    [4, by(ADDED, 'breaks the rule that a cycle starts when it is opened, and ends when its validity ends')],
    [1, `${CYCLE} has no posting that opens it`],
  ],
  [
    'an addition in the future',
    { cycles: [BOUGHT], postings: [ADDED], now: NOW - 1 },
    [4, by(ADDED, 'is later than the clock of the ledger')],
  ],
  [
    'additions in the wrong order',
    { cycles: [BOUGHT, GIFT], postings: [GIVEN, ADDED], now: NOW },
    [4, by(ADDED, 'is stored after a later transaction')],
  ],
  [
    'an addition without an actor',
    { cycles: [BOUGHT], postings: [{ ...ADDED, actor: '' }], now: NOW },
    [4, by(ADDED, 'has no actor')],
  ],
  [
    'an addition whose actor is `renewal`',
    { cycles: [BOUGHT], postings: [{ ...ADDED, actor: 'renewal' }], now: NOW },
    [4, by(ADDED, 'has the kind add, but the actor renewal')],
  ],
  [
    'a transaction with two postings to the same cycle',
    { cycles: [left(BOUGHT, 90)], postings: [ADDED, MORE, AGAIN], now: NOW },
    [4, by(AGAIN, 'has two postings to the same period of a cycle')],
  ],
  [
    'a transaction with two notes',
    {
      cycles: [left(BOUGHT, 94), left(GIFT, 4)],
      postings: [ADDED, GIVEN, { ...MORE, note: 'for Ada' }, { ...drawing(GIFT, 1, NOW, 6), note: 'for Bob' }],
      now: NOW,
    },
    [4, by(MORE, 'has two notes')],
  ],
  [
    'a transaction with two actors',
    {
      cycles: [left(BOUGHT, 94), left(GIFT, 4)],
      postings: [ADDED, GIVEN, MORE, { ...drawing(GIFT, 1, NOW, 6), actor: 'key:8' }],
      now: NOW,
    },
    [4, by(MORE, 'has conflicting actors or kinds')],
  ],
  [
    'a transaction that stops one cycle and spends from another',
    {
      cycles: [canceled(DAILY), left(GIFT, 4)],
      postings: [STARTED, GIVEN, STOP, drawing(GIFT, 1, NOW, 6)],
      now: NOW,
    },
    [4, by(STOP, 'has conflicting actors or kinds')],
  ],
];

for (const [what, stored] of SOUND) {
  test(`the audit finds nothing wrong with ${what}`, () => assert.deepEqual(findings(stored), []));
}

for (const [what, stored, ...found] of [...AMOUNTS, ...CYCLES, ...RENEWALS, ...TRANSACTIONS]) {
  test(`the audit finds ${what} and reports what is wrong`, () => assert.deepEqual(findings(stored), found));
}

test('the audit finds a balance that is one credit over 2^53−1', () => {
  const [most, one] = [oneTime({ amount: AMOUNT_MAX, validityDays: 1 }, 2), oneTime({ amount: 1, validityDays: 1 }, 3)];
  assert.deepEqual(findings({ cycles: [most], postings: [opening(most)], now: NOW }), []);
  const both = { cycles: [most, one], postings: [opening(most), opening(one)], now: NOW };
  const message = 'the cycles that have not ended have 9007199254740992 remaining credits, more than 2^53−1';
  assert.deepEqual(findings(both), [[2, message]]);
  assert.deepEqual(findings({ ...both, now: END }), [], 'credits of ended cycles do not count');
});
