// Tests that transaction IDs are UUIDs that sort by creation time, and that the IDs of renewals can be computed in
// advance.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { INSTANT_MAX } from './instant.ts';
import {
  FIRST_SEQUENCE,
  firstIdAt,
  idsBetween,
  instantOf,
  LAPSE_SEQUENCE,
  lastIdAt,
  RENEWAL_SEQUENCE,
  renewalId,
  SEQUENCE_COUNT,
  sequenceOf,
  transactionId,
} from './transaction-id.ts';

const NOW = Date.UTC(2026, 0, 15, 9, 30, 0, 123);
const TAIL = '0123456789ab';
const FORM = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const at = fc.oneof(
  fc.integer({ min: 0, max: INSTANT_MAX }),
  fc.constantFrom(0, 1, 0xffff, 0x10000, INSTANT_MAX - 1, INSTANT_MAX),
);
const sequence = fc.oneof(
  fc.integer({ min: 0, max: SEQUENCE_COUNT - 1 }),
  fc.constantFrom(0, 1, 2 ** 14 - 1, 2 ** 14, SEQUENCE_COUNT - 2, SEQUENCE_COUNT - 1),
);
const tail = fc.stringMatching(/^[0-9a-f]{12}$/);

test('a transaction ID contains its instant, its sequence number and its tail', () => {
  assert.equal(transactionId({ at: NOW, sequence: 0, tail: TAIL }), '019bc0fd-8a3b-4000-8000-0123456789ab');
  assert.equal(transactionId({ at: NOW, sequence: 1, tail: TAIL }), '019bc0fd-8a3b-4000-8001-0123456789ab');
  assert.equal(transactionId({ at: NOW, sequence: 2 ** 14, tail: TAIL }), '019bc0fd-8a3b-4001-8000-0123456789ab');
  assert.equal(
    transactionId({ at: NOW, sequence: SEQUENCE_COUNT - 1, tail: TAIL }),
    '019bc0fd-8a3b-4fff-bfff-0123456789ab',
  );
});

test('a transaction ID is a UUID with the version digit 4', () => {
  fc.assert(fc.property(fc.record({ at, sequence, tail }), (parts) => assert.match(transactionId(parts), FORM)));
});

test('the instant of a transaction can be read from its ID', () => {
  fc.assert(
    fc.property(fc.record({ at, sequence, tail }), (parts) => assert.equal(instantOf(transactionId(parts)), parts.at)),
  );
});

test('transaction IDs sort by instant, then by sequence number, regardless of their tails', () => {
  const parts = fc.record({ at, sequence, tail });
  fc.assert(
    fc.property(parts, parts, fc.boolean(), (a, b, isSameInstant) => {
      const other = isSameInstant ? { ...b, at: a.at } : b;
      fc.pre(a.at !== other.at || a.sequence !== other.sequence);
      const isBefore = a.at < other.at || (a.at === other.at && a.sequence < other.sequence);
      assert.equal(transactionId(a) < transactionId(other), isBefore);
    }),
  );
});

const REFUSED: readonly (readonly [what: string, parts: { at: number; sequence: number; tail: string }])[] = [
  ['an instant before 1970', { at: -1, sequence: 0, tail: TAIL }],
  ['an instant with half a millisecond', { at: NOW + 0.5, sequence: 0, tail: TAIL }],
  ['an instant after the last instant', { at: INSTANT_MAX + 1, sequence: 0, tail: TAIL }],
  ['a sequence number below 0', { at: NOW, sequence: -1, tail: TAIL }],
  ['a sequence number that is too large', { at: NOW, sequence: SEQUENCE_COUNT, tail: TAIL }],
  ['a tail that is too short', { at: NOW, sequence: 0, tail: TAIL.slice(1) }],
  ['a tail that is too long', { at: NOW, sequence: 0, tail: `${TAIL}c` }],
];

for (const [what, parts] of REFUSED) {
  test(`making a transaction ID from ${what} fails an assertion`, () =>
    assert.throws(() => transactionId(parts), { name: 'AssertionError' }));
}

test('the transaction ID of a renewal depends only on the cycle and the instant', () => {
  const cycleId = transactionId({ at: NOW - 5, sequence: 7, tail: TAIL });
  assert.equal(renewalId(cycleId, NOW), '019bc0fd-8a3b-4000-8000-0123456789ab');
  const otherCycleId = transactionId({ at: NOW - 5, sequence: 7, tail: 'ffffffffffff' });
  assert.notEqual(renewalId(otherCycleId, NOW), renewalId(cycleId, NOW));
  assert.notEqual(renewalId(cycleId, NOW + 1), renewalId(cycleId, NOW));
});

test('the ID of a renewal sorts before all other IDs of the same instant and after all IDs of the previous millisecond', () => {
  const cycleId = transactionId({ at: NOW - 5, sequence: 7, tail: 'ffffffffffff' });
  const renewal = renewalId(cycleId, NOW);
  assert(renewal < transactionId({ at: NOW, sequence: 1, tail: '000000000000' }));
  assert(renewal > transactionId({ at: NOW - 1, sequence: SEQUENCE_COUNT - 1, tail: 'ffffffffffff' }));
});

test('at the same instant, the IDs of renewals sort first, then those of lapses, then those of requests', () => {
  const id = (sequence: number, tail: string) => transactionId({ at: NOW, sequence, tail });
  const [low, high] = ['000000000000', 'ffffffffffff'];
  assert.deepEqual([RENEWAL_SEQUENCE, LAPSE_SEQUENCE, FIRST_SEQUENCE], [0, 1, 2]);
  assert(id(RENEWAL_SEQUENCE, high) < id(LAPSE_SEQUENCE, low));
  assert(id(LAPSE_SEQUENCE, high) < id(FIRST_SEQUENCE, low));
});

test('the sequence number of a transaction can be read from its ID', () => {
  for (const sequence of [0, 1, 2 ** 14 - 1, 2 ** 14, 2 ** 14 + 1, 2 ** 25 + 5, SEQUENCE_COUNT - 1])
    assert.equal(sequenceOf(transactionId({ at: 0x0123456789ab, sequence, tail: 'ffffffffffff' })), sequence);
});

test('the range of IDs between two instants contains exactly the IDs from the first instant to the second, both included', () => {
  const { first, last } = idsBetween(NOW, NOW + 5);
  const isWithin = (id: string) => first <= id && id <= last;
  const earliest = { sequence: 0, tail: '000000000000' };
  const latest = { sequence: SEQUENCE_COUNT - 1, tail: 'ffffffffffff' };
  assert(isWithin(transactionId({ at: NOW, ...earliest })));
  assert(isWithin(transactionId({ at: NOW + 5, ...latest })));
  assert(!isWithin(transactionId({ at: NOW - 1, ...latest })));
  assert(!isWithin(transactionId({ at: NOW + 6, ...earliest })));
});

test('the first and the last ID of an instant enclose exactly the IDs of that instant', () => {
  const parts = fc.record({ at, sequence, tail });
  fc.assert(
    fc.property(parts, at, (parts, instant) => {
      const id = transactionId(parts);
      assert.equal(firstIdAt(instant) <= id, instant <= parts.at);
      assert.equal(id <= lastIdAt(instant), parts.at <= instant);
    }),
  );
});
