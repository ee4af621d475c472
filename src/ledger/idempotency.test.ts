// Tests that requests with the same idempotency key have one effect and one outcome, within a batch and across batches.

import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { test } from 'node:test';
import {
  ADA,
  add,
  capture,
  EVENTS_MAX,
  hold,
  idAt,
  MemoryLedger,
  momentAt,
  NOW,
  recurring,
  refund,
  release,
  startCycle,
  stateOf,
  stopCycle,
  subtract,
} from '../../test/ledger/ledger-builders.ts';
import { batchOf, type DecidedBatch, decideBatch, NO_REFERENCED } from './batch.ts';
import type { Command, Outcome, WriteCommand } from './command.ts';
import { type IdempotencyRecord, NO_RECORDS, nameOf, requestOf } from './idempotency.ts';
import { EMPTY_STATE } from './state.ts';
import { FIRST_SEQUENCE } from './transaction-id.ts';

function keyed(key: string, requestId = `request-${key}`) {
  return { idempotency: { key, requestId } };
}

function decideAll(
  commands: readonly Command[],
  stored: readonly IdempotencyRecord[] = [],
  state = EMPTY_STATE,
): DecidedBatch {
  const batch = batchOf(commands);
  const records = stored.length === 0 ? NO_RECORDS : new Map(stored.map((each) => [nameOf(each), each]));
  const states = batch.users.map(() => state);
  return decideBatch(batch, { states, records, referenced: NO_REFERENCED }, momentAt(NOW), EVENTS_MAX);
}

function acceptedAs(index: number): Outcome {
  return { refused: null, transactionId: idAt(NOW, FIRST_SEQUENCE + index) };
}

const ACCEPTED = acceptedAs(0);

const amounts = ({ changes }: DecidedBatch) => changes.flatMap(({ postings }) => postings.map(({ amount }) => amount));

test('two identical requests with the same idempotency key in a batch have one effect and one outcome', () => {
  const twice = decideAll([add(5, keyed('a')), add(5, keyed('a', 'another request'))]);
  assert.deepEqual(twice.outcomes, [ACCEPTED, { ...ACCEPTED, replayOf: 'request-a' }]);
  assert.deepEqual(amounts(twice), [5]);
  assert.equal(twice.records.length, 1);
});

test('an idempotency record contains the request, the request ID, the outcome and the time', () => {
  const { records } = decideAll([add(5, keyed('a'))]);
  const expected = { ...ADA, key: 'a', requestId: 'request-a', request: 'add 5 31d' };
  assert.deepEqual(records, [{ ...expected, outcome: ACCEPTED, recordedAt: NOW }]);
});

test('a request with a key that an earlier batch recorded has no effect and is not recorded again', () => {
  const { records } = decideAll([add(5, keyed('a'))]);
  const again = decideAll([add(5, keyed('a', 'later'))], records);
  assert.deepEqual(again, { outcomes: [{ ...ACCEPTED, replayOf: 'request-a' }], changes: [], records: [] });
});

test('a replayed cycle start returns the cycle as it was when it started', () => {
  const { records } = decideAll([startCycle(5, keyed('a'))]);
  const cycle = recurring({ amount: 5 });
  const outcome = { refused: null, transactionId: cycle.id, cycle };
  assert.deepEqual(records[0]?.outcome, outcome);
  const again = decideAll([startCycle(5, keyed('a')), startCycle(5, keyed('a', 'later'))], records);
  const replayed = { ...outcome, replayOf: 'request-a' };
  assert.deepEqual(again.outcomes, [replayed, replayed]);
});

test('a refusal is recorded and replayed like an accepted request', () => {
  const refused = decideAll([subtract(5, keyed('a')), add(9), subtract(5, keyed('a'))]);
  const refusal = { refused: 'InsufficientFunds', requested: 5, available: 0 };
  assert.deepEqual(refused.outcomes, [refusal, ACCEPTED, { ...refusal, replayOf: 'request-a' }]);
  assert.deepEqual(amounts(refused), [9]);
  assert.deepEqual(refused.records[0]?.outcome, refusal);
});

test('a replayed request does not apply due renewals', () => {
  const [record] = decideAll([stopCycle(keyed('a'))]).records;
  assert(record);
  const records = new Map([[nameOf(record), record]]);
  const cycle = recurring({ start: 0, validityDays: 1 });
  const loaded = { states: [stateOf(cycle)], records, referenced: NO_REFERENCED };
  const { changes } = decideBatch(batchOf([stopCycle(keyed('a'))]), loaded, momentAt(NOW), EVENTS_MAX);
  assert.deepEqual(changes, []);
});

test('identical requests without a key each take effect and are not recorded', () => {
  const twice = decideAll([add(5), add(5), add(5, { idempotency: null })]);
  assert.deepEqual(twice.outcomes, [0, 1, 2].map(acceptedAs));
  assert.deepEqual([twice.records, amounts(twice)], [[], [5, 5, 5]]);
});

test('the same key can be used independently for different accounts and different end users', () => {
  const bob = { endUser: '5f0c6f7e-0000-4000-8000-000000000002' };
  const all = [add(1, keyed('a')), add(2, { ...bob, ...keyed('a') }), add(3, { account: 2, ...keyed('a') })];
  const { outcomes, records } = decideAll(all);
  assert.deepEqual(outcomes, [0, 1, 2].map(acceptedAs));
  assert.equal(new Set(records.map((record) => nameOf(record))).size, 3);
});

test('a different request with a key that has already been used is refused and changes nothing', () => {
  const others = [
    add(6, keyed('a')),
    add(5, { ...keyed('a'), validityDays: 30 }),
    subtract(5, keyed('a')),
    startCycle(5, keyed('a')),
    stopCycle(keyed('a')),
  ];
  const decided = decideAll([add(5, keyed('a')), ...others]);
  assert.deepEqual(
    decided.outcomes.slice(1),
    others.map(() => ({ refused: 'IdempotencyKeyReused' })),
  );
  assert.deepEqual(amounts(decided), [5]);
});

test('a request that is repeated with another API key of the account is replayed', () => {
  const again = decideAll([add(5, keyed('a')), add(5, { ...keyed('a'), actor: 'key:2' })]);
  assert.deepEqual(again.outcomes[1], { ...ACCEPTED, replayOf: 'request-a' });
});

test('a repeated request is replayed if its note is the same, and refused if its note is different or absent', () => {
  const [noted, same, other, none] = ['ticket 1', 'ticket 1', 'ticket 2', null].map((note) =>
    add(5, { ...keyed('a'), note }),
  );
  assert(noted && same && other && none);
  const [first, ...rest] = decideAll([noted, same, other, none, add(5, keyed('a'))]).outcomes;
  const reused = { refused: 'IdempotencyKeyReused' };
  assert.deepEqual(first, ACCEPTED);
  assert.deepEqual(rest, [{ ...ACCEPTED, replayOf: 'request-a' }, reused, reused, reused]);
  const withoutNote = decideAll([add(5, keyed('a')), none, noted]).outcomes.slice(1);
  assert.deepEqual(
    withoutNote,
    [{ ...ACCEPTED, replayOf: 'request-a' }, reused],
    'a null note is equivalent to no note',
  );
});

const [HOLD_ID, SPENT_ID] = [idAt(NOW, 7), idAt(NOW, 8)];

const REQUESTS: readonly (readonly [command: WriteCommand, request: string])[] = [
  [add(5), 'add 5 31d'],
  [add(6), 'add 6 31d'],
  [add(5, { validityDays: 7 }), 'add 5 7d'],
  [add(5, { validityDays: null, validityMonths: 7 }), 'add 5 7m'],
  [subtract(5), 'subtract 5'],
  [startCycle(5), 'start-cycle 5 31d 0 refuse'],
  [startCycle(5, { onActive: 'replace' }), 'start-cycle 5 31d 0 replace'],
  [startCycle(5, { onActive: 'at_period_end' }), 'start-cycle 5 31d 0 at_period_end'],
  [startCycle(5, { validityDays: 7 }), 'start-cycle 5 7d 0 refuse'],
  [startCycle(5, { validityDays: null, validityMonths: 7 }), 'start-cycle 5 7m 0 refuse'],
  [startCycle(5, { rolloverMax: 2 }), 'start-cycle 5 31d 2 refuse'],
  [stopCycle(), 'stop-cycle'],
  [hold(5), 'hold 5 900'],
  [hold(5, { expiresInSeconds: 60 }), 'hold 5 60'],
  [capture(HOLD_ID), `capture ${HOLD_ID} null`],
  [capture(HOLD_ID, 5), `capture ${HOLD_ID} 5`],
  [capture(SPENT_ID, 5), `capture ${SPENT_ID} 5`],
  [release(HOLD_ID), `release ${HOLD_ID}`],
  [refund(SPENT_ID), `refund ${SPENT_ID} null null`],
  [refund(SPENT_ID, 5), `refund ${SPENT_ID} 5 null`],
  [refund(SPENT_ID, 5, { validityDays: 7 }), `refund ${SPENT_ID} 5 7`],
  [refund(SPENT_ID, null, { validityDays: 7 }), `refund ${SPENT_ID} null 7`],
];

for (const [command, request] of REQUESTS) {
  test(`the recorded text of a request contains everything that changes the effect of the request: ${request}`, () => {
    assert.equal(requestOf(command), request);
    assert.equal(requestOf({ ...command, note: null }), request);
    assert.equal(requestOf({ ...command, actor: 'user:3', ...keyed('a') }), request);
    const note = hash('sha256', 'ticket 4711', 'base64url');
    assert.equal(requestOf({ ...command, note: 'ticket 4711' }), `${request} ${note}`);
  });
}

test('two different requests have different recorded texts, even if only their notes differ', () => {
  const notes = [null, 'ticket 4711', 'ticket 4712'];
  const texts = REQUESTS.flatMap(([command]) => notes.map((note) => requestOf({ ...command, note })));
  assert.equal(new Set(texts).size, REQUESTS.length * notes.length);
});

test('a replayed hold returns the hold as it was when created, and a replayed capture returns the hold as it was when closed', () => {
  const ledger = new MemoryLedger();
  ledger.run(add(10));
  const created = decideAll([hold(5, keyed('a'))], [], ledger.state);
  const [outcome] = created.outcomes;
  assert(outcome?.refused === null && outcome.hold);
  assert.equal(outcome.hold.status, 'open');
  const state = created.changes[0]?.after;
  assert(state);
  const captured = decideAll([capture(outcome.hold.id, 3, keyed('b'))], [], state);
  assert(captured.outcomes[0]?.refused === null);
  const again = [hold(5, keyed('a')), capture(outcome.hold.id, 3, keyed('b'))];
  const replayed = decideAll(again, [...created.records, ...captured.records], captured.changes[0]?.after);
  assert.deepEqual(replayed.outcomes, [
    { ...outcome, replayOf: 'request-a' },
    { ...captured.outcomes[0], replayOf: 'request-b' },
  ]);
  assert.deepEqual(replayed.changes, []);
});
