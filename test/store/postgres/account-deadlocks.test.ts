// Tests that deadlocks between transactions on accounts and webhooks do not fail these transactions. On Citus, even
// transactions that write different rows can deadlock.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPostgresAccountDatabase } from '../../../src/store/postgres/reads/account-database.ts';
import { openFor } from './postgres-ledger.ts';
import { PostgresServer } from './postgres-server.ts';

test('if two transactions of the account database deadlock, both succeed', async (t) => {
  const server = await PostgresServer.start({ fsync: 'off', deadlock_timeout: '20ms' });
  t.after(() => server.remove());
  const url = await server.createDatabase();
  await openFor(t, url);
  await using database = openPostgresAccountDatabase(url);
  const attempt = (subject_sha256: string) => ({ subject_sha256, attempts: 0, ends_at: 1 });
  const subjects = ['a', 'b'].map((letter) => letter.repeat(64)) as [string, string];
  await database.queries.insertInto('console_attempts').values(subjects.map(attempt)).execute();

  let calls = 0;
  const bothHoldALock = Promise.withResolvers<void>();
  const countIn = (order: readonly [string, string]) =>
    database.relaxed(async (queries) => {
      const count = (subject: string) =>
        queries
          .updateTable('console_attempts')
          .set(({ eb }) => ({ attempts: eb('attempts', '+', 1) }))
          .where('subject_sha256', '=', subject)
          .execute();
      await count(order[0]);
      calls += 1;
      if (calls === 2) bothHoldALock.resolve();
      await bothHoldALock.promise;
      await count(order[1]);
    });
  await Promise.all([countIn(subjects), countIn([subjects[1], subjects[0]])]);

  assert.equal(calls, 3, 'one of the two transactions ran again');
  const rows = await database.queries.selectFrom('console_attempts').select('attempts').execute();
  assert.deepEqual(rows, [{ attempts: 2 }, { attempts: 2 }]);
});
