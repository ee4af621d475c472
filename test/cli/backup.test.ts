// Tests `scrip restore`, and tests `scrip backup` while a server is running and when the command is killed or
// interrupted.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { copyFileSync, existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WriteCommand } from '../../src/ledger/command.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { backUpFile } from '../../src/store/sqlite/tools/backup.ts';
import { effort } from '../effort.ts';
import { auditBeside } from '../store/sqlite/sqlite-ledger.ts';
import { EndUser, problemsOf, temporaryFile, temporaryFolder } from '../store/temporary-ledger.ts';
import { add, ledgerAt, Running, scrip } from './scrip-command.ts';
import { createKeyHere, serveHere } from './served-here.ts';

const options = { timeout: 240_000 };

const WRITERS = 12;
const END_USERS = 500;
/** Enough postings for a backup in several steps, so that the backup reports progress and can be interrupted. */
const POSTINGS_EACH = effort(40, 101);

let large: string;
before(async () => {
  large = temporaryFile();
  const { ledger } = await openSqliteStore(large);
  const users = Array.from({ length: END_USERS }, (_, index) => new EndUser(1, index));
  const write = (commands: readonly WriteCommand[]) => ledger.write(commands, () => {});
  await write(users.map((user) => user.add(1_000)));
  for (let round = 1; round < POSTINGS_EACH; round++) await write(users.map((user) => user.subtract(1)));
  await ledger.close();
});

function siblingsOf(file: string): string[] {
  return readdirSync(dirname(file)).filter((name) => name.startsWith(basename(file)) && name !== basename(file));
}

class Writer {
  readonly endUser = randomUUID();
  acknowledged = 0;
  #isStopped = false;
  readonly #ended: Promise<void>;

  constructor(url: string, secret: string) {
    this.#ended = this.#write(url, secret);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#ended;
  }

  async #write(url: string, secret: string): Promise<void> {
    while (!this.#isStopped) {
      const response = await fetch(`${url}/add`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${secret}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ end_user_id: this.endUser, amount: 1 }),
      });
      await response.text();
      assert.equal(response.status, 200);
      this.acknowledged += 1;
    }
  }
}

describe('backup commands', options, () => {
  test('a backup under load contains every write acknowledged before the backup began, and a server can use the restored ledger', async (t) => {
    const file = temporaryFile();
    copyFileSync(large, file);
    const secret = await createKeyHere(ledgerAt(file));
    const { url } = await serveHere(t, ledgerAt(file));
    const writers = Array.from({ length: WRITERS }, () => new Writer(url, secret));
    while (writers.some(({ acknowledged }) => acknowledged === 0)) await sleep(10);
    const before = writers.map(({ acknowledged }) => acknowledged);
    const backup = join(temporaryFolder(), 'backup.db');
    const { code, stdout, stderr } = await scrip(['backup', `file:${backup}`], ledgerAt(file));
    const after = writers.map(({ acknowledged }) => acknowledged);
    await Promise.all(writers.map((writer) => writer.stop()));
    assert.equal(code, 0, stderr);
    assert.match(
      stdout,
      /^Backup complete and verified: 51\d end users and \d+ postings up to .+Z, \d+ bytes in .+\.\n$/,
    );
    assert.match(stderr, /^copying: .+\n(.+\n)*verifying: .+ 100%\n$/);
    const isWritten = after.some((count, index) => count > (before[index] as number));
    assert(isWritten, 'the server accepts writes during the backup');
    assert.deepEqual(siblingsOf(backup), []);

    const restored = join(temporaryFolder(), 'scrip.db');
    const ended = await scrip(['restore', `file:${backup}`], ledgerAt(restored));
    assert.deepEqual([ended.code, /^Restore complete and verified: 51\d end users/.test(ended.stdout)], [0, true]);
    const second = await serveHere(t, ledgerAt(restored));
    for (const [index, { endUser }] of writers.entries()) {
      const response = await fetch(`${second.url}/get-active-balance?end_user_id=${endUser}`, {
        headers: { Authorization: `Bearer ${secret}` },
      });
      const { active_balance: balance } = (await response.json()) as { active_balance: number };
      assert(balance >= (before[index] as number), `${balance} of ${before[index]} credits were restored`);
    }
    assert.equal((await add(second.url, secret)).status, 200, 'the restored ledger accepts writes');
    assert.deepEqual(problemsOf(await auditBeside(restored)), []);
  });

  test('if scrip backup is killed, the backup file does not exist, and a second scrip backup to the same file succeeds', async () => {
    const folder = temporaryFolder();
    for (const delayMs of [0, 10, 40]) {
      const backup = join(folder, `backup-${delayMs}.db`);
      const running = new Running(['backup', backup], ledgerAt(large));
      while (siblingsOf(backup).length === 0) await sleep(1);
      await sleep(delayMs);
      running.kill('SIGKILL');
      const { code } = await running.ended;
      assert.equal(code, 'SIGKILL', 'the backup was killed before it finished');
      assert(!existsSync(backup));
    }
    const backup = join(folder, 'backup-0.db');
    await backUpFile(large, backup, () => {});
    assert(existsSync(backup));
  });

  test('if a SIGTERM stops scrip backup, the command leaves no files behind', async () => {
    const backup = join(temporaryFolder(), 'backup.db');
    const running = new Running(['backup', backup], ledgerAt(large));
    while (siblingsOf(backup).length === 0) await sleep(1);
    running.kill('SIGTERM');
    const { code } = await running.ended;
    if (code !== 0) assert.deepEqual([existsSync(backup), siblingsOf(backup)], [false, []]);
    else assert.deepEqual(siblingsOf(backup), []);
  });

  test('scrip backup and scrip restore fail on PostgreSQL with an error that refers to the documentation', async () => {
    const url = 'postgres://scrip:hunter2@db/scrip';
    for (const args of [
      ['backup', 'x.db'],
      ['restore', 'x.db'],
    ]) {
      const { code, stderr } = await scrip(args, { DATABASE_URL: url });
      assert.match(stderr, /^`scrip \w+` is for SQLite files only; .+ see docs\/operating\/backups\.md\.\n$/);
      assert.equal(code, 1);
      assert(!stderr.includes('hunter2'));
    }
  });
});
