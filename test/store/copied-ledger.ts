// What the tests of copying share: ledgers to copy, what tells whether two are the same, and how a copy is refused.

import assert from 'node:assert/strict';
import { copyDatabase, createApiKey, openBeside } from '../../src/app.ts';
import { type Database, databaseAt } from '../../src/config.ts';
import { CopyStopped } from '../../src/store/copy.ts';
import { digestOf } from '../../src/store/copy-digest.ts';
import type { CopySource } from '../../src/store/ledger-copy.ts';
import { openPostgresSource } from '../../src/store/postgres/copying.ts';
import { openSqliteSource } from '../../src/store/sqlite/copying.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { CannotOpen } from '../../src/store/store.ts';
import { scrip } from './scrip-command.ts';
import { EndUser, makeHistory, temporaryFile } from './temporary-ledger.ts';

export const at = (url: string): Database => databaseAt('a test', url, {});
export const fileAt = (file: string): string => `file:${file}`;
export const quietly = () => {};

/** A file with all kinds of history, two accounts, a key that works and one that is revoked. */
export async function makeLedger(): Promise<{ file: string; secret: string; revoked: string }> {
  const file = temporaryFile();
  const store = await openBeside(at(fileAt(file)));
  const secret = await createApiKey(store, { accountName: 'Lovelace Ltd', scope: 'write' });
  const revoked = await createApiKey(store, { accountName: 'Ünïcode „GmbH“', scope: 'read' });
  await store.apiKeys.revoke(2);
  await store.close();
  await makeHistory(file);
  return { file, secret, revoked };
}

export async function openSource(url: string): Promise<CopySource> {
  const database = at(url);
  return database.kind === 'file' ? openSqliteSource(database.path) : openPostgresSource(database);
}

export async function sha256Of(url: string): Promise<string> {
  const source = await openSource(url);
  try {
    return (await digestOf(source, quietly)).sha256;
  } finally {
    await source.close();
  }
}

/** Account after account with `each` end users of 2 postings: an addition and a subtraction. */
export async function makeMany(file: string, endUsers: number): Promise<void> {
  const store = await openBeside(at(fileAt(file)));
  await createApiKey(store, { accountName: 'Lovelace Ltd', scope: 'write' });
  await store.close();
  const writing = await openSqliteStore(file);
  for (let from = 0; from < endUsers; from += 500) {
    const users = Array.from({ length: 500 }, (_, index) => new EndUser(1, from + index));
    await writing.write(users.flatMap((user) => [user.add(100), user.subtract(7)]));
  }
  await writing.close();
}

export const copying = (from: string, to: string) => scrip(['copy', '--from', from, '--to', to]);

/** In this process: what the command makes of an error of these classes is its message alone. */
export async function assertRefused(from: string, to: string, says: RegExp): Promise<void> {
  await assert.rejects(copyDatabase(at(from), at(to), quietly), (error: Error) => {
    assert(error instanceof CopyStopped || error instanceof CannotOpen, `a sentence, not a stack: ${error.stack}`);
    assert.match(error.message, says);
    return true;
  });
}

export async function assertCommandRefused(from: string, to: string, says: RegExp): Promise<void> {
  const { code, stdout, stderr } = await copying(from, to);
  assert.match(stderr.trimEnd().split('\n').at(-1) as string, says);
  assert.doesNotMatch(stderr, /\n {4}at /, 'no stack');
  assert.deepEqual([code, stdout], [1, '']);
}
