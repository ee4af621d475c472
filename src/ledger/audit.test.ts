// The audit: silent on what the ledger wrote, and never silent about a single thing changed by other means. Each row
// of a table is one such change, made in turn to every cycle or every posting of a ledger that has seen all there is.
// What each rule of the audit says is in audit-rules.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { audit, type Finding } from './audit.ts';
import type { Command, EndUserKey } from './command.ts';
import { burnOrder, type Cycle, hasEnded, renews } from './cycle.ts';
import { batchOf, fold } from './fold.ts';
import { NO_RECORDS } from './idempotency.ts';
import { DAY_MS, INSTANT_MAX, VALIDITY_DAYS_MAX } from './instant.ts';
import type { Posting } from './posting.ts';
import { instantOf, transactionId } from './transaction-id.ts';

type Writable<Row> = { -readonly [Field in keyof Row]: Row[Field] };

interface Ledger {
  cycles: Writable<Cycle>[];
  /** Latest first, as stores read them. */
  postings: Writable<Posting>[];
  now: number;
}

const START = Date.UTC(2026, 0, 15, 9, 30, 0, 123);
const USER: EndUserKey = { account: 1, endUser: '5f0c6f7e-0000-4000-8000-000000000001' };

/** Everything that can happen to an end user, in days after the start. */
const HISTORY: readonly (readonly [day: number, command: object])[] = [
  [0, { kind: 'add', amount: 100, validityDays: 10 }],
  [0, { kind: 'start-cycle', amount: 50, validityDays: 1, onActive: 'refuse' }],
  [0.1, { kind: 'subtract', amount: 120 }],
  [2, { kind: 'subtract', amount: 7 }],
  [4.5, { kind: 'stop-cycle' }],
  [4.6, { kind: 'start-cycle', amount: 30, validityDays: 7, onActive: 'refuse' }],
  [4.7, { kind: 'start-cycle', amount: 40, validityDays: 3, onActive: 'replace' }],
  [4.8, { kind: 'add', amount: 9, validityDays: VALIDITY_DAYS_MAX }],
  [5, { kind: 'subtract', amount: 40 }],
  [8, { kind: 'add', amount: 1, validityDays: 1 }],
  [8, { kind: 'add', amount: 2, validityDays: 2 }],
  [8, { kind: 'subtract', amount: 1 }],
];

function written(): Ledger {
  let cycles: Cycle[] = [];
  const postings: Posting[] = [];
  let now = START;
  let sequence = 0;
  for (const [day, command] of HISTORY) {
    const at = START + day * DAY_MS;
    if (at > now) sequence = 0;
    now = at;
    const nextId = () => transactionId({ at, sequence: ++sequence, tail: `${sequence}`.padStart(12, 'b') });
    const live = cycles.filter((cycle) => !hasEnded(cycle, at) || renews(cycle)).sort(burnOrder);
    const batch = batchOf([{ ...USER, actor: 'key:7', ...command } as Command]);
    const { outcomes, changes } = fold(batch, { cycles: [live], answers: NO_RECORDS }, { now: at, nextId }, 1_000);
    assert.equal(outcomes[0]?.refused, null, `day ${day} of the history is accepted`);
    for (const { opened, changed, postings: moved } of changes) {
      cycles = cycles.map((cycle) => changed.find(({ before }) => before === cycle)?.after ?? cycle).concat(opened);
      postings.push(...moved);
    }
  }
  return structuredClone({ cycles, postings: postings.reverse(), now });
}

function findings({ cycles, postings, now }: Ledger): Finding[] {
  return [...audit(USER, cycles, postings, now)];
}

test('the audit finds nothing in what the ledger wrote', () => {
  const ledger = written();
  assert.deepEqual(findings(ledger), []);
  assert.deepEqual(findings({ ...ledger, now: ledger.now + 100 * DAY_MS }), [], 'nor when all of it is long over');
  const seen = new Set(ledger.postings.map(({ kind }) => kind));
  assert.deepEqual([...seen].sort(), ['add', 'renew', 'start-cycle', 'stop-cycle', 'subtract']);
  const states = new Set(ledger.cycles.map(({ type, status }) => `${type} ${status}`));
  assert.deepEqual([...states].sort(), [
    'one-time active',
    'recurring active',
    'recurring canceled',
    'recurring renewed',
  ]);
});

test('the audit finds nothing where nothing happened', () => {
  assert.deepEqual(findings({ cycles: [], postings: [], now: START }), []);
});

test('a finding says whose cycle is wrong, how, and against which invariant', () => {
  const ledger = written();
  const [cycle] = ledger.cycles as [Writable<Cycle>];
  cycle.remaining += 1;
  const found = findings(ledger);
  assert(found.every(({ user }) => user === USER));
  const message = `cycle ${cycle.id} holds 1 credits, and its postings sum to 0`;
  assert(found.some((finding) => finding.invariant === 1 && finding.message === message));
});

/** @param hits the rows that the change would change, and make wrong; all of them when not given */
type Change<Row> = readonly [what: string, change: (row: Row) => Partial<Row>, hits?: (row: Row) => boolean];

const isClamped = ({ end }: Cycle) => end === INSTANT_MAX;
const otherTail = (id: string) => `${id.slice(0, 24)}cccccccccccc`;

/** The id of a millisecond later. */
function laterId(id: string): string {
  const sequence = (Number.parseInt(id.slice(15, 18), 16) << 14) | (Number.parseInt(id.slice(19, 23), 16) & 0x3fff);
  return transactionId({ at: instantOf(id) + 1, sequence, tail: id.slice(24) });
}

const CYCLE_CHANGES: readonly Change<Cycle>[] = [
  ['amount is one more', ({ amount }) => ({ amount: amount + 1 })],
  ['amount is one less', ({ amount }) => ({ amount: amount - 1 })],
  ['amount and remaining are one more', ({ amount, remaining }) => ({ amount: amount + 1, remaining: remaining + 1 })],
  ['remaining is one more', ({ remaining }) => ({ remaining: remaining + 1 })],
  ['remaining is one less', ({ remaining }) => ({ remaining: remaining - 1 })],
  ['remaining is as at the start', ({ amount }) => ({ remaining: amount }), (cycle) => cycle.remaining < cycle.amount],
  ['remaining is nothing', () => ({ remaining: 0 }), ({ remaining }) => remaining > 0],
  ['start is a millisecond later', ({ start }) => ({ start: start + 1 })],
  ['start is a millisecond earlier', ({ start }) => ({ start: start - 1 })],
  ['start is before all time', () => ({ start: -1 })],
  ['end is a millisecond later', ({ end }) => ({ end: end + 1 })],
  ['end is a millisecond earlier', ({ end }) => ({ end: end - 1 })],
  ['end is a day later', ({ end }) => ({ end: end + DAY_MS })],
  [
    'validity and end are a day more',
    ({ validityDays, end }) => ({ validityDays: validityDays + 1, end: end + DAY_MS }),
    (cycle) => !isClamped(cycle),
  ],
  ['validity is a day more', ({ validityDays }) => ({ validityDays: validityDays + 1 })],
  ['validity is a day less', ({ validityDays: days }) => ({ validityDays: days - 1 }), (cycle) => !isClamped(cycle)],
  ['validity is nothing', () => ({ validityDays: 0 })],
  ['period is the next', ({ period }) => ({ period: period + 1 })],
  ['period is the one before', ({ period }) => ({ period: period - 1 })],
  ['type is the other', ({ type }) => ({ type: type === 'recurring' ? 'one-time' : 'recurring' })],
  ['status is active', () => ({ status: 'active' }), ({ status }) => status !== 'active'],
  ['status is canceled', () => ({ status: 'canceled' }), ({ status }) => status !== 'canceled'],
  ['status is renewed', () => ({ status: 'renewed' }), ({ status }) => status !== 'renewed'],
  ['creation is a millisecond later', ({ id }) => ({ id: laterId(id) })],
  ['id is another of the same instant', ({ id }) => ({ id: otherTail(id) })],
];

const isOpening = ({ kind }: Posting) => kind !== 'subtract' && kind !== 'stop-cycle';

const POSTING_CHANGES: readonly Change<Posting>[] = [
  ['amount is one more', ({ amount }) => ({ amount: amount + 1 })],
  ['amount is one less', ({ amount }) => ({ amount: amount - 1 })],
  ['amount is nothing', () => ({ amount: 0 }), ({ amount }) => amount !== 0],
  ['amount has the other sign', ({ amount }) => ({ amount: -amount }), ({ amount }) => amount !== 0],
  ['creation is a millisecond later', ({ createdAt }) => ({ createdAt: createdAt + 1 })],
  ['creation is a millisecond earlier', ({ createdAt }) => ({ createdAt: createdAt - 1 })],
  ['expiry is a millisecond later', ({ expiresAt }) => ({ expiresAt: expiresAt + 1 })],
  ['expiry is a millisecond earlier', ({ expiresAt }) => ({ expiresAt: expiresAt - 1 })],
  ['period is the next', ({ period }) => ({ period: period + 1 })],
  ['period is the one before', ({ period }) => ({ period: period - 1 })],
  ['cycle is one that is not there', ({ cycleId }) => ({ cycleId: otherTail(cycleId) })],
  ['id says a millisecond later', ({ transactionId: id }) => ({ transactionId: laterId(id) })],
  ['id is another of the same instant', ({ transactionId: id }) => ({ transactionId: otherTail(id) }), isOpening],
  ['kind is add', () => ({ kind: 'add' }), ({ kind }) => kind !== 'add'],
  ['kind is start-cycle', () => ({ kind: 'start-cycle' }), ({ kind }) => kind !== 'start-cycle'],
  ['kind is renew', () => ({ kind: 'renew' }), ({ kind }) => kind !== 'renew'],
  ['kind is subtract', () => ({ kind: 'subtract' }), ({ kind }) => kind !== 'subtract'],
  ['kind is stop-cycle', () => ({ kind: 'stop-cycle' }), ({ kind }) => kind !== 'stop-cycle'],
  ['actor is nobody', () => ({ actor: '' })],
];

function assertFound(ledger: Ledger, what: string): void {
  assert(findings(ledger).length > 0, `the audit does not find that ${what}`);
}

/** Makes the change to each row by itself that it hits, in a ledger written anew. */
function assertEachFound<Row extends object>(rowsOf: (ledger: Ledger) => Row[], change: Change<Row>): void {
  const [what, changed, hits = () => true] = change;
  const rows = rowsOf(written());
  const places = [...rows.keys()].filter((place) => hits(rows[place] as Row));
  assert(places.length > 0, 'there is a row to be changed');
  for (const place of places) {
    const ledger = written();
    const row = rowsOf(ledger)[place] as Row;
    Object.assign(row, changed(row));
    assertFound(ledger, `${what}: ${JSON.stringify(rows[place])}`);
  }
}

for (const change of CYCLE_CHANGES) {
  test(`the audit finds a cycle whose ${change[0]}`, () => assertEachFound(({ cycles }) => cycles, change));
}

for (const change of POSTING_CHANGES) {
  test(`the audit finds a posting whose ${change[0]}`, () => assertEachFound(({ postings }) => postings, change));
}

for (const rows of ['cycles', 'postings'] as const) {
  test(`the audit finds that one of the ${rows} is missing`, () => {
    for (const place of written()[rows].keys()) {
      const ledger = written();
      const [row] = ledger[rows].splice(place, 1);
      assertFound(ledger, `this is missing: ${JSON.stringify(row)}`);
    }
  });
}

function assertFoundTwice<Row>(rowsOf: (ledger: Ledger) => Row[], hits: (row: Row) => boolean): void {
  const places = [...rowsOf(written()).entries()].filter(([, row]) => hits(row));
  assert(places.length > 0, 'there is a row to be doubled');
  for (const [place, row] of places) {
    const ledger = written();
    rowsOf(ledger).splice(place, 0, structuredClone(row));
    assertFound(ledger, `this is there twice: ${JSON.stringify(row)}`);
  }
}

test('the audit finds a cycle that is there twice', () => {
  assertFoundTwice(
    ({ cycles }) => cycles,
    () => true,
  );
});

test('the audit finds a posting of credits that is there twice', () => {
  assertFoundTwice(
    ({ postings }) => postings,
    ({ amount }) => amount !== 0,
  );
});

test('the audit finds a stop that is there twice', () => {
  assertFoundTwice(
    ({ postings }) => postings,
    ({ kind }) => kind === 'stop-cycle',
  );
});

test('the audit finds two transactions that are stored in the wrong order', () => {
  for (const place of written().postings.keys()) {
    const { postings, ...rest } = written();
    const [later, earlier] = postings.slice(place, place + 2);
    if (later === undefined || earlier === undefined || later.transactionId === earlier.transactionId) continue;
    postings.splice(place, 2, earlier, later);
    assertFound({ ...rest, postings }, `this is stored before an earlier one: ${JSON.stringify(later)}`);
  }
});

test('the audit finds a posting of a transaction that somebody else did the rest of', () => {
  const ledger = written();
  const shared = ledger.postings.filter(
    ({ transactionId: id }, place) => ledger.postings[place + 1]?.transactionId === id,
  );
  assert(shared.length > 0, 'there is a transaction of several postings');
  for (const posting of shared) {
    posting.actor = 'key:8';
    assertFound(ledger, `another did this: ${JSON.stringify(posting)}`);
    posting.actor = 'key:7';
  }
});

test('the audit finds a clock that is behind what happened, and none that is ahead', () => {
  const ledger = written();
  assert(findings({ ...ledger, now: ledger.now - 1 }).some(({ invariant }) => invariant === 4));
  assert.deepEqual(findings({ ...ledger, now: ledger.now + 1 }), []);
});
