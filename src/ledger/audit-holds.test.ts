// Tests the audit rules for holds, with valid and faulty handwritten ledgers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { by, type Found, findings, left, type Row } from '../../test/ledger/audit-cases.ts';
import {
  capturing,
  dayCycles,
  drawing,
  holding,
  holdOf,
  idAt,
  lapsing,
  NOW,
  oneTime,
  opening,
  recurring,
  releasing,
} from '../../test/ledger/ledger-builders.ts';
import { type Cycle, periodAfter } from './cycle.ts';
import type { Hold } from './hold.ts';
import { DAY_MS } from './instant.ts';
import { lapseOf } from './next-event.ts';
import type { Posting } from './posting.ts';

const END = NOW + DAY_MS;
const LAPSE = NOW + 60_000;
const [BOUGHT, GIFT] = [oneTime({ validityDays: 1 }, 3), oneTime({ amount: 5, validityDays: 2 }, 4)];
const DAILY = recurring({ validityDays: 1 }, 3);
const [ADDED, GIVEN, STARTED] = [BOUGHT, GIFT, DAILY].map(opening) as [Posting, Posting, Posting];
const CYCLE = `cycle ${BOUGHT.id}`;

const HELD = holding(BOUGHT, 10, { until: LAPSE });
const KEPT = holding(BOUGHT, 10, { until: END + DAY_MS });

function stillOpen({ transactionId }: Posting): Found {
  return [1, `hold ${transactionId} is open, but not stored`];
}

const TWINS = [98, 99].map((sequence) => holding(BOUGHT, 10, { sequence, until: LAPSE })) as [Posting, Posting];
const BOTH = [HELD, holding(GIFT, 5, { until: LAPSE })] as const;
const NEXT = periodAfter(DAILY, 1);
const DAILY_HELD = holding(DAILY, 10, { until: END });
const BEYOND = { ...drawing(GIFT, 2, END, 100), kind: 'capture', reference: KEPT.transactionId } as const;

const SOUND: readonly Row[] = [
  ['an open hold', { cycles: [left(BOUGHT, 100, 10)], holds: [holdOf(HELD)], postings: [ADDED, HELD], now: LAPSE - 1 }],
  [
    'a lapse that is due and not stored yet',
    { cycles: [left(BOUGHT, 100, 10)], holds: [holdOf(HELD)], postings: [ADDED, HELD], now: END + DAY_MS },
  ],
  [
    'two holds that lapse at the same instant',
    {
      cycles: [left(BOUGHT, 100, 20)],
      holds: TWINS.map((each) => holdOf(each)),
      postings: [ADDED, ...TWINS],
      now: NOW,
    },
  ],
  [
    'a hold on credits of a cycle that ends in a millisecond',
    {
      cycles: [left(BOUGHT, 100, 10)],
      holds: [holdOf(holding(BOUGHT, 10, { at: END - 1 }))],
      postings: [ADDED, holding(BOUGHT, 10, { at: END - 1 })],
      now: END,
    },
  ],
  [
    'a captured hold',
    { cycles: [left(BOUGHT, 96)], postings: [ADDED, HELD, capturing(HELD, 4, { at: LAPSE - 1 })], now: LAPSE },
  ],
  ['a released hold', { cycles: [BOUGHT], postings: [ADDED, HELD, releasing(HELD, { at: LAPSE - 1 })], now: LAPSE }],
  ['a lapsed hold', { cycles: [BOUGHT], postings: [ADDED, HELD, lapsing(HELD)], now: LAPSE }],
  [
    'a lapse that was recorded after its cycle had ended, so that the cycle still shows the held credits',
    { cycles: [left(BOUGHT, 100, 10)], postings: [ADDED, HELD, lapsing(HELD)], now: END },
  ],
  [
    'a lapsed hold on several cycles',
    { cycles: [BOUGHT, GIFT], postings: [ADDED, GIVEN, ...BOTH, ...lapseOf(holdOf(...BOTH))], now: END },
  ],
  [
    'a lapse that is stored after a renewal at the same instant',
    { cycles: [NEXT], postings: [STARTED, DAILY_HELD, opening(NEXT), lapsing(DAILY_HELD)], now: END },
  ],
  [
    'a capture that spends held credits of an ended cycle and further credits of another cycle',
    {
      cycles: [left(BOUGHT, 100, 10), left(GIFT, 3)],
      postings: [ADDED, GIVEN, KEPT, capturing(KEPT, 10, { at: END }), BEYOND],
      now: END,
    },
  ],
];

const LATE_HOLD = holding(BOUGHT, 10, { at: END });
const OVER = holding(BOUGHT, 101, { until: LAPSE });
const DRAWN = drawing(BOUGHT, 30, NOW);
const UNDATED = { ...HELD, holdExpiresAt: null };

function wrong(hold: Hold): Found {
  const id = HELD.transactionId;
  return [1, `hold ${id} is stored as ${JSON.stringify(hold)}; its postings say ${JSON.stringify(holdOf(HELD))}`];
}

const [LARGER, LONGER] = [holdOf({ ...HELD, held: 11 }), { ...holdOf(HELD), expiresAt: LAPSE + 1 }];

const HOLDS: readonly Row[] = [
  [
    'a hold at the end of its cycle',
    { cycles: [BOUGHT], holds: [holdOf(LATE_HOLD)], postings: [ADDED, LATE_HOLD], now: END },
    [1, by(LATE_HOLD, 'holds credits of a period that is not running')],
  ],
  [
    'a hold on credits of another period of its cycle',
    {
      cycles: [BOUGHT],
      holds: [{ ...holdOf({ ...HELD, period: 1 }) }],
      postings: [ADDED, { ...HELD, period: 1 }],
      now: NOW,
    },
    [1, by(HELD, 'holds credits of a period that is not running')],
  ],
  [
    'a hold on a cycle that does not exist',
    { cycles: [], holds: [holdOf(HELD)], postings: [HELD], now: NOW },
    [1, by(HELD, 'holds credits of a period that is not running')],
  ],
  [
    'a hold of more than can be spent',
    { cycles: [BOUGHT], postings: [ADDED, OVER], now: NOW },
    [1, by(OVER, 'breaks the rule that a transaction spends or holds only spendable credits')],
  ],
  [
    'a hold without an expiry',
    { cycles: [BOUGHT], postings: [ADDED, UNDATED], now: NOW },
    [4, by(HELD, 'breaks the rule that a hold expires after it is created')],
  ],
  [
    'a subtraction with the expiry of a hold',
    { cycles: [left(BOUGHT, 70)], postings: [ADDED, { ...DRAWN, holdExpiresAt: LAPSE }], now: NOW },
    [4, by(DRAWN, 'has the expiry of a hold, but the kind subtract')],
  ],
  [
    'a hold that is not stored although its credits are still held',
    { cycles: [left(BOUGHT, 100, 10)], postings: [ADDED, HELD], now: NOW },
    stillOpen(HELD),
  ],
  [
    'an open hold whose cycle is stored without held credits',
    { cycles: [BOUGHT], holds: [holdOf(HELD)], postings: [ADDED, HELD], now: NOW },
    [1, `${CYCLE} is stored with held 0; its postings say 10`],
  ],
  [
    'a stored hold without postings',
    { cycles: [BOUGHT], holds: [holdOf(HELD)], postings: [ADDED], now: NOW },
    [1, `hold ${HELD.transactionId} is stored as open, but is not open according to its postings`],
  ],
  [
    'a hold that is stored after it was released',
    { cycles: [BOUGHT], holds: [holdOf(HELD)], postings: [ADDED, HELD, releasing(HELD)], now: NOW },
    [1, `hold ${HELD.transactionId} is stored as open, but is not open according to its postings`],
  ],
  [
    'a hold that is stored twice',
    { cycles: [left(BOUGHT, 100, 10)], holds: [holdOf(HELD), holdOf(HELD)], postings: [ADDED, HELD], now: NOW },
    [1, `hold ${HELD.transactionId} is stored as open, but is not open according to its postings`],
  ],
  [
    'a hold that is stored with a different amount',
    { cycles: [left(BOUGHT, 100, 10)], holds: [LARGER], postings: [ADDED, HELD], now: NOW },
    wrong(LARGER),
  ],
  [
    'a hold that is stored with a different expiry',
    { cycles: [left(BOUGHT, 100, 10)], holds: [LONGER], postings: [ADDED, HELD], now: NOW },
    wrong(LONGER),
  ],
  [
    'holds that are stored in the wrong order',
    {
      cycles: [left(BOUGHT, 100, 20)],
      holds: [holdOf(TWINS[1]), holdOf(TWINS[0])],
      postings: [ADDED, ...TWINS],
      now: NOW,
    },
    [1, `hold ${TWINS[0].transactionId} is stored after a hold that lapses later`],
  ],
];

const LAPSED = lapsing(HELD);
const [EARLY, LATE] = [LAPSE - 1, LAPSE + 1].map((at): Posting => ({ ...lapsing({ ...HELD, holdExpiresAt: at }) })) as [
  Posting,
  Posting,
];
const [AT_LAPSE, AFTER_LAPSE] = [LAPSE, LAPSE + 1].map((start) => oneTime({ start }, 8)) as [Cycle, Cycle];
const FOREIGN = { ...LAPSED, transactionId: idAt(LAPSE) };
const HELD_BY_TIME = { ...releasing(HELD), actor: 'lapse' };

const LAPSES: readonly Row[] = [
  [
    'a lapse a millisecond early',
    { cycles: [left(BOUGHT, 100, 10)], holds: [holdOf(HELD)], postings: [ADDED, HELD, EARLY], now: END - 1 },
    [3, by(EARLY, 'is a lapse that was not due')],
    [4, by(EARLY, 'breaks the rule that a hold is open until it expires, and then lapses')],
  ],
  [
    'a lapse a millisecond late',
    { cycles: [BOUGHT], postings: [ADDED, HELD, LATE], now: END - 1 },
    [3, by(LATE, 'is a lapse that was not due')],
    [4, by(LATE, 'breaks the rule that the ID of a lapse is derived from its hold')],
    [1, `${CYCLE} is stored with held 0; its postings say 10`],
    stillOpen(HELD),
  ],
  [
    'a lapse that is missing before a later addition',
    {
      cycles: [left(BOUGHT, 100, 10), AFTER_LAPSE],
      holds: [holdOf(HELD)],
      postings: [ADDED, HELD, opening(AFTER_LAPSE)],
      now: END - 1,
    },
    [3, by(opening(AFTER_LAPSE), 'comes before a lapse that was already due')],
  ],
  [
    'a lapse that is stored after an addition at the same instant',
    {
      cycles: [BOUGHT, AT_LAPSE],
      postings: [ADDED, HELD, opening(AT_LAPSE), LAPSED],
      now: LAPSE,
    },
    [3, by(opening(AT_LAPSE), 'comes before a lapse that was already due')],
    [4, by(LAPSED, 'is stored after a later transaction')],
  ],
  [
    'a hold that is no longer stored although its lapse is missing',
    { cycles: [BOUGHT], postings: [ADDED, HELD], now: LAPSE },
    [1, `${CYCLE} is stored with held 0; its postings say 10`],
    stillOpen(HELD),
  ],
  [
    'a lapse with a missing part',
    { cycles: [BOUGHT, GIFT], postings: [ADDED, GIVEN, ...BOTH, ...lapseOf(holdOf(...BOTH)).slice(1)], now: LAPSE },
    [1, `${CYCLE} is stored with held 0; its postings say 10`],
    stillOpen(HELD),
  ],
  [
    'a lapse with an ID that is not derived from its hold',
    { cycles: [BOUGHT], postings: [ADDED, HELD, FOREIGN], now: LAPSE },
    [3, by(FOREIGN, 'is a lapse that was not due')],
    [4, by(FOREIGN, 'breaks the rule that the ID of a lapse is derived from its hold')],
    [1, `${CYCLE} is stored with held 0; its postings say 10`],
    stillOpen(HELD),
  ],
  [
    'a lapse that is stored twice',
    { cycles: [BOUGHT], postings: [ADDED, HELD, LAPSED, LAPSED], now: LAPSE },
    [4, by(LAPSED, 'has two postings to the same period of a cycle')],
    [3, by(LAPSED, 'is a lapse that was not due')],
    [1, by(LAPSED, 'breaks the rule that a lapse closes an open hold')],
  ],
  [
    'a lapse of a hold that was captured',
    { cycles: [left(BOUGHT, 90)], postings: [ADDED, HELD, capturing(HELD), LAPSED], now: LAPSE },
    [3, by(LAPSED, 'is a lapse that was not due')],
    [1, by(LAPSED, 'breaks the rule that a lapse closes an open hold')],
  ],
  [
    'a lapse that is stored before a renewal at the same instant',
    { cycles: [NEXT], postings: [STARTED, DAILY_HELD, lapsing(DAILY_HELD), opening(NEXT)], now: END },
    [3, by(lapsing(DAILY_HELD), 'is a lapse that was not due')],
    [4, by(opening(NEXT), 'is stored after a later transaction')],
  ],
  [
    'a lapse with an API key as its actor',
    { cycles: [BOUGHT], postings: [ADDED, HELD, { ...LAPSED, actor: 'key:7' }], now: LAPSE },
    [4, by(LAPSED, 'has the kind lapse, but the actor key:7')],
  ],
  [
    'a release whose actor is `lapse`',
    { cycles: [BOUGHT], postings: [ADDED, HELD, HELD_BY_TIME], now: NOW },
    [4, by(HELD_BY_TIME, 'has the kind release, but the actor lapse')],
  ],
];

const [CAPTURED, RELEASED] = [capturing(HELD), releasing(HELD)];
const TOO_LATE = capturing(HELD, 10, { at: LAPSE });
const TOO_MUCH = capturing(KEPT, 11, { at: END });
const NOTHING = capturing(HELD, 0);
const UNHELD = { ...CAPTURED, held: 0 };
const STRAY = { ...CAPTURED, reference: TWINS[0].transactionId };
const GIFT_CAPTURED = { ...capturing(BOTH[1]), reference: idAt(NOW, 5) };

const CLOSINGS: readonly Row[] = [
  [
    'a capture that exceeds the held credits of an ended cycle',
    { cycles: [left(BOUGHT, 100, 10)], postings: [ADDED, KEPT, TOO_MUCH], now: END },
    [1, by(TOO_MUCH, 'breaks the rule that a capture takes only held credits from an ended cycle')],
    stillOpen(KEPT),
  ],
  [
    'a capture at the expiry of its hold',
    { cycles: [left(BOUGHT, 90)], postings: [ADDED, HELD, TOO_LATE], now: LAPSE },
    [3, by(TOO_LATE, 'comes before a lapse that was already due')],
    [4, by(TOO_LATE, 'breaks the rule that a hold is open until it expires, and then lapses')],
    [1, `${CYCLE} is stored with remaining 90; its postings say 100`],
    [1, `${CYCLE} is stored with held 0; its postings say 10`],
    stillOpen(HELD),
  ],
  [
    'a capture of a hold that does not exist',
    { cycles: [BOUGHT], postings: [ADDED, CAPTURED], now: END },
    [1, by(CAPTURED, 'breaks the rule that a capture closes an open hold')],
  ],
  [
    'a capture that refers to a hold other than the open one',
    {
      cycles: [left(BOUGHT, 100, 10)],
      holds: [holdOf(HELD)],
      postings: [ADDED, HELD, STRAY],
      now: END,
    },
    [1, by(STRAY, 'breaks the rule that a capture closes an open hold')],
  ],
  [
    'a capture that spends none of the held credits',
    { cycles: [BOUGHT], postings: [ADDED, HELD, NOTHING], now: NOW },
    [1, by(NOTHING, 'captures no held credits')],
  ],
  [
    'a capture that closes no hold',
    { cycles: [left(BOUGHT, 90, 10)], holds: [holdOf(HELD)], postings: [ADDED, HELD, UNHELD], now: NOW },
    [1, by(UNHELD, 'captures no held credits')],
  ],
  [
    'a capture that refers to two holds',
    {
      cycles: [left(BOUGHT, 90), left(GIFT, 5, 5)],
      holds: [holdOf(BOTH[1])],
      postings: [ADDED, GIVEN, ...BOTH, CAPTURED, GIFT_CAPTURED],
      now: END + DAY_MS,
    },
    [4, by(GIFT_CAPTURED, 'refers to two transactions')],
    [1, by(GIFT_CAPTURED, 'breaks the rule that a capture closes an open hold')],
  ],
  [
    'a release that is stored twice',
    { cycles: [BOUGHT], postings: [ADDED, HELD, RELEASED, RELEASED], now: NOW },
    [4, by(RELEASED, 'has two postings to the same period of a cycle')],
    [1, by(RELEASED, 'breaks the rule that a release closes an open hold')],
  ],
];

for (const [what, stored] of SOUND) {
  test(`the audit finds nothing wrong with ${what}`, () => assert.deepEqual(findings(stored), []));
}

for (const [what, stored, ...found] of [...HOLDS, ...LAPSES, ...CLOSINGS]) {
  test(`the audit finds ${what} and reports what is wrong`, () => assert.deepEqual(findings(stored), found));
}

test('the audit finds that a hold was created after its cycle had ended, even if a hundred cycles had ended by then', () => {
  const cycles = dayCycles(100, NOW);
  const late = holding(cycles[0] as Cycle, 10, { at: END + 200 });
  const found = findings({ cycles, holds: [holdOf(late)], postings: [...cycles.map(opening), late], now: END + 200 });
  assert.deepEqual(found, [[1, by(late, 'holds credits of a period that is not running')]]);
});

test('the audit keeps an open hold in its state even if a hundred cycles have ended since the hold was created', () => {
  const kept = holding(GIFT, 5, { until: END + 9 * DAY_MS });
  const cycles = dayCycles(100, NOW + 1);
  const captured = capturing(kept, 5, { at: END + 2 * DAY_MS });
  const stored = { cycles: [{ ...GIFT, held: 5 }, ...cycles], now: END + 2 * DAY_MS };
  const postings = [GIVEN, kept, ...cycles.map(opening)];
  assert.deepEqual(findings({ ...stored, postings: [...postings, captured] }), []);
  assert.deepEqual(findings({ ...stored, postings }), [stillOpen(kept)]);
});
