// One idempotency key, one effect, one answer: within a batch, and with what was stored before it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ACCEPTED, type Command } from './command.ts';
import { batchOf, type Folded, fold } from './fold.ts';
import { type IdempotencyRecord, idempotencyOf, NO_RECORDS, nameOf, requestOf } from './idempotency.ts';
import { transactionId } from './transaction-id.ts';

const NOON = Date.UTC(2026, 0, 31, 12);
const ADA = { account: 1, endUser: '00000000-0000-4000-8000-000000000001', actor: 'key:1' };
const BOB = { ...ADA, endUser: '00000000-0000-4000-8000-000000000002' };

function keyed(key: string, requestId = `request-${key}`) {
  return { idempotency: { key, requestId } };
}

const add = (amount: number, rest = {}): Command => ({ kind: 'add', ...ADA, amount, validityDays: 31, ...rest });
const subtract = (amount: number, rest = {}): Command => ({ kind: 'subtract', ...ADA, amount, ...rest });

/** Decides commands of end users who hold nothing. */
function folded(commands: readonly Command[], stored: readonly IdempotencyRecord[] = []): Folded {
  let sequence = 0;
  const nextId = () => transactionId({ at: NOON, sequence: ++sequence, tail: '0123456789ab' });
  const batch = batchOf(commands);
  const answers =
    stored.length === 0 ? NO_RECORDS : new Map(stored.map((answer) => [nameOf(answer, answer.key), answer]));
  return fold(batch, { cycles: batch.users.map(() => []), answers }, { now: NOON, nextId }, 1_000);
}

const postingsOf = ({ changes }: Folded) => changes.flatMap(({ postings }) => postings.map(({ amount }) => amount));

test('a key that comes twice in a batch has one effect, and the outcome of the first both times', () => {
  const twice = folded([add(5, keyed('a')), add(5, keyed('a', 'another request'))]);
  assert.deepEqual(twice.outcomes, [ACCEPTED, { ...ACCEPTED, replayOf: 'request-a' }]);
  assert.deepEqual(postingsOf(twice), [5]);
});

test('what is kept of a request is all that its repetition needs', () => {
  const { answers } = folded([add(5, keyed('a'))]);
  const { account, endUser } = ADA;
  const expected = { account, endUser, key: 'a', requestId: 'request-a', request: 'add 5 31' };
  assert.deepEqual(answers, [{ ...expected, outcome: ACCEPTED, answeredAt: NOON, index: 0 }]);
});

test('a key that was used before this batch has no further effect, and nothing more is kept of it', () => {
  const [answer] = folded([add(5, keyed('a'))]).answers;
  assert(answer);
  const again = folded([add(5, keyed('a', 'later'))], [answer]);
  assert.deepEqual(again.outcomes, [{ ...ACCEPTED, replayOf: 'request-a' }]);
  assert.deepEqual([again.changes, again.answers], [[], []]);
});

test('a refusal is an answer as well', () => {
  const refused = folded([subtract(5, keyed('a')), add(9), subtract(5, keyed('a'))]);
  const refusal = { refused: 'InsufficientFunds', requested: 5, available: 0 };
  assert.deepEqual(refused.outcomes, [refusal, ACCEPTED, { ...refusal, replayOf: 'request-a' }]);
  assert.deepEqual(postingsOf(refused), [9]);
});

test('a request without a key is another one each time, and nothing is kept of it', () => {
  const { outcomes, answers, changes } = folded([add(5), add(5)]);
  assert.deepEqual([outcomes, answers], [[ACCEPTED, ACCEPTED], []]);
  assert.equal(changes[0]?.postings.length, 2);
});

test('a key belongs to its account and its end user', () => {
  const all = [add(1, keyed('a')), add(2, { ...BOB, ...keyed('a') }), add(3, { account: 2, ...keyed('a') })];
  const each = folded(all);
  assert.deepEqual(each.outcomes, [ACCEPTED, ACCEPTED, ACCEPTED]);
  assert.equal(each.answers.length, 3);
});

test('a key with another request is refused, and does nothing', () => {
  const others = [
    add(6, keyed('a')),
    add(5, { ...keyed('a'), validityDays: 30 }),
    subtract(5, keyed('a')),
    { kind: 'stop-cycle', ...ADA, ...keyed('a') } as const,
  ];
  const { outcomes, changes } = folded([add(5, keyed('a')), ...others]);
  assert.deepEqual(
    outcomes.slice(1),
    others.map(() => ({ refused: 'IdempotencyKeyReused' })),
  );
  assert.deepEqual(changes[0]?.postings.length, 1);
});

test('who asks, and why, makes no other request: a client may change its key between two tries', () => {
  const again = folded([add(5, keyed('a')), add(5, { ...keyed('a'), actor: 'key:2', note: 'again' })]);
  assert.deepEqual(again.outcomes[1], { ...ACCEPTED, replayOf: 'request-a' });
});

test('what is asked is told apart by all that changes what is done', () => {
  const start = { kind: 'start-cycle', ...ADA, amount: 5, validityDays: 31 } as const;
  const requests = [
    add(5),
    subtract(5),
    { ...start, onActive: 'refuse' } as const,
    { ...start, onActive: 'replace' } as const,
    { ...start, onActive: 'refuse', validityDays: 7 } as const,
    { kind: 'stop-cycle', ...ADA } as const,
    { kind: 'renew', account: 1, endUser: ADA.endUser } as const,
  ].map(requestOf);
  assert.deepEqual(requests, [
    'add 5 31',
    'subtract 5',
    'start-cycle 5 31 refuse',
    'start-cycle 5 31 replace',
    'start-cycle 5 7 refuse',
    'stop-cycle',
    'renew',
  ]);
});

test('a renewal has no key', () => {
  assert.equal(idempotencyOf({ kind: 'renew', account: 1, endUser: ADA.endUser }), null);
  assert.equal(idempotencyOf(add(5)), null);
  assert.equal(idempotencyOf(add(5, { idempotency: null })), null);
  assert.deepEqual(idempotencyOf(add(5, keyed('a'))), { key: 'a', requestId: 'request-a' });
});
