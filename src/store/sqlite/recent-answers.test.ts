// The latest answers against a Map, in memory that is full of them, with hashes that crowd; the filter; and the hash.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { Random } from '../../../test/load/random.ts';
import { AnswerFilter, filterBytes } from './answer-filter.ts';
import { AnswerHash, HASHES } from './answer-hash.ts';
import { bucketOf, rangeOfBucket } from './answer-segments.ts';
import { RecentAnswers } from './recent-answers.ts';

const MAX = 5_000;
const BUCKETS = 37;

/** Crowds at both ends of the range, and some everywhere. */
function hashes(random: Random, count: number): number[] {
  return Array.from({ length: count }, () => {
    const kind = random.below(4);
    if (kind === 0) return random.below(300);
    if (kind === 1) return HASHES - 1 - random.below(300);
    return random.below(HASHES);
  });
}

test('each is found by its hash, and in its part of the range, with all of its slips', () => {
  const random = new Random(21);
  const recent = new RecentAnswers(MAX, 100);
  const known = new Map<number, number[]>();
  hashes(random, MAX).forEach((hash, index) => {
    const slip = 100 + Math.floor(index / 40);
    recent.add(hash, slip);
    known.set(hash, [...(known.get(hash) ?? []), slip]);
  });
  assert(recent.isFull);
  const found = (hash: number) => {
    const slips: number[] = [];
    recent.find(hash, (_, slip) => slips.push(slip));
    return slips;
  };
  for (const [hash, slips] of known) assert.deepEqual(found(hash), slips);
  for (const hash of hashes(random, 2_000)) assert.deepEqual(found(hash), known.get(hash) ?? []);
  let count = 0;
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    const [from, to] = rangeOfBucket(bucket, BUCKETS);
    recent.within(from, to, (hash, slip) => {
      assert(hash >= from && hash <= to && known.get(hash)?.includes(slip));
      if (bucketOf(hash, BUCKETS) === bucket) count += 1;
    });
  }
  assert.equal(count, MAX, 'each is in one bucket, and none is left out');
});

test('a bucket has the hashes of its range, whatever their number', () => {
  const random = new Random(22);
  for (const buckets of [1, 2, 3, 583, 65_537, 2 ** 20]) {
    for (const hash of [0, HASHES - 1, ...hashes(random, 2_000)]) {
      const bucket = bucketOf(hash, buckets);
      const [from, to] = rangeOfBucket(bucket, buckets);
      assert(bucket >= 0 && bucket < buckets && hash >= from && hash <= to);
    }
  }
});

test('a filter passes all that it has, and few others', () => {
  const random = new Random(23);
  const count = 20_000;
  const filter = new AnswerFilter(count);
  const added = Array.from({ length: count }, () => random.below(HASHES));
  for (const hash of added) filter.add(hash);
  assert(added.every((hash) => filter.mayHave(hash)));
  const passed = Array.from({ length: count }, () => random.below(HASHES)).filter((hash) => filter.mayHave(hash));
  assert(passed.length < count / 30, `${passed.length} of ${count} pass`);
  assert.equal(filter.bytes, filterBytes(count));
  assert(filter.bytes < 1.3 * count);
});

test('the hash tells accounts, end users, keys and seeds apart', () => {
  const hashOf = (seed: string) => {
    const db = new DatabaseSync(':memory:');
    db.exec(`CREATE TABLE answer_seed (seed BLOB); INSERT INTO answer_seed VALUES (x'${seed}')`);
    return new AnswerHash(db);
  };
  const hash = hashOf('0102030405060708');
  const endUser = '00000000-0000-4000-8000-000000000001';
  const user = { account: 1, endUser };
  const others = [
    hash.of(user, 'k'),
    hash.of(user, 'k\0'),
    hash.of(user, ''),
    hash.of(user, '\0'),
    hash.of(user, 'kk'),
    hash.of(user, 'x'.repeat(254)),
    hash.of(user, 'x'.repeat(255)),
    hash.of(user, 'x'.repeat(1_000)),
    hash.of({ account: 1 + 2 ** 32, endUser }, 'k'),
    hash.of({ account: 2, endUser }, 'k'),
    hash.of({ account: 1, endUser: endUser.replace(/1$/, '2') }, 'k'),
    hashOf('0102030405060709').of(user, 'k'),
  ];
  assert.equal(new Set(others).size, others.length);
  assert.equal(hash.of(user, 'k'), hashOf('0102030405060708').of(user, 'k'));
  const many = Array.from({ length: 64_000 }, (_, index) => hash.of(user, `order-${index}`));
  const filled = new Set(many.map((each) => bucketOf(each, 256)));
  assert.equal(filled.size, 256);
  assert(new Set(many).size > many.length - 10, 'they are spread over the whole range');
});
