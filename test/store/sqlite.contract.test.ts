// The contract of the stores, kept by SQLite: with its writer in place, where the clock can be moved, and with its
// writer in a thread, as the service runs it.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ACCEPTED } from '../../src/ledger/command.ts';
import { InvalidCursor } from '../../src/store/account-reads.ts';
import type { WallClock } from '../../src/store/sqlite/ledger-clock.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { WriterOptions } from '../../src/store/sqlite/writer.ts';
import { type OpenedLedger, storeContract } from './store-contract.ts';
import { balanceOf, EndUser, openFor, SMALL_ANSWER_LIMITS, SMALL_LIMITS, temporaryFile } from './temporary-ledger.ts';

async function openLedger(wall?: WallClock, options: Partial<WriterOptions> = {}): Promise<OpenedLedger> {
  const folder = await mkdtemp(join(tmpdir(), 'scrip-test-'));
  const open = () => openSqliteStore(join(folder, 'scrip.db'), wall, options);
  return { store: await open(), reopen: open, remove: () => rm(folder, { recursive: true }) };
}

const SMALL = { limits: SMALL_LIMITS, answerLimits: SMALL_ANSWER_LIMITS };

storeContract('SQLite, its writer in place', ({ wall }) => openLedger(wall), 'movable');
storeContract('SQLite, posting and merging at every turn', ({ wall }) => openLedger(wall, SMALL), 'movable');
storeContract('SQLite, its writer in a thread', () => openLedger(), 'real');

test('a history goes on between transactions only, not in the middle of one', async (t) => {
  const store = await openFor(t, temporaryFile());
  const ada = new EndUser(1, 1);
  await store.write([ada.add(1), ada.add(1), ada.subtract(2), ada.add(1)]);
  const from = (posting: number) =>
    store.accountReads.history(ada.key, { from: String(posting), limit: 1, since: null });
  assert.deepEqual((await from(4)).transactions[0]?.amount, -2);
  assert.deepEqual((await from(2)).transactions[0]?.amount, 1);
  await assert.rejects(from(3), InvalidCursor);
  await assert.rejects(from(6), InvalidCursor);
});

test('batches that do not wait for each other are answered in order, each seeing those before', async (t) => {
  const store = await openFor(t, temporaryFile());
  const ada = new EndUser(1, 1);
  const answered: number[] = [];
  const batches = Array.from({ length: 50 }, (_, index) => [ada.add(index + 1), ada.subtract(index + 1)]);
  const answers = batches.map(async (batch, index) => {
    const outcomes = await store.write(batch);
    answered.push(index);
    return outcomes;
  });
  for (const outcomes of await Promise.all(answers)) assert.deepEqual(outcomes, [ACCEPTED, ACCEPTED]);
  assert.deepEqual(answered, [...batches.keys()]);
  assert.equal(await balanceOf(store, ada), 0);
});
