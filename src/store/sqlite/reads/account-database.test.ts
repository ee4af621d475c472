// Tests how transactions of the console and the webhooks wait for the writer and for the disk.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { sql } from 'kysely';
import { temporaryFile } from '../../../../test/store/temporary-ledger.ts';
import type { AccountQueries } from '../../account-database.ts';
import { connect, openLedgerFile } from '../file/ledger-file.ts';
import { openSqliteAccountDatabase } from './account-database.ts';

const NORMAL = 1;
const FULL = 2;

function ledgerFile(): string {
  const file = temporaryFile();
  openLedgerFile(file, true).close();
  return file;
}

async function synchronous(queries: AccountQueries): Promise<number | undefined> {
  const { rows } = await sql<{ synchronous: number }>`PRAGMA synchronous`.execute(queries);
  return rows[0]?.synchronous;
}

test('a transaction of the account database waits until it is on disk, unless it runs in `relaxed`', async () => {
  await using database = openSqliteAccountDatabase(ledgerFile());
  assert.equal(await database.alone(synchronous), FULL);
  assert.equal(await database.relaxed(synchronous), NORMAL);
  await assert.rejects(database.relaxed(() => Promise.reject(new Error('failed'))));
  assert.equal(await synchronous(database.queries), FULL);
});

test('if SQLite rolls back a transaction of the account database, the reason is reported', async () => {
  await using database = openSqliteAccountDatabase(ledgerFile());
  const failed = database.alone(async (queries) => {
    // SQLite does the same after some errors, such as a full disk.
    await sql`ROLLBACK`.execute(queries);
    throw new Error('the disk is full');
  });
  await assert.rejects(failed, { message: 'the disk is full' });
  assert.equal(await database.alone(synchronous), FULL);
});

test('while the writer holds the write lock, a transaction of the account database does not block the thread', async () => {
  const file = ledgerFile();
  const writer = connect(file);
  await using database = openSqliteAccountDatabase(file);
  writer.exec('BEGIN IMMEDIATE');
  // The writer runs in this thread, so it could not commit if the transaction blocked the thread.
  const released = setTimeout(10).then(() => writer.exec('COMMIT'));
  const tried = { subject_sha256: 'a'.repeat(64), attempts: 1, ends_at: 0 };
  await database.alone((queries) => queries.insertInto('console_attempts').values(tried).execute());
  assert.equal((await database.queries.selectFrom('console_attempts').selectAll().execute()).length, 1);
  await released;
  writer.close();
});
