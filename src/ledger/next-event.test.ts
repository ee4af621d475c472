// The next event of an end user: the renewal of the active cycle at the end of its period. There are no other events.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { oneTime, recurring, stateOf } from '../../test/ledger/ledger-builders.ts';
import type { Cycle } from './cycle.ts';
import { DAY_MS, INSTANT_MAX, LAST_INSTANT, VALIDITY_DAYS_MAX } from './instant.ts';
import { nextEvent } from './next-event.ts';
import { renewalId } from './transaction-id.ts';

const MONTHLY = recurring({ remaining: 40 });
const { id: ID, end: END } = MONTHLY;

test('a cycle is not due for renewal a millisecond before the end of its period', () => {
  assert.equal(nextEvent(stateOf(MONTHLY), END - 1), null);
});

const RENEWAL = {
  transactionId: renewalId(ID, END),
  cycleId: ID,
  period: 1,
  kind: 'renew',
  amount: 100,
  createdAt: END,
  expiresAt: END + 31 * DAY_MS,
  actor: 'renewal',
  note: null,
  terms: { type: 'recurring', validityDays: 31 },
};

for (const [when, late] of [
  ['at the end', 0],
  ['a millisecond after the end', 1],
  ['a period after the end', 31 * DAY_MS],
  ['ten years after the end', 3_650 * DAY_MS],
] as const) {
  test(`${when} of a period, the next event is the renewal at that end with full credits`, () => {
    assert.deepEqual(nextEvent(stateOf(oneTime(), MONTHLY), END + late), [RENEWAL]);
  });
}

test('the second renewal of a cycle has the number and the start of the period that it opens', () => {
  const second = recurring({ period: 1, start: END, end: END + 31 * DAY_MS, id: ID });
  const at = END + 31 * DAY_MS;
  assert.deepEqual(nextEvent(stateOf(second), at), [
    { ...RENEWAL, transactionId: renewalId(ID, at), period: 2, createdAt: at, expiresAt: END + 62 * DAY_MS },
  ]);
});

const AT_REST: readonly (readonly [what: string, ...cycles: Cycle[]])[] = [
  ['an end user without credits'],
  ['a one-time cycle', oneTime()],
  ['a canceled cycle', { ...MONTHLY, status: 'canceled' }],
  ['a superseded cycle', { ...MONTHLY, status: 'superseded' }],
];

for (const [what, ...cycles] of AT_REST) {
  test(`nothing is ever due for ${what}`, () => {
    for (const now of [END - 1, END, END + 1, LAST_INSTANT]) assert.equal(nextEvent(stateOf(...cycles), now), null);
  });
}

test('a cycle that lasts to the last instant of the year 9999 is never due for renewal', () => {
  const endless = recurring({ validityDays: VALIDITY_DAYS_MAX });
  assert.equal(endless.end, INSTANT_MAX);
  assert.equal(nextEvent(stateOf(endless), INSTANT_MAX), null);
});

test('a cycle that ends a millisecond before the last instant of the year 9999 is renewed for that millisecond', () => {
  const start = LAST_INSTANT - DAY_MS;
  const [renewal] = nextEvent(stateOf(recurring({ start, validityDays: 1 })), LAST_INSTANT) ?? [];
  assert.deepEqual([renewal?.createdAt, renewal?.expiresAt], [LAST_INSTANT, INSTANT_MAX]);
});

test('two active recurring cycles violate invariant 3, whether or not a renewal is due', () => {
  const state = stateOf(MONTHLY, oneTime({}, 2), recurring({}, 3));
  for (const now of [END - 1, END]) assert.throws(() => nextEvent(state, now), { invariant: 3 });
});
