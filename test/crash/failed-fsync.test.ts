// After a failed fsync, a kernel may show processes data that never reached the disk. Opening a ledger must not build
// on it. `npm run power-loss` found this: it recorded such a process, killed it, recorded the next one, and cut the
// power.

import assert from 'node:assert/strict';
import { copyFileSync, existsSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { ACCEPTED } from '../../src/ledger/command.ts';
import { otherProcess } from '../store/outside.ts';
import { openFor } from '../store/sqlite/sqlite-ledger.ts';
import { balanceOf, EndUser, temporaryFile } from '../store/temporary-ledger.ts';

const ada = new EndUser(1, 0);

test('opening a ledger writes the log of a killed process to the file once more, and truncates the log', async (t) => {
  const file = temporaryFile();
  const writing = otherProcess(t, 'write', file);
  while ((await writing.answer()).times < 20);
  await writing.kill();
  const left = statSync(`${file}-wal`).size;
  await openFor(t, file);
  assert(statSync(`${file}-wal`).size < left / 2, 'the log has only what opening the ledger has written');
  const alone = temporaryFile();
  copyFileSync(file, alone);
  assert(!existsSync(`${alone}-wal`));
  const balance = await balanceOf(await openFor(t, alone), ada);
  assert(balance >= 2 * 20, `all acknowledged writes are in the file itself: ${balance}`);
});

test('a ledger opens and writes while a reader keeps the log of a killed process from being truncated', async (t) => {
  const file = temporaryFile();
  const writing = otherProcess(t, 'write', file);
  while ((await writing.answer()).times < 20);
  const reader = new DatabaseSync(file);
  t.after(() => reader.close());
  reader.exec('BEGIN; SELECT count(*) FROM postings');
  await writing.answer();
  await writing.kill();
  const ledger = await openFor(t, file);
  const before = await balanceOf(ledger, ada);
  assert.deepEqual(await ledger.write([ada.add(5)]), [ACCEPTED]);
  assert.equal(await balanceOf(ledger, ada), before + 5);
});
