// Tests how many credits are held at an instant, the order in which holds lapse, and the IDs of lapses.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { holding, holdOf, idAt, NOW, oneTime } from '../../test/ledger/ledger-builders.ts';
import { AMOUNT_MAX } from './amount.ts';
import { HOLD_SECONDS_DEFAULT, HOLD_SECONDS_MAX, type Hold, heldAt, heldBy, lapseId, lapseOrder } from './hold.ts';
import { DAY_MS, INSTANT_MAX, type Instant } from './instant.ts';
import { instantOf, renewalId, sequenceOf } from './transaction-id.ts';

const [FIRST, SECOND] = [oneTime(), oneTime({}, 3)];

function holdUntil(until: Instant, sequence = 99): Hold {
  return holdOf(holding(FIRST, 10, { until, sequence }), holding(SECOND, 5, { until, sequence }));
}

test('the credits of a hold are the sum of its parts', () => {
  assert.equal(heldBy(holdUntil(NOW + 1)), 15);
});

const LAPSE = NOW + 1_000;
const LAPSE_ID_PREFIX = idAt(LAPSE).slice(0, 13);

for (const [when, at, held] of [
  ['a millisecond before it lapses', LAPSE - 1, 15],
  ['when it lapses', LAPSE, 0],
  ['a millisecond after it has lapsed', LAPSE + 1, 0],
] as const) {
  test(`${when}, a hold sets ${held === 0 ? 'nothing' : 'its credits'} aside`, () => {
    assert.equal(heldAt([holdUntil(LAPSE)], at), held);
  });
}

test('the held credits of an end user are the sum of all holds that have not lapsed', () => {
  const holds = [holdUntil(LAPSE), holdUntil(LAPSE + 1), holdUntil(LAPSE + 2)];
  assert.deepEqual(
    [LAPSE - 1, LAPSE, LAPSE + 1, LAPSE + 2].map((at) => heldAt(holds, at)),
    [45, 30, 15, 0],
  );
  assert.equal(heldAt([], LAPSE), 0);
});

test('held credits above 2^53−1 fail an assertion instead of being rounded', () => {
  const most = holdOf(holding(oneTime({ amount: AMOUNT_MAX }), AMOUNT_MAX, { until: LAPSE }));
  assert.equal(heldAt([most], NOW), AMOUNT_MAX);
  assert.throws(() => heldAt([most, holdUntil(LAPSE)], NOW), { name: 'AssertionError' });
});

test('the ID of a lapse depends only on the ID and the expiry of the hold, and sorts after the IDs of renewals and before those of requests at the same instant', () => {
  const hold = holdUntil(LAPSE);
  const id = lapseId(hold);
  assert.equal(id, `${LAPSE_ID_PREFIX}-4000-8001-${hold.id.slice(24)}`);
  assert.deepEqual([instantOf(id), sequenceOf(id)], [LAPSE, 1]);
  assert.equal(lapseId({ ...hold, parts: hold.parts.slice(1) }), id);
  assert.notEqual(lapseId(holdUntil(LAPSE, 98)), id);
  assert.notEqual(lapseId(holdUntil(LAPSE + 1)), id);
  assert(renewalId(idAt(NOW, 2 ** 20), LAPSE) < id);
  assert(id < idAt(LAPSE));
});

test('a hold can lapse at the last instant of the year 9999', () => {
  assert.equal(instantOf(lapseId(holdUntil(INSTANT_MAX))), INSTANT_MAX);
});

test('a hold lasts 15 minutes by default, and at most 30 days', () => {
  assert.equal(HOLD_SECONDS_DEFAULT, 15 * 60);
  assert.equal(HOLD_SECONDS_MAX * 1_000, 30 * DAY_MS);
});

test('holds lapse in the order of the IDs of their lapse transactions', () => {
  const holds = fc.uniqueArray(fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 2, max: 40 })), {
    selector: ([, sequence]) => sequence,
    maxLength: 12,
  });
  fc.assert(
    fc.property(holds, (all) => {
      const sorted = all.map(([later, sequence]) => holdUntil(LAPSE + later, sequence)).sort(lapseOrder);
      const ids = sorted.map(lapseId);
      assert.deepEqual(ids, ids.toSorted());
      for (const hold of sorted) assert.equal(lapseOrder(hold, hold), 0);
    }),
  );
});
