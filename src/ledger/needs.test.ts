// Tests what a store must load for a command, and which commands can store data for an unknown end user.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  add,
  capture,
  EVENTS_MAX,
  hold,
  idAt,
  momentAt,
  NOW,
  refund,
  release,
  settling,
  startCycle,
  stopCycle,
  subtract,
} from '../../test/ledger/ledger-builders.ts';
import { histories } from '../../test/ledger/random-histories.ts';
import { batchOf, decideBatch, NO_REFERENCED } from './batch.ts';
import { type Command, needs, type WriteCommand } from './command.ts';
import { NO_RECORDS } from './idempotency.ts';
import { DAY_MS } from './instant.ts';
import { EMPTY_STATE } from './state.ts';

const KEYED = { idempotency: { key: 'order-4711', requestId: 'request-1' } } as const;

const HOLD_ID = idAt(NOW, 7);

type Row = readonly [what: string, command: WriteCommand, canCreate: boolean, allHolds: boolean, transaction?: string];

const COMMANDS: readonly Row[] = [
  ['an addition', add(5), true, true],
  ['a cycle start', startCycle(5), true, true],
  ['a replacement', startCycle(5, { onActive: 'replace' }), true, true],
  ['a subtraction', subtract(5), false, false],
  ['a stop', stopCycle(), false, false],
  ['a hold', hold(5), false, true],
  ['a capture', capture(HOLD_ID), false, true],
  ['a release', release(HOLD_ID), false, true],
  ['a refund', refund(HOLD_ID), false, true, HOLD_ID],
];

function storesSomething(command: Command): boolean {
  const loaded = { states: [EMPTY_STATE], records: NO_RECORDS, referenced: NO_REFERENCED };
  const { changes, records } = decideBatch(batchOf([command]), loaded, momentAt(NOW), EVENTS_MAX);
  return changes.length + records.length > 0;
}

for (const [what, command, canCreate, allHolds, transaction = null] of COMMANDS) {
  const holds = allHolds ? 'all open holds' : 'only the holds that are due';
  const wanted = transaction ? `${holds} and the refunded transaction` : holds;
  test(`${what} without an idempotency key needs ${wanted}, and no idempotency record`, () => {
    const needed = { idempotencyKey: null, canCreate, allHolds, transaction };
    assert.deepEqual(needs(command), needed);
    assert.deepEqual(needs({ ...command, idempotency: null }), needed);
  });

  test(`${what} with an idempotency key needs the record of the key, and can store data for an unknown end user`, () => {
    const needed = { idempotencyKey: 'order-4711', canCreate: true, allHolds, transaction };
    assert.deepEqual(needs({ ...command, ...KEYED }), needed);
  });

  test(`${what} stores data for an unknown end user${canCreate ? '' : ' only if it has an idempotency key'}`, () => {
    assert.equal(storesSomething(command), canCreate);
    assert.equal(storesSomething({ ...command, ...KEYED }), true);
  });
}

test('a settle command needs only the holds that are due, and stores nothing for an unknown end user', () => {
  const needed = { idempotencyKey: null, canCreate: false, allHolds: false, transaction: null };
  assert.deepEqual(needs(settling()), needed);
  assert.equal(storesSomething(settling()), false);
});

test('a command that needs only the due holds has the same outcome if all open holds are loaded', () => {
  const commands = [subtract(3), subtract(99), stopCycle(), settling()];
  fc.assert(
    fc.property(histories, fc.constantFrom(...commands), fc.nat({ max: 5 }), ({ state, now }, command, days) => {
      const later = now + days * DAY_MS;
      const due = { ...state, holds: state.holds.filter(({ expiresAt }) => expiresAt <= later) };
      const [all, some] = [state, due].map((loaded) => {
        const given = { states: [loaded], records: NO_RECORDS, referenced: NO_REFERENCED };
        const { outcomes, changes } = decideBatch(batchOf([command]), given, momentAt(later), EVENTS_MAX);
        return { outcomes, postings: changes.map(({ postings }) => postings) };
      });
      assert.deepEqual(some, all);
    }),
  );
});
