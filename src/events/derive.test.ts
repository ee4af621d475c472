// Tests the data and the IDs of events, and the events caused by holds and refunds.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  dayAt,
  type EventHistory,
  eventsOf,
  latestOf,
  ledgerAfter,
  linesOf,
  settingsOf,
} from '../../test/ledger/event-histories.ts';
import {
  ADA,
  add,
  capture,
  hold,
  refund,
  release,
  startCycle,
  stopCycle,
  subtract,
} from '../../test/ledger/ledger-builders.ts';
import { EVENT_TYPES, type EventType } from '../store/event-log.ts';
import { deriveEvents } from './derive.ts';

const HISTORY: EventHistory = [
  [0, add(100, { validityDays: 10 })],
  [1, subtract(30)],
  [2, (ledger) => refund(latestOf(ledger, 'subtract'), 20)],
  [4, startCycle(50, { validityDays: 2, rolloverMax: 5 })],
  [5, hold(100, { expiresInSeconds: 3_600 })],
  [5.5, hold(40)],
  [5.5, (ledger) => capture(latestOf(ledger, 'hold'), 25)],
  [7, stopCycle()],
  [7.5, subtract(120)],
  [9, startCycle(3, { validityDays: 1 })],
];
const LEDGER = ledgerAfter(HISTORY);
const SETTINGS = settingsOf(['60'], 3);

function id(kind: string, number = 0): string {
  const ids = LEDGER.postings.filter((posting) => posting.kind === kind).map(({ transactionId }) => transactionId);
  return [...new Set(ids)][number] as string;
}

function isoAt(day: number): string {
  return new Date(dayAt(day)).toISOString();
}

const LAPSE_DAY = 5 + 1 / 24;
const EVENTS: readonly (readonly [day: number, type: EventType, balance: number, data: Record<string, unknown>])[] = [
  [0, 'credits.added', 100, { transaction_id: id('add'), amount: 100, expire_at: isoAt(10) }],
  [1, 'credits.subtracted', 70, { transaction_id: id('subtract'), amount: 30 }],
  [
    2,
    'credits.refunded',
    90,
    { transaction_id: id('refund'), amount: 20, expired: 0, refunded_transaction_id: id('subtract') },
  ],
  [
    4,
    'cycle.started',
    140,
    { transaction_id: id('start-cycle'), cycle_id: id('start-cycle'), amount: 50, cycle_end: isoAt(6) },
  ],
  [5, 'balance.low', 40, { previous_balance: 140, transaction_id: id('hold'), threshold: '60' }],
  [LAPSE_DAY, 'hold.lapsed', 140, { transaction_id: id('lapse'), hold_id: id('hold'), amount: 100 }],
  [LAPSE_DAY, 'balance.recovered', 140, { previous_balance: 40, transaction_id: id('lapse'), thresholds: ['60'] }],
  [5.5, 'credits.subtracted', 115, { transaction_id: id('capture'), amount: 25, hold_id: id('hold', 1) }],
  [6, 'credits.expired', 120, { cycle_id: id('start-cycle'), amount: 45 }],
  [
    6,
    'cycle.renewed',
    120,
    {
      transaction_id: id('renew'),
      cycle_id: id('start-cycle'),
      amount: 55,
      rolled_over: 5,
      cycle_end: isoAt(8),
    },
  ],
  [7, 'credits.expiring', 120, { cycle_id: id('add'), amount: 65, expire_at: isoAt(10) }],
  [7, 'cycle.stopped', 120, { transaction_id: id('stop-cycle'), cycle_id: id('start-cycle'), cycle_end: isoAt(8) }],
  [7.5, 'credits.subtracted', 0, { transaction_id: id('subtract', 1), amount: 120 }],
  [7.5, 'balance.low', 0, { previous_balance: 120, transaction_id: id('subtract', 1), threshold: '60' }],
  [7.5, 'balance.exhausted', 0, { previous_balance: 120, transaction_id: id('subtract', 1) }],
  [
    9,
    'cycle.started',
    3,
    { transaction_id: id('start-cycle', 1), cycle_id: id('start-cycle', 1), amount: 3, cycle_end: isoAt(10) },
  ],
  [9, 'balance.recovered', 3, { previous_balance: 0, transaction_id: id('start-cycle', 1), thresholds: [] }],
];

test('each type of event has its own data', () => {
  const events = eventsOf(HISTORY, { settings: SETTINGS });
  assert.deepEqual(
    events.map(({ id, ...event }) => event),
    EVENTS.map(([day, type, balance, data]) => ({
      type,
      at: dayAt(day),
      data: { end_user_id: ADA.endUser, ...data, balance },
    })),
  );
  assert.deepEqual([...new Set(events.map(({ type }) => type))].sort(), EVENT_TYPES.toSorted());
});

test('the ID of an event depends only on its account, end user, type and cause', () => {
  const { postings } = LEDGER;
  const idsOf = (user: typeof ADA, thresholds: string[]) =>
    deriveEvents({ user, from: null, postings, until: null, settings: settingsOf(thresholds, 3) }).events.map(
      (event) => event.id,
    );
  const ids = idsOf(ADA, ['60']);
  for (const each of ids) assert.match(each, /^evt_[0-9a-f]{32}$/);
  assert.equal(new Set(ids).size, ids.length);
  assert.deepEqual(idsOf(ADA, ['60']), ids);
  const without = idsOf(ADA, []);
  assert.deepEqual(
    without.filter((each) => !ids.includes(each)),
    [],
  );
  const others = [...idsOf({ ...ADA, account: 2 }, ['60']), ...idsOf({ ...ADA, endUser: 'other' }, ['60'])];
  assert.deepEqual(
    others.filter((each) => ids.includes(each)),
    [],
  );
});

const MOVES = ['credits.added', 'credits.subtracted', 'credits.refunded', 'credits.expired', 'hold.lapsed'] as const;

const CASES: readonly (readonly [title: string, history: EventHistory, ...expected: string[]])[] = [
  [
    'a hold, a release and a scheduled plan have no event of their own',
    [
      [0, startCycle(10, { validityDays: 30 })],
      [1, hold(4)],
      [1, (ledger) => release(latestOf(ledger, 'hold'))],
      [1, startCycle(20, { onActive: 'at_period_end' })],
    ],
  ],
  [
    'a capture of 0 credits has no event of its own',
    [
      [0, add(10)],
      [1, hold(4)],
      [1, (ledger) => capture(latestOf(ledger, 'hold'), 0)],
    ],
  ],
  [
    'a capture of more than the hold causes a single `credits.subtracted` event',
    [
      [0, add(10)],
      [1, hold(4)],
      [1, (ledger) => capture(latestOf(ledger, 'hold'), 9)],
    ],
    '1: credits.subtracted 9',
  ],
  [
    'the part of a hold that a capture returns to an ended cycle expires',
    [
      [0, add(10, { validityDays: 2 })],
      [0, add(10, { validityDays: 5 })],
      [1.9, hold(14, { expiresInSeconds: 86_400 })],
      [2.5, (ledger) => capture(latestOf(ledger, 'hold'), 3)],
    ],
    '2.5: credits.subtracted 3',
    '2.5: credits.expired 7',
  ],
  [
    'the credits of a hold on an ended cycle expire when the hold is released',
    [
      [0, add(10, { validityDays: 2 })],
      [1.9, hold(6, { expiresInSeconds: 86_400 })],
      [2.5, (ledger) => release(latestOf(ledger, 'hold'))],
    ],
    '2: credits.expired 4',
    '2.5: credits.expired 6',
  ],
  [
    'the credits of a hold on an ended cycle expire when the hold lapses',
    [
      [0, add(10, { validityDays: 2 })],
      [1.5, hold(10, { expiresInSeconds: 86_400 })],
      [3, add(1)],
    ],
    '2.5: hold.lapsed 10',
    '2.5: credits.expired 10',
    '3: credits.added 1',
  ],
  [
    'a hold that lapses at the end of its cycle lapses after the other credits have expired',
    [
      [0, add(10, { validityDays: 2 })],
      [1, hold(6, { expiresInSeconds: 86_400 })],
      [3, add(1)],
    ],
    '2: credits.expired 4',
    '2: hold.lapsed 6',
    '2: credits.expired 6',
    '3: credits.added 1',
  ],
  [
    'a refund to a running cycle returns all refunded credits',
    [
      [0, add(10)],
      [1, subtract(8)],
      [2, (ledger) => refund(latestOf(ledger, 'subtract'))],
    ],
    '1: credits.subtracted 8',
    '2: credits.refunded 8',
  ],
  [
    'a refund to an ended cycle returns no credits',
    [
      [0, add(10, { validityDays: 2 })],
      [1, subtract(8)],
      [3, (ledger) => refund(latestOf(ledger, 'subtract'))],
    ],
    '1: credits.subtracted 8',
    '2: credits.expired 2',
    '3: credits.refunded 0',
  ],
  [
    'a refund to an ended and a running cycle returns only the credits of the running cycle',
    [
      [0, add(10, { validityDays: 2 })],
      [0, add(10)],
      [1, subtract(15)],
      [3, (ledger) => refund(latestOf(ledger, 'subtract'))],
    ],
    '1: credits.subtracted 15',
    '3: credits.refunded 5',
  ],
  [
    'a refund that opens a new cycle returns expired credits too, and they expire with the new cycle',
    [
      [0, add(10, { validityDays: 2 })],
      [1, subtract(8)],
      [3, (ledger) => refund(latestOf(ledger, 'subtract'), null, { validityDays: 1 })],
      [5, add(1)],
    ],
    '1: credits.subtracted 8',
    '2: credits.expired 2',
    '3: credits.refunded 8',
    '4: credits.expired 8',
    '5: credits.added 1',
  ],
];

for (const [title, history, ...expected] of CASES) {
  test(title, () => {
    const events = eventsOf(history).filter(({ at }) => at >= dayAt(1));
    assert.deepEqual(linesOf(events, ...MOVES), expected);
    const others = events.filter(({ type }) => !type.startsWith('balance.') && !MOVES.some((each) => each === type));
    assert.deepEqual(
      others.filter(({ type }) => type !== 'credits.expiring'),
      [],
    );
  });
}
