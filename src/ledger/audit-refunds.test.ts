// Tests the audit rules for refunds, with valid and faulty handwritten ledgers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { by, type Found, findings, left, type Row } from '../../test/ledger/audit-cases.ts';
import {
  capturing,
  drawing,
  holding,
  holdOf,
  idAt,
  NOW,
  oneTime,
  opening,
  refunding,
  reopening,
} from '../../test/ledger/ledger-builders.ts';
import { DAY_MS } from './instant.ts';
import type { Posting } from './posting.ts';

const END = NOW + DAY_MS;
const BOUGHT = oneTime({ validityDays: 1 }, 3);
const ADDED = opening(BOUGHT);
const HELD = holding(BOUGHT, 10);
const SPENT = drawing(BOUGHT, 30, NOW, 20);

const REFUNDED = refunding(SPENT, 30, { at: END });
const REOPENED = oneTime({ start: END, amount: 30, validityDays: 7 }, 101);

const SOUND: readonly Row[] = [
  [
    'two refunds that together return all credits of a subtraction',
    {
      cycles: [BOUGHT],
      postings: [
        ADDED,
        SPENT,
        refunding(SPENT, 20, { at: NOW, sequence: 101 }),
        refunding(SPENT, 10, { at: NOW, sequence: 102 }),
      ],
      now: NOW,
    },
  ],
  [
    'a refund of a capture',
    {
      cycles: [BOUGHT],
      postings: [ADDED, HELD, capturing(HELD), refunding(capturing(HELD), 10)],
      now: NOW,
    },
  ],
  ['a refund to an ended cycle', { cycles: [left(BOUGHT, 70)], postings: [ADDED, SPENT, REFUNDED], now: END }],
  [
    'a refund that opens a new cycle for the credits of an ended one',
    { cycles: [left(BOUGHT, 70), REOPENED], postings: [ADDED, SPENT, REFUNDED, reopening(SPENT, REOPENED)], now: END },
  ],
];

const [TWO_THIRDS, HALF] = [refunding(SPENT, 20, { sequence: 101 }), refunding(SPENT, 15, { sequence: 102 })];
const TOO_LARGE = refunding(SPENT, 31);
const ENDED_TWICE = [
  refunding(SPENT, 20, { at: END, sequence: 101 }),
  refunding(SPENT, 11, { at: END, sequence: 102 }),
] as const;
const UNKNOWN = idAt(NOW, 5);
const BEFORE = refunding(SPENT, 30, { sequence: 15 });
const OTHER_END = { ...REFUNDED, expiresAt: END - 1 };
const OTHER_PERIOD = { ...REFUNDED, period: 1 };
const [MORE, ALONE] = [oneTime({ start: END, amount: 31, validityDays: 7 }, 101), reopening(SPENT, REOPENED)];

function refundsMore(refund: Posting, reference = SPENT.transactionId): Found {
  return [1, by(refund, `refunds more of transaction ${reference} to this period than can still be refunded`)];
}

const TOO_FULL = 'breaks the rule that the remaining credits of a cycle never exceed its amount';

const REFUNDS: readonly Row[] = [
  [
    'a refund of more than was spent',
    { cycles: [left(BOUGHT, 70)], postings: [ADDED, SPENT, TOO_LARGE], now: END },
    refundsMore(TOO_LARGE),
    [1, by(TOO_LARGE, TOO_FULL)],
  ],
  [
    'two refunds of a subtraction that together exceed the spent credits',
    { cycles: [left(BOUGHT, 90)], postings: [ADDED, SPENT, TWO_THIRDS, HALF], now: END },
    refundsMore(HALF),
    [1, by(HALF, TOO_FULL)],
  ],
  [
    'two refunds that together return more to an ended cycle than was spent from it',
    { cycles: [left(BOUGHT, 70)], postings: [ADDED, SPENT, ...ENDED_TWICE], now: END },
    refundsMore(ENDED_TWICE[1]),
  ],
  [
    'a refund of a transaction that does not exist',
    { cycles: [BOUGHT], postings: [ADDED, SPENT, { ...refunding(SPENT), reference: UNKNOWN }], now: NOW },
    refundsMore(refunding(SPENT), UNKNOWN),
  ],
  [
    'a refund of an addition',
    { cycles: [BOUGHT], postings: [ADDED, SPENT, { ...refunding(SPENT), reference: BOUGHT.id }], now: NOW },
    refundsMore(refunding(SPENT), BOUGHT.id),
  ],
  [
    'a refund of a hold',
    {
      cycles: [left(BOUGHT, 100, 10)],
      holds: [holdOf(HELD)],
      postings: [ADDED, SPENT, HELD, { ...refunding(SPENT), reference: HELD.transactionId }],
      now: NOW,
    },
    refundsMore(refunding(SPENT), HELD.transactionId),
  ],
  [
    'a refund of a later subtraction',
    { cycles: [left(BOUGHT, 70)], postings: [ADDED, BEFORE, SPENT], now: END },
    [4, by(BEFORE, `refunds transaction ${SPENT.transactionId}, which is later than the refund`)],
    [1, by(BEFORE, TOO_FULL)],
  ],
  [
    'a refund whose expiry differs from the end of the ended cycle',
    { cycles: [left(BOUGHT, 70)], postings: [ADDED, SPENT, OTHER_END], now: END },
    [4, by(OTHER_END, 'has an expiry that differs from the end of the refunded period')],
  ],
  [
    'a refund to another period of an ended cycle',
    { cycles: [left(BOUGHT, 70)], postings: [ADDED, SPENT, OTHER_PERIOD], now: END },
    refundsMore(OTHER_PERIOD),
  ],
  [
    'a refund that opens a cycle with more credits than it refunds to ended cycles',
    { cycles: [left(BOUGHT, 70), MORE], postings: [ADDED, SPENT, REFUNDED, reopening(SPENT, MORE)], now: END },
    [
      1,
      by(
        REFUNDED,
        'opens a cycle whose amount differs from the number of credits that the refund returns to ended cycles and periods',
      ),
    ],
  ],
  [
    'a refund that opens a cycle and refunds nothing to ended cycles',
    { cycles: [left(BOUGHT, 70), REOPENED], postings: [ADDED, SPENT, ALONE], now: END },
    [
      1,
      by(
        ALONE,
        'opens a cycle whose amount differs from the number of credits that the refund returns to ended cycles and periods',
      ),
    ],
  ],
  [
    'a refund without a reference',
    { cycles: [left(BOUGHT, 70)], postings: [ADDED, SPENT, { ...refunding(SPENT), reference: null }], now: END },
    [4, by(refunding(SPENT), 'breaks the rule that a refund names the transaction that it refunds')],
  ],
  [
    'a subtraction with a reference',
    { cycles: [left(BOUGHT, 70)], postings: [ADDED, { ...SPENT, reference: BOUGHT.id }], now: NOW },
    [4, by(SPENT, 'has the kind subtract, but refers to a transaction')],
  ],
];

for (const [what, stored] of SOUND) {
  test(`the audit finds nothing wrong with ${what}`, () => assert.deepEqual(findings(stored), []));
}

for (const [what, stored, ...found] of REFUNDS) {
  test(`the audit finds ${what} and reports what is wrong`, () => assert.deepEqual(findings(stored), found));
}
