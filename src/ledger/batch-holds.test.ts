// Tests that commands for holds and refunds see the effects of earlier commands in the same batch.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ADA,
  add,
  capture,
  daysAgo,
  drawing,
  EVENTS_MAX,
  hold,
  holding,
  idAt,
  momentAt,
  NOW,
  oneTime,
  recurring,
  refund,
  refunding,
  release,
  settling,
  stateOf,
  subtract,
} from '../../test/ledger/ledger-builders.ts';
import { applyAll } from './apply.ts';
import { batchOf, type DecidedBatch, decideBatch, NO_REFERENCED, referenceName } from './batch.ts';
import type { Command } from './command.ts';
import type { Referenced } from './decide-refund.ts';
import { type Hold, lapseId } from './hold.ts';
import { NO_RECORDS } from './idempotency.ts';
import { DAY_MS, type Instant } from './instant.ts';
import type { EndUserState } from './state.ts';

const BOB = { ...ADA, account: 2 };
const NONE = stateOf();

interface Given {
  readonly referenced?: ReadonlyMap<string, Referenced>;
  readonly eventsMax?: number;
}

function decideAll(
  commands: readonly Command[],
  states: readonly EndUserState[],
  { referenced = NO_REFERENCED, eventsMax = EVENTS_MAX }: Given = {},
): DecidedBatch {
  return decideBatch(batchOf(commands), { states, records: NO_RECORDS, referenced }, momentAt(NOW), eventsMax);
}

function outcomes({ outcomes: all }: DecidedBatch): (string | null)[] {
  return all.map((outcome) => (outcome === null ? null : (outcome.refused ?? 'accepted')));
}

function kindsOf({ changes }: DecidedBatch): string[][] {
  return changes.map(({ postings }) => postings.map(({ kind }) => kind));
}

test('a hold can be captured or released in the batch in which it was created', () => {
  const [captured, released] = [idAt(NOW, 3), idAt(NOW, 5)];
  const commands = [
    add(10),
    hold(6),
    capture(captured, 4),
    hold(5),
    subtract(2),
    release(released),
    subtract(6),
    release(captured),
  ];
  const decided = decideAll(commands, [NONE]);
  const accepted = 'accepted';
  assert.deepEqual(outcomes(decided), [
    accepted,
    accepted,
    accepted,
    accepted,
    'InsufficientFunds',
    accepted,
    accepted,
    'HoldNotFound',
  ]);
  const [change] = decided.changes;
  assert.deepEqual(change?.after, stateOf({ ...oneTime({ amount: 10 }), remaining: 0 }));
});

test('a batch lists each transaction that its refunds refer to once, with the end user of the refund', () => {
  const [a, b] = [idAt(NOW, 8), idAt(NOW, 9)];
  const batch = batchOf([refund(a), add(1, BOB), refund(b, 1, BOB), refund(a, 2), capture(a)]);
  assert.deepEqual(batch.references, [
    { user: 0, transaction: a },
    { user: 1, transaction: b },
  ]);
});

const BOUGHT = oneTime({ start: daysAgo(1) });
const SPENT = drawing(BOUGHT, 30, daysAgo(1));
const AFTER = applyAll(stateOf(BOUGHT), [SPENT]);

function referencedFor(user: number, referenced: Referenced): Map<string, Referenced> {
  return new Map([[referenceName({ user, transaction: SPENT.transactionId }), referenced]]);
}

test('if a batch contains several refunds of one transaction, together they never return more than was spent', () => {
  const spent = SPENT.transactionId;
  const decided = decideAll(
    [refund(spent, 10), refund(spent, 15), refund(spent, 6), refund(spent), refund(spent)],
    [AFTER],
    {
      referenced: referencedFor(0, { postings: [SPENT], refunds: [] }),
    },
  );
  assert.deepEqual(outcomes(decided), ['accepted', 'accepted', 'RefundTooLarge', 'accepted', 'RefundTooLarge']);
  assert.deepEqual(decided.outcomes[2], { refused: 'RefundTooLarge', requested: 6, refundable: 5 });
  assert.deepEqual(decided.changes[0]?.after, stateOf(BOUGHT));
});

test('the refunds of one transaction never exceed the spent amount in total, even if some of them were in earlier batches', () => {
  const spent = SPENT.transactionId;
  const earlier = refunding(SPENT, 20);
  const given = { referenced: referencedFor(0, { postings: [SPENT], refunds: [earlier] }) };
  const decided = decideAll([refund(spent, 7), refund(spent, 4)], [applyAll(AFTER, [earlier])], given);
  assert.deepEqual(decided.outcomes[1], { refused: 'RefundTooLarge', requested: 4, refundable: 3 });
});

test('refunds of one transaction do not reduce the refundable credits of another transaction of the same end user', () => {
  const other = drawing(BOUGHT, 40, daysAgo(1), 98);
  const referenced = new Map(
    [SPENT, other].map((posting) => [
      referenceName({ user: 0, transaction: posting.transactionId }),
      { postings: [posting], refunds: [] },
    ]),
  );
  const commands = [refund(SPENT.transactionId, 30), refund(other.transactionId, 40), refund(other.transactionId)];
  const decided = decideAll(commands, [applyAll(AFTER, [other])], { referenced });
  assert.deepEqual(outcomes(decided), ['accepted', 'accepted', 'RefundTooLarge']);
});

test("a refund of another end user's transaction is refused with `TransactionNotFound`", () => {
  const given = { referenced: referencedFor(0, { postings: [SPENT], refunds: [] }) };
  const commands = [refund(SPENT.transactionId), refund(SPENT.transactionId, null, BOB)];
  assert.deepEqual(outcomes(decideAll(commands, [AFTER, AFTER], given)), ['accepted', 'TransactionNotFound']);
});

function withLapsed(count: number, at: Instant): EndUserState {
  const cycles = [BOUGHT, oneTime({ start: daysAgo(1) }, 3)];
  const postings = Array.from({ length: count }, (_, index) =>
    cycles.map((cycle) => holding(cycle, 1, { at: daysAgo(1), sequence: 90 + index, until: at + index * 1_000 })),
  );
  return applyAll(stateOf(...cycles), postings.flat());
}

test('a refund of a lapse that its batch applies is refused with `NotRefundable`', () => {
  const state = withLapsed(1, NOW);
  const commands = [refund(lapseId(state.holds[0] as Hold)), refund(idAt(NOW, 8))];
  assert.deepEqual(outcomes(decideAll(commands, [state])), ['NotRefundable', 'TransactionNotFound']);
});

test('due lapses are applied before a command is decided, so that the command can spend the returned credits', () => {
  const decided = decideAll([subtract(200)], [withLapsed(2, daysAgo(0.5))]);
  assert.deepEqual(outcomes(decided), ['accepted']);
  assert.deepEqual(kindsOf(decided), [['lapse', 'lapse', 'lapse', 'lapse', 'subtract', 'subtract']]);
});

test('a capture of a hold that is due to lapse is refused, and the lapse is applied', () => {
  const state = withLapsed(1, NOW);
  const decided = decideAll([capture(state.holds[0]?.id as string)], [state]);
  assert.deepEqual(outcomes(decided), ['HoldNotFound']);
  assert.deepEqual(kindsOf(decided), [['lapse', 'lapse']]);
});

test('each posting of a lapse counts toward the limit on due events in a batch, and a lapse is never applied in part', () => {
  const state = withLapsed(3, daysAgo(0.5));
  for (const [eventsMax, lapses] of [
    [1, 1],
    [2, 1],
    [3, 2],
    [4, 2],
  ] as const) {
    const decided = decideAll([subtract(1)], [state], { eventsMax });
    assert.deepEqual(outcomes(decided), [null], `a limit of ${eventsMax}`);
    assert.equal(decided.changes[0]?.postings.length, 2 * lapses);
    assert.equal(decided.changes[0]?.after.holds.length, 3 - lapses);
  }
  for (const eventsMax of [5, 6])
    assert.deepEqual(outcomes(decideAll([subtract(1)], [state], { eventsMax })), ['accepted']);
});

test('commands of an end user without due events are decided even if another end user uses up the limit on due events', () => {
  const due = withLapsed(2, daysAgo(0.5));
  const commands = [settling(ADA), add(5, BOB), subtract(1), subtract(5, BOB)];
  const decided = decideAll(commands, [due, NONE], { eventsMax: 1 });
  assert.deepEqual(outcomes(decided), [null, 'accepted', null, 'accepted']);
});

test('renewals and lapses are applied in the order in which they are due', () => {
  const daily = recurring({ start: daysAgo(2), validityDays: 1 });
  const kept = holding(daily, 5, { until: daysAgo(1) });
  const later = holding(daily, 5, { sequence: 98, until: daysAgo(1) + DAY_MS / 2 });
  const { changes } = decideAll([settling()], [applyAll(stateOf(daily), [kept, later])]);
  assert.deepEqual(
    changes[0]?.postings.map(({ kind, createdAt }) => [kind, createdAt]),
    [
      ['renew', daysAgo(1)],
      ['lapse', daysAgo(1)],
      ['lapse', daysAgo(0.5)],
      ['renew', NOW],
    ],
  );
});
