// Requests with the same idempotency key have one effect and one outcome, within a batch and across batches.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ADA,
  add,
  EVENTS_MAX,
  momentAt,
  NOW,
  recurring,
  startCycle,
  stateOf,
  stopCycle,
  subtract,
} from '../../test/ledger/ledger-builders.ts';
import { batchOf, type DecidedBatch, decideBatch } from './batch.ts';
import { ACCEPTED, type Command } from './command.ts';
import { type IdempotencyRecord, NO_RECORDS, nameOf, requestOf } from './idempotency.ts';
import { EMPTY_STATE } from './state.ts';

function keyed(key: string, requestId = `request-${key}`) {
  return { idempotency: { key, requestId } };
}

/** Decides commands of end users without credits. */
function decideAll(commands: readonly Command[], stored: readonly IdempotencyRecord[] = []): DecidedBatch {
  const batch = batchOf(commands);
  const records = stored.length === 0 ? NO_RECORDS : new Map(stored.map((each) => [nameOf(each), each]));
  const states = batch.users.map(() => EMPTY_STATE);
  return decideBatch(batch, { states, records }, momentAt(NOW), EVENTS_MAX);
}

const amounts = ({ changes }: DecidedBatch) => changes.flatMap(({ postings }) => postings.map(({ amount }) => amount));

test('two equal requests with the same idempotency key in a batch have one effect and one outcome', () => {
  const twice = decideAll([add(5, keyed('a')), add(5, keyed('a', 'another request'))]);
  assert.deepEqual(twice.outcomes, [ACCEPTED, { ...ACCEPTED, replayOf: 'request-a' }]);
  assert.deepEqual(amounts(twice), [5]);
  assert.equal(twice.records.length, 1);
});

test('an idempotency record contains the request, its id, the outcome and the time', () => {
  const { records } = decideAll([add(5, keyed('a'))]);
  const expected = { ...ADA, key: 'a', requestId: 'request-a', request: 'add 5 31' };
  assert.deepEqual(records, [{ ...expected, outcome: ACCEPTED, recordedAt: NOW }]);
});

test('a request with a key that an earlier batch recorded has no effect and is not recorded again', () => {
  const { records } = decideAll([add(5, keyed('a'))]);
  const again = decideAll([add(5, keyed('a', 'later'))], records);
  assert.deepEqual(again, { outcomes: [{ ...ACCEPTED, replayOf: 'request-a' }], changes: [], records: [] });
});

test('a replayed start returns the cycle as it was started', () => {
  const { records } = decideAll([startCycle(5, keyed('a'))]);
  const cycle = recurring({ amount: 5 });
  assert.deepEqual(records[0]?.outcome, { refused: null, cycle });
  const again = decideAll([startCycle(5, keyed('a')), startCycle(5, keyed('a', 'later'))], records);
  const replayed = { refused: null, cycle, replayOf: 'request-a' };
  assert.deepEqual(again.outcomes, [replayed, replayed]);
});

test('a refusal is recorded and replayed too', () => {
  const refused = decideAll([subtract(5, keyed('a')), add(9), subtract(5, keyed('a'))]);
  const refusal = { refused: 'InsufficientFunds', requested: 5, available: 0 };
  assert.deepEqual(refused.outcomes, [refusal, ACCEPTED, { ...refusal, replayOf: 'request-a' }]);
  assert.deepEqual(amounts(refused), [9]);
  assert.deepEqual(refused.records[0]?.outcome, refusal);
});

test('a replayed request does not enter due renewals', () => {
  const [record] = decideAll([stopCycle(keyed('a'))]).records;
  assert(record);
  const records = new Map([[nameOf(record), record]]);
  const cycle = recurring({ start: 0, validityDays: 1 });
  const loaded = { states: [stateOf(cycle)], records };
  const { changes } = decideBatch(batchOf([stopCycle(keyed('a'))]), loaded, momentAt(NOW), EVENTS_MAX);
  assert.deepEqual(changes, []);
});

test('equal requests without a key take effect each time and are not recorded', () => {
  const twice = decideAll([add(5), add(5), add(5, { idempotency: null })]);
  assert.deepEqual(twice.outcomes, [ACCEPTED, ACCEPTED, ACCEPTED]);
  assert.deepEqual([twice.records, amounts(twice)], [[], [5, 5, 5]]);
});

test('the same key is another key for another account or another end user', () => {
  const bob = { endUser: '5f0c6f7e-0000-4000-8000-000000000002' };
  const all = [add(1, keyed('a')), add(2, { ...bob, ...keyed('a') }), add(3, { account: 2, ...keyed('a') })];
  const { outcomes, records } = decideAll(all);
  assert.deepEqual(outcomes, [ACCEPTED, ACCEPTED, ACCEPTED]);
  assert.equal(new Set(records.map((record) => nameOf(record))).size, 3);
});

test('a different request with a used key is refused and changes nothing', () => {
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

test('a request that is repeated with another API key and another note is replayed', () => {
  const again = decideAll([add(5, keyed('a')), add(5, { ...keyed('a'), actor: 'key:2', note: 'again' })]);
  assert.deepEqual(again.outcomes[1], { ...ACCEPTED, replayOf: 'request-a' });
});

test('the recorded text of a request contains everything that changes its effect', () => {
  const requests = [
    add(5),
    subtract(5),
    startCycle(5),
    startCycle(5, { onActive: 'replace' }),
    startCycle(5, { validityDays: 7 }),
    stopCycle(),
  ].map(requestOf);
  assert.deepEqual(requests, [
    'add 5 31',
    'subtract 5',
    'start-cycle 5 31 refuse',
    'start-cycle 5 31 replace',
    'start-cycle 5 7 refuse',
    'stop-cycle',
  ]);
});
