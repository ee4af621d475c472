// Tests a server that is under load while its disk is full, and a copy to a full disk. The tests that mount a small
// file system need root; the other tests limit the size of files.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { add, ledgerAt, scrip, serve } from '../cli/scrip-command.ts';
import { control, effort } from '../effort.ts';
import { newKey } from '../load/server-process.ts';
import { temporaryFile, temporaryFolder } from '../store/temporary-ledger.ts';
import { makeMany } from '../store/tools/copied-ledger.ts';
import { FailingServer, type Failure, type Seen, summaryOf } from './failing-server.ts';
import { randomFrom } from './randomness.ts';

const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);
const ROOM_BYTES = 2 ** 16;
const DISK_BYTES = 2 ** 24;
/** By this time, an idle server has flushed all pending balances and has derived all events. */
const FLUSHED_MS = 4_000;
const LASTS_MS = effort(500, 1_500);
/**
 * The broken writer of the control acknowledges even failed writes, so the test does not require an error response. If
 * the writer notices that a posting is missing, the writer stops permanently, so the test must not wait long for writes
 * to resume.
 */
const CONTROL = { lastsMs: 1_500, patienceMs: 5_000, mustFail: false };

const NO_PRLIMIT = spawnSync('prlimit', ['--version']).status !== 0 && 'prlimit (util-linux) is not installed';
const NOT_ROOT = (process.platform !== 'linux' || process.getuid?.() !== 0) && 'only root may mount a file system';

function filesMayNotGrow(file: string): Failure {
  const limit = (pid: number, bytes: string) => execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`]);
  return {
    name: 'a file size limit',
    lastsMs: LASTS_MS,
    mustFail: true,
    async breakDisk({ pid }) {
      limit(pid, String(statSync(`${file}-wal`).size + ROOM_BYTES));
      return async () => void limit(pid, 'unlimited');
    },
  };
}

function diskIsFull(folder: string): Failure {
  return {
    name: 'a full disk',
    lastsMs: LASTS_MS,
    mustFail: true,
    async breakDisk() {
      const ballast = join(folder, 'ballast');
      const free = Number(execFileSync('df', ['--output=avail', '-B1', folder], { encoding: 'utf8' }).split('\n')[1]);
      try {
        writeFileSync(ballast, Buffer.alloc(Math.max(0, free - ROOM_BYTES)));
      } catch (error) {
        // If the server has written more than ROOM_BYTES since `df` ran, the disk has no room for this whole file.
        assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
      }
      return async () => rmSync(ballast);
    },
  };
}

function smallDisk(t: TestContext, bytes = DISK_BYTES): string {
  const folder = join(temporaryFolder(), 'disk');
  mkdirSync(folder);
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', folder]);
  t.after(() => execFileSync('umount', ['-l', folder]));
  return folder;
}

async function seenUnder(t: TestContext, file: string, failure: Failure, weakness: 'deaf' | null): Promise<Seen> {
  const server = new FailingServer(file, randomFrom(SEED), weakness);
  t.after(() => server.end('SIGKILL'));
  await server.start();
  const seen = await server.under(failure, weakness === null ? 'SIGTERM' : null);
  t.diagnostic(`SEED=${SEED} ${failure.name}: ${summaryOf(seen)}`);
  return seen;
}

function assertKept({ answers, lost, wrong, reads }: Seen): void {
  assert.deepEqual(wrong, []);
  assert.equal(lost, 0, 'no acknowledged write is lost');
  assert(reads > 0, 'reads succeed during the failure');
  assert.equal(answers.get('Internal') ?? 0, 0, 'a full disk violates no invariant');
  assert.equal(answers.get('none') ?? 0, 0, 'every request has a response');
}

test('a server whose files reach a size limit loses no acknowledged write, serves reads, and resumes writing after the limit is removed', {
  skip: NO_PRLIMIT,
}, async (t) => {
  const file = join(temporaryFolder(), 'scrip.db');
  assertKept(await seenUnder(t, file, filesMayNotGrow(file), null));
});

test('a server on a full disk loses no acknowledged write, serves reads, and resumes writing when there is free space again', {
  skip: NOT_ROOT,
}, async (t) => {
  const folder = smallDisk(t);
  assertKept(await seenUnder(t, join(folder, 'scrip.db'), diskIsFull(folder), null));
});

test('a server whose ledger file cannot grow stops without an error, and keeps all acknowledged writes', {
  skip: NO_PRLIMIT,
}, async (t) => {
  const file = join(temporaryFolder(), 'scrip.db');
  const secret = await newKey(`file:${file}`);
  const server = await serve(t, file, [], { LOG_LEVEL: 'silent' });
  const added = await Promise.all(Array.from({ length: 60 }, () => add(server.url, secret, 1)));
  assert(added.every(({ ok }) => ok));
  await sleep(FLUSHED_MS);
  execFileSync('prlimit', ['--pid', String(server.pid), `--fsize=${statSync(file).size}:`]);
  server.kill('SIGTERM');
  const { code, stderr } = await server.ended;
  assert.equal(code, 0, stderr);
  const { stdout } = await scrip(['verify'], ledgerAt(file));
  assert.match(stdout, / 60 postings/);
});

test('a copy to a full disk prints the reason and can be resumed when there is free space again', {
  skip: NOT_ROOT,
}, async (t) => {
  const source = temporaryFile();
  await makeMany(source, 1_500);
  const folder = smallDisk(t, statSync(source).size);
  const args = ['copy', '--from', `file:${source}`, '--to', `file:${join(folder, 'scrip.db')}`];
  const { code, stderr } = await scrip(args);
  assert.match(stderr, /^The copy stopped \(database or disk is full\); run the same command again to resume\.$/m);
  assert.doesNotMatch(stderr, /\n {4}at /, 'no stack trace');
  assert.equal(code, 1);
  execFileSync('mount', ['-o', `remount,size=${DISK_BYTES}`, folder]);
  const resumed = await scrip(args);
  assert.equal(resumed.code, 0, resumed.stderr);
});

control(
  'control: the full-disk test catches a writer that treats a failed COMMIT as a success',
  {
    skip: NO_PRLIMIT,
  },
  async (t) => {
    const file = join(temporaryFolder(), 'scrip.db');
    const failure = { ...filesMayNotGrow(file), ...CONTROL };
    // The broken writer is also caught if it has stopped writing.
    const isCaught = await seenUnder(t, file, failure, 'deaf').then(
      ({ lost }) => lost > 0,
      (error) => /^writes work again/.test(error.message),
    );
    assert(isCaught);
  },
);
