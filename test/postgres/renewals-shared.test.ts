// Several processes renew together: without knowing of each other, they mostly take different end users, and one alone
// takes all of them. What is not due costs nothing, however much of it there is.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { EndUserKey } from '../../src/ledger/command.ts';
import { DAY_MS } from '../../src/ledger/instant.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import type { Store } from '../../src/store/store.ts';
import { eventually } from '../http/running-service.ts';
import { auditOf, EndUser, NOON } from '../store/temporary-ledger.ts';
import { OPTIONS, openOnMovedClock } from './moved-clock.ts';
import { PostgresServer } from './postgres-server.ts';

/** As many as the renewal clock asks for. */
const LIMIT = 256;
const USERS = 5_000;
const BATCH = 500;
/** Of those who are longest overdue, these many take part in the sharing. */
const SHARED = 16 * LIMIT;

const PAIRS = 20;
/** Two shares of a sixteenth each overlap by a sixteenth on average; of one list they would be the same. */
const OVERLAP_MAX = 0.25;

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

/** Two stores, on which the cycles of all end users have ended, those of lower numbers first. */
async function withDueRenewals(work: (stores: readonly [Store, Store]) => Promise<void>): Promise<void> {
  const url = await server.createDatabase();
  let wall = NOON;
  const stores = [await openOnMovedClock(url, () => wall), await openOnMovedClock(url, () => wall)] as const;
  try {
    for (let from = 1; from <= USERS; from += BATCH) {
      const batch = Array.from({ length: BATCH }, (_, index) => new EndUser(1, from + index));
      await stores[0].write(batch.map((user) => user.startCycle(10, 1)));
      wall += 1;
    }
    wall += DAY_MS;
    await work(stores);
  } finally {
    await Promise.all(stores.map((store) => store.close()));
  }
}

function numberOf({ endUser }: EndUserKey): number {
  return Number.parseInt(endUser.slice(-12), 16);
}

test('two stores that ask at the same time mostly get different end users', { timeout: 60_000 }, async (t) => {
  await withDueRenewals(async (stores) => {
    let common = 0;
    for (let pair = 0; pair < PAIRS; pair++) {
      const [one, other] = await Promise.all(stores.map((store) => store.renewalsDue(LIMIT)));
      const names = new Set(one?.map(numberOf));
      assert.equal(names.size, LIMIT, 'each is given as many as it asks for, and nobody twice');
      common += other?.filter((user) => names.has(numberOf(user))).length ?? 0;
    }
    const overlap = common / (PAIRS * LIMIT);
    t.diagnostic(`${Math.round(100 * overlap)}% in common`);
    assert(overlap < OVERLAP_MAX, `${overlap}`);
  });
});

test('one store alone renews everybody, once, and the longest overdue first', { timeout: 60_000 }, async () => {
  await withDueRenewals(async ([store]) => {
    const renewed = new Set<number>();
    for (let due = await store.renewalsDue(LIMIT); due.length > 0; due = await store.renewalsDue(LIMIT)) {
      const numbers = due.map(numberOf);
      // Those of a batch end at the same instant.
      const turns = numbers.map((number) => Math.floor((number - 1) / BATCH));
      assert.deepEqual(
        turns,
        turns.toSorted((a, b) => a - b),
      );
      const last = renewed.size + SHARED + BATCH;
      assert(
        numbers.every((number) => number <= last),
        'who has waited longer is not passed over for ever',
      );
      for (const number of numbers) {
        assert(!renewed.has(number), 'who was renewed is not due');
        renewed.add(number);
      }
      await store.write(due.map((key) => ({ kind: 'renew', ...key })));
    }
    assert.equal(renewed.size, USERS);
    assert.deepEqual(await auditOf(store), { findings: [], store: [] });
  });
});

test('what is not due is not looked at', { timeout: 60_000 }, async (t) => {
  const url = await server.createDatabase();
  const run = (sql: string) => server.query(sql, new URL(url).pathname.slice(1));
  // On the database's own clock, which is what changes while a query runs.
  const store = await openPostgresStore({ ...OPTIONS, url });
  t.after(() => store.close());
  await run(
    `INSERT INTO scrip.cycles
     SELECT n % 64, 1, gen_random_uuid(), ${Date.now() + DAY_MS} + n, gen_random_uuid(), 0, 'recurring', 'active', 1, 1, 1, 1
     FROM generate_series(1, 20000) AS n`,
  );
  await run('ANALYZE scrip.cycles');
  const looked = async () => {
    const { rows } = await run(`SELECT * FROM pg_stat_user_indexes WHERE indexrelname = 'renewals_due'`);
    return { searches: Number(rows[0].idx_scan), entries: Number(rows[0].idx_tup_read) };
  };
  const earlier = await looked();
  assert.deepEqual(await store.renewalsDue(LIMIT), []);
  // A connection reports what it counted when it has been idle for a while.
  await eventually(async () => (await looked()).searches > earlier.searches, 'the index is searched');
  assert.equal((await looked()).entries - earlier.entries, 0);
});
