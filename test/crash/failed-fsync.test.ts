// After a failed fsync, processes can still read data from the write-ahead log, although the data never reached the
// disk. Scrip must therefore copy this data into the ledger file when it opens a ledger.

import assert from 'node:assert/strict';
import { copyFileSync, existsSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { otherProcess } from '../store/outside.ts';
import { openFor } from '../store/sqlite/sqlite-ledger.ts';
import { balanceOf, EndUser, temporaryFile } from '../store/temporary-ledger.ts';

const ada = new EndUser(1, 0);

test('opening a ledger copies the write-ahead log of a killed process into the ledger file and truncates the log', async (t) => {
  const file = temporaryFile();
  const writing = otherProcess(t, 'write', file);
  while ((await writing.answer()).times < 20);
  await writing.kill();
  const left = statSync(`${file}-wal`).size;
  await openFor(t, file);
  assert(statSync(`${file}-wal`).size < left / 2, 'the log contains only what Scrip wrote when it opened the ledger');
  const alone = temporaryFile();
  copyFileSync(file, alone);
  assert(!existsSync(`${alone}-wal`));
  const balance = await balanceOf(await openFor(t, alone), ada);
  assert(balance >= 2 * 20, `the ledger file alone contains all acknowledged writes: ${balance}`);
});

test('a ledger opens and accepts writes even if a reader prevents Scrip from truncating the write-ahead log of a killed process', async (t) => {
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
  const [outcome] = await ledger.write([ada.add(5)]);
  assert.equal(outcome?.refused, null);
  assert.equal(await balanceOf(ledger, ada), before + 5);
});
