// What the audit of a database says of rows that somebody has changed by hand, and that it takes nothing for broken which
// is not: the clock of the database may be set back while processes write.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AMOUNT_MAX } from '../../src/ledger/amount.ts';
import type { Finding } from '../../src/ledger/audit.ts';
import { DAY_MS } from '../../src/ledger/instant.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import type { Store } from '../../src/store/store.ts';
import { scrip } from '../store/scrip-command.ts';
import { auditOf, EndUser, NOON } from '../store/temporary-ledger.ts';
import { OPTIONS, openOnMovedClock } from './moved-clock.ts';
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
  readonly store: Store;
  readonly url: string;
  run(sql: string): Promise<unknown>;
}

/** A ledger of two end users, whose tables have lost their CHECKs. */
async function withoutChecks(work: (ledger: Edited) => Promise<void>): Promise<void> {
  const url = await server.createDatabase();
  const run = (sql: string) => server.query(sql, new URL(url).pathname.slice(1));
  const store = await openPostgresStore({ ...OPTIONS, url });
  try {
    await store.write([ada.startCycle(100), ada.subtract(1), bob.add(AMOUNT_MAX)]);
    await run(WITHOUT_CHECKS);
    await work({ store, url, run });
  } finally {
    await store.close();
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
  test(`${column} of ${value} in ${table} is a finding that names the end user`, () =>
    withoutChecks(async ({ store, run }) => {
      await run(`UPDATE scrip.${table} SET ${column} = ${value} WHERE end_user = '${ada.key.endUser}'`);
      const { findings, store: broken } = await auditOf(store);
      // The totals differ as well, where they are made of what was changed.
      assert.deepEqual(
        broken.filter((sentence) => !sentence.startsWith('the totals of account')),
        [],
      );
      assert(findings.length > 0);
      for (const finding of findings) {
        assert.deepEqual(finding.user, ada.key);
        assert.equal(finding.invariant, invariant);
        assert.match(finding.message, new RegExp(`^(cycle|transaction) [0-9a-f-]{36} .*${column} past 2\\^53−1$`));
      }
    }));
}

test('verify says where a number past 2^53−1 is, and ends with 1', () =>
  withoutChecks(async ({ url, run }) => {
    const environment = { DATABASE_URL: url, DATABASE_ACCEPT_UNSAFE: 'yes' };
    const whole = await scrip(['verify'], environment);
    assert.deepEqual([whole.code, whole.stderr], [0, ''], whole.stdout);
    await run(`UPDATE scrip.cycles SET remaining = 9007199254740993 WHERE end_user = '${ada.key.endUser}'`);
    const { code, stdout, stderr } = await scrip(['verify'], environment);
    assert.deepEqual([code, stderr], [1, '']);
    assert.match(stdout, new RegExp(`^invariant 1, account 1, end user ${ada.key.endUser}: cycle .* remaining past 2`));
    assert.match(stdout, /The ledger is broken in 1 place: 2 end users and 3 postings checked\.\n$/);
  }));

test('a clock that is at no instant is reported', () =>
  withoutChecks(async ({ store, run }) => {
    await run('UPDATE scrip.clock SET at = 9007199254740993');
    assert.deepEqual(await auditOf(store), { findings: [], store: ['the clock of the ledger is at no instant'] });
  }));

test('what was written before the clock was set back is not reported by another process', async (t) => {
  const url = await server.createDatabase();
  let wall = NOON;
  const store = await openOnMovedClock(url, () => wall);
  const other = await openOnMovedClock(url, () => wall);
  t.after(() => Promise.all([store.close(), other.close()]));
  await other.write([bob.add(1)]);
  for (let round = 0; round < 3; round++) {
    wall += DAY_MS;
    await store.write([ada.add(1)]);
    wall -= DAY_MS - 1;
    assert.deepEqual(await auditOf(other), { findings: [], store: [] });
  }
});

test('what is later than any process has seen is reported', async (t) => {
  const url = await server.createDatabase();
  const store = await openOnMovedClock(url, () => NOON);
  t.after(() => store.close());
  await store.write([ada.add(1), bob.add(1)]);
  await server.query(
    `UPDATE scrip.postings SET created_at = created_at + 1 WHERE end_user = '${ada.key.endUser}'`,
    new URL(url).pathname.slice(1),
  );
  const { findings } = await auditOf(store);
  assert(findings.some(({ message }) => message.endsWith('is later than the clock of the ledger')));
  assert(findings.every(({ user }) => user.endUser === ada.key.endUser));
});
