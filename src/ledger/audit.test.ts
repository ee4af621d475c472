// The audit is silent on what the ledger wrote, and never silent about a single thing changed by other means. Each row of
// a table is one such change, made in turn to every cycle or every posting of a ledger that has seen all there is.
// What exactly the audit says of which fault is in audit-rules.test.ts; random ledgers are in audit-properties.test.ts.

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

/** Everything that can happen to an end user, in days after the start. */
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

test('the audit finds nothing in what the ledger wrote', () => {
  const stored = written();
  assert.deepEqual(findings(stored), []);
  assert.deepEqual(findings({ ...stored, now: stored.now + 100 * DAY_MS }), [], 'nor when all of it is long over');
  assert.deepEqual(findings({ ...stored, cycles: stored.cycles.toReversed() }), [], 'in whatever order rows come');
  const kinds = new Set(stored.postings.map(({ kind }) => kind));
  assert.deepEqual([...kinds].sort(), ['add', 'renew', 'start-cycle', 'stop-cycle', 'subtract']);
  const rows = new Set(stored.cycles.map(({ type, status }) => `${type} ${status}`));
  assert.deepEqual([...rows].sort(), ['one-time active', 'recurring canceled', 'recurring superseded']);
});

test('the audit finds nothing where nothing happened', () => {
  assert.deepEqual(findings({ cycles: [], postings: [], now: NOW }), []);
});

test('the audit finds nothing in renewals that are due and not stored yet', () => {
  const stored = written([[0, startCycle(50, { validityDays: 1 })]]);
  for (const days of [1, 2, 3_650]) assert.deepEqual(findings({ ...stored, now: NOW + days * DAY_MS }), []);
});

test('the audit reads the postings of an end user once, and needs no array of them', () => {
  const { cycles, postings, now } = written();
  assert.deepEqual([...audit({ user: ADA, cycles, postings: postings.values() }, now)], []);
});

test('a finding names the end user, the cycle, what is wrong with it, and the invariant', () => {
  const stored = written();
  const [cycle] = stored.cycles as [Writable<Cycle>];
  cycle.remaining += 1;
  const { id } = cycle;
  assert.deepEqual(findings(stored), [
    { invariant: 1, user: ADA, message: `cycle ${id} is stored with remaining 1; its postings say 0` },
    { invariant: 2, user: ADA, message: 'the active balance is 52, and its postings sum to 51' },
  ]);
});

/**
 * @param invariants one of which the change has to be found by
 * @param hits the rows that the change makes wrong; all of them when not given
 */
type Change<Row> = readonly [
  what: string,
  change: (row: Row) => Partial<Row>,
  invariants: string,
  hits?: (row: Row, stored: Stored) => boolean,
];

const isClamped = ({ end }: Cycle) => end === INSTANT_MAX;
const otherTail = (id: string) => `${id.slice(0, 24)}cccccccccccc`;

/** The id of a millisecond later. */
function laterId(id: string): string {
  return transactionId({ at: instantOf(id) + 1, sequence: sequenceOf(id), tail: id.slice(24) });
}

const CYCLE_CHANGES: readonly Change<Cycle>[] = [
  ['amount is one more', ({ amount }) => ({ amount: amount + 1 }), '1'],
  ['amount is one less', ({ amount }) => ({ amount: amount - 1 }), '1'],
  ['amount and remaining are one more', (c) => ({ amount: c.amount + 1, remaining: c.remaining + 1 }), '1'],
  ['remaining is one more', ({ remaining }) => ({ remaining: remaining + 1 }), '1'],
  ['remaining is one less', ({ remaining }) => ({ remaining: remaining - 1 }), '1'],
  ['remaining is as at the start', ({ amount }) => ({ remaining: amount }), '1', (c) => c.remaining < c.amount],
  ['remaining is nothing', () => ({ remaining: 0 }), '1', ({ remaining }) => remaining > 0],
  ['start is a millisecond later', ({ start }) => ({ start: start + 1 }), '4'],
  ['start is a millisecond earlier', ({ start }) => ({ start: start - 1 }), '4'],
  ['start is before 1970', () => ({ start: -1 }), '4'],
  ['end is a millisecond later', ({ end }) => ({ end: end + 1 }), '4'],
  ['end is a millisecond earlier', ({ end }) => ({ end: end - 1 }), '4'],
  ['end is a day later', ({ end }) => ({ end: end + DAY_MS }), '4'],
  [
    'validity and end are a day more',
    ({ validityDays, end }) => ({ validityDays: validityDays + 1, end: end + DAY_MS }),
    '4',
    (cycle) => !isClamped(cycle),
  ],
  ['validity is a day more', ({ validityDays }) => ({ validityDays: validityDays + 1 }), '4'],
  ['validity is a day less', ({ validityDays }) => ({ validityDays: validityDays - 1 }), '4'],
  ['validity is nothing', () => ({ validityDays: 0 }), '4'],
  ['period is the next', ({ period }) => ({ period: period + 1 }), '3'],
  ['period is the one before', ({ period }) => ({ period: period - 1 }), '3'],
  ['type is the other', ({ type }) => ({ type: type === 'recurring' ? 'one-time' : 'recurring' }), '3'],
  ['status is active', () => ({ status: 'active' }), '3', ({ status }) => status !== 'active'],
  ['status is canceled', () => ({ status: 'canceled' }), '3', ({ status }) => status !== 'canceled'],
  ['status is superseded', () => ({ status: 'superseded' }), '3', ({ status }) => status !== 'superseded'],
  ['id is of a millisecond later', ({ id }) => ({ id: laterId(id) }), '1'],
  ['id is another of the same instant', ({ id }) => ({ id: otherTail(id) }), '1'],
];

const isOpening = ({ terms }: Posting) => terms !== null;

/**
 * What remained of a period that another has followed is not stored, so the amount of a subtraction from it cannot be
 * compared with anything. The hash chain covers it.
 */
function isCompared({ cycleId, period }: Posting, { cycles }: Stored): boolean {
  return cycles.some((cycle) => cycle.id === cycleId && cycle.period === period);
}

const POSTING_CHANGES: readonly Change<Posting>[] = [
  [
    'amount is one more',
    ({ amount }) => ({ amount: amount + 1 }),
    '13',
    (posting, stored) => posting.kind !== 'subtract' || isCompared(posting, stored),
  ],
  [
    'amount is one less',
    ({ amount }) => ({ amount: amount - 1 }),
    '13',
    (posting, stored) => posting.kind !== 'subtract' || isCompared(posting, stored),
  ],
  ['amount is nothing', () => ({ amount: 0 }), '1', ({ amount }) => amount !== 0],
  ['amount has the other sign', ({ amount }) => ({ amount: -amount }), '1', ({ amount }) => amount !== 0],
  ['created_at is a millisecond later', ({ createdAt }) => ({ createdAt: createdAt + 1 }), '4'],
  ['created_at is a millisecond earlier', ({ createdAt }) => ({ createdAt: createdAt - 1 }), '4'],
  ['expiry is a millisecond later', ({ expiresAt }) => ({ expiresAt: expiresAt + 1 }), '4'],
  ['expiry is a millisecond earlier', ({ expiresAt }) => ({ expiresAt: expiresAt - 1 }), '4'],
  ['period is the next', ({ period }) => ({ period: period + 1 }), '34'],
  ['period is the one before', ({ period }) => ({ period: period - 1 }), '34'],
  ['cycle is one that is not there', ({ cycleId }) => ({ cycleId: otherTail(cycleId) }), '4'],
  ['id says a millisecond later', ({ transactionId: id }) => ({ transactionId: laterId(id) }), '4'],
  ['id is another of the same instant', ({ transactionId: id }) => ({ transactionId: otherTail(id) }), '34', isOpening],
  ['kind is add', () => ({ kind: 'add' }), '34', ({ kind }) => kind !== 'add'],
  ['kind is start-cycle', () => ({ kind: 'start-cycle' }), '34', ({ kind }) => kind !== 'start-cycle'],
  ['kind is renew', () => ({ kind: 'renew' }), '34', ({ kind }) => kind !== 'renew'],
  ['kind is subtract', () => ({ kind: 'subtract' }), '14', ({ kind }) => kind !== 'subtract'],
  ['kind is stop-cycle', () => ({ kind: 'stop-cycle' }), '14', ({ kind }) => kind !== 'stop-cycle'],
  ['terms are missing', () => ({ terms: null }), '4', isOpening],
  ['terms are there', () => ({ terms: { type: 'one-time', validityDays: 1 } }), '4', (posting) => !isOpening(posting)],
  [
    'terms are of the other type',
    ({ terms }) => ({ terms: terms && { ...terms, type: terms.type === 'one-time' ? 'recurring' : 'one-time' } }),
    '3',
    isOpening,
  ],
  [
    'terms are of a day more',
    ({ terms }) => ({ terms: terms && { ...terms, validityDays: terms.validityDays + 1 } }),
    '34',
    isOpening,
  ],
  ['actor is empty', () => ({ actor: '' }), '4'],
  ['actor is time', () => ({ actor: 'renewal' }), '4', ({ kind }) => kind !== 'renew'],
  ['actor is an API key', () => ({ actor: 'key:7' }), '4', ({ kind }) => kind === 'renew'],
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

/** Makes the change to each row by itself that it hits, in a fresh ledger. */
function assertEachFound<Row extends object>(rowsOf: (stored: Stored) => Row[], change: Change<Row>): void {
  const [what, changed, invariants, hits = () => true] = change;
  const rows = rowsOf(written());
  const places = [...rows.keys()].filter((place) => hits(rows[place] as Row, written()));
  assert(places.length > 0, 'there is a row to be changed');
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
    assertFound(stored, '3', `this is there twice: ${JSON.stringify(row)}`);
  }
});

test('the audit finds a posting that is stored twice', () => {
  for (const [place, row] of written().postings.entries()) {
    const stored = written();
    stored.postings.splice(place, 0, structuredClone(row));
    assertFound(stored, '34', `this is there twice: ${JSON.stringify(row)}`);
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
  assert(places.length > 0, 'there is a transaction of several postings');
  for (const place of places) {
    for (const change of [{ actor: 'key:8' }, { kind: 'stop-cycle' }, { note: 'ticket 4711' }] as const) {
      const stored = written();
      Object.assign(stored.postings[place] as Writable<Posting>, change);
      assertFound(stored, '4', JSON.stringify(change));
    }
  }
});

test('the audit finds a clock that is behind what happened, and none that is ahead', () => {
  const stored = written();
  assertFound({ ...stored, now: stored.now - 1 }, '4', 'the clock is behind');
  assert.deepEqual(findings({ ...stored, now: stored.now + 1 }), []);
});

test('the audit of thousands of ended cycles finds one changed credit, and nothing else', () => {
  const days = Array.from({ length: 2_000 }, (_, day) => day);
  const stored = written(days.map((day) => [day, add(5, { validityDays: 1 + (day % 3) })]));
  assert.deepEqual(findings(stored), []);
  const [cycle] = stored.cycles as [Writable<Cycle>];
  cycle.remaining -= 1;
  const message = `cycle ${cycle.id} is stored with remaining 4; its postings say 5`;
  assert.deepEqual(findings(stored), [{ invariant: 1, user: ADA, message }]);
});

test('the audit of ten years of daily renewals finds a single one that is missing', () => {
  const stored = written([
    [0, startCycle(5, { validityDays: 1 })],
    [3_650, settling()],
  ]);
  assert.deepEqual(findings(stored), []);
  assert.equal(stored.postings.length, 3_651);
  assertFound({ ...stored, postings: stored.postings.toSpliced(1_000, 1) }, '3', 'a renewal is missing');
});
