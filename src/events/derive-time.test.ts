// Tests time-driven events, and the derivation of events in several calls.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  balanceLines,
  dayAt,
  type EventHistory,
  eventsOf,
  latestOf,
  ledgerAfter,
  linesOf,
  MS,
  settingsOf,
} from '../../test/ledger/event-histories.ts';
import { ADA, add, hold, release, startCycle, stopCycle, subtract } from '../../test/ledger/ledger-builders.ts';
import { DAY_MS, LAST_INSTANT, VALIDITY_DAYS_MAX } from '../ledger/instant.ts';
import type { Posting } from '../ledger/posting.ts';
import { type Derivation, type EventSettings, EXPIRING_DAYS_DEFAULT } from '../store/event-log.ts';
import { deriveEvents } from './derive.ts';

const LAST_DAY = (LAST_INSTANT - dayAt(0)) / DAY_MS;

const TIMED = ['credits.expiring', 'credits.expired', 'cycle.renewed'] as const;

const CASES: readonly (readonly [title: string, history: EventHistory, untilDay: number, ...expected: string[]])[] = [
  [
    'the `credits.expiring` event happens 7 days before credits expire',
    [[0, add(10, { validityDays: 31 })]],
    24,
    '24: credits.expiring 10',
  ],
  [
    'the `credits.expiring` event does not happen more than 7 days before the expiry',
    [[0, add(10, { validityDays: 31 })]],
    24 - MS,
  ],
  [
    'the `credits.expiring` event happens only once, even after downtime',
    [
      [0, add(10, { validityDays: 31 })],
      [30, subtract(4)],
    ],
    40,
    '24: credits.expiring 10',
    '31: credits.expired 6',
  ],
  [
    'the `credits.expiring` event does not happen for a cycle of 7 days',
    [[0, add(10, { validityDays: 7 })]],
    8,
    '7: credits.expired 10',
  ],
  [
    'the `credits.expiring` event happens a day after the start of a cycle of 8 days',
    [[0, add(10, { validityDays: 8 })]],
    8 - MS,
    '1: credits.expiring 10',
  ],
  [
    'the `credits.expiring` event happens for each cycle, with the spendable credits of the cycle at that time',
    [
      [0, add(10, { validityDays: 31 })],
      [0, add(10, { validityDays: 31 })],
      [1, add(10, { validityDays: 31 })],
      [2, subtract(11)],
      [2, hold(3, { expiresInSeconds: 86_400 * 30 })],
    ],
    26,
    '24: credits.expiring 6',
    '25: credits.expiring 10',
  ],
  [
    'a cycle without credits causes neither `credits.expiring` nor `credits.expired`',
    [
      [0, add(10, { validityDays: 31 })],
      [1, subtract(10)],
    ],
    40,
  ],
  [
    '`credits.expiring` counts held credits if the hold lapses before they expire',
    [
      [0, add(10, { validityDays: 31 })],
      [23, hold(4, { expiresInSeconds: 86_400 * 5 })],
      [23, hold(5, { expiresInSeconds: 86_400 * 30 })],
      [25, (ledger) => release(latestOf(ledger, 'hold'))],
    ],
    26,
    '24: credits.expiring 5',
  ],
  [
    'credits that return from a hold beyond the end of the cycle do not cause `credits.expiring`',
    [
      [0, add(10, { validityDays: 31 })],
      [23, hold(10, { expiresInSeconds: 86_400 * 30 })],
      [25, (ledger) => release(latestOf(ledger, 'hold'))],
    ],
    40,
    '31: credits.expired 10',
  ],
  [
    'credits whose validity ends after the year 9999 never expire',
    [[0, add(10, { validityDays: VALIDITY_DAYS_MAX })]],
    LAST_DAY,
  ],
  [
    'the amounts of `credits.expiring` and `credits.expired` do not include credits that roll over',
    [
      [0, startCycle(100, { validityDays: 31, rolloverMax: 30 })],
      [1, subtract(50)],
      [31, add(1)],
    ],
    32,
    '24: credits.expiring 20',
    '31: credits.expired 20',
    '31: cycle.renewed 130',
  ],
  [
    'if all credits of a period roll over, neither `credits.expiring` nor `credits.expired` happens',
    [
      [0, startCycle(100, { validityDays: 31, rolloverMax: 50 })],
      [1, subtract(50)],
      [31, add(1)],
    ],
    32,
    '31: cycle.renewed 150',
  ],
  [
    'credits of a stopped cycle do not roll over',
    [
      [0, startCycle(100, { validityDays: 31, rolloverMax: 50 })],
      [1, stopCycle()],
    ],
    32,
    '24: credits.expiring 100',
    '31: credits.expired 100',
  ],
  [
    'credits do not roll over to another plan',
    [
      [0, startCycle(100, { validityDays: 31, rolloverMax: 50 })],
      [1, startCycle(200, { validityDays: 31, onActive: 'at_period_end' })],
      [31, add(1)],
    ],
    32,
    '24: credits.expiring 100',
    '31: credits.expired 100',
  ],
  [
    'the `credits.expiring` event happens for each period of a recurring cycle',
    [
      [0, startCycle(10, { validityDays: 10 })],
      [25, add(1)],
    ],
    25,
    '3: credits.expiring 10',
    '10: credits.expired 10',
    '10: cycle.renewed 10',
    '13: credits.expiring 10',
    '20: credits.expired 10',
    '20: cycle.renewed 10',
    '23: credits.expiring 10',
  ],
  [
    'the `credits.expiring` event happens before a renewal at the same instant',
    [
      [0, startCycle(10, { validityDays: 10 })],
      [0, add(5, { validityDays: 17 })],
      [10, add(1)],
    ],
    10,
    '3: credits.expiring 10',
    '10: credits.expiring 5',
    '10: credits.expired 10',
    '10: cycle.renewed 10',
  ],
];

for (const [title, history, until, ...expected] of CASES) {
  test(title, () => {
    assert.deepEqual(linesOf(eventsOf(history, { until }), ...TIMED), expected);
  });
}

const SETTINGS = settingsOf(['20']);

function after(
  from: Derivation | null,
  {
    postings = [],
    until = null,
    settings = SETTINGS,
  }: { postings?: Posting[]; until?: number | null; settings?: EventSettings },
): Derivation {
  const at = until === null ? null : dayAt(until);
  return deriveEvents({ user: ADA, from: from?.next ?? null, postings, until: at, settings });
}

test('if no more postings arrive, a cycle still causes `credits.expiring` and then `credits.expired`', () => {
  const { postings } = ledgerAfter([[0, add(30, { validityDays: 31 })]]);
  const added = after(null, { postings });
  assert.equal(added.dueAt, dayAt(31 - EXPIRING_DAYS_DEFAULT));
  assert.deepEqual(after(added, { until: 24 - MS }).events, []);
  const reminded = after(added, { until: 24 });
  assert.deepEqual(linesOf(reminded.events, ...TIMED), ['24: credits.expiring 30']);
  assert.equal(reminded.dueAt, dayAt(31));
  assert.deepEqual(after(reminded, { until: 31 - MS }).events, []);
  const ended = after(reminded, { until: 31 });
  assert.deepEqual(linesOf(ended.events, ...TIMED), ['31: credits.expired 30']);
  assert.deepEqual(balanceLines(ended.events), ['31: balance.low 20 (30 to 0)', '31: balance.exhausted (30 to 0)']);
  assert.equal(ended.dueAt, null);
  assert.deepEqual(ended.next.state, { cycles: [], holds: [] });
});

test('credits that never expire cause no time-driven event', () => {
  const { postings } = ledgerAfter([[0, add(30, { validityDays: VALIDITY_DAYS_MAX })]]);
  assert.equal(after(null, { postings }).dueAt, null);
});

test('events after a due renewal are derived only after the posting of the renewal is stored', () => {
  const ledger = ledgerAfter([
    [0, startCycle(30, { validityDays: 2 })],
    [1, add(5, { validityDays: 2 })],
    [4, add(1)],
  ]);
  const renewals = ledger.postings.filter(({ kind }) => kind === 'renew');
  const before = ledger.postings.slice(0, 2);
  const waited = after(after(null, { postings: before }), { until: 9 });
  assert.equal(waited.dueAt, null);
  assert.equal(waited.next.at, dayAt(2) - 1);
  assert.deepEqual(waited.events, []);
  const renewed = after(waited, { postings: renewals.slice(0, 1), until: 9 });
  assert.deepEqual(linesOf(renewed.events, ...TIMED), [
    '2: credits.expired 30',
    '2: cycle.renewed 30',
    '3: credits.expired 5',
  ]);
  assert.equal(renewed.next.at, dayAt(4) - 1);
});

test('events after a due lapse are derived only after the posting of the lapse is stored', () => {
  const ledger = ledgerAfter([
    [0, add(30, { validityDays: 3 })],
    [1, hold(15, { expiresInSeconds: 86_400 })],
    [4, add(1)],
  ]);
  const waited = after(after(null, { postings: ledger.postings.slice(0, 2) }), { until: 9 });
  assert.deepEqual(balanceLines(waited.events), []);
  assert.equal(waited.dueAt, null);
  const lapsed = after(waited, { postings: ledger.postings.slice(2, 3), until: 9 });
  assert.deepEqual(balanceLines(lapsed.events), [
    '2: balance.recovered 20 (15 to 30)',
    '3: balance.low 20 (30 to 0)',
    '3: balance.exhausted (30 to 0)',
  ]);
});

test('if a posting is older than the latest derived events, no event is repeated and expired credits stay expired', () => {
  const { postings } = ledgerAfter([
    [0, add(30, { validityDays: 2 })],
    [0, add(40)],
    [1, subtract(35)],
    [3, subtract(1)],
    [3, add(100, { validityDays: 1 })],
  ]);
  const [early, late] = [postings.slice(0, 4), postings.slice(4)];
  const waited = after(after(null, { postings: early }), { until: 5 });
  const then = after(waited, { postings: late });
  assert.deepEqual(
    then.events.map(({ type, at, data }) => [type, at, data.balance]),
    [
      ['credits.subtracted', dayAt(3), 34],
      ['credits.added', dayAt(3), 34],
    ],
  );
  assert.equal(then.next.at, dayAt(5));
});

test('deriving events up to an instant in the past changes nothing', () => {
  const { postings } = ledgerAfter([
    [0, add(30)],
    [1, subtract(1)],
  ]);
  const derived = after(null, { postings });
  const waited = after(derived, { until: 0 });
  assert.deepEqual(waited, { events: [], next: derived.next, dueAt: derived.dueAt });
});

test('after an account changes `expiringDays`, `credits.expiring` can happen again for the same period, with another ID', () => {
  const { postings } = ledgerAfter([[0, add(30)]]);
  const first = after(null, { postings, until: 20, settings: settingsOf([], 14) });
  const second = after(first, { until: 30, settings: settingsOf([], 3) });
  const reminders = [...first.events, ...second.events].filter(({ type }) => type === 'credits.expiring');
  assert.deepEqual(linesOf(reminders, 'credits.expiring'), ['17: credits.expiring 30', '28: credits.expiring 30']);
  assert.notEqual(reminders[0]?.id, reminders[1]?.id);
});

test('if `expiringDays` is raised after the new instant has passed, `credits.expiring` happens immediately, and only once', () => {
  const { postings } = ledgerAfter([
    [0, add(30)],
    [18, subtract(1)],
    [20, subtract(1)],
    [26, subtract(1)],
  ]);
  const weekly = settingsOf([], 7);
  const first = after(null, { postings: postings.slice(0, 2), until: 18, settings: weekly });
  const raised = settingsOf([], 14);
  const second = after(first, { postings: postings.slice(2, 3), settings: raised });
  const third = after(second, { postings: postings.slice(3), until: 30, settings: raised });
  const again = after(third, { until: 30, settings: settingsOf([], 20) });
  assert.deepEqual(
    [first, second, third, again].map(({ events }) => linesOf(events, 'credits.expiring')),
    [[], ['17: credits.expiring 29'], [], []],
  );
});

test('a new threshold causes no event for a balance that is already below it', () => {
  const ledger = ledgerAfter([
    [0, add(30)],
    [1, subtract(25)],
    [2, subtract(1)],
    [3, add(30)],
  ]);
  const first = after(null, { postings: ledger.postings.slice(0, 2), settings: settingsOf() });
  const second = after(first, { postings: ledger.postings.slice(2), settings: SETTINGS });
  assert.deepEqual(balanceLines(second.events), ['3: balance.recovered 20 (4 to 34)']);
});
