// Tests that other connections can write even though a busy writer holds the write lock nearly all the time.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { makeHistory, temporaryFile } from '../../../../test/store/temporary-ledger.ts';
import { deriveEvents } from '../../../events/derive.ts';
import { copyLedger } from '../../tools/copy.ts';
import { openSqliteAccountDatabase } from '../reads/account-database.ts';
import { openSqliteStore } from '../sqlite-store.ts';
import { openSqliteDestination, openSqliteSource } from '../tools/copying.ts';
import { openSqliteTools } from '../tools/ledger-tools.ts';

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

/**
 * A test fails if its writes wait for this many transactions of the busy writer. The writes usually wait for 5 to 20
 * transactions. With SQLite's own busy handler, the writes would time out after 250 transactions.
 */
const TRANSACTIONS_MAX = 120;

async function busyLedger(t: TestContext): Promise<{ file: string; counts: Int32Array }> {
  const file = temporaryFile();
  await (await openSqliteStore(file)).ledger.close();
  const counts = new Int32Array(new SharedArrayBuffer(8));
  const worker = new Worker(BUSY, { eval: true, workerData: { file, counts } });
  t.after(async () => {
    counts[1] = 1;
    await once(worker, 'exit');
  });
  await once(worker, 'message');
  return { file, counts };
}

async function assertTurns(t: TestContext, counts: Int32Array, writes: readonly (() => Promise<unknown>)[]) {
  let waited = 0;
  for (const write of writes) {
    const before = Atomics.load(counts, 0);
    while (Atomics.load(counts, 0) === before) await setTimeout(1);
    await write();
    waited += Atomics.load(counts, 0) - before;
  }
  t.diagnostic(`${waited} transactions of the busy writer`);
  assert(waited < TRANSACTIONS_MAX, `the other writes waited for ${waited} transactions`);
}

test('an API key can be created between the transactions of a busy writer', async (t) => {
  const { file, counts } = await busyLedger(t);
  const { tools, keys } = openSqliteTools(file, { create: false });
  t.after(() => tools.close());
  const make = (secret: string) => () => keys.create({ accountName: 'busy', scope: 'read', secret, name: '' });
  await assertTurns(t, counts, ['a', 'b', 'c', 'd', 'e'].map(make));
});

test('totals can be rebuilt between the transactions of a busy writer', async (t) => {
  const { file, counts } = await busyLedger(t);
  const { tools } = openSqliteTools(file, { create: false });
  t.after(() => tools.close());
  await assertTurns(t, counts, [() => tools.rebuildTotals()]);
});

test('the console can write between the transactions of a busy writer, with and without an explicit transaction', async (t) => {
  const { file, counts } = await busyLedger(t);
  await using database = openSqliteAccountDatabase(file);
  const { queries, alone } = database;
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

test('a copy can be written between the transactions of a busy writer', async (t) => {
  const from = temporaryFile();
  await makeHistory(from);
  const { file, counts } = await busyLedger(t);
  const [source, copy] = [openSqliteSource(from), openSqliteDestination(file)];
  t.after(() => Promise.all([source.close(), copy.close()]));
  await assertTurns(t, counts, [
    () =>
      copyLedger(
        source,
        async () => copy,
        deriveEvents,
        () => {},
      ),
  ]);
});
