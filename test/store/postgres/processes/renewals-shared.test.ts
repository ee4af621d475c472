// Tests several processes that search for due renewals without coordinating: their searches mostly find different end
// users.

import assert from 'node:assert/strict';
import { after, before, type TestContext, test } from 'node:test';
import type { EndUserKey } from '../../../../src/ledger/command.ts';
import { DAY_MS } from '../../../../src/ledger/instant.ts';
import { bucketOf } from '../../../../src/store/postgres/rows/key.ts';
import { eventually } from '../../../http/running-service.ts';
import { EndUser, NOON, problemsOf } from '../../temporary-ledger.ts';
import type { TestLedger } from '../../test-ledger.ts';
import { openFor, openOnMovedClock } from '../postgres-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';

const LIMIT = 64;
const USERS = 5_000;
const BATCH = 500;

const PAIRS = 20;
/** On average, two searches have at most a sixteenth of their end users in common. The limit leaves room for chance. */
const OVERLAP_MAX = 0.25;

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

async function withDueRenewals(t: TestContext): Promise<readonly [TestLedger, TestLedger]> {
  const url = await server.createDatabase();
  let wall = NOON;
  const open = () => openOnMovedClock(t, url, () => wall);
  const processes = [await open(), await open()] as const;
  for (let from = 1; from <= USERS; from += BATCH) {
    const batch = Array.from({ length: BATCH }, (_, index) => new EndUser(1, from + index));
    await processes[0].write(batch.map((user) => user.startCycle(10, 1)));
    wall += 1;
  }
  wall += DAY_MS;
  return processes;
}

function numberOf({ endUser }: EndUserKey): number {
  return Number.parseInt(endUser.slice(-12), 16);
}

test('two processes on PostgreSQL that look for due renewals at the same time mostly get different end users', {
  timeout: 60_000,
}, async (t) => {
  const processes = await withDueRenewals(t);
  let common = 0;
  for (let pair = 0; pair < PAIRS; pair++) {
    const [one, other] = await Promise.all(processes.map((process) => process.due(LIMIT)));
    const names = new Set(one?.map(numberOf));
    assert.equal(names.size, LIMIT, 'each process gets as many distinct end users as it asks for');
    common += other?.filter((user) => names.has(numberOf(user))).length ?? 0;
  }
  const overlap = common / (PAIRS * LIMIT);
  t.diagnostic(`${Math.round(100 * overlap)}% in common`);
  assert(overlap < OVERLAP_MAX, `${overlap}`);
});

test('a single process on PostgreSQL renews each end user once, and begins with the longest-overdue end users of each bucket', {
  timeout: 60_000,
}, async (t) => {
  const [process] = await withDueRenewals(t);
  const renewed = new Set<number>();
  /** Maps each bucket to the batch that created the most recently renewed end user of the bucket. */
  const latest = new Map<number, number>();
  for (let due = await process.due(LIMIT); due.length > 0; due = await process.due(LIMIT)) {
    for (const user of due) {
      const [number, bucket] = [numberOf(user), bucketOf(user)];
      assert(!renewed.has(number), 'an end user that was renewed is not due');
      renewed.add(number);
      // All cycles of a batch ended at the same instant, so only the order of the batches is fixed.
      const batch = Math.floor((number - 1) / BATCH);
      assert(batch >= (latest.get(bucket) ?? 0), 'no end user of the bucket has been overdue longer');
      latest.set(bucket, batch);
    }
    await process.write(due.map((key) => ({ kind: 'settle', ...key })));
  }
  assert.equal(renewed.size, USERS);
  assert.deepEqual(problemsOf(await process.audit()), []);
});

test('the search for due renewals on PostgreSQL reads only due cycles', { timeout: 60_000 }, async (t) => {
  const url = await server.createDatabase();
  const run = (sql: string) => server.query(sql, new URL(url).pathname.slice(1));
  // The search must not compare a column with a volatile function, because PostgreSQL cannot use an index for such a
  // comparison. A clock that the test sets is not volatile, so this test uses the database's clock, which is volatile.
  const ledger = await openFor(t, url);
  await run(
    `INSERT INTO scrip.cycles
     SELECT n % 64, 1, gen_random_uuid(), ${Date.now() + DAY_MS} + n, gen_random_uuid(), 0, 'recurring', 'active', 1, 1, 0, 1, '1/1d', NULL, gen_random_uuid()
     FROM generate_series(1, 20000) AS n`,
  );
  await run('ANALYZE scrip.cycles');
  const looked = async () => {
    const { rows } = await run(`SELECT * FROM pg_stat_user_indexes WHERE indexrelname = 'renewals_due'`);
    return { searches: Number(rows[0].idx_scan), entries: Number(rows[0].idx_tup_read) };
  };
  const earlier = await looked();
  assert.deepEqual(await ledger.due(LIMIT), []);
  // PostgreSQL may report the statistics of a connection only after the connection has been idle for a while.
  await eventually(async () => (await looked()).searches > earlier.searches, 'the index is searched');
  assert.equal((await looked()).entries - earlier.entries, 0);
});
