// The audit: silent on what the ledger wrote, and never silent about a single thing changed by other means. Each row
// of a table is one such change, made in turn to every cycle or every posting of a ledger that has seen all there is.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AMOUNT_MAX } from './amount.ts';
import { audit, type Finding } from './audit.ts';
import type { Command, EndUserKey } from './command.ts';
import { burnOrder, type Cycle, hasEnded, renews } from './cycle.ts';
import { batchOf, fold } from './fold.ts';
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
const HOUR_MS = DAY_MS / 24;

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
    const { outcomes, changes } = fold(batch, [live], { now: at, nextId }, 1_000);
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

type Change<Row> = readonly [what: string, change: (row: Writable<Row>) => void, hits?: (row: Row) => boolean];

const isClamped = ({ end }: Cycle) => end === INSTANT_MAX;

/** Moves the instant in an id by `ms`, and nothing else. */
function moved(id: string, ms: number): string {
  const sequence = (Number.parseInt(id.slice(15, 18), 16) << 14) | (Number.parseInt(id.slice(19, 23), 16) & 0x3fff);
  return transactionId({ at: instantOf(id) + ms, sequence, tail: id.slice(24) });
}

const CYCLE_CHANGES: readonly Change<Cycle>[] = [
  ['amount is one more', (cycle) => cycle.amount++],
  ['amount is one less', (cycle) => cycle.amount--],
  ['amount and remaining are one more', (cycle) => [cycle.amount++, cycle.remaining++]],
  ['remaining is one more', (cycle) => cycle.remaining++],
  ['remaining is one less', (cycle) => cycle.remaining--],
  ['remaining is as at the start', (cycle) => (cycle.remaining = cycle.amount), (c) => c.remaining < c.amount],
  ['remaining is nothing', (cycle) => (cycle.remaining = 0), ({ remaining }) => remaining > 0],
  ['start is a millisecond later', (cycle) => cycle.start++],
  ['start is a millisecond earlier', (cycle) => cycle.start--],
  ['end is a millisecond later', (cycle) => cycle.end++],
  ['end is a millisecond earlier', (cycle) => cycle.end--],
  ['end is a day later', (cycle) => (cycle.end += DAY_MS)],
  [
    'validity and end are a day more',
    (cycle) => {
      cycle.validityDays += 1;
      cycle.end += DAY_MS;
    },
    (cycle) => !isClamped(cycle),
  ],
  ['validity is a day more', (cycle) => cycle.validityDays++],
  ['validity is a day less', (cycle) => cycle.validityDays--, (cycle) => !isClamped(cycle)],
  ['validity is nothing', (cycle) => (cycle.validityDays = 0)],
  ['period is the next', (cycle) => cycle.period++],
  ['period is the one before', (cycle) => cycle.period--],
  ['type is the other', (cycle) => (cycle.type = cycle.type === 'recurring' ? 'one-time' : 'recurring')],
  ['status is active', (cycle) => (cycle.status = 'active'), ({ status }) => status !== 'active'],
  ['status is canceled', (cycle) => (cycle.status = 'canceled'), ({ status }) => status !== 'canceled'],
  ['status is renewed', (cycle) => (cycle.status = 'renewed'), ({ status }) => status !== 'renewed'],
  ['creation is a millisecond later', (cycle) => (cycle.id = moved(cycle.id, 1))],
  ['id is another of the same instant', (cycle) => (cycle.id = `${cycle.id.slice(0, 24)}cccccccccccc`)],
];

const isOpening = ({ kind }: Posting) => kind !== 'subtract' && kind !== 'stop-cycle';

const POSTING_CHANGES: readonly Change<Posting>[] = [
  ['amount is one more', (posting) => posting.amount++],
  ['amount is one less', (posting) => posting.amount--],
  ['amount is nothing', (posting) => (posting.amount = 0), ({ amount }) => amount !== 0],
  ['amount has the other sign', (posting) => (posting.amount *= -1), ({ amount }) => amount !== 0],
  ['creation is a millisecond later', (posting) => posting.createdAt++],
  ['creation is a millisecond earlier', (posting) => posting.createdAt--],
  ['expiry is a millisecond later', (posting) => posting.expiresAt++],
  ['expiry is a millisecond earlier', (posting) => posting.expiresAt--],
  ['period is the next', (posting) => posting.period++],
  ['period is the one before', (posting) => posting.period--],
  ['cycle is one that is not there', (posting) => (posting.cycleId = `${posting.cycleId.slice(0, 24)}cccccccccccc`)],
  ['id says a millisecond later', (posting) => (posting.transactionId = moved(posting.transactionId, 1))],
  [
    'id and creation are a day earlier',
    (p) => {
      p.transactionId = moved(p.transactionId, -DAY_MS);
      p.createdAt -= DAY_MS;
    },
  ],
  [
    'id is another of the same instant',
    (posting) => (posting.transactionId = `${posting.transactionId.slice(0, 24)}cccccccccccc`),
    isOpening,
  ],
  ['kind is add', (posting) => (posting.kind = 'add'), ({ kind }) => kind !== 'add'],
  ['kind is start-cycle', (posting) => (posting.kind = 'start-cycle'), ({ kind }) => kind !== 'start-cycle'],
  ['kind is renew', (posting) => (posting.kind = 'renew'), ({ kind }) => kind !== 'renew'],
  ['kind is subtract', (posting) => (posting.kind = 'subtract'), ({ kind }) => kind !== 'subtract'],
  ['kind is stop-cycle', (posting) => (posting.kind = 'stop-cycle'), ({ kind }) => kind !== 'stop-cycle'],
  ['actor is nobody', (posting) => (posting.actor = '')],
];

function assertFound(ledger: Ledger, what: string): void {
  assert(findings(ledger).length > 0, `the audit does not find that ${what}`);
}

for (const [what, change, hits = () => true] of CYCLE_CHANGES) {
  test(`the audit finds a cycle whose ${what}`, () => {
    const places = [...written().cycles.keys()].filter((place) => hits(written().cycles[place] as Cycle));
    assert(places.length > 0, 'there is a cycle to be changed');
    for (const place of places) {
      const ledger = written();
      const before = JSON.stringify(ledger.cycles[place]);
      change(ledger.cycles[place] as Writable<Cycle>);
      assertFound(ledger, `its ${what}: ${before}`);
    }
  });
}

for (const [what, change, hits = () => true] of POSTING_CHANGES) {
  test(`the audit finds a posting whose ${what}`, () => {
    const places = [...written().postings.keys()].filter((place) => hits(written().postings[place] as Posting));
    assert(places.length > 0, 'there is a posting to be changed');
    for (const place of places) {
      const ledger = written();
      const before = JSON.stringify(ledger.postings[place]);
      change(ledger.postings[place] as Writable<Posting>);
      assertFound(ledger, `its ${what}: ${before}`);
    }
  });
}

for (const rows of ['cycles', 'postings'] as const) {
  test(`the audit finds that one of the ${rows} is missing`, () => {
    for (const place of written()[rows].keys()) {
      const ledger = written();
      const [row] = ledger[rows].splice(place, 1);
      assertFound(ledger, `this is missing: ${JSON.stringify(row)}`);
    }
  });

  test(`the audit finds that one of the ${rows} is there twice`, () => {
    for (const place of written()[rows].keys()) {
      const ledger = written();
      const row = structuredClone(ledger[rows][place] as Cycle & Posting);
      ledger[rows].splice(place, 0, row);
      assertFound(ledger, `this is there twice: ${JSON.stringify(row)}`);
    }
  });
}

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

test('the audit finds a renewal that waits for its time to come, and was entered early', () => {
  const ledger = written();
  const renewal = ledger.postings.findIndex(({ kind }) => kind === 'renew');
  const { createdAt } = ledger.postings[renewal] as Posting;
  const postings = ledger.postings.slice(renewal);
  const cycles = ledger.cycles.filter(({ start }) => start <= createdAt);
  assert(findings({ cycles, postings, now: createdAt - HOUR_MS }).some(({ invariant }) => invariant === 4));
});

/** A one-time cycle of so many credits with the posting that opened it. */
function added(amount: number, sequence: number): { cycle: Cycle; posting: Posting } {
  const id = transactionId({ at: START, sequence, tail: 'aaaaaaaaaaaa' });
  const ends = START + DAY_MS;
  const cycle = { id, period: 0, amount, remaining: amount, start: START, end: ends, validityDays: 1 } as const;
  const posting = { transactionId: id, cycleId: id, period: 0, amount, createdAt: START, expiresAt: ends } as const;
  return {
    cycle: { ...cycle, type: 'one-time', status: 'active' },
    posting: { ...posting, kind: 'add', actor: 'key:7' },
  };
}

test('the audit finds an end user with more than 2^53−1 credits, however exactly they add up', () => {
  const [most, one] = [added(AMOUNT_MAX, 1), added(1, 2)];
  assert.deepEqual(findings({ cycles: [most.cycle], postings: [most.posting], now: START }), []);
  const both = { cycles: [most.cycle, one.cycle], postings: [one.posting, most.posting], now: START };
  assert.deepEqual(
    findings(both).map(({ invariant, message }) => [invariant, message]),
    [[2, 'the active balance is 9007199254740992, past 2^53−1']],
  );
  assert.deepEqual(findings({ ...both, now: START + DAY_MS }), [], 'what has ended is not held');
});

test('the audit finds two active cycles', () => {
  const [first, second] = [added(5, 1), added(6, 2)];
  const recurring = ({ cycle, posting }: ReturnType<typeof added>) => ({
    cycle: { ...cycle, type: 'recurring' as const },
    posting: { ...posting, kind: 'start-cycle' as const },
  });
  const [one, two] = [recurring(first), recurring(second)];
  assert.deepEqual(findings({ cycles: [one.cycle], postings: [one.posting], now: START }), []);
  assert.deepEqual(
    findings({ cycles: [one.cycle, two.cycle], postings: [two.posting, one.posting], now: START }).map(
      ({ invariant, message }) => [invariant, message],
    ),
    [[3, '2 recurring cycles are active at once']],
  );
});
