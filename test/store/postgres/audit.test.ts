// What the audit of a database says of rows that were changed by hand, and that it reports nothing that is in order: the
// clock of the database may be set back while processes write.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AMOUNT_MAX } from '../../../src/ledger/amount.ts';
import type { Finding } from '../../../src/ledger/audit.ts';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import { scrip } from '../../cli/scrip-command.ts';
import { EndUser, NOON, problemsOf } from '../temporary-ledger.ts';
import { TestLedger } from '../test-ledger.ts';
import { openOnMovedClock, pluggedDatabase } from './postgres-ledger.ts';
import { PostgresServer } from './postgres-server.ts';

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
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

/** A ledger of two end users, whose tables have lost their CHECKs. */
async function withoutChecks(work: (ledger: Edited) => Promise<void>): Promise<void> {
  const url = await server.createDatabase();
  const run = (sql: string) => server.query(sql, new URL(url).pathname.slice(1));
  const ledger = await TestLedger.open(async () => pluggedDatabase(url));
  try {
    await ledger.write([ada.startCycle(100), ada.subtract(1), bob.add(AMOUNT_MAX)]);
    await ledger.consumeFeed();
    assert.deepEqual(problemsOf(await ledger.audit()), []);
    await run(WITHOUT_CHECKS);
    await work({ ledger, url, run });
  } finally {
    await ledger.close();
  }
}

const PAST: readonly (readonly [table: string, column: string, value: string, invariant: Finding['invariant']])[] = [
  // The first integer past 2^53−1, the first that a number does not hold, the largest, and below zero as well.
  ['cycles', 'remaining', '9007199254740992', 1],
  ['cycles', 'remaining', '9007199254740993', 1],
  ['cycles', 'remaining', '9223372036854775807', 1],
  ['cycles', 'remaining', '-9007199254740993', 1],
  ['cycles', 'amount', '9007199254740993', 1],
  ['cycles', 'starts_at', '9007199254740993', 4],
  ['cycles', 'ends_at', '9007199254740993', 4],
  ['postings', 'amount', '9007199254740993', 1],
  ['postings', 'created_at', '9007199254740993', 4],
  ['postings', 'expires_at', '9007199254740993', 4],
];

for (const [table, column, value, invariant] of PAST) {
  test(`The audit of a database reports a ${column} of ${value} in ${table}, and names the end user`, () =>
    withoutChecks(async ({ ledger, run }) => {
      await run(`UPDATE scrip.${table} SET ${column} = ${value} WHERE end_user = '${ada.key.endUser}'`);
      const { findings } = await ledger.audit();
      assert(findings.some((finding) => finding.invariant === invariant));
      for (const { user } of findings) assert.deepEqual(user, ada.key);
    }));
}

/** Rows that are changed by hand, and what the audit says of them. */
const TAMPERED: readonly (readonly [what: string, sql: string, sentence: RegExp])[] = [
  ['a total of a day', 'UPDATE scrip.daily_totals SET credits = credits + 1', /^the totals of account 1 \(.*day/],
  ['a total of an hour', 'DELETE FROM scrip.expiry_totals', /^the totals of account 1 \(hour \d+\) lack \d+ credits/],
  ['a cycle without postings', 'UPDATE scrip.cycles SET account = 7', /^2 cycles are stored, and 0 belong to/],
  [
    'a snapshot',
    `INSERT INTO scrip.snapshots SELECT bucket, account, end_user, transaction_id, '[]' FROM scrip.postings`,
    /^the snapshot of account 1, end user .* is not what its postings say$/,
  ],
  [
    'a clock at no instant',
    'UPDATE scrip.clock SET at = 9007199254740993',
    /^the clock of the ledger is at no instant$/,
  ],
  ['a clock that is missing', 'DELETE FROM scrip.clock', /^the clock of the ledger is missing$/],
];

for (const [what, sql, sentence] of TAMPERED) {
  test(`The audit of a database reports ${what} that was changed by hand`, () =>
    withoutChecks(async ({ ledger, run }) => {
      await run(sql);
      const { store } = await ledger.audit();
      assert(
        store.some((fault) => sentence.test(fault)),
        store.join('\n'),
      );
    }));
}

test('`scrip verify` says which end user has a number past 2^53−1 in a database, and ends with 1', () =>
  withoutChecks(async ({ url, run }) => {
    const environment = { DATABASE_URL: url, DATABASE_ACCEPT_UNSAFE: 'yes' };
    const whole = await scrip(['verify'], environment);
    assert.deepEqual([whole.code, whole.stderr], [0, ''], whole.stdout);
    await run(`UPDATE scrip.cycles SET remaining = 9007199254740993 WHERE end_user = '${ada.key.endUser}'`);
    const { code, stdout, stderr } = await scrip(['verify'], environment);
    assert.deepEqual([code, stderr], [1, '']);
    assert.match(stdout, new RegExp(`^invariant 1, account 1, end user ${ada.key.endUser}: `));
    assert.match(stdout, /Verification failed: \d+ problems found\. 2 end users and 3 postings checked\.\n$/);
  }));

test('A posting that was written before the database clock was set back is no finding of another process', async (t) => {
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

test('The audit of a database reports a posting that is later than any process has seen', async (t) => {
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
