// The audit of random histories: it reports nothing for a history as written, and reports any single change to it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ADA, histories, idAt, type MemoryLedger, NOW } from '../../test/ledger/ledger-builders.ts';
import { audit, type Finding } from './audit.ts';
import type { Cycle, CycleType } from './cycle.ts';
import { DAY_MS } from './instant.ts';
import type { Posting } from './posting.ts';

interface Stored {
  readonly cycles: readonly Cycle[];
  /** Oldest first. */
  readonly postings: readonly Posting[];
  readonly now: number;
}

function findings({ cycles, postings, now }: Stored): Finding[] {
  return [...audit({ user: ADA, cycles, postings }, now)];
}

function stored({ cycles, postings, now }: MemoryLedger): Stored {
  return { cycles, postings, now };
}

test('the audit finds nothing wrong in random histories that the ledger wrote, at once and later', () => {
  fc.assert(
    fc.property(histories, fc.nat({ max: 400 }), (ledger, days) => {
      assert.deepEqual(findings(stored(ledger)), []);
      assert.deepEqual(findings({ ...stored(ledger), now: ledger.now + days * DAY_MS }), []);
    }),
    { numRuns: 400 },
  );
});

const deltas = fc.oneof(
  fc.constantFrom(-DAY_MS, -2, -1, 1, 2, DAY_MS),
  fc.integer({ min: -50, max: 50 }).filter((delta) => delta !== 0),
);
const strangers = fc.integer({ min: 1_000, max: 2_000 }).map((sequence) => idAt(NOW, sequence));

/** Generates a value that differs from the current one. */
type Other<Row, Field extends keyof Row> = (row: Row, all: Stored) => fc.Arbitrary<Row[Field]>;

function otherThan<Value>(value: Value, values: readonly Value[]): fc.Arbitrary<Value> {
  return fc.constantFrom(...values.filter((each) => each !== value));
}

const otherId = (id: string, { cycles }: Stored) =>
  fc.oneof(strangers, otherThan(id, [...cycles.map((cycle) => cycle.id), idAt(0)]));

const CYCLE_FIELDS: { readonly [Field in keyof Cycle]: Other<Cycle, Field> } = {
  id: ({ id }, all) => otherId(id, all),
  period: ({ period }) => deltas.map((delta) => period + delta),
  type: ({ type }) => otherThan(type, ['one-time', 'recurring']),
  status: ({ status }) => otherThan(status, ['active', 'canceled', 'superseded']),
  amount: ({ amount }) => deltas.map((delta) => amount + delta),
  remaining: ({ remaining }) => deltas.map((delta) => remaining + delta),
  start: ({ start }) => deltas.map((delta) => start + delta),
  end: ({ end }) => deltas.map((delta) => end + delta),
  validityDays: ({ validityDays }) => deltas.map((delta) => validityDays + delta),
};

type PostingField = Exclude<keyof Posting, 'transactionId' | 'actor' | 'note'>;

/** The other fields can change without a contradiction: only the hash chain covers them. */
const POSTING_FIELDS: { readonly [Field in PostingField]: Other<Posting, Field> } = {
  cycleId: ({ cycleId }, all) => otherId(cycleId, all),
  period: ({ period }) => deltas.map((delta) => period + delta),
  kind: ({ kind }) => otherThan(kind, ['add', 'start-cycle', 'renew', 'subtract', 'stop-cycle']),
  amount: ({ amount }) => deltas.map((delta) => amount + delta),
  createdAt: ({ createdAt }) => deltas.map((delta) => createdAt + delta),
  expiresAt: ({ expiresAt }) => deltas.map((delta) => expiresAt + delta),
  terms: ({ terms }) =>
    terms === null
      ? fc.constant({ type: 'one-time' as const, validityDays: 1 })
      : fc.oneof(
          fc.constant(null),
          otherThan<CycleType>(terms.type, ['one-time', 'recurring']).map((type) => ({ ...terms, type })),
          deltas.map((delta) => ({ ...terms, validityDays: terms.validityDays + delta })),
        ),
};

/**
 * The audit cannot check the amount of a subtraction from an earlier period of a cycle: only the remaining credits of
 * the latest period are stored.
 */
function isCompared({ kind, cycleId, period }: Posting, { cycles }: Stored): boolean {
  return kind !== 'subtract' || cycles.some((cycle) => cycle.id === cycleId && cycle.period === period);
}

const written = histories.map(stored).filter(({ postings }) => postings.length > 0);

/** A random history, and a changed copy of its row at the index `place`: one field has another value. */
function changes<Row extends object>(
  rowsOf: (all: Stored) => readonly Row[],
  field: keyof Row,
  other: (row: Row, all: Stored) => fc.Arbitrary<unknown>,
): fc.Arbitrary<{ all: Stored; place: number; changed: Row }> {
  return written.chain((all) =>
    fc.nat({ max: rowsOf(all).length - 1 }).chain((place) => {
      const row = rowsOf(all)[place] as Row;
      return other(row, all).map((value) => ({ all, place, changed: { ...row, [field]: value } }));
    }),
  );
}

for (const [field, other] of Object.entries(CYCLE_FIELDS)) {
  test(`in a random history, the audit finds any change to the field ${field} of a stored cycle`, () => {
    const any = changes(({ cycles }) => cycles, field as keyof Cycle, other as Other<Cycle, keyof Cycle>);
    fc.assert(
      fc.property(any, ({ all, place, changed }) => {
        assert.notDeepEqual(findings({ ...all, cycles: all.cycles.with(place, changed) }), []);
      }),
    );
  });
}

for (const [field, other] of Object.entries(POSTING_FIELDS)) {
  test(`in a random history, the audit finds any change to the field ${field} of a posting`, () => {
    const any = changes(({ postings }) => postings, field as PostingField, other as Other<Posting, PostingField>);
    fc.assert(
      fc.property(any, ({ all, place, changed }) => {
        fc.pre(field !== 'amount' || isCompared(all.postings[place] as Posting, all));
        assert.notDeepEqual(findings({ ...all, postings: all.postings.with(place, changed) }), []);
      }),
      { numRuns: 200 },
    );
  });
}

test('in a random history, the audit finds any missing or duplicate cycle or posting', () => {
  fc.assert(
    fc.property(written, fc.nat(), (all, random) => {
      const { cycles, postings } = all;
      const cycle = random % cycles.length;
      const posting = random % postings.length;
      const row = postings[posting] as Posting;
      assert.notDeepEqual(findings({ ...all, cycles: cycles.toSpliced(cycle, 1) }), []);
      assert.notDeepEqual(findings({ ...all, cycles: cycles.toSpliced(cycle, 0, cycles[cycle] as Cycle) }), []);
      assert.notDeepEqual(findings({ ...all, postings: postings.toSpliced(posting, 0, row) }), []);
      if (isCompared(row, all)) assert.notDeepEqual(findings({ ...all, postings: postings.toSpliced(posting, 1) }), []);
    }),
    { numRuns: 300 },
  );
});

test('in a random history, the audit finds any two swapped postings of different transactions', () => {
  fc.assert(
    fc.property(written, fc.nat(), fc.nat(), ({ cycles, postings, now }, one, other) => {
      const [a, b] = [one % postings.length, other % postings.length];
      const [first, second] = [postings[a] as Posting, postings[b] as Posting];
      fc.pre(first.transactionId !== second.transactionId);
      assert.notDeepEqual(findings({ cycles, postings: postings.with(a, second).with(b, first), now }), []);
    }),
  );
});
