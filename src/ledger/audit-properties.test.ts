// Tests that the audit finds nothing wrong in random histories that the ledger wrote, and finds any single change that
// makes such a history invalid.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { effort } from '../../test/effort.ts';
import {
  findingsOf,
  idAt,
  isAmountChecked,
  isPlanChecked,
  type MemoryLedger,
  NOW,
  type StoredEndUser,
} from '../../test/ledger/ledger-builders.ts';
import { histories } from '../../test/ledger/random-histories.ts';
import { type Cycle, type CycleType, hasEnded } from './cycle.ts';
import type { Hold, HoldPart } from './hold.ts';
import { DAY_MS } from './instant.ts';
import type { Plan } from './plan.ts';
import { POSTING_KINDS, type Posting } from './posting.ts';

type Stored = Required<StoredEndUser>;

const RUNS = effort(25, 100);

function stored({ cycles, holds, postings, now }: MemoryLedger): Stored {
  return { cycles, holds, postings, now };
}

test('the audit finds nothing wrong in random histories that the ledger wrote, whether it runs at the end of a history or later', () => {
  fc.assert(
    fc.property(histories, fc.nat({ max: 400 }), (ledger, days) => {
      assert.deepEqual(findingsOf(stored(ledger)), []);
      assert.deepEqual(findingsOf({ ...stored(ledger), now: ledger.now + days * DAY_MS }), []);
    }),
    { numRuns: 4 * RUNS },
  );
});

const deltas = fc.oneof(
  fc.constantFrom(-DAY_MS, -2, -1, 1, 2, DAY_MS),
  fc.integer({ min: -50, max: 50 }).filter((delta) => delta !== 0),
);
const strangers = fc.integer({ min: 1_000, max: 2_000 }).map((sequence) => idAt(NOW, sequence));

type Other<Row, Field extends keyof Row> = (row: Row, all: Stored) => fc.Arbitrary<Row[Field]>;

function otherThan<Value>(value: Value, values: readonly Value[]): fc.Arbitrary<Value> {
  return fc.constantFrom(...values.filter((each) => each !== value));
}

const otherId = (id: string, { cycles }: Stored) =>
  fc.oneof(strangers, otherThan(id, [...cycles.map((cycle) => cycle.id), idAt(0)]));

const DAILY: Plan = { amount: 1, validityDays: 1, validityMonths: null, rolloverMax: 0 };

function otherPlan(plan: Plan): fc.Arbitrary<Plan> {
  const { amount, validityDays, validityMonths, rolloverMax } = plan;
  return fc.oneof(
    deltas.map((delta) => ({ ...plan, amount: amount + delta })),
    deltas.map((delta) => ({ ...plan, rolloverMax: rolloverMax + delta })),
    fc.constant({ ...plan, validityDays: validityMonths, validityMonths: validityDays }),
    deltas.map((delta) =>
      validityDays === null
        ? { ...plan, validityMonths: Number(validityMonths) + delta }
        : { ...plan, validityDays: validityDays + delta },
    ),
  );
}

const CYCLE_FIELDS: { readonly [Field in keyof Cycle]: Other<Cycle, Field> } = {
  id: ({ id }, all) => otherId(id, all),
  period: ({ period }) => deltas.map((delta) => period + delta),
  type: ({ type }) => otherThan(type, ['one-time', 'recurring']),
  status: ({ status }) => otherThan(status, ['active', 'canceled', 'superseded']),
  amount: ({ amount }) => deltas.map((delta) => amount + delta),
  remaining: ({ remaining }) => deltas.map((delta) => remaining + delta),
  held: ({ held }) => deltas.map((delta) => held + delta),
  start: ({ start }) => deltas.map((delta) => start + delta),
  end: ({ end }) => deltas.map((delta) => end + delta),
  plan: ({ plan }) => otherPlan(plan),
  next: ({ next }) =>
    next === null
      ? strangers.map((id) => ({ id, plan: DAILY }))
      : fc.oneof(
          fc.constant(null),
          strangers.map((id) => ({ ...next, id })),
          otherPlan(next.plan).map((plan) => ({ ...next, plan })),
        ),
};

const PART_FIELDS: { readonly [Field in keyof HoldPart]: Other<HoldPart, Field> } = {
  cycleId: ({ cycleId }, all) => otherId(cycleId, all),
  period: ({ period }) => deltas.map((delta) => period + delta),
  amount: ({ amount }) => deltas.map((delta) => amount + delta),
  end: ({ end }) => deltas.map((delta) => end + delta),
};

const HOLD_FIELDS: { readonly [Field in keyof Hold]: Other<Hold, Field> } = {
  id: () => strangers,
  expiresAt: ({ expiresAt }) => deltas.map((delta) => expiresAt + delta),
  parts: ({ parts }, all) =>
    fc.nat({ max: parts.length - 1 }).chain((place) => {
      const part = parts[place] as HoldPart;
      const changed = Object.entries(PART_FIELDS).map(([field, other]) =>
        (other as Other<HoldPart, keyof HoldPart>)(part, all).map((value) =>
          parts.with(place, { ...part, [field]: value }),
        ),
      );
      return fc.oneof(...changed, fc.constant(parts.toSpliced(place, 1)), fc.constant(parts.toSpliced(place, 0, part)));
    }),
};

type PostingField = Exclude<keyof Posting, 'transactionId' | 'actor' | 'note'>;

/**
 * Omits `transactionId`, `actor` and `note`, because only the hash chain detects every change to these fields.
 * `isFound` excludes further changes that only the hash chain detects.
 */
const POSTING_FIELDS: { readonly [Field in PostingField]: Other<Posting, Field> } = {
  cycleId: ({ cycleId }, all) => otherId(cycleId, all),
  period: ({ period }) => deltas.map((delta) => period + delta),
  kind: ({ kind }) => otherThan(kind, POSTING_KINDS),
  amount: ({ amount }) => deltas.map((delta) => amount + delta),
  held: ({ held }) => deltas.map((delta) => held + delta),
  createdAt: ({ createdAt }) => deltas.map((delta) => createdAt + delta),
  expiresAt: ({ expiresAt }) => deltas.map((delta) => expiresAt + delta),
  terms: ({ terms }) =>
    terms === null
      ? fc.constant({ type: 'one-time' as const, plan: DAILY })
      : fc.oneof(
          fc.constant(null),
          otherThan<CycleType>(terms.type, ['one-time', 'recurring']).map((type) => ({ ...terms, type })),
          otherPlan(terms.plan).map((plan) => ({ ...terms, plan })),
        ),
  reference: ({ reference }, { postings }) =>
    otherThan(reference, [null, idAt(0), ...new Set(postings.map(({ transactionId }) => transactionId))]),
  holdExpiresAt: ({ holdExpiresAt }) =>
    holdExpiresAt === null
      ? deltas.map((delta) => NOW + delta)
      : fc.oneof(
          fc.constant(null),
          deltas.map((delta) => holdExpiresAt + delta),
        ),
};

function isFound(field: PostingField, posting: Posting, changed: Posting, all: Stored): boolean {
  switch (field) {
    case 'amount':
      return isAmountChecked(posting, all);
    case 'terms':
      return isPlanChecked(posting, all);
    case 'cycleId':
    case 'reference':
      return posting.kind !== 'refund' || !isRefundOf(changed, all);
    case 'holdExpiresAt':
      return changed.holdExpiresAt === null || posting.kind !== 'hold' || isExpiryChecked(posting, all);
    default:
      return true;
  }
}

function isRefundOf({ reference, cycleId, period, expiresAt }: Posting, { postings }: Stored): boolean {
  return postings.some(
    (other) =>
      other.transactionId === reference &&
      (other.kind === 'subtract' || other.kind === 'capture') &&
      other.cycleId === cycleId &&
      other.period === period &&
      other.expiresAt === expiresAt,
  );
}

/**
 * If the transaction that created a hold has only one posting, and the hold was captured or released, the audit cannot
 * check when the hold would have expired.
 */
function isExpiryChecked({ transactionId: id }: Posting, { postings, holds }: Stored): boolean {
  const isOpen = holds.some((hold) => hold.id === id);
  const hasLapsed = postings.some(({ kind, reference }) => kind === 'lapse' && reference === id);
  return isOpen || hasLapsed || postings.filter(({ transactionId }) => transactionId === id).length > 1;
}

const written = histories.map(stored).filter(({ postings }) => postings.length > 0);
const withHolds = written.filter(({ holds }) => holds.length > 0);

function changes<Row extends object>(
  rowsOf: (all: Stored) => readonly Row[],
  field: keyof Row,
  other: (row: Row, all: Stored) => fc.Arbitrary<unknown>,
  from = written,
): fc.Arbitrary<{ all: Stored; place: number; changed: Row }> {
  return from.chain((all) =>
    fc.nat({ max: rowsOf(all).length - 1 }).chain((place) => {
      const row = rowsOf(all)[place] as Row;
      return other(row, all).map((value) => ({ all, place, changed: { ...row, [field]: value } }));
    }),
  );
}

for (const [field, other] of Object.entries(CYCLE_FIELDS)) {
  test(`in a random history, the audit finds any change to the ${field} field of a stored cycle`, () => {
    const any = changes(({ cycles }) => cycles, field as keyof Cycle, other as Other<Cycle, keyof Cycle>);
    fc.assert(
      fc.property(any, ({ all, place, changed }) => {
        fc.pre(field !== 'held' || !hasEnded(changed, all.now));
        assert.notDeepEqual(findingsOf({ ...all, cycles: all.cycles.with(place, changed) }), []);
      }),
      { numRuns: RUNS },
    );
  });
}

for (const [field, other] of Object.entries(HOLD_FIELDS)) {
  test(`in a random history, the audit finds any change to the ${field} field of a stored hold`, () => {
    const any = changes(({ holds }) => holds, field as keyof Hold, other as Other<Hold, keyof Hold>, withHolds);
    fc.assert(
      fc.property(any, ({ all, place, changed }) => {
        assert.notDeepEqual(findingsOf({ ...all, holds: all.holds.with(place, changed) }), []);
      }),
      { numRuns: RUNS },
    );
  });
}

for (const [field, other] of Object.entries(POSTING_FIELDS)) {
  test(`in a random history, the audit finds any change to the ${field} field of a posting if the change makes the history invalid`, () => {
    const any = changes(({ postings }) => postings, field as PostingField, other as Other<Posting, PostingField>);
    fc.assert(
      fc.property(any, ({ all, place, changed }) => {
        fc.pre(isFound(field as PostingField, all.postings[place] as Posting, changed, all));
        assert.notDeepEqual(findingsOf({ ...all, postings: all.postings.with(place, changed) }), []);
      }),
      { numRuns: 2 * RUNS },
    );
  });
}

function isDeletionFound(posting: Posting, all: Stored): boolean {
  return (isAmountChecked(posting, all) && isPlanChecked(posting, all)) || posting.held !== 0;
}

test('in a random history, the audit finds any missing or duplicate cycle, any duplicate posting, and any missing posting that affects the stored cycles or holds', () => {
  fc.assert(
    fc.property(written, fc.nat(), (all, random) => {
      const { cycles, postings } = all;
      const cycle = random % cycles.length;
      const posting = random % postings.length;
      const row = postings[posting] as Posting;
      assert.notDeepEqual(findingsOf({ ...all, cycles: cycles.toSpliced(cycle, 1) }), []);
      assert.notDeepEqual(findingsOf({ ...all, cycles: cycles.toSpliced(cycle, 0, cycles[cycle] as Cycle) }), []);
      assert.notDeepEqual(findingsOf({ ...all, postings: postings.toSpliced(posting, 0, row) }), []);
      if (!isDeletionFound(row, all)) return;
      assert.notDeepEqual(findingsOf({ ...all, postings: postings.toSpliced(posting, 1) }), []);
    }),
    { numRuns: 3 * RUNS },
  );
});

test('in a random history, the audit finds any missing or duplicate hold, and holds in reverse order', () => {
  fc.assert(
    fc.property(withHolds, fc.nat(), (all, random) => {
      const { holds } = all;
      const place = random % holds.length;
      assert.notDeepEqual(findingsOf({ ...all, holds: holds.toSpliced(place, 1) }), []);
      assert.notDeepEqual(findingsOf({ ...all, holds: holds.toSpliced(place, 0, holds[place] as Hold) }), []);
      if (holds.length > 1) assert.notDeepEqual(findingsOf({ ...all, holds: holds.toReversed() }), []);
    }),
    { numRuns: RUNS },
  );
});

test('in a random history, the audit finds any two swapped postings of different transactions', () => {
  fc.assert(
    fc.property(written, fc.nat(), fc.nat(), (all, one, other) => {
      const { postings } = all;
      const [a, b] = [one % postings.length, other % postings.length];
      const [first, second] = [postings[a] as Posting, postings[b] as Posting];
      fc.pre(first.transactionId !== second.transactionId);
      assert.notDeepEqual(findingsOf({ ...all, postings: postings.with(a, second).with(b, first) }), []);
    }),
    { numRuns: RUNS },
  );
});
