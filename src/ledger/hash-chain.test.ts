// Tests that different postings, or the same postings in a different order, give different hashes.

import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { emptyHashChain, extendHashChain } from './hash-chain.ts';
import type { Plan } from './plan.ts';
import type { Posting } from './posting.ts';
import { transactionId } from './transaction-id.ts';

const ADA = { account: 1, endUser: '00000000-0000-4000-8000-000000000001' };
const NOON = Date.UTC(2026, 0, 31, 12);
const idAt = (sequence: number) => transactionId({ at: NOON, sequence, tail: '0123456789ab' });

const PLAN: Plan = { amount: 100, validityDays: 31, validityMonths: null, rolloverMax: 0 };

const POSTING: Posting = {
  transactionId: idAt(7),
  cycleId: idAt(3),
  period: 0,
  kind: 'subtract',
  amount: -12,
  held: 0,
  createdAt: NOON,
  expiresAt: NOON + 1,
  actor: 'key:1',
  note: null,
  terms: null,
  reference: null,
  holdExpiresAt: null,
};

test('a chain hash is the SHA-256 hash of the previous hash and all fields of the posting', () => {
  const text = `scrip 1 ${ADA.endUser}\n${POSTING.transactionId} ${POSTING.cycleId} 0 subtract -12 0 ${NOON} ${NOON + 1} - - - 5 - key:1`;
  const first = hash('sha256', text, 'base64url');
  assert.equal(extendHashChain(emptyHashChain(ADA), [POSTING]), first);
  const second = { ...POSTING, transactionId: idAt(8), note: 'ticket 4711' };
  const more = `${first}\n${second.transactionId} ${second.cycleId} 0 subtract -12 0 ${NOON} ${NOON + 1} - - - 5 11 key:1ticket 4711`;
  assert.equal(extendHashChain(first, [second]), hash('sha256', more, 'base64url'));
  assert.equal(extendHashChain(emptyHashChain(ADA), [POSTING, second]), hash('sha256', more, 'base64url'));
});

test('the hash of a hold covers its credits and its expiry, and the hash of a capture covers the ID of the hold', () => {
  const start = `${emptyHashChain(ADA)}\n${POSTING.transactionId} ${POSTING.cycleId} 0`;
  const until = NOON + 60_000;
  const hold: Posting = { ...POSTING, kind: 'hold', amount: 0, held: 12, holdExpiresAt: until };
  const held = `${start} hold 0 12 ${NOON} ${NOON + 1} - - ${until} 5 - key:1`;
  assert.equal(extendHashChain(emptyHashChain(ADA), [hold]), hash('sha256', held, 'base64url'));
  const capture: Posting = { ...POSTING, kind: 'capture', held: -15, reference: idAt(5) };
  const captured = `${start} capture -12 -15 ${NOON} ${NOON + 1} - ${idAt(5)} - 5 - key:1`;
  assert.equal(extendHashChain(emptyHashChain(ADA), [capture]), hash('sha256', captured, 'base64url'));
});

test('a different order of the postings within a transaction gives a different hash', () => {
  const [a, b, c] = [{ ...POSTING, cycleId: idAt(2), period: 5 }, POSTING, { ...POSTING, period: 1 }];
  const hashes = [
    [a, b, c],
    [a, c, b],
    [b, a, c],
    [b, c, a],
    [c, a, b],
    [c, b, a],
  ].map((postings) => extendHashChain(emptyHashChain(ADA), postings));
  assert.equal(new Set(hashes).size, 6);
  const line = ({ cycleId, period }: Posting) =>
    `\n${POSTING.transactionId} ${cycleId} ${period} subtract -12 0 ${NOON} ${NOON + 1} - - - 5 - key:1`;
  const expected = hash('sha256', `${emptyHashChain(ADA)}${[b, a, c].map(line).join('')}`, 'base64url');
  assert.equal(hashes[2], expected);
});

test('extending a hash chain by zero postings does not change it', () => {
  assert.equal(extendHashChain(emptyHashChain(ADA), []), emptyHashChain(ADA));
});

const CHANGES: readonly Partial<Posting>[] = [
  { transactionId: transactionId({ at: NOON, sequence: 7, tail: '0123456789aa' }) },
  { cycleId: transactionId({ at: NOON, sequence: 3, tail: '0123456789aa' }) },
  { period: 1 },
  { kind: 'renew' },
  { amount: -13 },
  { held: -1 },
  { held: 1 },
  { reference: idAt(3) },
  { reference: idAt(4) },
  { holdExpiresAt: NOON + 1 },
  { holdExpiresAt: NOON + 2 },
  { createdAt: NOON - 1 },
  { expiresAt: NOON + 2 },
  { actor: 'key:2' },
  { actor: 'key:10' },
  { note: 'goodwill' },
  { note: ' ' },
  { terms: { type: 'one-time', plan: PLAN } },
];

for (const change of CHANGES) {
  test(`a posting with a different ${Object.keys(change)} (${JSON.stringify(Object.values(change)[0])}) gives a different hash chain`, () => {
    const later = { ...POSTING, transactionId: idAt(9) };
    const hashes = [POSTING, { ...POSTING, ...change }].map((posting) =>
      extendHashChain(emptyHashChain(ADA), [posting, later]),
    );
    assert.notEqual(hashes[0], hashes[1]);
  });
}

test('the hash of a posting that opens a cycle depends on the type and the plan of the cycle', () => {
  const opening = { ...POSTING, terms: { type: 'recurring', plan: PLAN } } as const;
  const text = `${emptyHashChain(ADA)}\n${POSTING.transactionId} ${POSTING.cycleId} 0 subtract -12 0 ${NOON} ${NOON + 1}`;
  const expected = hash('sha256', `${text} recurring/100/31d - - 5 - key:1`, 'base64url');
  assert.equal(extendHashChain(emptyHashChain(ADA), [opening]), expected);
  const others = [
    { type: 'recurring', plan: { ...PLAN, validityDays: 3 } },
    { type: 'recurring', plan: { ...PLAN, amount: 101 } },
    { type: 'recurring', plan: { ...PLAN, rolloverMax: 1 } },
    { type: 'recurring', plan: { ...PLAN, validityDays: null, validityMonths: 31 } },
    { type: 'one-time', plan: PLAN },
  ] as const;
  for (const terms of others)
    assert.notEqual(extendHashChain(emptyHashChain(ADA), [{ ...opening, terms }]), expected, JSON.stringify(terms));
});

test('moving a character from the actor of a posting to its note gives a different hash chain', () => {
  const [a, b] = [
    { actor: 'key:1', note: '2' },
    { actor: 'key:12', note: null },
  ].map((free) => extendHashChain(emptyHashChain(ADA), [{ ...POSTING, ...free }]));
  const c = extendHashChain(emptyHashChain(ADA), [{ ...POSTING, actor: 'key:', note: '12' }]);
  assert.equal(new Set([a, b, c]).size, 3);
});

test('the same postings of another end user give a different hash chain', () => {
  const others = [
    { ...ADA, account: 2 },
    { ...ADA, endUser: '00000000-0000-4000-8000-000000000002' },
  ];
  assert.equal(new Set([ADA, ...others].map((user) => extendHashChain(emptyHashChain(user), [POSTING]))).size, 3);
});

const someText = fc.string({ minLength: 1, maxLength: 4, unit: 'binary' });
const someTransactions = fc
  .array(
    fc.record({
      cycles: fc.uniqueArray(fc.nat(5), { minLength: 1, maxLength: 4 }),
      amount: fc.integer({ min: -9, max: 9 }),
      actor: someText,
      note: fc.option(someText),
    }),
    { minLength: 1, maxLength: 8 },
  )
  .map((transactions) =>
    transactions.map(({ cycles, ...rest }, index) =>
      cycles.map((cycle): Posting => ({ ...POSTING, ...rest, transactionId: idAt(index + 1), cycleId: idAt(cycle) })),
    ),
  );

test('the hash chain does not depend on how its transactions are divided into batches', () => {
  fc.assert(
    fc.property(someTransactions, fc.nat(8), (transactions, split) => {
      const whole = extendHashChain(emptyHashChain(ADA), transactions.flat());
      const [first, second] = [transactions.slice(0, split), transactions.slice(split)];
      assert.equal(extendHashChain(extendHashChain(emptyHashChain(ADA), first.flat()), second.flat()), whole);
    }),
  );
});

test('reversing the postings of one transaction gives a different hash chain', () => {
  fc.assert(
    fc.property(someTransactions, fc.nat(7), (transactions, at) => {
      const place = at % transactions.length;
      const turned = (transactions[place] as Posting[]).toReversed();
      fc.pre(turned.length > 1);
      const whole = extendHashChain(emptyHashChain(ADA), transactions.flat());
      assert.notEqual(extendHashChain(emptyHashChain(ADA), transactions.with(place, turned).flat()), whole);
    }),
  );
});

test('omitting a transaction, or swapping or merging it with the next one, gives a different hash chain', () => {
  fc.assert(
    fc.property(someTransactions, fc.nat(7), (transactions, at) => {
      const place = at % transactions.length;
      const whole = extendHashChain(emptyHashChain(ADA), transactions.flat());
      assert.notEqual(extendHashChain(emptyHashChain(ADA), transactions.toSpliced(place, 1).flat()), whole);
      const [one, next] = transactions.slice(place, place + 2);
      if (one === undefined || next === undefined) return;
      assert.notEqual(extendHashChain(emptyHashChain(ADA), transactions.toSpliced(place, 2, next, one).flat()), whole);
      const joined = next.map((posting) => ({ ...posting, transactionId: (one[0] as Posting).transactionId }));
      assert.notEqual(extendHashChain(emptyHashChain(ADA), transactions.toSpliced(place + 1, 1, joined).flat()), whole);
    }),
  );
});

test('extending a hash chain does not reorder the given array of postings', () => {
  const postings = [5, 2, 4].map((cycle) => ({ ...POSTING, cycleId: idAt(cycle) }));
  const before = [...postings];
  extendHashChain(emptyHashChain(ADA), postings);
  assert.deepEqual(postings, before);
});
