// Tests the console while the database can be read but not written, as on a full disk.

import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { sql } from 'kysely';
import { Sessions } from '../../src/console/identity/sessions.ts';
import { HOUR_MS } from '../../src/ledger/instant.ts';
import { openLedgerFile } from '../../src/store/sqlite/file/ledger-file.ts';
import { openSqliteAccountDatabase } from '../../src/store/sqlite/reads/account-database.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';
import { newOwner, onOneStore } from './visitor.ts';

test('if the expiry of a session cannot be extended, the session stays valid until its expiry', async () => {
  const file = temporaryFile();
  openLedgerFile(file, true).close();
  await using database = openSqliteAccountDatabase(file);
  const { queries } = database;
  let now = 0;
  await queries.insertInto('accounts').values({ account: 1, name: 'Acme', created_at: now }).execute();
  const user = { id: 'u1', email: 'ada@example.com', password_hash: '', created_at: now };
  await queries.insertInto('console_users').values(user).execute();
  const member = { user_id: 'u1', account: 1, role: 'owner', created_at: now } as const;
  await queries.insertInto('console_members').values(member).execute();
  const sessions = new Sessions(database, () => now);
  const token = (await sessions.begin('u1', 'Firefox', null)) as string;
  await sql`PRAGMA query_only = TRUE`.execute(queries);
  now = 12 * HOUR_MS - 1;
  assert.equal((await sessions.viewer(token))?.userId, 'u1');
  now += 1;
  await sql`PRAGMA query_only = FALSE`.execute(queries);
  assert.equal(await sessions.viewer(token), null);
});

onOneStore('failing writes', (start) => {
  test('if signing out fails, the page shows that the user is still signed in, and the log contains the reason', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const end = mock.method(Sessions.prototype, 'end', () => Promise.reject(new Error('the disk is full')));
    const { status, text } = await owner.post('/console/sign-out');
    end.mock.restore();
    assert.equal(status, 503);
    assert.match(text, /<body class="signed-in">[\s\S]*may or may not have been saved\. Try again in a moment\./);
    assert.doesNotMatch(text, /Nothing was changed|Sign in/);
    assert.match(scrip.log.join(''), /the disk is full/);
    assert(await owner.isSignedIn());
  });
});
