// After an fsync that failed, the kernel may show a process what never reached the disk. Found by `npm run power-loss`,
// which recorded such a process, killed it, recorded the next one, and took the power away from that.

import assert from 'node:assert/strict';
import { copyFileSync, existsSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { ACCEPTED } from '../../src/ledger/command.ts';
import { otherProcess } from '../store/outside.ts';
import { balanceOf, EndUser, openFor, temporaryFile } from '../store/temporary-ledger.ts';

test('a start writes anew what the log of a killed process holds, and begins the log again', async (t) => {
  const file = temporaryFile();
  const writing = otherProcess(t, 'write', file);
  while ((await writing.answer()).times < 20);
  await writing.kill();
  const left = statSync(`${file}-wal`).size;
  await openFor(t, file);
  assert(statSync(`${file}-wal`).size < left / 2, 'the log holds no more than the start has written');
  const alone = temporaryFile();
  copyFileSync(file, alone);
  assert(!existsSync(`${alone}-wal`));
  const balance = await balanceOf(await openFor(t, alone), new EndUser(1, 0));
  assert(balance >= 2 * 20, `what was answered is in the file itself: ${balance}`);
});

test('a start goes on though a reader holds on to the log', async (t) => {
  const file = temporaryFile();
  const writing = otherProcess(t, 'write', file);
  while ((await writing.answer()).times < 20);
  const reader = new DatabaseSync(file);
  t.after(() => reader.close());
  reader.exec('BEGIN; SELECT count(*) FROM postings');
  await writing.answer();
  await writing.kill();
  const store = await openFor(t, file);
  const user = new EndUser(1, 0);
  const before = await balanceOf(store, user);
  assert.deepEqual(await store.write([user.add(5)]), [ACCEPTED]);
  assert.equal(await balanceOf(store, user), before + 5);
});
