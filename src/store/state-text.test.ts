// Tests the text format of snapshots, and which transactions are followed by a snapshot.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drawing, oneTime, recurring, stateOf } from '../../test/ledger/ledger-builders.ts';
import { DAY_MS } from '../ledger/instant.ts';
import { renewalOf } from '../ledger/next-event.ts';
import type { Posting } from '../ledger/posting.ts';
import { EMPTY_STATE } from '../ledger/state.ts';
import { type TransactionId, transactionId } from '../ledger/transaction-id.ts';
import { isSnapshotDue, isWaypointDue, stateOfText, stateText } from './state-text.ts';

const NOW = recurring().start;

function spending(id: TransactionId): Posting {
  return { ...drawing(oneTime(), 1), transactionId: id };
}

test('a state that is converted to text and back stays the same, except that ended cycles are left out', () => {
  const ended = oneTime({ start: NOW - 9 * DAY_MS, validityDays: 9 });
  const [renewing, left] = [recurring({ remaining: 7 }, 2), oneTime({ remaining: 0 }, 3)];
  const state = stateOf(ended, renewing, left);
  assert.deepEqual(stateOfText(stateText(state, NOW - 1)), state);
  assert.deepEqual(stateOfText(stateText(state, NOW)), stateOf(renewing, left));
  assert.deepEqual(stateOfText(stateText(EMPTY_STATE, NOW)), EMPTY_STATE);
});

test('the text of a state includes cycles that are due for renewal', () => {
  const due = recurring({ start: NOW - 9 * DAY_MS, validityDays: 3 });
  assert.deepEqual(stateOfText(stateText(stateOf(due), NOW)), stateOf(due));
});

function dueAmong(count: number, cycles: number): number {
  const state = stateOf(...Array.from({ length: cycles }, (_, index) => oneTime({}, index + 2)));
  let due = 0;
  for (let number = 0; number < count; number++) {
    const tail = Math.imul(number, 0x9e3779b1) >>> 0;
    const id = transactionId({ at: NOW, sequence: 1, tail: tail.toString(16).padStart(12, '0') });
    if (isSnapshotDue([spending(id)], state)) due += 1;
  }
  return due;
}

test('on average, a snapshot is stored after one in 128 transactions, and less often if the end user has many cycles', () => {
  const [few, many] = [dueAmong(100_000, 2), dueAmong(100_000, 160)];
  assert(few > 700 && few < 860, `${few} of 100,000`);
  assert(many > 0 && many < few / 8, `${many} of 100,000`);
});

test('when several transactions are stored together, a snapshot is stored after the last one if a snapshot is due after any of them', () => {
  const ids = Array.from({ length: 128 }, (_, number) =>
    transactionId({ at: NOW, sequence: number + 1, tail: number.toString(16).padStart(12, '0') }),
  );
  assert(isSnapshotDue(ids.map(spending), EMPTY_STATE), 'a snapshot is due after the first transaction');
  assert(!isSnapshotDue(ids.slice(1).map(spending), EMPTY_STATE));
});

test('on average, a snapshot or a waypoint is stored after one in 128 postings, and always after a transaction with 128 postings', () => {
  const dueAfter = (postings: number) => {
    const tails = Array.from({ length: 1_000 }, (_, number) => (Math.imul(number, 0x9e3779b1) >>> 0).toString(16));
    const ids = tails.map((tail) => transactionId({ at: NOW, sequence: 2, tail: tail.padStart(12, '0') }));
    return ids.filter((id) => isWaypointDue(Array(postings).fill(spending(id)))).length;
  };
  assert(dueAfter(1) >= 7 && dueAfter(1) <= 9, `${dueAfter(1)} of 1,000`);
  assert(dueAfter(32) > 240 && dueAfter(32) < 260, `${dueAfter(32)} of 1,000`);
  assert.equal(dueAfter(128), 1_000);
});

test('several transactions that are stored together have a snapshot or a waypoint no more often than if they are stored one by one', () => {
  const ids = Array.from({ length: 127 }, (_, number) =>
    transactionId({ at: NOW, sequence: number + 2, tail: (number + 1).toString(16).padStart(12, '0') }),
  );
  assert(!isWaypointDue(ids.map(spending)));
});

test('no snapshot is stored after a renewal, because the state can lack cycles that ended before the renewal was stored', () => {
  for (let number = 0; number < 10_000; number++) {
    const id = transactionId({ at: NOW, sequence: 1, tail: number.toString(16).padStart(12, '0') });
    const renewal = renewalOf({ ...recurring(), id });
    assert.equal(isSnapshotDue([renewal], EMPTY_STATE), false);
    assert.equal(
      isSnapshotDue([spending(transactionId({ at: NOW, sequence: 1, tail: '0'.repeat(12) })), renewal], EMPTY_STATE),
      false,
    );
  }
});
