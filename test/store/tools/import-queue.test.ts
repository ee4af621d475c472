// Tests the queue of import batches in a ledger file when an import is killed or the server cannot commit for a while.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { crashed, pluggedFile } from '../sqlite/sqlite-ledger.ts';
import { auditAt } from './copied-ledger.ts';
import { fileOf, grantQueued, newFile, rowsOf, run } from './imported-ledger.ts';

function queueLength(file: string): number {
  using db = new DatabaseSync(file);
  return db.prepare('SELECT * FROM import_batches').all().length;
}

test('if a server uses a ledger file, an import into this file continues when the server can commit again', async (t) => {
  const ledger = await newFile();
  const stores = await ledger.open();
  const { failCommits } = pluggedFile(fileOf(ledger));
  await failCommits?.(true);
  const running = run(ledger, rowsOf(600));
  while ((await stores.imports?.grantNext().catch((error: Error) => error.name)) !== 'StoreFault') await sleep(2);
  await failCommits?.(false);
  t.after(grantQueued(stores));
  assert.equal((await running).granted, 600);
  assert.equal((await auditAt(ledger.url)).postings, 600);
  assert.equal(queueLength(fileOf(ledger)), 0);
});

test('a batch that a killed import has queued can be granted within 10 seconds, but not later', async () => {
  const ledger = await newFile();
  const stores = await ledger.open();
  const rows = rowsOf(10);
  const running = run(ledger, rows);
  while (queueLength(fileOf(ledger)) === 0) await sleep(2);
  for (const [waitedMs, isGranted] of [
    [9_999, true],
    [10_000, false],
  ] as const) {
    const copy = await newFile(crashed(fileOf(ledger)));
    copy.wall += waitedMs;
    const { ledger: store, imports } = await copy.open();
    assert.deepEqual([await imports?.grantNext(), await imports?.grantNext()], [isGranted, false]);
    await store.close();
    copy.wall += 10_000;
    assert.equal((await run(copy, rows)).granted, 10);
    assert.equal((await auditAt(copy.url)).postings, 10);
    assert.equal(queueLength(fileOf(copy)), 0);
  }
  const stop = grantQueued(stores);
  await running.finally(stop);
});
