// Somebody who wants to write beside a writer that hardly ever lets go of the file.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { makeHistory, temporaryFile } from '../../../test/store/temporary-ledger.ts';
import { copyLedger } from '../copy.ts';
import { openSqliteConsoleDatabase } from './console-database.ts';
import { openSqliteDestination, openSqliteSource } from './copying.ts';
import { openSqliteStore, openSqliteStoreBeside } from './sqlite-store.ts';

/** Writes for 20 ms at a time, and begins again after 0.3 ms, or as soon as it can. Counts its transactions. */
const BUSY = `
  const { DatabaseSync } = require('node:sqlite');
  const { parentPort, workerData: { file, counts } } = require('node:worker_threads');
  const db = new DatabaseSync(file, { timeout: 0 });
  const last = (ms) => { for (const until = performance.now() + ms; performance.now() < until; ); };
  while (counts[1] === 0) {
    try {
      db.exec('BEGIN IMMEDIATE');
    } catch {
      continue;
    }
    if (Atomics.add(counts, 0, 1) === 0) parentPort.postMessage('begun');
    last(20);
    db.exec('UPDATE clock SET sequence = sequence; COMMIT');
    last(0.3);
  }
  db.close();`;

/** Of the busy writer, meanwhile: 5 to 20 go by. Of SQLite waiting by itself it is hundreds, and it gives up after 250 for one. */
const TRANSACTIONS_MAX = 120;

/** A ledger with a busy writer. */
async function busyLedger(t: TestContext): Promise<{ file: string; counts: Int32Array }> {
  const file = temporaryFile();
  await (await openSqliteStore(file)).close();
  const counts = new Int32Array(new SharedArrayBuffer(8));
  const worker = new Worker(BUSY, { eval: true, workerData: { file, counts } });
  t.after(async () => {
    counts[1] = 1;
    await once(worker, 'exit');
  });
  await once(worker, 'message');
  return { file, counts };
}

/** Writes one after another, each begun while the busy writer is writing. */
async function assertTurns(t: TestContext, counts: Int32Array, writes: readonly (() => Promise<unknown>)[]) {
  let waited = 0;
  for (const write of writes) {
    const before = Atomics.load(counts, 0);
    while (Atomics.load(counts, 0) === before) await setTimeout(1);
    await write();
    waited += Atomics.load(counts, 0) - before;
  }
  t.diagnostic(`${waited} transactions of the busy writer`);
  assert(waited < TRANSACTIONS_MAX, `${waited} transactions went by`);
}

test('a key is made in a gap that a busy writer leaves', async (t) => {
  const { file, counts } = await busyLedger(t);
  const beside = openSqliteStoreBeside(file);
  t.after(() => beside.close());
  const make = (secret: string) => () =>
    beside.apiKeys.create({ accountName: 'busy', scope: 'read', secret, name: '' });
  await assertTurns(t, counts, ['a', 'b', 'c', 'd', 'e'].map(make));
});

test('the console writes in such a gap, in a transaction and without', async (t) => {
  const { file, counts } = await busyLedger(t);
  const { queries, alone, close } = openSqliteConsoleDatabase(file);
  t.after(close);
  const tried = { subject_sha256: 'a'.repeat(64), attempts: 1, ends_at: 0 };
  const table = 'console_attempts';
  await assertTurns(t, counts, [
    () => queries.insertInto(table).values(tried).execute(),
    () => alone((together) => together.updateTable(table).set({ attempts: 2 }).execute()),
    () => queries.updateTable(table).set({ attempts: 3 }).returning('attempts').execute(),
    () => alone((together) => together.updateTable(table).set({ attempts: 4 }).returning('attempts').execute()),
    () => queries.deleteFrom(table).where('attempts', '=', 4).execute(),
  ]);
  assert.deepEqual(await queries.selectFrom(table).selectAll().execute(), []);
});

test('a copy is written in such gaps', async (t) => {
  const from = temporaryFile();
  await makeHistory(from);
  const { file, counts } = await busyLedger(t);
  const [source, copy] = [openSqliteSource(from), openSqliteDestination(file)];
  t.after(() => Promise.all([source.close(), copy.close()]));
  await assertTurns(t, counts, [() => copyLedger(source, copy, () => {})]);
});
