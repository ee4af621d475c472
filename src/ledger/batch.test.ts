// Tests that the commands of a batch are decided in order, independently for each end user, and that a batch applies a
// limited number of due renewals.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  ADA,
  add as addition,
  daysAgo,
  EVENTS_MAX,
  idAt,
  momentAt,
  NOW,
  oneTime,
  opening,
  recurring,
  settling,
  startCycle,
  stateOf,
  stopCycle,
  subtract as subtraction,
} from '../../test/ledger/ledger-builders.ts';
import { applyAll } from './apply.ts';
import { ACCOUNT_POSTINGS_MAX, batchOf, type DecidedBatch, decideBatch, NO_REFERENCED } from './batch.ts';
import type { Command } from './command.ts';
import { type Cycle, periodAfter } from './cycle.ts';
import { NO_RECORDS } from './idempotency.ts';
import { settle } from './settle.ts';
import type { EndUserState } from './state.ts';

const [BOB, CAT] = [
  { ...ADA, account: 2 },
  { ...ADA, endUser: '5f0c6f7e-0000-4000-8000-000000000002' },
];

const add = (user: typeof ADA, amount: number) => addition(amount, user);
const subtract = (user: typeof ADA, amount: number) => subtraction(amount, user);
const start = (user: typeof ADA, onActive: 'refuse' | 'replace' = 'refuse') =>
  startCycle(50, { ...user, validityDays: 7, onActive });

function daily(days: number, change: Partial<Cycle> = {}): Cycle {
  return recurring({ start: daysAgo(days), validityDays: 1, ...change });
}

function decideAll(
  commands: readonly Command[],
  states: readonly EndUserState[],
  eventsMax = EVENTS_MAX,
): DecidedBatch {
  const loaded = { states, records: NO_RECORDS, referenced: NO_REFERENCED };
  return decideBatch(batchOf(commands), loaded, momentAt(NOW), eventsMax);
}

/** Null means that the command was postponed. */
function outcomes(decided: DecidedBatch): (string | null)[] {
  return decided.outcomes.map((outcome) => (outcome === null ? null : (outcome.refused ?? 'accepted')));
}

function postingCounts({ changes }: DecidedBatch): [index: number, renewals: number, others: number][] {
  return changes.map(({ index, postings }) => {
    const renewals = postings.filter(({ kind }) => kind === 'renew').length;
    return [index, renewals, postings.length - renewals];
  });
}

const NONE = stateOf();

test('a batch groups its commands by end user, and the same UUID under another account is another end user', () => {
  const commands = [add(ADA, 1), add(BOB, 1), subtract(ADA, 1), stopCycle(CAT), settling(BOB)];
  const batch = batchOf(commands);
  assert.deepEqual(
    batch.users.map(({ account, endUser }) => ({ account, endUser })),
    [ADA, BOB, CAT],
  );
  assert.deepEqual(batch.userOf, [0, 1, 0, 2, 1]);
  assert.equal(batch.commands, commands);
});

test('an empty batch does nothing', () => {
  assert.deepEqual(decideAll([], []), { outcomes: [], changes: [], records: [] });
});

test('later commands of a batch see the effects of earlier ones', () => {
  const commands = [subtract(ADA, 5), add(ADA, 5), subtract(ADA, 3), subtract(ADA, 3), subtract(ADA, 2)];
  const decided = decideAll(commands, [NONE]);
  assert.deepEqual(outcomes(decided), ['InsufficientFunds', 'accepted', 'accepted', 'InsufficientFunds', 'accepted']);
  assert.deepEqual(decided.outcomes[3], { refused: 'InsufficientFunds', requested: 3, available: 2 });
});

test('within a batch, commands that start and stop the cycles of an end user are decided in order', () => {
  const stop = stopCycle();
  const decided = decideAll([start(ADA), start(ADA), start(ADA, 'replace'), stop, stop, start(ADA)], [NONE]);
  assert.deepEqual(outcomes(decided), [
    'accepted',
    'CycleAlreadyActive',
    'accepted',
    'accepted',
    'accepted',
    'accepted',
  ]);
  const [change] = decided.changes;
  assert.deepEqual(
    change?.after.cycles.map(({ status }) => status),
    ['superseded', 'superseded', 'active'],
  );
  assert.deepEqual(
    change?.postings.map(({ kind }) => kind),
    ['start-cycle', 'stop-cycle', 'start-cycle', 'stop-cycle', 'start-cycle'],
  );
});

test('the transaction IDs of a batch ascend in the order of its commands', () => {
  const { changes } = decideAll([add(ADA, 1), add(BOB, 1), add(ADA, 1)], [NONE, NONE]);
  const ids = changes.map(({ postings }) => postings.map(({ transactionId }) => transactionId));
  assert.deepEqual(ids, [[idAt(NOW, 2), idAt(NOW, 4)], [idAt(NOW, 3)]]);
});

test('a refusal has no effect on other commands of its batch, whether for the same end user or for others', () => {
  const commands = [add(ADA, 5), subtract(ADA, 6), subtract(BOB, 1), add(BOB, 3), stopCycle(), subtract(ADA, 5)];
  const decided = decideAll(commands, [NONE, NONE]);
  const refusals = ['accepted', 'InsufficientFunds', 'InsufficientFunds', 'accepted', 'CycleNotFound', 'accepted'];
  assert.deepEqual(outcomes(decided), refusals);
  const alone = decideAll([add(ADA, 5), add(BOB, 3), subtract(ADA, 5)], [NONE, NONE]);
  const entered = ({ changes }: DecidedBatch) => changes.map(({ index, postings, after }) => [index, postings, after]);
  assert.deepEqual(entered(decided), entered(alone));
});

test('a subtraction does not take the credits of another end user', () => {
  const decided = decideAll([subtract(ADA, 100), subtract(BOB, 1)], [stateOf(daily(0)), NONE]);
  assert.deepEqual(outcomes(decided), ['accepted', 'InsufficientFunds']);
});

test('a batch writes nothing for end users without changes', () => {
  const decided = decideAll([subtract(ADA, 1), settling(BOB), add(CAT, 1)], [NONE, stateOf(daily(0)), NONE]);
  assert.deepEqual(postingCounts(decided), [[2, 0, 1]]);
  assert.equal(decided.changes[0]?.user.endUser, CAT.endUser);
});

test('a change contains the postings of all commands of its end user, and the states before and after', () => {
  const untouched = oneTime({ start: daysAgo(1) });
  const spent = oneTime({ remaining: 30 }, 9);
  const before = stateOf(untouched, spent);
  const { changes } = decideAll([subtract(ADA, 100), subtract(ADA, 10), add(ADA, 4)], [before]);
  const added = oneTime({ amount: 4 }, 4);
  assert.equal(changes.length, 1);
  assert.equal(changes[0]?.before, before);
  assert.deepEqual(changes[0]?.after.cycles, [{ ...untouched, remaining: 0 }, { ...spent, remaining: 20 }, added]);
  assert.deepEqual(
    changes[0]?.postings.map(({ amount, cycleId }) => [amount, cycleId]),
    [
      [-100, untouched.id],
      [-10, spent.id],
      [4, added.id],
    ],
  );
});

test('due renewals are applied before a command is decided', () => {
  const decided = decideAll([subtract(ADA, 100), subtract(ADA, 1)], [stateOf(daily(3, { remaining: 0 }))]);
  assert.deepEqual(outcomes(decided), ['accepted', 'InsufficientFunds']);
  assert.deepEqual(postingCounts(decided), [[0, 3, 1]]);
  assert.deepEqual(decided.changes[0]?.after.cycles, [{ ...periodAfter(daily(3), 3), remaining: 0 }]);
});

test('due renewals are applied even if the command is refused', () => {
  const decided = decideAll([subtract(ADA, 101)], [stateOf(daily(1))]);
  assert.deepEqual(outcomes(decided), ['InsufficientFunds']);
  assert.deepEqual(decided.changes[0]?.postings, [opening(periodAfter(daily(1), 1))]);
});

test('a settle command applies due renewals and nothing else', () => {
  const decided = decideAll([settling(ADA), settling(BOB)], [stateOf(daily(2)), stateOf(daily(0))]);
  const nothing = { refused: null, transactionId: null };
  assert.deepEqual(decided.outcomes, [nothing, nothing]);
  assert.deepEqual(postingCounts(decided), [[0, 2, 0]]);
});

test('a command is decided if exactly as many renewals are due as a batch can apply', () => {
  assert.deepEqual(outcomes(decideAll([subtract(ADA, 1)], [stateOf(daily(4))], 4)), ['accepted']);
});

test('if one more renewal is due than a batch can apply, the oldest renewals are applied and the commands are postponed', () => {
  const decided = decideAll([subtract(ADA, 1), add(ADA, 1)], [stateOf(daily(5))], 4);
  assert.deepEqual(decided.outcomes, [null, null]);
  assert.deepEqual(
    decided.changes[0]?.postings,
    [1, 2, 3, 4].map((count) => opening(periodAfter(daily(5), count))),
  );
  assert.deepEqual(decided.changes[0]?.after.cycles, [periodAfter(daily(5), 4)]);
});

test('each retry of a postponed command applies more due renewals, until the command can be decided', () => {
  let state = stateOf(daily(10));
  const renewals: number[] = [];
  let decided = decideAll([subtract(ADA, 1)], [state], 4);
  for (; outcomes(decided)[0] === null; decided = decideAll([subtract(ADA, 1)], [state], 4)) {
    assert(renewals.length < 2, 'three batches of four renewals cover ten periods');
    renewals.push(decided.changes[0]?.postings.length ?? 0);
    state = decided.changes[0]?.after ?? state;
  }
  assert.deepEqual(renewals, [4, 4]);
  assert.deepEqual(postingCounts(decided), [[0, 2, 1]]);
  assert.equal(decided.changes[0]?.after.cycles[0]?.remaining, 99);
});

test('an end user with postponed commands does not delay the other end users in the batch', () => {
  const commands = [subtract(ADA, 1), add(BOB, 5), subtract(ADA, 1), subtract(BOB, 5)];
  const decided = decideAll(commands, [stateOf(daily(5)), NONE], 4);
  assert.deepEqual(outcomes(decided), [null, 'accepted', null, 'accepted']);
  assert.deepEqual(postingCounts(decided), [
    [0, 4, 0],
    [1, 0, 2],
  ]);
});

test('when the commands of an account have produced thousands of postings, its further commands are postponed, but not those of other accounts', () => {
  const half = ACCOUNT_POSTINGS_MAX / 2 + 1;
  const start = daysAgo(2);
  const many = stateOf(...Array.from({ length: half }, (_, index) => oneTime({ start, amount: 2 }, index + 2)));
  const commands = [subtract(ADA, 2 * half), subtract(CAT, 2 * half), add(CAT, 1), add(BOB, 1), add(ADA, 1)];
  const decided = decideAll(commands, [many, many, NONE]);
  assert.deepEqual(outcomes(decided), ['accepted', 'accepted', null, 'accepted', null]);
  const below = decideAll([subtract(ADA, 2 * half), subtract(CAT, 2 * half - 2), add(CAT, 1)], [many, many]);
  assert.deepEqual(outcomes(below), ['accepted', 'accepted', 'accepted']);
});

test('the limit on due events applies to the whole batch, and earlier commands use it up first', () => {
  const states = [3, 2, 1, 0].map((days) => stateOf(daily(days)));
  const decided = decideAll([add(ADA, 1), add(BOB, 1), add(CAT, 1), add({ ...ADA, account: 3 }, 1)], states, 4);
  assert.deepEqual(outcomes(decided), ['accepted', null, null, 'accepted']);
  assert.deepEqual(postingCounts(decided), [
    [0, 3, 1],
    [1, 1, 0],
    [3, 0, 1],
  ]);
});

test('a postponed command leaves no idempotency record', () => {
  const keyed = subtraction(1, { idempotency: { key: 'a', requestId: 'request-1' } });
  assert.deepEqual(decideAll([keyed], [stateOf(daily(5))], 4).records, []);
  assert.equal(decideAll([keyed], [stateOf(daily(5))], 5).records.length, 1);
});

test('deciding the same batch again gives the same result', () => {
  const commands = [add(ADA, 5), subtract(BOB, 150), start(ADA), subtract(ADA, 30), stopCycle(BOB), settling(CAT)];
  const states = [NONE, stateOf(daily(2), oneTime()), stateOf(daily(3))];
  assert.deepEqual(decideAll(commands, states, 5), decideAll(commands, states, 5));
});

test('an assertion fails unless exactly one state is loaded for each end user of a batch', () => {
  assert.throws(() => decideAll([add(ADA, 1), add(BOB, 1)], [NONE]), { name: 'AssertionError' });
  assert.throws(() => decideAll([add(ADA, 1)], [NONE, NONE]), { name: 'AssertionError' });
});

test('if an end user has two active recurring cycles, every command fails with a violation of invariant 3', () => {
  const two = stateOf(daily(0), oneTime({}, 2), recurring({}, 3));
  for (const command of [subtract(ADA, 1), add(ADA, 1), start(ADA), start(ADA, 'replace'), stopCycle(), settling()])
    assert.throws(() => decideAll([command], [two]), { invariant: 3 });
});

/** Clears the cycle IDs, because they depend on the other commands in the batch. */
function cyclesAfter({ changes }: DecidedBatch, user: number): Cycle[] | undefined {
  return changes.find(({ index }) => index === user)?.after.cycles.map((cycle) => ({ ...cycle, id: '' }));
}

test('commands have the same outcomes whether or not their batch also contains commands for other end users', () => {
  const users = fc.constantFrom(ADA, BOB, CAT);
  const commands = fc.oneof(
    fc.tuple(users, fc.integer({ min: 1, max: 9 })).map(([user, amount]) => add(user, amount)),
    fc.tuple(users, fc.integer({ min: 1, max: 99 })).map(([user, amount]) => subtract(user, amount)),
    users.map((user) => start(user, 'replace')),
    users.map((user) => stopCycle(user)),
  );
  const batches = fc.array(commands, { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(batches, fc.integer({ min: 1, max: 6 }), (commands, days) => {
      const state = stateOf(daily(days));
      const { users, userOf } = batchOf(commands);
      const states = users.map(() => state);
      const together = decideAll(commands, states);
      for (const user of users.keys()) {
        const isTheirs = (_: unknown, place: number) => userOf[place] === user;
        const alone = decideAll(commands.filter(isTheirs), [state]);
        assert.deepEqual(outcomes(together).filter(isTheirs), outcomes(alone));
        assert.deepEqual(cyclesAfter(together, user), cyclesAfter(alone, 0));
      }
    }),
  );
});

test('applying the postings of a change to the state before the change gives the state after the change', () => {
  const commands = [subtract(ADA, 30), start(ADA, 'replace'), add(ADA, 5), subtract(ADA, 80), stopCycle()];
  const before = stateOf(daily(3));
  const [change] = decideAll(commands, [before]).changes;
  assert(change);
  assert.deepEqual(applyAll(before, change.postings), change.after);
  assert.deepEqual(change.postings.slice(0, 3), settle(before, NOW, EVENTS_MAX).postings);
});
