// A batch: decided in order as one step, each end user by itself, and no longer than its share of missed periods.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ACCEPTED, type Command } from './command.ts';
import type { Cycle } from './cycle.ts';
import { batchOf, type Folded, fold, foldRenewals } from './fold.ts';
import { NO_RECORDS } from './idempotency.ts';
import { DAY_MS } from './instant.ts';
import { transactionId } from './transaction-id.ts';

const NOW = Date.UTC(2026, 0, 15, 9, 30, 0, 123);
const UUID = '5f0c6f7e-0000-4000-8000-000000000001';
const [ANN, BOB, CAT] = [
  { account: 1, endUser: UUID },
  { account: 2, endUser: UUID },
  { account: 1, endUser: '5f0c6f7e-0000-4000-8000-000000000002' },
] as const;
const PERIODS_MAX = 1_000;

type User = typeof ANN | typeof BOB | typeof CAT;

function idAt(at: number, sequence: number): string {
  return transactionId({ at, sequence, tail: 'aaaaaaaaaaaa' });
}

const add = (user: User, amount: number): Command => ({
  ...user,
  actor: 'key:7',
  kind: 'add',
  amount,
  validityDays: 31,
});
const subtract = (user: User, amount: number): Command => ({ ...user, actor: 'key:7', kind: 'subtract', amount });
const stop = (user: User): Command => ({ ...user, actor: 'key:7', kind: 'stop-cycle' });
const renew = (user: User): Command => ({ ...user, kind: 'renew' });
const start = (user: User, onActive: 'refuse' | 'replace' = 'refuse'): Command => ({
  ...user,
  actor: 'key:7',
  kind: 'start-cycle',
  amount: 50,
  validityDays: 7,
  onActive,
});

/** A daily cycle that began so many days ago and has not renewed since: it missed that many periods. */
function daily(daysAgo: number, change: Partial<Cycle> = {}): Cycle {
  const start = NOW - daysAgo * DAY_MS;
  return Object.freeze({
    id: idAt(start, 1),
    period: 0,
    type: 'recurring',
    status: 'active',
    amount: 100,
    remaining: 100,
    start,
    end: start + DAY_MS,
    validityDays: 1,
    ...change,
  });
}

function foldAll(
  commands: readonly Command[],
  loaded: readonly (readonly Cycle[])[],
  periodsMax = PERIODS_MAX,
): Folded {
  let sequence = 0;
  const moment = { now: NOW, nextId: () => idAt(NOW, ++sequence) };
  const frozen = Object.freeze(loaded.map((cycles) => Object.freeze(cycles)));
  return fold(batchOf(commands), { cycles: frozen, answers: NO_RECORDS }, moment, periodsMax);
}

/** What each outcome says, in a word. */
function said({ outcomes }: Folded): (string | null)[] {
  return outcomes.map((outcome) => (outcome === null ? null : (outcome.refused ?? 'accepted')));
}

test('a batch groups its commands by end user, and the same UUID under another account is somebody else', () => {
  const commands = [add(ANN, 1), add(BOB, 1), subtract(ANN, 1), stop(CAT), renew(BOB)];
  const { users, userOf } = batchOf(commands);
  assert.deepEqual(
    users.map(({ account, endUser }) => ({ account, endUser })),
    [ANN, BOB, CAT],
  );
  assert.deepEqual(userOf, [0, 1, 0, 2, 1]);
});

test('a batch of nothing does nothing', () => {
  assert.deepEqual(foldAll([], []), { outcomes: [], changes: [], answers: [] });
});

test('later commands see what earlier ones did', () => {
  const folded = foldAll([subtract(ANN, 5), add(ANN, 5), subtract(ANN, 3), subtract(ANN, 3), subtract(ANN, 2)], [[]]);
  assert.deepEqual(said(folded), ['InsufficientFunds', 'accepted', 'accepted', 'InsufficientFunds', 'accepted']);
  assert.deepEqual(folded.outcomes[3], { refused: 'InsufficientFunds', requested: 3, available: 2 });
});

test('a cycle that is started, started again, stopped and started again within a batch is decided in that order', () => {
  const folded = foldAll([start(ANN), start(ANN), start(ANN, 'replace'), stop(ANN), stop(ANN), start(ANN)], [[]]);
  assert.deepEqual(said(folded), ['accepted', 'CycleAlreadyActive', 'accepted', 'accepted', 'accepted', 'accepted']);
  const [change] = folded.changes;
  assert.deepEqual(
    change?.opened.map(({ status }) => status),
    ['canceled', 'canceled', 'active'],
  );
  assert.deepEqual(
    change?.postings.map(({ kind }) => kind),
    ['start-cycle', 'stop-cycle', 'start-cycle', 'stop-cycle', 'start-cycle'],
  );
});

test('ids ascend in the order of the commands', () => {
  const { changes } = foldAll([add(ANN, 1), add(BOB, 1), add(ANN, 1)], [[], []]);
  const ids = changes.map(({ postings }) => postings.map(({ transactionId }) => transactionId));
  assert.deepEqual(ids, [[idAt(NOW, 1), idAt(NOW, 3)], [idAt(NOW, 2)]]);
});

test('a refusal does not disturb its neighbours, of the same end user or of others', () => {
  const commands = [add(ANN, 5), subtract(ANN, 6), subtract(BOB, 1), add(BOB, 3), stop(ANN), subtract(ANN, 5)];
  const folded = foldAll(commands, [[], []]);
  assert.deepEqual(said(folded), [
    'accepted',
    'InsufficientFunds',
    'InsufficientFunds',
    'accepted',
    'CycleNotFound',
    'accepted',
  ]);
  const alone = foldAll([add(ANN, 5), add(BOB, 3), subtract(ANN, 5)], [[], []]);
  const rows = (from: Folded) =>
    from.changes.map(({ opened }) => opened.map(({ amount, remaining }) => [amount, remaining]));
  assert.deepEqual(rows(folded), rows(alone));
});

test('what one end user spends is not taken from another', () => {
  const folded = foldAll([subtract(ANN, 100), subtract(BOB, 1)], [[daily(0)], []]);
  assert.deepEqual(said(folded), ['accepted', 'InsufficientFunds']);
});

test('only end users to whom something happened leave anything to be written', () => {
  const folded = foldAll([subtract(ANN, 1), renew(BOB), add(CAT, 1)], [[], [daily(0)], []]);
  assert.deepEqual(
    folded.changes.map(({ index, user }) => [index, user.endUser]),
    [[2, CAT.endUser]],
  );
});

test('a change tells the rows to insert from the rows to change, with their postings', () => {
  const untouched = daily(0, { type: 'one-time' });
  const spent = daily(0, { id: idAt(NOW, 0), start: NOW, end: NOW + DAY_MS, type: 'one-time', remaining: 30 });
  const { changes } = foldAll([subtract(ANN, 100), subtract(ANN, 10), add(ANN, 4)], [[untouched, spent]]);
  assert.equal(changes.length, 1);
  const [change] = changes;
  assert.deepEqual(change?.changed, [
    { before: untouched, after: { ...untouched, remaining: 0 } },
    { before: spent, after: { ...spent, remaining: 20 } },
  ]);
  assert.deepEqual(
    change?.opened.map(({ id, amount }) => [id, amount]),
    [[idAt(NOW, 3), 4]],
  );
  assert.deepEqual(
    change?.postings.map(({ amount, cycleId }) => [amount, cycleId]),
    [
      [-100, untouched.id],
      [-10, spent.id],
      [4, idAt(NOW, 3)],
    ],
  );
});

test('a cycle that is not touched is not among the rows to change', () => {
  const cycles = [daily(0, { type: 'one-time' }), daily(0, { id: idAt(NOW, 0), type: 'one-time' })];
  const { changes } = foldAll([subtract(ANN, 1)], [cycles]);
  assert.deepEqual(
    changes[0]?.changed.map(({ before }) => before),
    [cycles[0]],
  );
});

test('commands are decided on what time has done before', () => {
  const spent = daily(3, { remaining: 0 });
  const folded = foldAll([subtract(ANN, 100), subtract(ANN, 1)], [[spent]]);
  assert.deepEqual(said(folded), ['accepted', 'InsufficientFunds']);
  const [change] = folded.changes;
  assert.deepEqual(change?.changed, [{ before: spent, after: { ...spent, status: 'renewed' } }]);
  assert.deepEqual(
    change?.opened.map(({ period, status, remaining }) => [period, status, remaining]),
    [
      [1, 'renewed', 100],
      [2, 'renewed', 100],
      [3, 'active', 0],
    ],
  );
});

test('renewals that are due are entered even when the command is refused', () => {
  const folded = foldAll([subtract(ANN, 101)], [[daily(1)]]);
  assert.deepEqual(said(folded), ['InsufficientFunds']);
  assert.deepEqual(
    folded.changes[0]?.postings.map(({ kind }) => kind),
    ['renew'],
  );
});

test('the renewal clock has what is due entered, and nothing else', () => {
  const folded = foldAll([renew(ANN), renew(BOB)], [[daily(2)], [daily(0)]]);
  assert.deepEqual(folded.outcomes, [ACCEPTED, ACCEPTED]);
  assert.deepEqual(
    folded.changes.map(({ index, postings }) => [index, postings.length]),
    [[0, 2]],
  );
});

test('renewals that are entered without commands are those that a command for each enters', () => {
  const bought: Cycle = { ...daily(2), type: 'one-time', validityDays: 31, end: NOW + 29 * DAY_MS };
  const loaded = [[daily(5), bought], [daily(0)], [daily(3, { remaining: 7 })]];
  for (const periodsMax of [0, 1, 4, 5, 6, 8, PERIODS_MAX]) {
    const { outcomes, changes } = foldAll([renew(ANN), renew(BOB), renew(CAT)], loaded, periodsMax);
    const cycles = loaded.map((each) => ({ cycles: each }));
    const renewals = foldRenewals([ANN, BOB, CAT], cycles, NOW, periodsMax);
    assert.deepEqual(
      renewals.changes,
      changes.map((change) => ({ ...change, user: [ANN, BOB, CAT][change.index] })),
    );
    assert.equal(
      renewals.entered,
      changes.reduce((sum, { postings }) => sum + postings.length, 0),
    );
    const settled = changes.filter(({ index }) => outcomes[index] !== null);
    assert.equal(renewals.settled, settled.length, 'who has nothing due is not counted');
  }
});

test('who missed as many periods as a batch may enter is decided in it', () => {
  assert.deepEqual(said(foldAll([subtract(ANN, 1)], [[daily(4)]], 4)), ['accepted']);
});

test('who missed one period more is put off, with the oldest periods entered and nothing decided', () => {
  const folded = foldAll([subtract(ANN, 1), add(ANN, 1)], [[daily(5)]], 4);
  assert.deepEqual(folded.outcomes, [null, null]);
  const [change] = folded.changes;
  assert.deepEqual(
    change?.postings.map(({ kind, createdAt }) => [kind, createdAt]),
    [4, 3, 2, 1].map((days) => ['renew', NOW - days * DAY_MS]),
  );
  assert.deepEqual(
    change?.opened.map(({ period, status }) => [period, status]),
    [
      [1, 'renewed'],
      [2, 'renewed'],
      [3, 'renewed'],
      [4, 'active'],
    ],
  );
});

test('who was put off goes on where the batch before ended, until it is decided', () => {
  let cycles: readonly Cycle[] = [daily(10)];
  const entered: number[] = [];
  let folded = foldAll([subtract(ANN, 1)], [cycles], 4);
  for (let batches = 1; said(folded)[0] === null; batches++) {
    assert(batches < 3, 'ten periods fit three batches of four');
    const [change] = folded.changes;
    assert(change);
    entered.push(change.postings.length);
    cycles = change.opened.slice(-1);
    folded = foldAll([subtract(ANN, 1)], [cycles], 4);
  }
  assert.deepEqual([...entered, folded.changes[0]?.postings.length], [4, 4, 3]);
  assert.deepEqual(said(folded), ['accepted']);
  assert.equal(folded.changes[0]?.opened.at(-1)?.remaining, 99);
});

test('the others in the batch of one who is put off are decided', () => {
  const folded = foldAll([subtract(ANN, 1), add(BOB, 5), subtract(ANN, 1), subtract(BOB, 5)], [[daily(5)], []], 4);
  assert.deepEqual(said(folded), [null, 'accepted', null, 'accepted']);
  assert.deepEqual(
    folded.changes.map(({ index, postings }) => [index, postings.length]),
    [
      [0, 4],
      [1, 2],
    ],
  );
});

test('end users share the periods that a batch may enter, the first come first', () => {
  const loaded = [[daily(3)], [daily(2)], [daily(1)], [daily(0)]];
  const dan = { account: 3, endUser: UUID } as unknown as User;
  const folded = foldAll([add(ANN, 1), add(BOB, 1), add(CAT, 1), add(dan, 1)], loaded, 4);
  assert.deepEqual(said(folded), ['accepted', null, null, 'accepted']);
  assert.deepEqual(
    folded.changes.map(({ index, postings }) => [index, postings.filter(({ kind }) => kind === 'renew').length]),
    [
      [0, 3],
      [1, 1],
      [3, 0],
    ],
  );
});

test('a batch that runs again decides the same', () => {
  const commands = [add(ANN, 5), subtract(BOB, 150), start(ANN), subtract(ANN, 30), stop(BOB), renew(CAT)];
  const loaded = [[], [daily(0, { type: 'one-time' }), daily(2)], [daily(3)]];
  assert.deepEqual(foldAll(commands, loaded, 5), foldAll(commands, loaded, 5));
});

test('a batch without all of its end users is not decided', () => {
  assert.throws(() => foldAll([add(ANN, 1), add(BOB, 1)], [[]]), { name: 'AssertionError' });
  for (const loaded of [[{ cycles: [daily(1)] }], [1, 2, 3].map(() => ({ cycles: [daily(1)] }))])
    assert.throws(() => foldRenewals([ANN, BOB], loaded, NOW, PERIODS_MAX), { name: 'AssertionError' });
});

test('an end user with two active cycles is not written to, whatever else happens in the batch', () => {
  const two = [daily(0), daily(0, { id: idAt(NOW, 0) })];
  const bought = daily(0, { id: idAt(NOW, 9), type: 'one-time', remaining: 10 });
  assert.throws(() => foldAll([subtract(ANN, 1)], [two]), { name: 'AssertionError' });
  assert.throws(() => foldAll([subtract(ANN, 11)], [[bought, ...two]]), { name: 'AssertionError' });
  assert.throws(() => foldAll([add(ANN, 1), start(ANN, 'replace')], [two]), { name: 'AssertionError' });
});
