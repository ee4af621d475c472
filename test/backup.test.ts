// Backups of a ledger file and the way back: beside a server under load, whole or not there at all, and never over
// another ledger.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createApiKey, openBeside } from '../src/app.ts';
import { backUpFile, restoreFile } from '../src/store/sqlite/backup.ts';
import { openSqliteStore, openSqliteStoreBeside } from '../src/store/sqlite/sqlite-store.ts';
import { CannotOpen } from '../src/store/store.ts';
import { byHand, contentOf, damaged } from './store/outside.ts';
import { add, ledgerAt, Running, scrip, serve } from './store/scrip-command.ts';
import { auditOf, EndUser, makeHistory, openFor, temporaryFile, temporaryFolder } from './store/temporary-ledger.ts';

const options = { timeout: 240_000 };
const quietly = () => {};

const WRITERS = 12;
const WARM_UP_MS = 1_000;

async function makeKey(file: string): Promise<string> {
  const database = { kind: 'file', path: file } as const;
  const store = await openBeside(database);
  const secret = await createApiKey(store, { accountName: 'Lovelace Ltd', scope: 'write' });
  await store.close();
  return secret;
}

/** A ledger of some thousands of postings, which takes a moment to back up. */
async function makeLarge(file: string): Promise<void> {
  const store = await openSqliteStore(file);
  const people = Array.from({ length: 500 }, (_, index) => new EndUser(1, index));
  await store.write(people.map((user) => user.add(1_000)));
  for (let round = 0; round < 100; round++) await store.write(people.map((user) => user.subtract(1)));
  await store.close();
}

/** What lies beside a file and begins with its name. */
function besides(file: string): string[] {
  return readdirSync(dirname(file)).filter((name) => name.startsWith(basename(file)) && name !== basename(file));
}

async function assertRefused(work: Promise<unknown>, says: RegExp): Promise<void> {
  await assert.rejects(work, (error: Error) => {
    assert(error instanceof CannotOpen, `a sentence, not a stack: ${error.stack}`);
    assert.match(error.message, says);
    assert.match(error.message, /^[^\n]+\.$/);
    return true;
  });
}

/** Adds 1 credit again and again, and counts what was acknowledged. */
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

describe('a backup', options, () => {
  test('of a server under load holds all that was acknowledged before it began, and is whole', async (t) => {
    const file = temporaryFile();
    await makeLarge(file);
    const secret = await makeKey(file);
    const { url } = await serve(t, file);
    const writers = Array.from({ length: WRITERS }, () => new Writer(url, secret));
    await sleep(WARM_UP_MS);
    const before = writers.map(({ acknowledged }) => acknowledged);
    const backup = join(temporaryFolder(), 'backup.db');
    const { code, stdout, stderr } = await scrip(['backup', backup], ledgerAt(file));
    const after = writers.map(({ acknowledged }) => acknowledged);
    await Promise.all(writers.map((writer) => writer.stop()));
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^The backup is whole: 51\d end users and \d+ postings, up to .+Z, \d+ bytes in .+\.\n$/);
    assert.match(stderr, /^copying: .+\n(.+\n)*verifying: .+ 100 %\n$/);
    assert(
      after.some((count, index) => count > (before[index] as number)),
      'the server went on while the backup was made',
    );
    assert.deepEqual(besides(backup), []);

    const restored = join(temporaryFolder(), 'scrip.db');
    const ended = await scrip(['restore', backup], ledgerAt(restored));
    assert.deepEqual([ended.code, /^The ledger is restored and whole: 51\d end users/.test(ended.stdout)], [0, true]);
    const second = await serve(t, restored);
    for (const [index, { endUser }] of writers.entries()) {
      const response = await fetch(`${second.url}/get-active-balance?end_user_id=${endUser}`, {
        headers: { Authorization: `Bearer ${secret}` },
      });
      const { active_balance: balance } = (await response.json()) as { active_balance: number };
      assert(balance >= (before[index] as number), `${balance} of ${before[index]} are there`);
    }
    assert.equal((await add(second.url, secret)).status, 200, 'and it can be served');
    const store = openSqliteStoreBeside(restored);
    t.after(() => store.close());
    assert.deepEqual(await auditOf(store), { findings: [], store: [] });
  });

  test('does not begin anew when somebody writes, and holds none of it', async (t) => {
    const file = temporaryFile();
    await makeLarge(file);
    let now = Date.now();
    const store = await openSqliteStore(file, () => now++);
    t.after(() => store.close());
    const backup = join(temporaryFolder(), 'backup.db');
    const steps: number[] = [];
    const stranger = new EndUser(1, 999_999);
    const { endUsers } = await backUpFile(file, backup, ({ step, done }) => {
      if (step !== 'copying') return;
      assert(steps.push(done) < 20, `it comes to no end: ${steps}`);
      void store.write([stranger.add(1)]);
    });
    assert(steps.length >= 2, 'there was something to write in between');
    assert.deepEqual(
      steps,
      steps.toSorted((a, b) => a - b),
    );
    assert.equal(endUsers, 500);
  });

  test('that is killed leaves no file of its name', async () => {
    const file = temporaryFile();
    await makeLarge(file);
    const folder = temporaryFolder();
    for (const delayMs of [0, 10, 40]) {
      const backup = join(folder, `backup-${delayMs}.db`);
      const running = new Running(['backup', backup], ledgerAt(file));
      while (besides(backup).length === 0) await sleep(1);
      await sleep(delayMs);
      running.kill('SIGKILL');
      const { code } = await running.ended;
      assert.equal(code, 'SIGKILL', 'it was not done yet');
      assert(!existsSync(backup));
    }
    const backup = join(folder, 'backup-0.db');
    await backUpFile(file, backup, quietly);
    assert(existsSync(backup), 'and another one can be made');
  });

  test('that is interrupted leaves nothing', async () => {
    const file = temporaryFile();
    await makeLarge(file);
    const backup = join(temporaryFolder(), 'backup.db');
    const running = new Running(['backup', backup], ledgerAt(file));
    while (besides(backup).length === 0) await sleep(1);
    running.kill('SIGTERM');
    const { code } = await running.ended;
    if (code !== 0) assert.deepEqual([existsSync(backup), besides(backup)], [false, []]);
    else assert.deepEqual(besides(backup), []);
  });

  test('never replaces a file', async () => {
    const file = temporaryFile();
    await makeHistory(file);
    const backup = join(temporaryFolder(), 'backup.db');
    writeFileSync(backup, 'what was there');
    await assertRefused(
      backUpFile(file, backup, quietly),
      /^\S+backup\.db is there already; name a file that is not\.$/,
    );
    await assertRefused(backUpFile(file, file, quietly), /is there already/);
    assert.equal(readFileSync(backup, 'utf8'), 'what was there');
  });

  test('does not replace a file that somebody makes meanwhile', async () => {
    const file = temporaryFile();
    await makeHistory(file);
    const backup = join(temporaryFolder(), 'backup.db');
    const intrude = () => writeFileSync(backup, 'what came');
    await assertRefused(backUpFile(file, backup, intrude), /is there already/);
    assert.equal(readFileSync(backup, 'utf8'), 'what came');
    assert.deepEqual(besides(backup), []);
  });

  test('is for its owner alone, one file, and the same in every row', async (t) => {
    const file = temporaryFile();
    await makeHistory(file);
    await openFor(t, file);
    const backup = join(temporaryFolder(), 'backup.db');
    const report = await backUpFile(file, backup, quietly);
    assert.deepEqual([report.endUsers, report.bytes], [6, statSync(backup).size]);
    assert.equal(statSync(backup).mode & 0o777, 0o600);
    assert.deepEqual(contentOf(backup), contentOf(file));
    const db = new DatabaseSync(backup, { readOnly: true });
    assert.equal(db.prepare('PRAGMA journal_mode').get()?.journal_mode, 'delete');
    db.close();
    assert.deepEqual(besides(backup), []);
  });

  test('of a broken ledger is not kept', async () => {
    const file = temporaryFile();
    await makeHistory(file);
    byHand(file, "UPDATE holdings SET remaining = remaining - 1 WHERE type = 'one-time' AND remaining > 0");
    const backup = join(temporaryFolder(), 'backup.db');
    await assertRefused(backUpFile(file, backup, quietly), /is damaged \(in \d+ places: .+see `scrip verify`\.$/);
    assert.deepEqual([existsSync(backup), besides(backup)], [false, []]);
  });

  test('needs a ledger, and a folder to write to', async () => {
    const backup = join(temporaryFolder(), 'backup.db');
    await assertRefused(backUpFile(join(temporaryFolder(), 'none.db'), backup, quietly), /^There is no ledger at/);
    const foreign = temporaryFile();
    writeFileSync(foreign, 'account,credits\n'.repeat(200));
    await assertRefused(backUpFile(foreign, backup, quietly), /is not a Scrip ledger\.$/);
    const file = temporaryFile();
    await makeHistory(file);
    await assertRefused(backUpFile(file, join(backup, 'below.db'), quietly), /cannot be written/);
    assert.deepEqual([existsSync(backup), besides(backup)], [false, []]);
  });

  test('of PostgreSQL is left to its own tools', async () => {
    const url = 'postgres://scrip:hunter2@db/scrip';
    for (const args of [
      ['backup', 'x.db'],
      ['restore', 'x.db'],
    ]) {
      const { code, stderr } = await scrip(args, { DATABASE_URL: url });
      assert.deepEqual(
        [code, /^`scrip \w+` .+ docs\/operating\/backups\.md says\.\n$/.test(stderr)],
        [1, true],
        stderr,
      );
      assert(!stderr.includes('hunter2'));
    }
  });
});

async function makeBackup(): Promise<string> {
  const file = temporaryFile();
  await makeHistory(file);
  const backup = join(temporaryFolder(), 'backup.db');
  await backUpFile(file, backup, quietly);
  return backup;
}

describe('restoring', options, () => {
  test('a backup that is damaged in any page is refused, and makes no ledger', async () => {
    const whole = join(temporaryFolder(), 'backup.db');
    const copies = await damaged(whole, 0);
    let refused = 0;
    for (const { file, page } of copies) {
      const target = join(temporaryFolder(), 'scrip.db');
      const restored = await restoreFile(file, target, quietly).catch((error) => error);
      if (!(restored instanceof Error)) continue;
      refused += 1;
      assert(restored instanceof CannotOpen, `page ${page}: ${restored.stack}`);
      assert.match(restored.message, /is damaged \(.+\); use another backup|is not a Scrip ledger/);
      assert(!existsSync(target), `page ${page}`);
      assert.deepEqual(besides(target), ['scrip.db.lock']);
    }
    assert.equal(refused, copies.length);
  });

  test('a backup that is cut short is refused', async () => {
    const backup = await makeBackup();
    const bytes = readFileSync(backup);
    for (const length of [0, 50, 2_048, bytes.length - 2_048, bytes.length - 1]) {
      writeFileSync(backup, bytes.subarray(0, length));
      const target = join(temporaryFolder(), 'scrip.db');
      await assertRefused(restoreFile(backup, target, quietly), /is damaged|is not a Scrip ledger/);
      assert(!existsSync(target));
    }
  });

  test('a ledger that breaks a rule is refused, though every page of it is right', async () => {
    const backup = await makeBackup();
    byHand(backup, "UPDATE postings SET amount = amount + 1 WHERE kind = 'add'");
    const target = join(temporaryFolder(), 'scrip.db');
    await assertRefused(restoreFile(backup, target, quietly), /is damaged \(in \d+ places/);
    assert(!existsSync(target));
  });

  test('nothing is restored over a ledger, served or not', async (t) => {
    const backup = await makeBackup();
    const file = temporaryFile();
    await makeHistory(file);
    const before = contentOf(file);
    await assertRefused(restoreFile(backup, file, quietly), /is there already; move it away/);
    const store = await openFor(t, file);
    await assertRefused(restoreFile(backup, file, quietly), /is in use by another Scrip process/);
    await store.close();
    assert.deepEqual(contentOf(file), before);
  });

  test('nothing is restored beside the log of another ledger, which would be played into it', async () => {
    const backup = await makeBackup();
    const target = join(temporaryFolder(), 'scrip.db');
    writeFileSync(`${target}-wal`, 'left over');
    await assertRefused(restoreFile(backup, target, quietly), /scrip\.db-wal is there already/);
    assert(!existsSync(target));
  });

  test('a ledger with its log beside it is no backup', async () => {
    const backup = await makeBackup();
    writeFileSync(`${backup}-wal`, 'something');
    await assertRefused(
      restoreFile(backup, join(temporaryFolder(), 'scrip.db'), quietly),
      /it is a ledger in use or one that was killed, not a backup/,
    );
    await assertRefused(restoreFile(`${backup}.none`, temporaryFile(), quietly), /^There is no backup at/);
  });

  test('no server can start on the place while it lasts', async () => {
    const backup = await makeBackup();
    const target = join(temporaryFolder(), 'scrip.db');
    const refusals: string[] = [];
    const start = () => {
      openSqliteStore(target).then(
        (store) => store.close(),
        (error) => refusals.push(error.message),
      );
    };
    await restoreFile(backup, target, start);
    await sleep(50);
    assert(refusals.length > 0);
    for (const message of refusals) assert.match(message, /is in use by another Scrip process/);
  });

  test('the place may be a link, a new folder, or where a restore was killed', async () => {
    const backup = await makeBackup();
    const folder = temporaryFolder();
    const linked = join(folder, 'linked.db');
    symlinkSync(join(folder, 'real.db'), linked);
    const killed = join(folder, 'killed.db');
    writeFileSync(killed, '');
    writeFileSync(`${killed}.restoring`, 'half of it');
    for (const target of [linked, join(folder, 'new', 'folder', 'scrip.db'), killed]) {
      await restoreFile(backup, target, quietly);
      assert.deepEqual(contentOf(target), contentOf(backup));
      assert(!existsSync(`${target}.restoring`));
    }
    assert.deepEqual(contentOf(join(folder, 'real.db')), contentOf(backup), 'a link stays one');
  });
});
