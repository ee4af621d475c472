// Tests which end users the cache of recent reads contains, and which ones it drops.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dayCycles, NOW, oneTime, stateOf } from '../../../../test/ledger/ledger-builders.ts';
import type { EndUserKey } from '../../../ledger/command.ts';
import { DAY_MS } from '../../../ledger/instant.ts';
import type { EndUserState } from '../../../ledger/state.ts';
import { MANY_CYCLES } from './end-user-reader.ts';
import { GENERATION_MAX, RecentReads } from './recent-reads.ts';

const ADA = { account: 1, endUser: 'ada' };
const BOB = { account: 1, endUser: 'bob' };
const ADA_ELSEWHERE = { account: 2, endUser: 'ada' };

class Reads {
  readonly cache = new RecentReads();
  fromFile = 0;

  read(user: EndUserKey, state: EndUserState = stateOf(oneTime()), now = NOW) {
    return this.cache.balancesOf(user, now, () => {
      this.fromFile += 1;
      return { state, latestPosting: 1 };
    });
  }
}

test('an end user is read from the file once, and again after it was dropped', () => {
  const reads = new Reads();
  for (let times = 0; times < 3; times++) reads.read(ADA);
  assert.equal(reads.fromFile, 1);
  reads.read(ADA_ELSEWHERE);
  assert.equal(reads.fromFile, 2, 'the same UUID in another account is another end user');
  reads.cache.drop(ADA);
  reads.read(ADA_ELSEWHERE);
  assert.equal(reads.fromFile, 2);
  reads.read(ADA);
  assert.equal(reads.fromFile, 3);
});

test('a cycle that has ended since the end user was read is left out', () => {
  const reads = new Reads();
  const [first, second] = [oneTime({ validityDays: 1 }), oneTime({ validityDays: 2 })];
  reads.read(ADA, stateOf(first, second));
  assert.deepEqual(reads.read(ADA, stateOf(), NOW + 1.5 * DAY_MS).state, stateOf(second));
  assert.equal(reads.fromFile, 1);
});

test('an end user with many cycles is not added', () => {
  const reads = new Reads();
  const many = stateOf(...dayCycles(MANY_CYCLES, NOW));
  reads.read(ADA, many);
  reads.read(ADA, many);
  assert.equal(reads.fromFile, 2);
});

test('the cache drops end users that were not read again while two generations filled', () => {
  const reads = new Reads();
  const users = (name: string) => Array.from({ length: GENERATION_MAX / 2 }, (_, index) => `${name} ${index}`);
  const readAll = (names: readonly string[]) => {
    for (const endUser of names) reads.read({ account: 1, endUser });
  };
  reads.read(ADA);
  reads.read(BOB);
  readAll(users('first generation'));
  reads.read(ADA);
  readAll(users('second generation'));
  const before = reads.fromFile;
  reads.read(ADA);
  assert.equal(reads.fromFile, before, 'Ada was read while the second generation filled');
  reads.read(BOB);
  assert.equal(reads.fromFile, before + 1);
});

test('a dropped end user is in neither generation', () => {
  const reads = new Reads();
  reads.read(ADA);
  for (let index = 0; index < GENERATION_MAX / 2; index++) reads.read({ account: 1, endUser: String(index) });
  reads.read(ADA);
  const before = reads.fromFile;
  reads.cache.drop(ADA);
  reads.read(ADA);
  assert.equal(reads.fromFile, before + 1);
});

test('end users that are read and dropped again and again do not displace the others', () => {
  const reads = new Reads();
  reads.read(BOB);
  for (let times = 0; times < 2 * GENERATION_MAX; times++) {
    reads.read(ADA);
    reads.cache.drop(ADA);
  }
  const before = reads.fromFile;
  reads.read(BOB);
  assert.equal(reads.fromFile, before);
});
