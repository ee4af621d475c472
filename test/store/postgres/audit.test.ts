// Tests that the audit of a PostgreSQL database reports rows that were changed by hand, and no other rows, even if the
// database's clock was set back between writes.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { AMOUNT_MAX } from '../../../src/ledger/amount.ts';
import type { Finding } from '../../../src/ledger/audit.ts';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import { scrip } from '../../cli/scrip-command.ts';
import { effort } from '../../effort.ts';
import { EndUser, monthsPlan, NOON, problemsOf } from '../temporary-ledger.ts';
import { TestLedger } from '../test-ledger.ts';
import { auditBeside, openFor, openOnMovedClock, pluggedDatabase } from './postgres-ledger.ts';
import { PostgresServer } from './postgres-server.ts';

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
  await makeCorrect();
});
after(() => server.remove());

const [ada, bob] = [new EndUser(1, 1), new EndUser(1, 2)];

const WITHOUT_CHECKS = `
  DO $$ DECLARE c record; BEGIN
    FOR c IN SELECT conrelid::regclass AS t, conname FROM pg_constraint
      WHERE contype = 'c' AND connamespace = 'scrip'::regnamespace
    LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.t, c.conname); END LOOP;
  END $$`;

interface Edited {
  readonly ledger: TestLedger;
  readonly url: string;
  run(sql: string): Promise<unknown>;
}

/** The URL of a correct ledger without CHECK constraints, which each test copies. */
let correct: string;

async function makeCorrect(): Promise<void> {
  correct = await server.createDatabase();
  const ledger = await TestLedger.open(async () => pluggedDatabase(correct));
  await ledger.write([ada.startCycle(100), ada.subtract(1), ada.hold(5), bob.add(AMOUNT_MAX)]);
  await ledger.consumeFeed();
  assert.deepEqual(problemsOf(await ledger.audit()), []);
  await ledger.close();
  await server.query(WITHOUT_CHECKS, new URL(correct).pathname.slice(1));
}

async function withoutChecks(work: (ledger: Edited) => Promise<void>): Promise<void> {
  const url = await server.createDatabase(correct);
  const run = (sql: string) => server.query(sql, new URL(url).pathname.slice(1));
  const ledger = await TestLedger.open(async () => pluggedDatabase(url));
  try {
    await work({ ledger, url, run });
  } finally {
    await ledger.close();
  }
}

const PAST: readonly (readonly [table: string, column: string, value: string, invariant: Finding['invariant']])[] = [
  // The first three values are 2^53, 2^53 + 1 (which a JavaScript number cannot represent), and the largest 64-bit
  // integer.
  ['cycles', 'remaining', '9007199254740992', 1],
  ['cycles', 'remaining', '9007199254740993', 1],
  ['cycles', 'remaining', '9223372036854775807', 1],
  ['cycles', 'remaining', '-9007199254740993', 1],
  ['cycles', 'amount', '9007199254740993', 1],
  ['cycles', 'held', '9007199254740993', 1],
  ['cycles', 'held', '-1', 1],
  ['cycles', 'starts_at', '9007199254740993', 4],
  ['cycles', 'ends_at', '9007199254740993', 4],
  ['postings', 'amount', '9007199254740993', 1],
  ['postings', 'held', '9007199254740993', 1],
  ['postings', 'hold_expires_at', '9007199254740993', 1],
  ['holds', 'expires_at', '9007199254740993', 1],
  ['postings', 'created_at', '9007199254740993', 4],
  ['postings', 'expires_at', '9007199254740993', 4],
];

for (const [table, column, value, invariant] of effort(
  PAST.filter((_, index) => index % 2 === 0),
  PAST,
)) {
  test(`the audit of a database reports the value ${value} in ${table}.${column}, and names the end user`, () =>
    withoutChecks(async ({ ledger, run }) => {
      await run(`UPDATE scrip.${table} SET ${column} = ${value} WHERE end_user = '${ada.key.endUser}'`);
      const { findings } = await ledger.audit();
      assert(findings.some((finding) => finding.invariant === invariant));
      for (const { user } of findings) assert.deepEqual(user, ada.key);
    }));
}

const TAMPERED: readonly (readonly [what: string, sql: string, sentence: RegExp])[] = [
  ['a changed daily total', 'UPDATE scrip.daily_totals SET credits = credits + 1', /^the totals of account 1 \(.*day/],
  [
    'a missing expiry total',
    'DELETE FROM scrip.expiry_totals',
    /^the totals of account 1 \(cycles that end in the hour starting at \d{4}-\d\d-\d\dT\d\d:00:00\.000Z\) do not match the postings: the credits differ by \d+/,
  ],
  [
    'a changed balance in a summary',
    'UPDATE scrip.end_user_summaries SET balance = balance + 1',
    /^the summaries of account 1 are wrong: the summary does not match the postings of end user \S+$/,
  ],
  [
    'a changed expiry in a summary',
    'UPDATE scrip.end_user_summaries SET expires_at = expires_at - 1',
    /^the summaries of/,
  ],
  [
    'a changed latest activity in a summary',
    'UPDATE scrip.end_user_summaries SET latest_activity = 1',
    /^the summaries of/,
  ],
  ['a missing summary', 'DELETE FROM scrip.end_user_summaries', /does not match the postings of end user \S+$/],
  [
    'a summary of an end user that does not exist',
    'UPDATE scrip.end_user_summaries SET account = 7',
    /^the number of rows in the table end_user_summaries \(2\) differs from the number of rows of end users with postings \(0\)$/,
  ],
  [
    'a changed number of end users',
    'UPDATE scrip.end_user_counts SET end_users = end_users + 1',
    /the counts of end users do not match/,
  ],
  [
    'a hold without postings',
    'UPDATE scrip.holds SET account = 7',
    /^the number of rows in the table holds \(1\) differs from the number of rows of end users with postings \(0\)$/,
  ],
  [
    'a hold that cannot be read',
    `UPDATE scrip.holds SET parts = '{}'`,
    /^a hold of account 1, end user .* cannot be read$/,
  ],
  [
    'a cycle without postings',
    'UPDATE scrip.cycles SET account = 7',
    /^the number of rows in the table cycles \(2\) differs from the number of rows of end users with postings \(0\)$/,
  ],
  [
    'a wrong snapshot',
    `INSERT INTO scrip.snapshots SELECT bucket, account, end_user, transaction_id, '[]' FROM scrip.postings
     ON CONFLICT (bucket, account, end_user, transaction_id) DO UPDATE SET state = excluded.state`,
    /^the snapshot after transaction \S+ does not match the postings of account 1, end user \S+$/,
  ],
  [
    'a clock that is set to an invalid time',
    'UPDATE scrip.clock SET at = 9007199254740993',
    /^the clock of the ledger is set to an invalid time$/,
  ],
  ['a missing clock', 'DELETE FROM scrip.clock', /^the clock of the ledger is missing$/],
];

for (const [what, sql, sentence] of TAMPERED) {
  test(`the audit of a database reports ${what}`, () =>
    withoutChecks(async ({ ledger, run }) => {
      await run(sql);
      const { store } = await ledger.audit();
      assert(
        store.some((fault) => sentence.test(fault)),
        store.join('\n'),
      );
    }));
}

const WRONG_PLANS: readonly (readonly [what: string, sql: string])[] = [
  ['a cycle with a changed plan', `UPDATE scrip.cycles SET plan = '100/31d/1'`],
  ['a plan in a form that cannot be read', `UPDATE scrip.cycles SET plan = plan || ' '`],
  ['a changed scheduled plan', `UPDATE scrip.cycles SET next = replace(next, '1m', '2m')`],
  ['a missing scheduled plan', 'UPDATE scrip.cycles SET next = NULL'],
  ['changed terms of a scheduled plan', `UPDATE scrip.postings SET terms = replace(terms, '1m', '2m')`],
  ['missing terms', `UPDATE scrip.postings SET terms = NULL WHERE kind = 'start-cycle'`],
];

for (const [what, sql] of WRONG_PLANS) {
  test(`the audit of a database reports ${what}`, () =>
    withoutChecks(async ({ ledger, run }) => {
      await ledger.write([ada.startPlan(monthsPlan(50, 1, 5), 'at_period_end')]);
      assert.deepEqual(problemsOf(await ledger.audit()), []);
      await run(`${sql} ${sql.includes('WHERE') ? 'AND' : 'WHERE'} end_user = '${ada.key.endUser}'`);
      const { findings } = await ledger.audit();
      assert(findings.length > 0);
      for (const { user } of findings) assert.deepEqual(user, ada.key);
    }));
}

const WRONG_HOLDS: readonly (readonly [what: string, sql: string])[] = [
  ['a missing hold', 'DELETE FROM scrip.holds'],
  ['a hold that lapses a millisecond too late', 'UPDATE scrip.holds SET expires_at = expires_at + 1'],
  ['a hold with one credit too many', `UPDATE scrip.holds SET parts = replace(parts::text, ',5,', ',6,')::json`],
  ['a hold with a changed ID', 'UPDATE scrip.holds SET hold_id = gen_random_uuid()'],
  ['held credits of a cycle that belong to no hold', 'UPDATE scrip.cycles SET held = held + 1'],
];

for (const [what, sql] of WRONG_HOLDS) {
  test(`the audit of a database reports ${what}`, () =>
    withoutChecks(async ({ ledger, run }) => {
      await run(`${sql} WHERE end_user = '${ada.key.endUser}'`);
      const { findings } = await ledger.audit();
      assert(findings.some(({ invariant }) => invariant === 1));
      for (const { user } of findings) assert.deepEqual(user, ada.key);
    }));
}

test('`scrip verify` names the end user if a number in a database is above 2^53−1, and exits with 1', () =>
  withoutChecks(async ({ url, run }) => {
    const environment = { DATABASE_URL: url, DATABASE_ACCEPT_UNSAFE: 'yes' };
    const whole = await scrip(['verify'], environment);
    assert.deepEqual([whole.code, whole.stderr], [0, ''], whole.stdout);
    await run(`UPDATE scrip.cycles SET remaining = 9007199254740993 WHERE end_user = '${ada.key.endUser}'`);
    const { code, stdout, stderr } = await scrip(['verify'], environment);
    assert.deepEqual([code, stderr], [1, '']);
    assert.match(stdout, new RegExp(`^invariant 1, account 1, end user ${ada.key.endUser}: `));
    assert.match(stdout, /Verification failed: \d+ problems found\. 2 end users and 4 postings checked\.\n$/);
  }));

test('an audit can take longer than the timeouts that are set for the database', async (t) => {
  const url = await server.createDatabase();
  const ledger = await openFor(t, url);
  await ledger.write([ada.add(1)]);
  const database = new URL(url).pathname.slice(1);
  for (const timeout of ['statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout'])
    await server.query(`ALTER DATABASE ${database} SET ${timeout} = '1s'`);
  const locked = server.query(
    'SET transaction_timeout = 0; SET statement_timeout = 0; BEGIN; LOCK TABLE scrip.holds; SELECT pg_sleep(3)',
    database,
  );
  await sleep(500);
  assert.deepEqual(problemsOf(await auditBeside(url)), []);
  await locked;
});

test("an audit by another process accepts a posting that was written before the database's clock was set back", async (t) => {
  const url = await server.createDatabase();
  let wall = NOON;
  const ledger = await openOnMovedClock(t, url, () => wall);
  const other = await openOnMovedClock(t, url, () => wall);
  await other.write([bob.add(1)]);
  for (let round = 0; round < 3; round++) {
    wall += DAY_MS;
    await ledger.write([ada.add(1)]);
    wall -= DAY_MS - 1;
    assert.deepEqual(problemsOf(await other.audit()), []);
  }
});

test("a digest that is computed after the database's clock was set back covers no later writes", async (t) => {
  const url = await server.createDatabase();
  let wall = NOON;
  const ledger = await openOnMovedClock(t, url, () => wall);
  await ledger.write([ada.add(1)]);
  wall += DAY_MS;
  await ledger.write([ada.add(1)]);
  // When a process closes the ledger, it stores the latest instant that it has issued.
  await ledger.reopen();
  wall -= 1_000;
  await ledger.write([bob.add(1)]);
  const digests = await ledger.digest();
  assert.equal(digests[0]?.postings, 1);
  await ledger.write([ada.subtract(1), bob.add(1)]);
  assert.deepEqual(await ledger.digest(digests.map(({ through }) => through)), digests);
});

test("a summary that is written after the database's clock was set back excludes credits that had already expired", async (t) => {
  const url = await server.createDatabase();
  let wall = NOON;
  const ledger = await openOnMovedClock(t, url, () => wall);
  await ledger.write([ada.add(10, 40), ada.add(1, 1)]);
  wall += DAY_MS;
  await ledger.write([ada.subtract(1)]);
  wall -= 1;
  await ledger.consumeFeed();
  assert.deepEqual(problemsOf(await ledger.audit()), []);
  const { endUsers } = await ledger.console.endUsers(1, { list: { by: 'activity' }, after: null, limit: 10 });
  assert.deepEqual(
    endUsers.map(({ balance }) => balance),
    [9],
  );
});

test('the audit of a database reports a posting whose instant is later than the clock of the ledger', async (t) => {
  const url = await server.createDatabase();
  const ledger = await openOnMovedClock(t, url, () => NOON);
  await ledger.write([ada.add(1), bob.add(1)]);
  await server.query(
    `UPDATE scrip.postings SET created_at = created_at + 1 WHERE end_user = '${ada.key.endUser}'`,
    new URL(url).pathname.slice(1),
  );
  const { findings } = await ledger.audit();
  assert(findings.some(({ message }) => message.endsWith('is later than the clock of the ledger')));
  assert(findings.every(({ user }) => user.endUser === ada.key.endUser));
});
