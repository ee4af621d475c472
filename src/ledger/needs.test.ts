// What a store must load for a command, and which commands store something for an unknown end user.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  add,
  EVENTS_MAX,
  momentAt,
  NOW,
  settling,
  startCycle,
  stopCycle,
  subtract,
} from '../../test/ledger/ledger-builders.ts';
import { batchOf, decideBatch } from './batch.ts';
import { type Command, needs } from './command.ts';
import { NO_RECORDS } from './idempotency.ts';
import { EMPTY_STATE } from './state.ts';

const KEYED = { idempotency: { key: 'order-4711', requestId: 'request-1' } } as const;

const COMMANDS: readonly (readonly [what: string, command: Command, key: string | null, canCreate: boolean])[] = [
  ['an addition', add(5), null, true],
  ['an addition with a key', add(5, KEYED), 'order-4711', true],
  ['a start', startCycle(5), null, true],
  ['a replacement', startCycle(5, { onActive: 'replace' }), null, true],
  ['a start with a key', startCycle(5, KEYED), 'order-4711', true],
  ['a subtraction', subtract(5), null, false],
  ['a subtraction with a key', subtract(5, KEYED), 'order-4711', true],
  ['a subtraction with a key of null', subtract(5, { idempotency: null }), null, false],
  ['a stop', stopCycle(), null, false],
  ['a stop with a key', stopCycle(KEYED), 'order-4711', true],
  ['a settle command', settling(), null, false],
];

for (const [what, command, idempotencyKey, canCreate] of COMMANDS) {
  const record = idempotencyKey === null ? 'no idempotency record' : 'the idempotency record of its key';
  test(`${what} needs ${record}, and ${canCreate ? 'can' : 'cannot'} create an end user`, () => {
    assert.deepEqual(needs(command), { idempotencyKey, canCreate });
  });
}

for (const [what, command, , canCreate] of COMMANDS) {
  test(`${what} stores ${canCreate ? 'something' : 'nothing'} for an end user without a history`, () => {
    const loaded = { states: [EMPTY_STATE], records: NO_RECORDS };
    const { changes, records } = decideBatch(batchOf([command]), loaded, momentAt(NOW), EVENTS_MAX);
    assert.equal(changes.length + records.length > 0, canCreate);
  });
}
