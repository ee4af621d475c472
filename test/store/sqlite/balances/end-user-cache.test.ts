// Tests which end users stay in the writer's cache.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type EndUserKey, endUserText } from '../../../../src/ledger/command.ts';
import {
  type CachedEndUser,
  type CacheLimits,
  EndUserCache,
} from '../../../../src/store/sqlite/balances/end-user-cache.ts';
import { connect, openLedgerFile } from '../../../../src/store/sqlite/file/ledger-file.ts';
import { EndUser, NOON, temporaryFile } from '../../temporary-ledger.ts';

const LIMITS: CacheLimits = { endUsersMax: 40, postingsMax: 40, cyclesMax: 400, ageMaxMs: 60_000, perUserMax: 64 };
/** The cache has room for one and a half generations, each of `endUsersMax` end users. */
const ROOM = 60;

const [ada, bob] = [new EndUser(1, 1).key, new EndUser(1, 2).key];

function newCache(t: TestContext) {
  const file = temporaryFile();
  openLedgerFile(file, false).close();
  const db = connect(file);
  t.after(() => db.close());
  const cache = new EndUserCache(db, LIMITS, 0, NOON);
  const load = (user: EndUserKey, now = NOON): CachedEndUser => cache.load(user, endUserText(user), now);
  let others = 0;
  return {
    cache,
    load,
    loadOthers(count: number): void {
      for (const end = others + count; others < end; others++) {
        load(new EndUser(1, 1_000 + others).key);
        cache.keepUp([]);
      }
    },
  };
}

test("an end user stays in the writer's cache after its balance has been flushed", (t) => {
  const { cache, load, loadOthers } = newCache(t);
  const first = load(ada);
  cache.change(first, first.state, 1, 1);
  cache.keepUp([first]);
  cache.flushIdle(10);
  assert.deepEqual([cache.hasPending, first.pendingPostings], [false, 0]);
  loadOthers(ROOM - 1);
  assert.equal(load(ada), first);
});

test("if the writer's cache is full, it drops end users that were loaded only once, and keeps end users that are loaded repeatedly", (t) => {
  const { load, loadOthers } = newCache(t);
  const [first, second] = [load(ada), load(bob)];
  for (let round = 0; round < 5; round++) {
    loadOthers(ROOM - 2);
    assert.equal(load(ada), first);
  }
  loadOthers(ROOM);
  assert.notEqual(load(bob), second);
});

test('the writer drops an end user from its cache if no batch has loaded the end user for two minutes, even if the cache is not full', (t) => {
  const { cache, load } = newCache(t);
  const first = load(ada);
  for (const [ms, isKept] of [
    [120_000, true],
    [240_001, false],
  ] as const) {
    load(bob, NOON + ms);
    cache.keepUp([]);
    assert.equal(load(ada, NOON + ms) === first, isKept, `after ${ms} ms`);
  }
});

test("if the writer's cache is full, it still keeps end users whose balances are pending", (t) => {
  const { cache, load, loadOthers } = newCache(t);
  const first = load(ada);
  cache.change(first, first.state, 1, 1);
  cache.keepUp([first]);
  loadOthers(5 * ROOM);
  assert.equal(load(ada), first);
});
