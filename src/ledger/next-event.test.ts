// Tests an end user's next event: the renewal of the active cycle, or the lapse of the hold that expires first.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { holding, lapsing, oneTime, opening, recurring, stateOf } from '../../test/ledger/ledger-builders.ts';
import { applyAll } from './apply.ts';
import { type Cycle, periodAfter } from './cycle.ts';
import { DAY_MS, INSTANT_MAX, LAST_INSTANT, VALIDITY_DAYS_MAX } from './instant.ts';
import { isSettled, NEVER, nextEvent, nextEventAt } from './next-event.ts';
import type { Posting } from './posting.ts';
import { EMPTY_STATE, type EndUserState } from './state.ts';
import { renewalId, sequenceOf } from './transaction-id.ts';

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
  held: 0,
  createdAt: END,
  expiresAt: END + 31 * DAY_MS,
  actor: 'renewal',
  note: null,
  terms: { type: 'recurring', plan: MONTHLY.plan },
  reference: null,
  holdExpiresAt: null,
};

for (const [when, late] of [
  ['at the end', 0],
  ['a millisecond after the end', 1],
  ['31 days after the end', 31 * DAY_MS],
  ['ten years after the end', 3_650 * DAY_MS],
] as const) {
  test(`${when} of a period, the next event is the renewal as of the end of that period, with full credits`, () => {
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

const BOUGHT = oneTime({ validityDays: 90 }, 3);
const LAPSE = END - DAY_MS;

function withHolds(...postings: readonly Posting[]): EndUserState {
  return applyAll(stateOf(MONTHLY, BOUGHT), postings);
}

test('a hold is not due to lapse a millisecond before it expires', () => {
  const state = withHolds(holding(BOUGHT, 10, { until: LAPSE }));
  assert.equal(nextEvent(state, LAPSE - 1), null);
  assert(isSettled(state, LAPSE - 1) && !isSettled(state, LAPSE));
});

for (const [when, late] of [
  ['at the expiry', 0],
  ['a millisecond after the expiry', 1],
  ['a year after the expiry', 365 * DAY_MS],
] as const) {
  test(`${when} of a hold, the next event is its lapse as of the expiry, with one posting for each part of the hold`, () => {
    const [first, second] = [MONTHLY, BOUGHT].map((cycle) => holding(cycle, 10, { until: LAPSE })) as [
      Posting,
      Posting,
    ];
    assert.deepEqual(nextEvent(withHolds(first, second), LAPSE + late), [lapsing(first), lapsing(second)]);
  });
}

test('the posting of a lapse names the hold and its cycle, spends nothing, and has the actor `lapse`', () => {
  const posting = holding(BOUGHT, 10, { until: LAPSE });
  const [lapse] = nextEvent(withHolds(posting), LAPSE) ?? [];
  assert(lapse);
  const { transactionId, cycleId, period, kind, amount, held, createdAt, expiresAt, actor } = lapse;
  assert.deepEqual([cycleId, period, expiresAt], [BOUGHT.id, 0, BOUGHT.end]);
  assert.deepEqual([kind, amount, held, createdAt, actor], ['lapse', 0, -10, LAPSE, 'lapse']);
  assert.deepEqual(
    [lapse.note, lapse.terms, lapse.reference, lapse.holdExpiresAt],
    [null, null, posting.transactionId, null],
  );
  assert.equal(sequenceOf(transactionId), 1);
});

test('of several holds, the one that expires first lapses first, regardless of the order in which they were created', () => {
  const [late, early] = [LAPSE + 1, LAPSE].map((until, index) =>
    holding(BOUGHT, 1, { until, sequence: 90 + index }),
  ) as [Posting, Posting];
  for (const state of [withHolds(late, early), withHolds(early, late)]) {
    assert.equal(nextEventAt(state), LAPSE);
    assert.deepEqual(nextEvent(state, LAPSE + 1), [lapsing(early)]);
  }
});

test('holds that expire at the same instant lapse one after the other, in the order of the IDs of their lapse transactions', () => {
  const holds = [93, 91, 92].map((sequence) => holding(BOUGHT, 1, { until: LAPSE, sequence }));
  let state = withHolds(...holds);
  const ids: string[] = [];
  for (let event = nextEvent(state, LAPSE); event !== null; event = nextEvent(state, LAPSE)) {
    ids.push(...event.map(({ transactionId }) => transactionId));
    state = applyAll(state, event);
  }
  assert.deepEqual(ids, holds.map((posting) => lapsing(posting).transactionId).sort());
});

for (const [when, late, first] of [
  ['a millisecond before', -1, 'lapse'],
  ['at', 0, 'renewal'],
  ['a millisecond after', 1, 'renewal'],
] as const) {
  test(`the ${first} comes first if a hold expires ${when} the end of the period`, () => {
    const posting = holding(MONTHLY, 10, { until: END + late });
    const renewal = opening(periodAfter(MONTHLY, 1));
    const [one, other] = first === 'renewal' ? [renewal, lapsing(posting)] : [lapsing(posting), renewal];
    const state = withHolds(posting);
    assert.deepEqual(nextEvent(state, END + 1), [one]);
    assert.deepEqual(nextEvent(applyAll(state, [one]), END + 1), [other]);
  });
}

test('the instant of the next event is the earlier of the next renewal and the next lapse', () => {
  assert.equal(nextEventAt(EMPTY_STATE), NEVER);
  assert.equal(nextEventAt(stateOf(BOUGHT)), NEVER);
  assert.equal(nextEventAt(stateOf(MONTHLY)), END);
  assert.equal(nextEventAt(withHolds(holding(BOUGHT, 1, { until: END - 1 }))), END - 1);
  assert.equal(nextEventAt(withHolds(holding(BOUGHT, 1, { until: END + 1 }))), END);
});

test('nothing is ever due for an end user with neither a renewing cycle nor a hold', () => {
  for (const now of [INSTANT_MAX, NEVER, Number.POSITIVE_INFINITY]) assert.equal(nextEvent(stateOf(BOUGHT), now), null);
});
