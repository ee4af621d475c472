// Tests that the audit accepts a ledger that Scrip wrote, and reports a finding if a single value of that ledger is
// changed. Most tests change each cycle, hold or posting in turn, always in a fresh copy of the ledger, and run the
// audit on the copy.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ADA, add, findingsOf, isAmountChecked, NOW, settling, startCycle } from '../../test/ledger/ledger-builders.ts';
import { holdFor, type Stored, WRITTEN, type Writable, written } from '../../test/ledger/written-history.ts';
import { audit } from './audit.ts';
import { type Cycle, hasEnded } from './cycle.ts';
import type { Hold, HoldPart } from './hold.ts';
import { DAY_MS, INSTANT_MAX } from './instant.ts';
import type { Plan } from './plan.ts';
import { isByTime, isOpening, type Posting } from './posting.ts';
import { instantOf, sequenceOf, transactionId } from './transaction-id.ts';

test('the audit finds nothing wrong in a history that the ledger wrote', () => {
  const stored = written();
  assert.deepEqual(findingsOf(stored), []);
  assert.deepEqual(findingsOf({ ...stored, now: stored.now + 100 * DAY_MS }), [], 'nothing wrong 100 days later');
  assert.deepEqual(
    findingsOf({ ...stored, cycles: stored.cycles.toReversed() }),
    [],
    'nothing is wrong if the cycles are in another order',
  );
  const kinds = new Set(stored.postings.map(({ kind }) => kind));
  assert.deepEqual(
    [...kinds].sort().join(' '),
    'add capture change-plan hold lapse refund release renew schedule-plan start-cycle stop-cycle subtract',
  );
  assert(stored.holds.length === 2 && stored.holds.some(({ parts }) => parts.length > 1));
  const rows = new Set(stored.cycles.map(({ type, status }) => `${type} ${status}`));
  assert.deepEqual([...rows].sort(), ['one-time active', 'recurring canceled', 'recurring superseded']);
});

test('the audit finds nothing wrong with an end user that has no cycles and no postings', () => {
  assert.deepEqual(findingsOf({ cycles: [], holds: [], postings: [], now: NOW }), []);
});

test('the audit finds nothing wrong with renewals and lapses that are due but not stored yet', () => {
  const stored = written([
    [0, startCycle(50, { validityDays: 1 })],
    [0.1, holdFor(5, 3)],
  ]);
  for (const days of [1, 2, 3_650]) assert.deepEqual(findingsOf({ ...stored, now: NOW + days * DAY_MS }), []);
});

test('the audit reads the postings of an end user only once, so they can come from an iterator', () => {
  const { cycles, holds, postings, now } = written();
  const find = (id: string) => postings.filter(({ transactionId }) => transactionId === id);
  assert.deepEqual([...audit({ user: ADA, cycles, holds, postings: postings.values(), find }, now)], []);
});

test('a finding consists of the end user, the violated invariant, and a message that says what is wrong', () => {
  const stored = written();
  const [cycle] = stored.cycles as [Writable<Cycle>];
  cycle.remaining += 1;
  const { id } = cycle;
  assert.deepEqual(findingsOf(stored), [
    { invariant: 1, user: ADA, message: `cycle ${id} is stored with remaining 1; its postings say 0` },
    {
      invariant: 2,
      user: ADA,
      message: 'the cycles that have not ended have 57 remaining credits, but their postings sum to 56',
    },
  ]);
});

/**
 * @param invariants the numbers of invariants, one digit each; the audit must report at least one of these invariants
 * @param hits whether the change makes the given row wrong; without `hits`, the change makes every row wrong
 */
type Change<Row> = readonly [
  what: string,
  change: (row: Row) => Partial<Row>,
  invariants: string,
  hits?: (row: Row, stored: Stored) => boolean,
];

const isRunning = (cycle: Cycle, { now }: Stored) => !hasEnded(cycle, now);
const isInDays = ({ plan }: Cycle) => plan.validityDays !== null;
const isClamped = ({ end }: Cycle) => end === INSTANT_MAX;
const otherTail = (id: string) => `${id.slice(0, 24)}cccccccccccc`;

function laterId(id: string): string {
  return transactionId({ at: instantOf(id) + 1, sequence: sequenceOf(id), tail: id.slice(24) });
}

const DAILY: Plan = { amount: 1, validityDays: 1, validityMonths: null, rolloverMax: 0 };

function lengthened(plan: Plan, count: number): Plan {
  const { validityDays: days, validityMonths: months } = plan;
  return days === null ? { ...plan, validityMonths: Number(months) + count } : { ...plan, validityDays: days + count };
}

const CYCLE_CHANGES: readonly Change<Cycle>[] = [
  ['amount is too high by one', ({ amount }) => ({ amount: amount + 1 }), '1'],
  ['amount is too low by one', ({ amount }) => ({ amount: amount - 1 }), '1'],
  ['amount and remaining credits are one too high', (c) => ({ amount: c.amount + 1, remaining: c.remaining + 1 }), '1'],
  ['remaining credits are one too many', ({ remaining }) => ({ remaining: remaining + 1 }), '1'],
  ['remaining credits are one too few', ({ remaining }) => ({ remaining: remaining - 1 }), '1'],
  ['remaining credits are reset', ({ amount }) => ({ remaining: amount }), '1', (c) => c.remaining < c.amount],
  ['remaining credits are 0', () => ({ remaining: 0 }), '1', ({ remaining }) => remaining > 0],
  ['held credits are one too many', ({ held }) => ({ held: held + 1 }), '1', isRunning],
  ['held credits are one too few', ({ held }) => ({ held: held - 1 }), '1', isRunning],
  [
    'held credits are reset to 0',
    () => ({ held: 0 }),
    '1',
    (cycle, stored) => cycle.held > 0 && isRunning(cycle, stored),
  ],
  ['start is a millisecond too late', ({ start }) => ({ start: start + 1 }), '4'],
  ['start is a millisecond too early', ({ start }) => ({ start: start - 1 }), '4'],
  ['start is before 1970', () => ({ start: -1 }), '4'],
  ['end is a millisecond too late', ({ end }) => ({ end: end + 1 }), '4'],
  ['end is a millisecond too early', ({ end }) => ({ end: end - 1 }), '4'],
  ['end is a day too late', ({ end }) => ({ end: end + DAY_MS }), '4'],
  [
    'validity is a day too long, with an end that matches it',
    ({ plan, end }) => ({ plan: lengthened(plan, 1), end: end + DAY_MS }),
    '4',
    (cycle) => !isClamped(cycle),
  ],
  ['validity is a day too long', ({ plan }) => ({ plan: lengthened(plan, 1) }), '4'],
  ['validity is a day too short', ({ plan }) => ({ plan: lengthened(plan, -1) }), '4'],
  [
    'validity is in months',
    ({ plan }) => ({ plan: { ...plan, validityDays: null, validityMonths: 1 } }),
    '4',
    isInDays,
  ],
  ['plan has one credit too many', ({ plan }) => ({ plan: { ...plan, amount: plan.amount + 1 } }), '4'],
  ['plan has a different rollover', ({ plan }) => ({ plan: { ...plan, rolloverMax: plan.rolloverMax + 1 } }), '4'],
  ['scheduled plan should be absent', ({ id, plan }) => ({ next: { id, plan } }), '4'],
  ['validity is 0', ({ plan }) => ({ plan: { ...plan, validityDays: 0, validityMonths: null } }), '4'],
  ['period is too high by one', ({ period }) => ({ period: period + 1 }), '3'],
  ['period is too low by one', ({ period }) => ({ period: period - 1 }), '3'],
  ['type is wrong', ({ type }) => ({ type: type === 'recurring' ? 'one-time' : 'recurring' }), '3'],
  ['status is wrongly active', () => ({ status: 'active' }), '3', ({ status }) => status !== 'active'],
  ['status is wrongly canceled', () => ({ status: 'canceled' }), '3', ({ status }) => status !== 'canceled'],
  ['status is wrongly superseded', () => ({ status: 'superseded' }), '3', ({ status }) => status !== 'superseded'],
  ['ID has a time that is a millisecond too late', ({ id }) => ({ id: laterId(id) }), '1'],
  ['ID is a different ID with the same time', ({ id }) => ({ id: otherTail(id) }), '1'],
];

const FIRST_ADDITION = WRITTEN.postings[0]?.transactionId as string;

const hasTerms = ({ terms }: Posting) => terms !== null;

const isHold = ({ kind }: Posting) => kind === 'hold';

/**
 * Whether the posting creates a hold whose expiry the audit always checks: one that is open or has lapsed. The audit
 * cannot always check the expiry of a captured or released hold.
 */
function hasExpiry({ kind, transactionId: id }: Posting, { holds, postings }: Stored): boolean {
  const hasLapsed = postings.some((other) => other.kind === 'lapse' && other.reference === id);
  return kind === 'hold' && (hasLapsed || holds.some((hold) => hold.id === id));
}

const POSTING_CHANGES: readonly Change<Posting>[] = [
  ['amount is too high by one', ({ amount }) => ({ amount: amount + 1 }), '13', isAmountChecked],
  ['amount is too low by one', ({ amount }) => ({ amount: amount - 1 }), '13', isAmountChecked],
  ['amount is 0', () => ({ amount: 0 }), '1', ({ amount }) => amount !== 0],
  ['amount has the wrong sign', ({ amount }) => ({ amount: -amount }), '1', ({ amount }) => amount !== 0],
  ['held credits are one too many', ({ held }) => ({ held: held + 1 }), '1'],
  ['held credits are one too few', ({ held }) => ({ held: held - 1 }), '1'],
  ['held credits are 0', () => ({ held: 0 }), '1', ({ held }) => held !== 0],
  ['held credits have the wrong sign', ({ held }) => ({ held: -held }), '1', ({ held }) => held !== 0],
  ['reference is missing', () => ({ reference: null }), '4', ({ reference }) => reference !== null],
  [
    'reference is to a transaction that does not exist',
    ({ reference }) => ({ reference: otherTail(reference as string) }),
    '14',
    ({ reference }) => reference !== null,
  ],
  ['reference is to itself', ({ transactionId: id }) => ({ reference: id }), '14'],
  ['reference is to the first addition', (_) => ({ reference: FIRST_ADDITION }), '14'],
  ['hold has no expiry', () => ({ holdExpiresAt: null }), '4', isHold],
  ['hold expires when it is created', ({ createdAt }) => ({ holdExpiresAt: createdAt }), '4', isHold],
  [
    'hold expires a millisecond too late',
    ({ holdExpiresAt }) => ({ holdExpiresAt: Number(holdExpiresAt) + 1 }),
    '134',
    hasExpiry,
  ],
  [
    'hold expires a millisecond too early',
    ({ holdExpiresAt }) => ({ holdExpiresAt: Number(holdExpiresAt) - 1 }),
    '134',
    hasExpiry,
  ],
  ['expiry of a hold should be absent', () => ({ holdExpiresAt: INSTANT_MAX }), '4', (posting) => !isHold(posting)],
  ['creation time is a millisecond too late', ({ createdAt }) => ({ createdAt: createdAt + 1 }), '4'],
  ['creation time is a millisecond too early', ({ createdAt }) => ({ createdAt: createdAt - 1 }), '4'],
  ['expiry is a millisecond too late', ({ expiresAt }) => ({ expiresAt: expiresAt + 1 }), '14'],
  ['expiry is a millisecond too early', ({ expiresAt }) => ({ expiresAt: expiresAt - 1 }), '14'],
  ['period is too high by one', ({ period }) => ({ period: period + 1 }), '134'],
  ['period is too low by one', ({ period }) => ({ period: period - 1 }), '134'],
  ['cycle does not exist', ({ cycleId }) => ({ cycleId: otherTail(cycleId) }), '14'],
  ['ID has a time that is a millisecond too late', ({ transactionId: id }) => ({ transactionId: laterId(id) }), '4'],
  [
    'ID is a different ID with the same time',
    ({ transactionId: id }) => ({ transactionId: otherTail(id) }),
    '134',
    (posting) => isOpening(posting) || isHold(posting) || posting.kind === 'lapse',
  ],
  ['kind is wrongly add', () => ({ kind: 'add' }), '134', ({ kind }) => kind !== 'add'],
  ['kind is wrongly start-cycle', () => ({ kind: 'start-cycle' }), '134', ({ kind }) => kind !== 'start-cycle'],
  ['kind is wrongly renew', () => ({ kind: 'renew' }), '134', ({ kind }) => kind !== 'renew'],
  ['kind is wrongly subtract', () => ({ kind: 'subtract' }), '134', ({ kind }) => kind !== 'subtract'],
  ['kind is wrongly stop-cycle', () => ({ kind: 'stop-cycle' }), '134', ({ kind }) => kind !== 'stop-cycle'],
  ['kind is wrongly hold', () => ({ kind: 'hold' }), '134', ({ kind }) => kind !== 'hold'],
  ['kind is wrongly capture', () => ({ kind: 'capture' }), '134', ({ kind }) => kind !== 'capture'],
  ['kind is wrongly release', () => ({ kind: 'release' }), '134', ({ kind }) => kind !== 'release'],
  ['kind is wrongly lapse', () => ({ kind: 'lapse' }), '134', ({ kind }) => kind !== 'lapse'],
  ['kind is wrongly refund', () => ({ kind: 'refund' }), '134', ({ kind }) => kind !== 'refund'],
  ['kind is wrongly schedule-plan', () => ({ kind: 'schedule-plan' }), '134', ({ kind }) => kind !== 'schedule-plan'],
  ['kind is wrongly change-plan', () => ({ kind: 'change-plan' }), '134', ({ kind }) => kind !== 'change-plan'],
  ['terms are missing', () => ({ terms: null }), '14', hasTerms],
  [
    'terms should be absent',
    () => ({ terms: { type: 'one-time', plan: DAILY } }),
    '134',
    (posting) => !hasTerms(posting),
  ],
  [
    'terms have the wrong type',
    ({ terms }) => ({ terms: terms && { ...terms, type: terms.type === 'one-time' ? 'recurring' : 'one-time' } }),
    '34',
    hasTerms,
  ],
  [
    'terms are a day too long',
    ({ terms }) => ({ terms: terms && { ...terms, plan: lengthened(terms.plan, 1) } }),
    '34',
    hasTerms,
  ],
  ['actor is empty', () => ({ actor: '' }), '4'],
  ['actor is wrongly renewal', () => ({ actor: 'renewal' }), '4', ({ kind }) => kind !== 'renew'],
  ['actor is wrongly lapse', () => ({ actor: 'lapse' }), '4', ({ kind }) => kind !== 'lapse'],
  ['actor is wrongly change', () => ({ actor: 'change' }), '4', ({ kind }) => kind !== 'change-plan'],
  ['actor is wrongly an API key', () => ({ actor: 'key:7' }), '4', ({ kind }) => isByTime(kind)],
];

function partChange(change: (part: HoldPart) => Partial<HoldPart>): (hold: Hold) => Partial<Hold> {
  return ({ parts }) => ({
    parts: parts.with(-1, { ...(parts.at(-1) as HoldPart), ...change(parts.at(-1) as HoldPart) }),
  });
}

const HOLD_CHANGES: readonly Change<Hold>[] = [
  ['ID is a different ID with the same time', ({ id }) => ({ id: otherTail(id) }), '1'],
  ['expiry is a millisecond too late', ({ expiresAt }) => ({ expiresAt: expiresAt + 1 }), '1'],
  ['expiry is a millisecond too early', ({ expiresAt }) => ({ expiresAt: expiresAt - 1 }), '1'],
  ['amount is too high by one', partChange(({ amount }) => ({ amount: amount + 1 })), '1'],
  ['amount is too low by one', partChange(({ amount }) => ({ amount: amount - 1 })), '1'],
  ['credits end a millisecond too late', partChange(({ end }) => ({ end: end + 1 })), '1'],
  ['credits end a millisecond too early', partChange(({ end }) => ({ end: end - 1 })), '1'],
  ['period is too high by one', partChange(({ period }) => ({ period: period + 1 })), '1'],
  ['cycle does not exist', partChange(({ cycleId }) => ({ cycleId: otherTail(cycleId) })), '1'],
  ['last part is missing', ({ parts }) => ({ parts: parts.slice(0, -1) }), '1'],
  ['parts are in another order', ({ parts }) => ({ parts: parts.toReversed() }), '1', ({ parts }) => parts.length > 1],
];

function assertFound(stored: Stored, invariants: string, what: string): void {
  const found = findingsOf(stored);
  assert(found.length > 0, `the audit does not find that ${what}`);
  const numbers = found.map(({ invariant }) => invariant);
  assert(
    numbers.some((number) => invariants.includes(`${number}`)),
    `the audit finds ${numbers} when ${what}`,
  );
}

function assertEachFound<Row extends object>(rowsOf: (stored: Stored) => Row[], change: Change<Row>): void {
  const [what, changed, invariants, hits = () => true] = change;
  const rows = rowsOf(WRITTEN);
  const places = [...rows.keys()].filter((place) => hits(rows[place] as Row, WRITTEN));
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

for (const change of HOLD_CHANGES) {
  test(`the audit finds a stored hold whose ${change[0]}`, () => assertEachFound(({ holds }) => holds, change));
}

test('the audit ignores the held credits of an ended cycle, because stores do not update `held` in an ended cycle', () => {
  const stored = written();
  const ended = stored.cycles.filter((cycle) => hasEnded(cycle, stored.now));
  for (const cycle of ended) cycle.held = Math.min(1, cycle.remaining);
  assert(ended.length > 1);
  assert.deepEqual(findingsOf(stored), []);
});

test('the audit finds that a hold is missing, is stored twice, or is stored in the wrong order', () => {
  for (const [place, hold] of written().holds.entries()) {
    const { holds } = written();
    assertFound({ ...written(), holds: holds.toSpliced(place, 1) }, '1', 'a hold is missing');
    assertFound({ ...written(), holds: holds.toSpliced(place, 0, hold) }, '1', 'a hold is stored twice');
    assertFound({ ...written(), holds: holds.toReversed() }, '1', 'the holds are in the wrong order');
  }
});

test('the audit finds that a cycle is missing', () => {
  for (const place of written().cycles.keys()) {
    const stored = written();
    const [row] = stored.cycles.splice(place, 1);
    assertFound(stored, '1', `this is missing: ${JSON.stringify(row)}`);
  }
});

test('the audit finds any missing posting that affects the stored cycles or holds', () => {
  for (const [place, posting] of written().postings.entries()) {
    const stored = written();
    if (!isAmountChecked(posting, stored) && posting.held === 0) continue;
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
    assertFound(stored, '134', `this is stored twice: ${JSON.stringify(row)}`);
  }
});

test('the audit finds two transactions that are stored in the wrong order', () => {
  const { postings } = written();
  let swaps = 0;
  for (const [place, earlier] of postings.entries()) {
    const later = postings[place + 1];
    if (later === undefined || later.transactionId === earlier.transactionId) continue;
    assertFound({ ...written(), postings: postings.toSpliced(place, 2, later, earlier) }, '4', 'postings are swapped');
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
  assert.deepEqual(findingsOf({ ...stored, now: stored.now + 1 }), []);
});

test('among thousands of ended cycles, the audit finds the only one with a wrong number of credits', () => {
  const days = Array.from({ length: 2_000 }, (_, day) => day);
  const stored = written(days.map((day) => [day, add(5, { validityDays: 1 + (day % 3) })]));
  assert.deepEqual(findingsOf(stored), []);
  const [cycle] = stored.cycles as [Writable<Cycle>];
  cycle.remaining -= 1;
  const message = `cycle ${cycle.id} is stored with remaining 4; its postings say 5`;
  assert.deepEqual(findingsOf(stored), [{ invariant: 1, user: ADA, message }]);
});

test('in ten years of daily renewals, the audit finds a single missing renewal', () => {
  const stored = written([
    [0, startCycle(5, { validityDays: 1 })],
    [3_650, settling()],
  ]);
  assert.deepEqual(findingsOf(stored), []);
  assert.equal(stored.postings.length, 3_651);
  assertFound({ ...stored, postings: stored.postings.toSpliced(1_000, 1) }, '3', 'a renewal is missing');
});
