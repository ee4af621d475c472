// What is written on a slip is read from it: answers of every kind, to the last byte that has room.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '../../../test/load/random.ts';
import { ACCEPTED, type Outcome } from '../../ledger/command.ts';
import type { IdempotencyRecord } from '../../ledger/idempotency.ts';
import { answersOn, OpenSlip, type SlipAnswer, takeHashes } from './answer-slip.ts';

const NOON = Date.UTC(2026, 0, 31, 12);
const PAGE_BYTES = 2_048;
const REFUSED: Outcome = { refused: 'InsufficientFunds', requested: 5, available: Number.MAX_SAFE_INTEGER };
const REQUESTS = [
  'subtract 1',
  'add 9007199254740991 31',
  'start-cycle 3 7 refuse',
  'stop-cycle',
  'of another time',
  '',
];

interface Written {
  readonly answer: IdempotencyRecord;
  readonly hash: number;
  readonly posting: number | null;
}

function anAnswer(random: Random): Written {
  const keys = [random.uuid(), random.uuid().toUpperCase(), 'k', '☃ "\\', 'x'.repeat(255), '☃'.repeat(255)];
  const answer: IdempotencyRecord = {
    account: 1 + random.below(3) * 3_000_000_000,
    endUser: random.uuid(),
    key: random.pick(keys),
    requestId: random.pick(['mwotq4em-co1-7', 'mwotq4em-co1-zzz', 'of another-process-1', 'none', '']),
    request: random.pick(REQUESTS),
    outcome: random.pick([ACCEPTED, REFUSED]),
    answeredAt: NOON,
  };
  return { answer, hash: random.below(2 ** 32), posting: random.chance(0.7) ? 1 + random.below(2 ** 40) : null };
}

function seen({ answer, hash, posting }: Written): SlipAnswer {
  const { account, endUser, ...rest } = answer;
  return { hash, owner: posting ?? { account, endUser }, ...rest };
}

test('answers come back as they were, until the page is full', () => {
  const random = new Random(3);
  const slip = new OpenSlip();
  let most = 0;
  for (let round = 0; round < 300; round++) {
    slip.begin('mwotq4em-co1-1', NOON);
    const written: Written[] = [];
    for (let batch = 0, isFull = false; !isFull; batch++) {
      const answers = Array.from({ length: 1 + random.below(9) }, () => anAnswer(random));
      const at = NOON + batch * random.below(5);
      slip.batch(at, 2 ** 40);
      for (const { answer, ...rest } of answers) {
        const one = { answer: { ...answer, answeredAt: at }, ...rest };
        isFull = !slip.add(one.answer, one.hash, one.posting);
        if (isFull) break;
        written.push(one);
      }
    }
    const entries = Uint8Array.from(slip.entries);
    assert(entries.length < PAGE_BYTES - 40, 'with what is beside it, it fills a page');
    most = Math.max(most, written.length);
    assert.equal(slip.answers, written.length);
    assert.deepEqual([...answersOn(entries)], written.map(seen));
    const hashes: number[] = [];
    takeHashes(entries, (hash) => hashes.push(hash));
    assert.deepEqual(
      hashes,
      written.map(({ hash }) => hash),
    );
    const wanted = random.pick(written);
    assert.deepEqual([...answersOn(entries, wanted.hash)], [seen(wanted)]);
  }
  assert(most > 5, 'several have room');
});

test('an answer that fills more than a page has a slip of its own', () => {
  const slip = new OpenSlip();
  const answer = { ...anAnswer(new Random(4)).answer, key: '☃'.repeat(5_000) };
  slip.begin('r-1', NOON);
  slip.batch(NOON, 0);
  assert(slip.add(answer, 7, null));
  assert(!slip.add(answer, 8, null));
  const [read] = [...answersOn(Uint8Array.from(slip.entries))];
  assert.equal(read?.key, answer.key);
});

test('a usual answer takes about thirty bytes', () => {
  const random = new Random(5);
  const slip = new OpenSlip();
  slip.begin('mwotq4em-co1-1', NOON);
  for (let answers = 0; ; answers++) {
    if (answers % 45 === 0) slip.batch(NOON, 1_000_000);
    const answer = { ...anAnswer(random).answer, key: random.uuid(), request: 'subtract 1', outcome: ACCEPTED };
    const requestId = `mwotq4em-co1-${(46_656 + answers).toString(36)}`;
    if (!slip.add({ ...answer, requestId }, random.below(2 ** 32), 1_000_000 - (answers % 45))) break;
  }
  assert(slip.entries.length / slip.answers < 32, `${slip.entries.length / slip.answers} bytes each`);
});
