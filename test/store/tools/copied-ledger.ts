// Helpers for the tests of copies: ledgers to copy, a hash to compare two ledgers, and assertions about refused copies.

import assert from 'node:assert/strict';
import { type Database, databaseAt } from '../../../src/config.ts';
import { copyDatabase, openTools } from '../../../src/open-tools.ts';
import { createApiKey } from '../../../src/store/key-store.ts';
import { openPostgresSource } from '../../../src/store/postgres/tools/copying.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { openSqliteSource } from '../../../src/store/sqlite/tools/copying.ts';
import { CannotOpen } from '../../../src/store/store-fault.ts';
import { CopyStopped } from '../../../src/store/tools/copy.ts';
import { digestOf } from '../../../src/store/tools/copy-digest.ts';
import type { CopySource } from '../../../src/store/tools/ledger-copy.ts';
import { scrip } from '../../cli/scrip-command.ts';
import { type Audited, auditOf, EndUser, makeHistory, temporaryFile } from '../temporary-ledger.ts';

export const at = (url: string): Database => databaseAt('a test', url, {});
export const fileAt = (file: string): string => `file:${file}`;
export const quietly = () => {};

export async function makeLedger(): Promise<{ file: string; secret: string; revoked: string }> {
  const file = temporaryFile();
  const { tools, keys } = await openTools(at(fileAt(file)));
  const secret = await createApiKey(keys, { accountName: 'Lovelace Ltd', scope: 'write' });
  const revoked = await createApiKey(keys, { accountName: 'Ünïcode „GmbH“', scope: 'read' });
  await keys.revoke(2);
  await tools.close();
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

export async function auditAt(url: string): Promise<Audited> {
  const { tools } = await openTools(at(url), { create: false });
  return await auditOf(tools).finally(() => tools.close());
}

/** Each end user has two postings: an addition and a subtraction. */
export async function makeMany(file: string, endUsers: number): Promise<void> {
  const { keys, ledger } = await openSqliteStore(file);
  await createApiKey(keys, { accountName: 'Lovelace Ltd', scope: 'write' });
  for (let from = 0; from < endUsers; from += 500) {
    const users = Array.from({ length: Math.min(500, endUsers - from) }, (_, index) => new EndUser(1, from + index));
    await ledger.write(
      users.flatMap((user) => [user.add(100), user.subtract(7)]),
      () => {},
    );
  }
  await ledger.close();
}

export const copying = (from: string, to: string) => scrip(['copy', '--from', from, '--to', to]);

/** Asserts that a copy fails with an error whose message `scrip copy` prints without a stack trace. */
export async function assertRefused(from: string, to: string, says: RegExp): Promise<void> {
  await assert.rejects(copyDatabase(at(from), at(to), quietly), (error: Error) => {
    assert(
      error instanceof CopyStopped || error instanceof CannotOpen,
      `the error is for the operator: ${error.stack}`,
    );
    assert.match(error.message, says);
    return true;
  });
}

export async function assertCommandRefused(from: string, to: string, says: RegExp): Promise<void> {
  const { code, stdout, stderr } = await copying(from, to);
  assert.match(stderr.trimEnd().split('\n').at(-1) as string, says);
  assert.doesNotMatch(stderr, /\n {4}at /, 'no stack trace');
  assert.deepEqual([code, stdout], [1, '']);
}
