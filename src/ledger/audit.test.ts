// The audit reports nothing for a ledger as written, and reports every single change made by other means. Each row of a
// table is one change, made in turn to every cycle or every posting of a ledger with all kinds of transactions.
// audit-rules.test.ts checks the exact messages, audit-properties.test.ts checks random ledgers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ADA,
  add,
  MemoryLedger,
  NOW,
  settling,
  startCycle,
  stopCycle,
  subtract,
} from '../../test/ledger/ledger-builders.ts';
import { audit, type Finding } from './audit.ts';
import type { Command } from './command.ts';
import type { Cycle } from './cycle.ts';
import { DAY_MS, INSTANT_MAX, VALIDITY_DAYS_MAX } from './instant.ts';
import type { Posting } from './posting.ts';
import { instantOf, sequenceOf, transactionId } from './transaction-id.ts';

type Writable<Row> = { -readonly [Field in keyof Row]: Row[Field] };

interface Stored {
  cycles: Writable<Cycle>[];
  /** Oldest first. */
  postings: Writable<Posting>[];
  now: number;
}

/** Commands of all kinds, each with the day on which it is sent, counted from `NOW`. */
const HISTORY: readonly (readonly [day: number, command: Command])[] = [
  [0, add(100, { validityDays: 10 })],
  [0, startCycle(50, { validityDays: 1 })],
  [0.1, subtract(120)],
  [2, subtract(7)],
  [4.5, stopCycle()],
  [4.6, startCycle(30, { validityDays: 7 })],
  [4.7, startCycle(40, { validityDays: 3, onActive: 'replace' })],
  [4.8, add(9, { validityDays: VALIDITY_DAYS_MAX })],
  [5, subtract(60)],
  [8, add(1, { validityDays: 1 })],
  [8, add(2, { validityDays: 2 })],
  [8, subtract(1)],
  [8.1, stopCycle()],
];

function written(history = HISTORY): Stored {
  const ledger = new MemoryLedger();
  for (const [day, command] of history) {
    ledger.now = NOW + day * DAY_MS;
    assert.equal(ledger.run(command).refused, null, `day ${day} of the history is accepted`);
  }
  const { cycles, postings, now } = ledger;
  return structuredClone({ cycles: [...cycles], postings, now });
}

function findings({ cycles, postings, now }: Stored): Finding[] {
  return [...audit({ user: ADA, cycles, postings }, now)];
}

test('the audit finds nothing wrong in a history that the ledger wrote', () => {
  const stored = written();
  assert.deepEqual(findings(stored), []);
  assert.deepEqual(findings({ ...stored, now: stored.now + 100 * DAY_MS }), [], 'nothing wrong 100 days later');
  assert.deepEqual(
    findings({ ...stored, cycles: stored.cycles.toReversed() }),
    [],
    'nothing wrong with the cycles in another order',
  );
  const kinds = new Set(stored.postings.map(({ kind }) => kind));
  assert.deepEqual([...kinds].sort(), ['add', 'renew', 'start-cycle', 'stop-cycle', 'subtract']);
  const rows = new Set(stored.cycles.map(({ type, status }) => `${type} ${status}`));
  assert.deepEqual([...rows].sort(), ['one-time active', 'recurring canceled', 'recurring superseded']);
});

test('the audit finds nothing wrong with an end user without cycles and postings', () => {
  assert.deepEqual(findings({ cycles: [], postings: [], now: NOW }), []);
});

test('the audit finds nothing wrong with renewals that are due and not stored yet', () => {
  const stored = written([[0, startCycle(50, { validityDays: 1 })]]);
  for (const days of [1, 2, 3_650]) assert.deepEqual(findings({ ...stored, now: NOW + days * DAY_MS }), []);
});

test('the audit reads the postings of an end user once, so they may come from an iterator', () => {
  const { cycles, postings, now } = written();
  assert.deepEqual([...audit({ user: ADA, cycles, postings: postings.values() }, now)], []);
});

test('a finding consists of the end user, the invariant, and a message about what is wrong', () => {
  const stored = written();
  const [cycle] = stored.cycles as [Writable<Cycle>];
  cycle.remaining += 1;
  const { id } = cycle;
  assert.deepEqual(findings(stored), [
    { invariant: 1, user: ADA, message: `cycle ${id} is stored with remaining 1; its postings say 0` },
    { invariant: 2, user: ADA, message: 'the active balance is 52, but its postings sum to 51' },
  ]);
});

/**
 * @param invariants a string of digits; the audit must report a violation of one of these invariants
 * @param hits selects the rows that the change makes wrong; by default all rows
 */
type Change<Row> = readonly [
  what: string,
  change: (row: Row) => Partial<Row>,
  invariants: string,
  hits?: (row: Row, stored: Stored) => boolean,
];

const isClamped = ({ end }: Cycle) => end === INSTANT_MAX;
const otherTail = (id: string) => `${id.slice(0, 24)}cccccccccccc`;

/** The same id with a time that is a millisecond later. */
function laterId(id: string): string {
  return transactionId({ at: instantOf(id) + 1, sequence: sequenceOf(id), tail: id.slice(24) });
}

const CYCLE_CHANGES: readonly Change<Cycle>[] = [
  ['amount is too high by one', ({ amount }) => ({ amount: amount + 1 }), '1'],
  ['amount is too low by one', ({ amount }) => ({ amount: amount - 1 }), '1'],
  ['amount and remaining are too high by one', (c) => ({ amount: c.amount + 1, remaining: c.remaining + 1 }), '1'],
  ['remaining is too high by one', ({ remaining }) => ({ remaining: remaining + 1 }), '1'],
  ['remaining is too low by one', ({ remaining }) => ({ remaining: remaining - 1 }), '1'],
  ['remaining is reset to its amount', ({ amount }) => ({ remaining: amount }), '1', (c) => c.remaining < c.amount],
  ['remaining is reset to 0', () => ({ remaining: 0 }), '1', ({ remaining }) => remaining > 0],
  ['start is a millisecond too late', ({ start }) => ({ start: start + 1 }), '4'],
  ['start is a millisecond too early', ({ start }) => ({ start: start - 1 }), '4'],
  ['start is before 1970', () => ({ start: -1 }), '4'],
  ['end is a millisecond too late', ({ end }) => ({ end: end + 1 }), '4'],
  ['end is a millisecond too early', ({ end }) => ({ end: end - 1 }), '4'],
  ['end is a day too late', ({ end }) => ({ end: end + DAY_MS }), '4'],
  [
    'validity is a day too long, with an end that matches it',
    ({ validityDays, end }) => ({ validityDays: validityDays + 1, end: end + DAY_MS }),
    '4',
    (cycle) => !isClamped(cycle),
  ],
  ['validity is a day too long', ({ validityDays }) => ({ validityDays: validityDays + 1 }), '4'],
  ['validity is a day too short', ({ validityDays }) => ({ validityDays: validityDays - 1 }), '4'],
  ['validity is 0', () => ({ validityDays: 0 }), '4'],
  ['period is too high by one', ({ period }) => ({ period: period + 1 }), '3'],
  ['period is too low by one', ({ period }) => ({ period: period - 1 }), '3'],
  ['type is wrong', ({ type }) => ({ type: type === 'recurring' ? 'one-time' : 'recurring' }), '3'],
  ['status is wrongly active', () => ({ status: 'active' }), '3', ({ status }) => status !== 'active'],
  ['status is wrongly canceled', () => ({ status: 'canceled' }), '3', ({ status }) => status !== 'canceled'],
  ['status is wrongly superseded', () => ({ status: 'superseded' }), '3', ({ status }) => status !== 'superseded'],
  ['id has a time that is a millisecond too late', ({ id }) => ({ id: laterId(id) }), '1'],
  ['id is another id of the same instant', ({ id }) => ({ id: otherTail(id) }), '1'],
];

const isOpening = ({ terms }: Posting) => terms !== null;

/**
 * The audit cannot check the amount of a subtraction from an earlier period of a cycle: only the remaining credits of
 * the latest period are stored. The hash chain covers that amount.
 */
function isCompared({ cycleId, period }: Posting, { cycles }: Stored): boolean {
  return cycles.some((cycle) => cycle.id === cycleId && cycle.period === period);
}

const POSTING_CHANGES: readonly Change<Posting>[] = [
  [
    'amount is too high by one',
    ({ amount }) => ({ amount: amount + 1 }),
    '13',
    (posting, stored) => posting.kind !== 'subtract' || isCompared(posting, stored),
  ],
  [
    'amount is too low by one',
    ({ amount }) => ({ amount: amount - 1 }),
    '13',
    (posting, stored) => posting.kind !== 'subtract' || isCompared(posting, stored),
  ],
  ['amount is 0', () => ({ amount: 0 }), '1', ({ amount }) => amount !== 0],
  ['amount has the wrong sign', ({ amount }) => ({ amount: -amount }), '1', ({ amount }) => amount !== 0],
  ['creation time is a millisecond too late', ({ createdAt }) => ({ createdAt: createdAt + 1 }), '4'],
  ['creation time is a millisecond too early', ({ createdAt }) => ({ createdAt: createdAt - 1 }), '4'],
  ['expiry is a millisecond too late', ({ expiresAt }) => ({ expiresAt: expiresAt + 1 }), '4'],
  ['expiry is a millisecond too early', ({ expiresAt }) => ({ expiresAt: expiresAt - 1 }), '4'],
  ['period is too high by one', ({ period }) => ({ period: period + 1 }), '34'],
  ['period is too low by one', ({ period }) => ({ period: period - 1 }), '34'],
  ['cycle does not exist', ({ cycleId }) => ({ cycleId: otherTail(cycleId) }), '4'],
  ['id has a time that is a millisecond too late', ({ transactionId: id }) => ({ transactionId: laterId(id) }), '4'],
  [
    'id is another id of the same instant',
    ({ transactionId: id }) => ({ transactionId: otherTail(id) }),
    '34',
    isOpening,
  ],
  ['kind is wrongly add', () => ({ kind: 'add' }), '34', ({ kind }) => kind !== 'add'],
  ['kind is wrongly start-cycle', () => ({ kind: 'start-cycle' }), '34', ({ kind }) => kind !== 'start-cycle'],
  ['kind is wrongly renew', () => ({ kind: 'renew' }), '34', ({ kind }) => kind !== 'renew'],
  ['kind is wrongly subtract', () => ({ kind: 'subtract' }), '14', ({ kind }) => kind !== 'subtract'],
  ['kind is wrongly stop-cycle', () => ({ kind: 'stop-cycle' }), '14', ({ kind }) => kind !== 'stop-cycle'],
  ['terms are missing', () => ({ terms: null }), '4', isOpening],
  [
    'terms should be absent',
    () => ({ terms: { type: 'one-time', validityDays: 1 } }),
    '4',
    (posting) => !isOpening(posting),
  ],
  [
    'terms have the wrong type',
    ({ terms }) => ({ terms: terms && { ...terms, type: terms.type === 'one-time' ? 'recurring' : 'one-time' } }),
    '3',
    isOpening,
  ],
  [
    'terms are a day too long',
    ({ terms }) => ({ terms: terms && { ...terms, validityDays: terms.validityDays + 1 } }),
    '34',
    isOpening,
  ],
  ['actor is empty', () => ({ actor: '' }), '4'],
  ['actor is wrongly renewal', () => ({ actor: 'renewal' }), '4', ({ kind }) => kind !== 'renew'],
  ['actor is wrongly an API key', () => ({ actor: 'key:7' }), '4', ({ kind }) => kind === 'renew'],
];

function assertFound(stored: Stored, invariants: string, what: string): void {
  const found = findings(stored);
  assert(found.length > 0, `the audit does not find that ${what}`);
  const numbers = found.map(({ invariant }) => invariant);
  assert(
    numbers.some((number) => invariants.includes(`${number}`)),
    `the audit finds ${numbers} when ${what}`,
  );
}

/** Makes the change to one row at a time, each in a fresh ledger, and checks that the audit finds it. */
function assertEachFound<Row extends object>(rowsOf: (stored: Stored) => Row[], change: Change<Row>): void {
  const [what, changed, invariants, hits = () => true] = change;
  const rows = rowsOf(written());
  const places = [...rows.keys()].filter((place) => hits(rows[place] as Row, written()));
  assert(places.length > 0, 'the change applies to at least one row');
  for (const place of places) {
    const stored = written();
    const row = rowsOf(stored)[place] as Row;
    Object.assign(row, changed(row));
    assertFound(stored, invariants, `${what}: ${JSON.stringify(rows[place])}`);
  }
}

for (const change of CYCLE_CHANGES) {
  test(`the audit finds a stored cycle whose ${change[0]}`, () => assertEachFound(({ cycles }) => cycles, change));
}

for (const change of POSTING_CHANGES) {
  test(`the audit finds a posting whose ${change[0]}`, () => assertEachFound(({ postings }) => postings, change));
}

test('the audit finds that a stored cycle is missing', () => {
  for (const place of written().cycles.keys()) {
    const stored = written();
    const [row] = stored.cycles.splice(place, 1);
    assertFound(stored, '1', `this is missing: ${JSON.stringify(row)}`);
  }
});

test('the audit finds that a posting is missing', () => {
  for (const [place, posting] of written().postings.entries()) {
    const stored = written();
    if (posting.kind === 'subtract' && !isCompared(posting, stored)) continue;
    stored.postings.splice(place, 1);
    assertFound(stored, '134', `this is missing: ${JSON.stringify(posting)}`);
  }
});

test('the audit finds a cycle that is stored twice', () => {
  for (const [place, row] of written().cycles.entries()) {
    const stored = written();
    stored.cycles.splice(place, 0, structuredClone(row));
    assertFound(stored, '3', `this is stored twice: ${JSON.stringify(row)}`);
  }
});

test('the audit finds a posting that is stored twice', () => {
  for (const [place, row] of written().postings.entries()) {
    const stored = written();
    stored.postings.splice(place, 0, structuredClone(row));
    assertFound(stored, '34', `this is stored twice: ${JSON.stringify(row)}`);
  }
});

test('the audit finds two transactions that are stored in the wrong order', () => {
  const { postings } = written();
  let swaps = 0;
  for (const [place, earlier] of postings.entries()) {
    const later = postings[place + 1];
    if (later === undefined || later.transactionId === earlier.transactionId) continue;
    assertFound({ ...written(), postings: postings.toSpliced(place, 2, later, earlier) }, '4', 'they are swapped');
    swaps += 1;
  }
  assert(swaps > 10);
});

test('the audit finds a transaction with two actors, two kinds or two notes', () => {
  const { postings } = written();
  const places = [...postings.keys()].filter((at) => postings[at]?.transactionId === postings[at + 1]?.transactionId);
  assert(places.length > 0, 'a transaction has several postings');
  for (const place of places) {
    for (const change of [{ actor: 'key:8' }, { kind: 'stop-cycle' }, { note: 'ticket 4711' }] as const) {
      const stored = written();
      Object.assign(stored.postings[place] as Writable<Posting>, change);
      assertFound(stored, '4', JSON.stringify(change));
    }
  }
});

test('the audit finds a clock that is behind the latest posting, and accepts a clock that is ahead', () => {
  const stored = written();
  assertFound({ ...stored, now: stored.now - 1 }, '4', 'the clock is behind');
  assert.deepEqual(findings({ ...stored, now: stored.now + 1 }), []);
});

test('among thousands of ended cycles, the audit finds the only one with a wrong number of credits', () => {
  const days = Array.from({ length: 2_000 }, (_, day) => day);
  const stored = written(days.map((day) => [day, add(5, { validityDays: 1 + (day % 3) })]));
  assert.deepEqual(findings(stored), []);
  const [cycle] = stored.cycles as [Writable<Cycle>];
  cycle.remaining -= 1;
  const message = `cycle ${cycle.id} is stored with remaining 4; its postings say 5`;
  assert.deepEqual(findings(stored), [{ invariant: 1, user: ADA, message }]);
});

test('in ten years of daily renewals, the audit finds a single missing renewal', () => {
  const stored = written([
    [0, startCycle(5, { validityDays: 1 })],
    [3_650, settling()],
  ]);
  assert.deepEqual(findings(stored), []);
  assert.equal(stored.postings.length, 3_651);
  assertFound({ ...stored, postings: stored.postings.toSpliced(1_000, 1) }, '3', 'a renewal is missing');
});
