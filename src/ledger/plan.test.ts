// Tests the limits of plans, their text form, and when their periods end.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { idAt, NOW } from '../../test/ledger/ledger-builders.ts';
import { AMOUNT_MAX } from './amount.ts';
import { DAY_MS, INSTANT_MAX, VALIDITY_DAYS_MAX } from './instant.ts';
import {
  assertPlan,
  endOf,
  isInRange,
  isSamePlan,
  isValidity,
  type Plan,
  planOfText,
  planText,
  scheduledOfText,
  scheduledText,
  VALIDITY_MONTHS_MAX,
} from './plan.ts';
import { termsOfText, termsText } from './posting.ts';

const PLAN: Plan = { amount: 100, validityDays: 31, validityMonths: null, rolloverMax: 0 };

const VALIDITIES: readonly (readonly [days: number | null, months: number | null, isOne: boolean])[] = [
  [1, null, true],
  [VALIDITY_DAYS_MAX, null, true],
  [VALIDITY_DAYS_MAX + 1, null, false],
  [0, null, false],
  [-1, null, false],
  [1.5, null, false],
  [Number.NaN, null, false],
  [null, 1, true],
  [null, 120, true],
  [null, 121, false],
  [null, 0, false],
  [null, -1, false],
  [null, 1.5, false],
  [null, null, false],
  [1, 1, false],
];

for (const [validityDays, validityMonths, isOne] of VALIDITIES) {
  test(`a validity of ${validityDays ?? 'no'} days and ${validityMonths ?? 'no'} months ${isOne ? 'is' : 'is not'} valid`, () => {
    assert.equal(isValidity({ validityDays, validityMonths }), isOne);
    const plan = { ...PLAN, validityDays, validityMonths };
    if (isOne) assertPlan(plan);
    else assert.throws(() => assertPlan(plan), { invariant: 4 });
  });
}

const AMOUNTS: readonly (readonly [amount: number, rolloverMax: number, isOne: boolean])[] = [
  [1, 0, true],
  [1, 1, true],
  [AMOUNT_MAX, 0, true],
  [AMOUNT_MAX - 1, 1, true],
  [1, AMOUNT_MAX - 1, true],
  [AMOUNT_MAX, 1, false],
  [1, AMOUNT_MAX, false],
  [AMOUNT_MAX, AMOUNT_MAX, false],
  [AMOUNT_MAX + 1, 0, false],
  [0, 0, false],
  [0, 1, false],
  [-1, 0, false],
  [1, -1, false],
  [1.5, 0, false],
  [1, 0.5, false],
];

for (const [amount, rolloverMax, isOne] of AMOUNTS) {
  test(`a plan of ${amount} credits with a rollover of ${rolloverMax} ${isOne ? 'is' : 'is not'} valid`, () => {
    const plan = { ...PLAN, amount, rolloverMax };
    assert.equal(isInRange(plan), isOne);
    if (isOne) assertPlan(plan);
    else assert.throws(() => assertPlan(plan), { invariant: 1 });
  });
}

const TEXTS: readonly (readonly [text: string, plan: Plan])[] = [
  ['100/31d', PLAN],
  ['100/31d/50', { ...PLAN, rolloverMax: 50 }],
  ['100/1m', { ...PLAN, validityDays: null, validityMonths: 1 }],
  ['100/12m/1', { ...PLAN, validityDays: null, validityMonths: 12, rolloverMax: 1 }],
  [`${AMOUNT_MAX}/2932897d`, { ...PLAN, amount: AMOUNT_MAX, validityDays: VALIDITY_DAYS_MAX }],
];

for (const [text, plan] of TEXTS) {
  test(`the text of a plan in both stores is as documented: ${text}`, () => {
    assert.equal(planText(plan), text);
    assert.deepEqual(planOfText(text), plan);
    assert.deepEqual(planOfText(text), plan, 'the same when it is read again');
    const scheduled = { id: idAt(NOW), plan };
    assert.equal(scheduledText(scheduled), `${idAt(NOW)}/${text}`);
    assert.deepEqual(scheduledOfText(`${idAt(NOW)}/${text}`), scheduled);
    assert.equal(termsText({ type: 'recurring', plan }), `recurring/${text}`);
    assert.deepEqual(termsOfText(`recurring/${text}`), { type: 'recurring', plan });
    assert.deepEqual(termsOfText(`one-time/${text}`), { type: 'one-time', plan });
  });
}

for (const text of [
  '',
  '100',
  '100/31',
  '100/d',
  '0/31d',
  '-1/31d',
  '1.5/31d',
  '100/31y',
  '100/31d/',
  '100/31d/0',
  '100/31d/5/5',
  ' 100/31d',
  '100/31d\n',
  '0100/31d',
  '1e3/31d',
]) {
  test(`a stored plan with the text ${JSON.stringify(text)} is not valid`, () => {
    assert.equal(isValidity(planOfText(text)), false);
    assert.equal(isInRange(planOfText(text)), false);
    assert.throws(() => assertPlan(planOfText(text)), { name: 'AssertionError' });
  });
}

test('if no plan is scheduled, the stored text of the scheduled plan is null', () => {
  assert.equal(scheduledText(null), null);
  assert.equal(scheduledOfText(null), null);
});

const plans: fc.Arbitrary<Plan> = fc
  .tuple(
    fc.integer({ min: 1, max: AMOUNT_MAX }),
    fc.integer({ min: 1, max: VALIDITY_MONTHS_MAX }),
    fc.boolean(),
    fc.nat(),
  )
  .map(([amount, count, inMonths, rolloverMax]) => ({
    amount,
    validityDays: inMonths ? null : count,
    validityMonths: inMonths ? count : null,
    rolloverMax: Math.min(rolloverMax, AMOUNT_MAX - amount),
  }));

test('writing a plan as text and reading it back gives the same plan, and two plans with the same text are the same plan', () => {
  fc.assert(
    fc.property(plans, plans, (plan, other) => {
      assert.deepEqual(planOfText(planText(plan)), plan);
      assert(isSamePlan(plan, { ...plan }));
      const isEqual = JSON.stringify(plan) === JSON.stringify(other);
      assert.equal(isSamePlan(plan, other), isEqual);
      assert.equal(planText(plan) === planText(other), isEqual);
    }),
    { numRuns: 3_000 },
  );
});

test('thousands of different plans are parsed correctly, both the first and the second time', () => {
  for (let round = 0; round < 2; round++)
    for (let amount = 1; amount <= 2_500; amount++)
      assert.deepEqual(planOfText(`${amount}/1m/${amount + 1}`), {
        amount,
        validityDays: null,
        validityMonths: 1,
        rolloverMax: amount + 1,
      });
});

const CHANGES: readonly Partial<Plan>[] = [
  { amount: 101 },
  { validityDays: 30 },
  { validityDays: null, validityMonths: 31 },
  { rolloverMax: 1 },
];

for (const change of CHANGES) {
  test(`two plans that differ in ${Object.keys(change).join(' and ')} are not the same plan`, () => {
    assert(!isSamePlan(PLAN, { ...PLAN, ...change }));
  });
}

test('the end of several consecutive periods is computed from the start of the first, and is never after the year 9999', () => {
  const start = Date.UTC(2026, 0, 31, 12);
  assert.equal(endOf(start, PLAN), start + 31 * DAY_MS);
  assert.equal(endOf(start, PLAN, 0), start);
  assert.equal(endOf(start, PLAN, 3), start + 93 * DAY_MS);
  const quarterly = { validityDays: null, validityMonths: 3 };
  assert.equal(endOf(start, quarterly), Date.UTC(2026, 3, 30, 12));
  assert.equal(endOf(start, quarterly, 0), start);
  assert.equal(endOf(start, quarterly, 2), Date.UTC(2026, 6, 31, 12));
  for (const plan of [PLAN, quarterly]) assert.equal(endOf(start, plan, 200_000), INSTANT_MAX);
});
