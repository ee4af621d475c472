// Tests the creation of ledger files: missing folders, hard links, and several processes at once.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs, { existsSync, linkSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { makeFolder } from '../../../../src/store/sqlite/file/ledger-file.ts';
import { openSqliteStore } from '../../../../src/store/sqlite/sqlite-store.ts';
import { backUpFile } from '../../../../src/store/sqlite/tools/backup.ts';
import { openSqliteTools } from '../../../../src/store/sqlite/tools/ledger-tools.ts';
import { CannotOpen } from '../../../../src/store/store-fault.ts';
import { otherProcess } from '../../outside.ts';
import { ROUNDS, untilRound } from '../../rounds.ts';
import { ACCEPTED, EndUser, temporaryFile, temporaryFolder } from '../../temporary-ledger.ts';
import { openFor } from '../sqlite-ledger.ts';

async function serve(file: string): Promise<void> {
  await (await openSqliteStore(file)).ledger.close();
}

async function operate(file: string): Promise<void> {
  await openSqliteTools(file, { create: true }).tools.close();
}

async function refusalOf(work: Promise<unknown>): Promise<string> {
  const refusal = await work.catch((error: unknown) => error);
  assert(refusal instanceof CannotOpen, `the ledger is refused with a reason, not ${refusal}`);
  assert.match(refusal.message, /^[A-Z/][^\n]*\.$/, 'the message is one sentence on one line');
  return refusal.message;
}

test("a ledger file is refused if its folder does not exist, because the folder's disk might not be mounted", async () => {
  const file = join(temporaryFolder(), 'mount', 'scrip.db');
  for (const open of [serve, operate]) {
    assert.match(await refusalOf(open(file)), /^The folder .* does not exist: mount its disk, or add --create/);
    assert(!existsSync(dirname(file)), 'nothing is created');
  }
  mkdirSync(dirname(file));
  await serve(file);
});

test('when Scrip creates the folders of a ledger file, it syncs the parent of each new folder', (t) => {
  const parent = temporaryFolder();
  const opened = t.mock.method(fs, 'openSync');
  const synced = t.mock.method(fs, 'fsyncSync');
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  makeFolder(join(parent, 'a', 'b', 'c', 'scrip.db'));
  const folders = opened.mock.calls.map(({ arguments: [path] }) => path);
  assert.deepEqual(folders, [join(parent, 'a', 'b'), join(parent, 'a'), parent]);
  assert.equal(synced.mock.callCount(), folders.length);
});

test('a ledger file is refused if its folder is a file', async () => {
  const file = temporaryFile();
  writeFileSync(file, 'a file');
  assert.match(await refusalOf(serve(join(file, 'scrip.db'))), /^The folder .* does not exist/);
});

test('a ledger file with a second hard link is refused under both names, whether or not a server has the file open', async (t) => {
  const file = temporaryFile();
  const link = join(temporaryFolder(), 'link.db');
  const beside = join(dirname(file), 'beside.db');
  const ledger = await openFor(t, file);
  assert.deepEqual(await ledger.results([new EndUser(1, 1).add(1)]), [ACCEPTED]);
  linkSync(file, link);
  for (const name of [file, link]) {
    for (const open of [serve, operate]) assert.match(await refusalOf(open(name)), /has 2 hard links, .*stop Scrip/);
    assert.match(await refusalOf(backUpFile(name, join(temporaryFolder(), 'backup.db'), () => {})), /2 hard links/);
  }
  linkSync(file, beside);
  assert.match(await refusalOf(serve(file)), /has 3 hard links \(in the same folder: beside\.db\)/);
  assert.deepEqual(
    await ledger.results([new EndUser(1, 1).add(1)]),
    [ACCEPTED],
    'the running server still accepts writes',
  );
  const { cannotOpen } = await otherProcess(t, 'hold', link).answer();
  assert(cannotOpen, 'another process is refused');
  await ledger.close();
  for (const open of [serve, operate]) assert.match(await refusalOf(open(link)), /has 3 hard links/);
  for (const name of [link, beside]) rmSync(name);
  await serve(file);
});

/** Holds the lock of a new ledger for 300 ms, as a `scrip` command does while it creates the ledger. */
const CREATING = `
  const { DatabaseSync } = require('node:sqlite');
  const { parentPort, workerData } = require('node:worker_threads');
  const lock = new DatabaseSync(workerData + '.lock');
  lock.exec('BEGIN EXCLUSIVE');
  parentPort.postMessage('locked');
  setTimeout(() => lock.close(), 300);`;

test('a server or a `scrip` command waits until another `scrip` command has created the ledger file', async () => {
  for (const open of [serve, operate]) {
    const file = temporaryFile();
    const worker = new Worker(CREATING, { eval: true, workerData: file });
    const ended = once(worker, 'exit');
    await once(worker, 'message');
    await open(file);
    await ended;
  }
});

test('a server and a `scrip` command that create the same ledger file at the same instant both succeed', async (t) => {
  const file = temporaryFile();
  const other = otherProcess(t, 'createKeys', file);
  const { firstAt } = await other.answer();
  for (let round = 0; round < ROUNDS; round++) {
    // The delay varies, so that both processes sometimes create the ledger in the same millisecond.
    await untilRound(firstAt, round, (round % 16) - 6);
    await serve(`${file}.${round}`);
  }
  assert.deepEqual(await other.answer(), { failures: [] });
});
