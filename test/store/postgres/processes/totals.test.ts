// Tests the totals in PostgreSQL while several processes write postings and consume the feed, and while connections are
// terminated.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { EndUser, problemsOf } from '../../temporary-ledger.ts';
import type { TestLedger } from '../../test-ledger.ts';
import { openFor } from '../postgres-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';
import { RepeatedStep } from './repeated-step.ts';
import { withSharedLedger } from './shared-ledger.ts';

const LIMIT = { timeout: 60_000 };
/** Each call to `fill` adds 10 credits to each balance and then spends 3 of them. */
const LEFT = 7n;
const FAILURES = 10;
const ROUNDS_MAX = 400;

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

function people(count: number, process = 0): EndUser[] {
  return Array.from({ length: count }, (_, index) => new EndUser(1, 1_000 * process + index));
}

async function fill(ledger: TestLedger, users: readonly EndUser[]): Promise<void> {
  await ledger.write(users.map((user, index) => user.add(10, 1 + (index % 9))));
  await ledger.write(users.map((user) => user.subtract(3)));
}

async function outstanding(ledger: TestLedger): Promise<bigint> {
  await ledger.consumeFeed();
  return (await ledger.console.overview(1, { days: 2 })).outstanding;
}

function startCounting({ store }: TestLedger): RepeatedStep {
  return new RepeatedStep(() => store.updateTotals());
}

test(
  'if several processes on PostgreSQL make writes and update totals at once, no posting is lost or counted twice',
  LIMIT,
  () =>
    withSharedLedger(server, async ({ processes }) => {
      const counting = processes.map(startCounting);
      await Promise.all(
        processes.map(async (process, number) => {
          for (let round = 0; round < 25; round++) await fill(process, people(40, number));
        }),
      );
      for (const each of counting) {
        await each.stop();
        assert.equal(each.failed, 0);
      }
      for (const process of processes) assert.equal(await outstanding(process), LEFT * 25n * 120n);
    }),
);

test(
  'if connections to PostgreSQL are terminated while totals are updated, no posting is lost or counted twice',
  LIMIT,
  () =>
    withSharedLedger(server, async ({ processes: [writing, ...others], database }) => {
      const counting = others.map(startCounting);
      const failures = () => counting.reduce((sum, { failed }) => sum + failed, 0);
      let rounds = 0;
      for (; failures() < FAILURES; rounds++) {
        assert(rounds < ROUNDS_MAX, `only ${failures()} steps of counting failed`);
        await fill(writing, people(50));
        await server.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}' AND pid <> pg_backend_pid()
           AND state <> 'idle' AND query ~ 'feed_consumers|DELETE FROM scrip.feed'`,
          database,
        );
      }
      await Promise.all(counting.map((each) => each.stop()));
      assert.equal(await outstanding(writing), LEFT * BigInt(rounds * 50));
    }),
);

const DAMAGE: readonly (readonly [what: string, sql: string, finding: RegExp])[] = [
  [
    'credits of a day',
    'UPDATE scrip.daily_totals SET credits = credits + 1',
    /\(kind add, actor key:1, day starting at \d{4}-\d\d-\d\dT00:00:00\.000Z\) do not match the postings: the credits differ by -1,/,
  ],
  [
    'a number of transactions',
    'UPDATE scrip.daily_totals SET transactions = transactions + 1',
    /the number of transactions differs by -1;/,
  ],
  [
    'credits that expire',
    'UPDATE scrip.expiry_totals SET credits = credits - 1',
    /\(cycles that end in the hour starting at \d{4}-\d\d-\d\dT\d\d:00:00\.000Z\) do not match the postings: the credits differ by 1;/,
  ],
  ['an account', 'UPDATE scrip.daily_totals SET account = 2', /the totals of account 2 /],
  ['missing totals', 'DELETE FROM scrip.daily_totals; DELETE FROM scrip.expiry_totals', /the totals of account 1 /],
];

test('the audit finds totals in PostgreSQL that were changed by hand, and rebuilding from the postings repairs the totals', async (t) => {
  const url = await server.createDatabase();
  const ledger = await openFor(t, url);
  await fill(ledger, people(50));
  const expected = await outstanding(ledger);
  for (const [what, sql, finding] of DAMAGE) {
    await server.query(sql, new URL(url).pathname.slice(1));
    // Adds a posting that the totals do not include yet.
    await ledger.write([new EndUser(2, 1).add(1)]);
    const found = problemsOf(await ledger.audit());
    assert.match(found.join('\n'), finding, what);
    await ledger.withTools((tools) => tools.rebuildTotals());
    assert.deepEqual(problemsOf(await ledger.audit()), [], what);
    assert.equal(await outstanding(ledger), expected, what);
  }
});

test('totals in PostgreSQL are rebuilt correctly even while other processes make writes and update totals', LIMIT, () =>
  withSharedLedger(server, async ({ processes: [writing, counting, rebuilding] }) => {
    const job = startCounting(counting);
    let isRebuilding = true;
    const rebuilt = (async () => {
      for (let times = 0; times < 10; times++) await rebuilding.withTools((tools) => tools.rebuildTotals());
      isRebuilding = false;
    })();
    let rounds = 0;
    for (; isRebuilding; rounds++) await fill(writing, people(50));
    await rebuilt;
    await job.stop();
    assert.equal(job.failed, 0);
    assert.equal(await outstanding(writing), LEFT * BigInt(rounds * 50));
  }),
);

test('a step adds a limited number of postings to the totals, so that it ends before its timeout', LIMIT, async (t) => {
  const url = await server.createDatabase();
  const ledger = await openFor(t, url);
  await server.query(
    `INSERT INTO scrip.feed
     SELECT 0, 'totals', at, gen_random_uuid(), gen_random_uuid(), array_fill(1, '{50000}'), array_fill(gen_random_uuid(), '{50000}')
     FROM generate_series(1, 2) AS at`,
    new URL(url).pathname.slice(1),
  );
  assert.equal(await ledger.store.updateTotals(), true);
  assert.equal(await ledger.store.updateTotals(), true);
  assert.equal(await ledger.store.updateTotals(), false);
});
