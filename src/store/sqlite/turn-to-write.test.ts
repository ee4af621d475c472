// Somebody who wants to write beside a writer that hardly ever lets go of the file.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { temporaryFile } from '../../../test/store/temporary-ledger.ts';
import { openSqliteStore, openSqliteStoreBeside } from './sqlite-store.ts';

/** Writes for 20 ms at a time, and begins again at once. Counts its transactions. */
const BUSY = `
  const { DatabaseSync } = require('node:sqlite');
  const { parentPort, workerData: { file, counts } } = require('node:worker_threads');
  const db = new DatabaseSync(file, { timeout: 5_000 });
  const update = db.prepare('UPDATE clock SET sequence = sequence');
  while (counts[1] === 0) {
    db.exec('BEGIN IMMEDIATE');
    update.run();
    for (const until = performance.now() + 20; performance.now() < until; );
    db.exec('COMMIT');
    if (Atomics.add(counts, 0, 1) === 0) parentPort.postMessage('begun');
  }
  db.close();`;

const KEYS = 5;
/** Of the busy writer, for each key: SQLite by itself gives up after 250. */
const TRANSACTIONS_MAX = 80;

async function busyWriter(t: TestContext, file: string): Promise<Int32Array> {
  const counts = new Int32Array(new SharedArrayBuffer(8));
  const worker = new Worker(BUSY, { eval: true, workerData: { file, counts } });
  t.after(async () => {
    counts[1] = 1;
    await once(worker, 'exit');
  });
  await once(worker, 'message');
  return counts;
}

test('a key is made in a gap that a busy writer leaves', async (t) => {
  const file = temporaryFile();
  await (await openSqliteStore(file)).close();
  const beside = openSqliteStoreBeside(file);
  t.after(() => beside.close());
  const counts = await busyWriter(t, file);
  const before = Atomics.load(counts, 0);
  for (let key = 0; key < KEYS; key++)
    await beside.apiKeys.create({ accountName: 'busy', scope: 'read', secret: `secret ${key}`, name: '' });
  const waited = Atomics.load(counts, 0) - before;
  t.diagnostic(`${waited} transactions of the busy writer for ${KEYS} keys`);
  assert(waited < KEYS * TRANSACTIONS_MAX, `${waited} transactions went by`);
});
