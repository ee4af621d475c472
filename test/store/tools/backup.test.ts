// Tests that a backup during writes is a verified snapshot, and that a backup or restore never overwrites a file.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { backUpFile, restoreFile } from '../../../src/store/sqlite/tools/backup.ts';
import { CannotOpen } from '../../../src/store/store-fault.ts';
import { effort } from '../../effort.ts';
import { Random } from '../../load/random.ts';
import { byHand, contentOf, damaged } from '../outside.ts';
import { openFor, openInPlace, SMALL } from '../sqlite/sqlite-ledger.ts';
import {
  balanceOf,
  EndUser,
  keyed,
  makeHistory,
  PEOPLE,
  problemsOf,
  temporaryFile,
  temporaryFolder,
} from '../temporary-ledger.ts';

const quietly = () => {};

/** Creates a ledger with so many postings that a backup takes several steps. */
async function makeLarge(file: string): Promise<void> {
  const { ledger } = await openSqliteStore(file);
  const users = Array.from({ length: 500 }, (_, index) => new EndUser(1, index));
  const write = (commands: Parameters<typeof ledger.write>[0]) => ledger.write(commands, () => {});
  await write(users.map((user) => user.add(1_000)));
  for (let round = 0; round < 100; round++) await write(users.map((user) => user.subtract(1)));
  await ledger.close();
}

function siblingsOf(file: string): string[] {
  return readdirSync(dirname(file)).filter((name) => name.startsWith(basename(file)) && name !== basename(file));
}

async function assertRefused(work: Promise<unknown>, expected: RegExp): Promise<void> {
  await assert.rejects(work, (error: Error) => {
    assert(error instanceof CannotOpen, `the error is for the operator: ${error.stack}`);
    assert.match(error.message, expected);
    assert.match(error.message, /^[^\n]+\.$/);
    return true;
  });
}

describe('backups', () => {
  test('a backup during writes contains all batches that were acknowledged before the backup began, and no partial batches', async (t) => {
    for (const options of [{}, SMALL]) {
      const file = temporaryFile();
      const ledger = await openFor(t, file, options);
      const random = new Random(71);
      const users = Array.from({ length: 200 }, () => new EndUser(1, random.uuid()));
      let acknowledged = 0;
      let isOver = false;
      const write = async () => {
        await ledger.write(users.map((user, index) => keyed(user.add(1), `${acknowledged}`, `${index}`)));
        acknowledged += 1;
      };
      for (let batch = 0; batch < 20; batch++) await write();
      const writing = (async () => {
        while (!isOver) await write();
      })();
      for (let backups = 0; backups < effort(2, 5); backups++) {
        const before = acknowledged;
        const backup = join(temporaryFolder(), 'backup.db');
        const { endUsers } = await backUpFile(file, backup, quietly);
        assert.equal(endUsers, users.length);
        assert.deepEqual(siblingsOf(backup), []);
        const restored = temporaryFile();
        await restoreFile(backup, restored, quietly);
        const again = await openFor(t, restored, options);
        assert.notEqual(again.events.epoch, ledger.events.epoch, 'cursors of events are not valid after the restore');
        const balances = new Set(await Promise.all(users.map((user) => balanceOf(again, user))));
        const [balance = 0] = balances;
        assert(balances.size === 1 && balance >= before, `${[...balances]} credits after ${before} batches`);
        const [repeated] = await again.write([keyed((users[0] as EndUser).add(1), `${before - 1}`, 'again')]);
        assert.equal(repeated?.replayOf, '0', 'the idempotency records are restored');
        assert.deepEqual(problemsOf(await again.audit()), []);
        await again.close();
      }
      isOver = true;
      await writing;
    }
  });

  test('a write during a backup does not restart the backup and is not part of it', async (t) => {
    const file = temporaryFile();
    await makeLarge(file);
    const ledger = await openInPlace(t, file, { wall: Date.now() });
    const backup = join(temporaryFolder(), 'backup.db');
    const steps: number[] = [];
    const writer = new EndUser(1, 999_999);
    const { endUsers } = await backUpFile(file, backup, ({ step, done }) => {
      if (step !== 'copying') return;
      assert(steps.push(done) < 20, `the backup does not finish: ${steps}`);
      ledger.wall += 1;
      void ledger.write([writer.add(1)]);
    });
    assert(steps.length >= 2, 'there were writes during the backup');
    assert.deepEqual(
      steps,
      steps.toSorted((a, b) => a - b),
    );
    assert.equal(endUsers, 500);
  });

  test('while a backup of a running server is verified, SQLite can reset the write-ahead log', async (t) => {
    const file = temporaryFile();
    const ledger = await openFor(t, file);
    await ledger.write([new EndUser(1, 1).add(1)]);
    const checkpoints: unknown[] = [];
    await backUpFile(file, join(temporaryFolder(), 'backup.db'), ({ step }) => {
      if (step !== 'verifying') return;
      using other = new DatabaseSync(file);
      other.exec('UPDATE clock SET sequence = sequence');
      checkpoints.push(other.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy);
    });
    assert.deepEqual(checkpoints, [0]);
  });

  test('a backup never replaces an existing file', async () => {
    const file = temporaryFile();
    await makeHistory(file);
    const backup = join(temporaryFolder(), 'backup.db');
    writeFileSync(backup, 'existing');
    await assertRefused(
      backUpFile(file, backup, quietly),
      /^\S+backup\.db already exists; choose another file name\.$/,
    );
    await assertRefused(backUpFile(file, file, quietly), /already exists/);
    assert.equal(readFileSync(backup, 'utf8'), 'existing');
  });

  test('a backup does not replace a file that another program creates during the backup', async () => {
    const file = temporaryFile();
    await makeHistory(file);
    const backup = join(temporaryFolder(), 'backup.db');
    const createFile = () => writeFileSync(backup, 'created meanwhile');
    await assertRefused(backUpFile(file, backup, createFile), /already exists/);
    assert.equal(readFileSync(backup, 'utf8'), 'created meanwhile');
    assert.deepEqual(siblingsOf(backup), []);
  });

  test('a backup is a single file with every row of the ledger, and only the owner of the file can read it', async (t) => {
    const file = temporaryFile();
    await makeHistory(file);
    await openFor(t, file);
    const backup = join(temporaryFolder(), 'backup.db');
    const report = await backUpFile(file, backup, quietly);
    assert.deepEqual([report.endUsers, report.bytes], [Object.keys(PEOPLE).length, statSync(backup).size]);
    assert.equal(statSync(backup).mode & 0o777, 0o600);
    assert.deepEqual(contentOf(backup), contentOf(file));
    const db = new DatabaseSync(backup, { readOnly: true });
    assert.equal(db.prepare('PRAGMA journal_mode').get()?.journal_mode, 'delete');
    db.close();
    assert.deepEqual(siblingsOf(backup), []);
  });

  test('a backup of a ledger with invariant violations fails and leaves no file', async () => {
    const file = temporaryFile();
    await makeHistory(file);
    byHand(file, "UPDATE balances SET remaining = remaining - 1 WHERE type = 'one-time' AND remaining > 0");
    const backup = join(temporaryFolder(), 'backup.db');
    await assertRefused(
      backUpFile(file, backup, quietly),
      /is damaged \(\d+ problems?, such as: .+run `scrip verify`\..+$/,
    );
    assert.deepEqual([existsSync(backup), siblingsOf(backup)], [false, []]);
  });

  test('a backup fails if the ledger is missing or not a ledger file, or if the destination folder is missing', async () => {
    const backup = join(temporaryFolder(), 'backup.db');
    await assertRefused(backUpFile(join(temporaryFolder(), 'none.db'), backup, quietly), /^There is no ledger at/);
    const foreign = temporaryFile();
    writeFileSync(foreign, 'account,credits\n'.repeat(200));
    await assertRefused(backUpFile(foreign, backup, quietly), /is not a Scrip ledger\.$/);
    const file = temporaryFile();
    await makeHistory(file);
    await assertRefused(backUpFile(file, join(backup, 'below.db'), quietly), /cannot be written/);
    assert.deepEqual([existsSync(backup), siblingsOf(backup)], [false, []]);
  });
});

async function makeBackup(): Promise<string> {
  const file = temporaryFile();
  await makeHistory(file);
  const backup = join(temporaryFolder(), 'backup.db');
  await backUpFile(file, backup, quietly);
  return backup;
}

describe('restored backups', () => {
  test('a backup with a damaged page is not restored', async () => {
    const file = join(temporaryFolder(), 'backup.db');
    const copies = await damaged(file, 0);
    let refused = 0;
    for (const { file, page } of copies) {
      const target = join(temporaryFolder(), 'scrip.db');
      const restored = await restoreFile(file, target, quietly).catch((error) => error);
      if (!(restored instanceof Error)) continue;
      refused += 1;
      assert(restored instanceof CannotOpen, `page ${page}: ${restored.stack}`);
      assert.match(restored.message, /is damaged \(.+\)\. .+use another backup|is not a Scrip ledger/);
      assert(!existsSync(target), `page ${page}`);
      const left = siblingsOf(target).filter((name) => name !== 'scrip.db.lock');
      assert.deepEqual(left, []);
    }
    assert.equal(refused, copies.length);
  });

  test('a truncated backup is not restored', async () => {
    const backup = await makeBackup();
    const bytes = readFileSync(backup);
    // SQLite reads missing bytes at the end of the last page as zeros, so a cut of fewer than 8 bytes might change
    // nothing.
    for (const length of [0, 50, 2_048, bytes.length - 2_048, bytes.length - 8]) {
      writeFileSync(backup, bytes.subarray(0, length));
      const target = join(temporaryFolder(), 'scrip.db');
      await assertRefused(restoreFile(backup, target, quietly), /is damaged|is not a Scrip ledger/);
      assert(!existsSync(target));
    }
  });

  test('if a file is not a backup, a restore creates no files', async () => {
    const file = join(temporaryFolder(), 'account.csv');
    writeFileSync(file, 'account,credits\n'.repeat(200));
    const target = join(temporaryFolder(), 'scrip.db');
    await assertRefused(restoreFile(file, target, quietly), /account\.csv is not a Scrip ledger\.$/);
    assert.deepEqual(readdirSync(dirname(target)), []);
  });

  test('a backup with invariant violations is not restored, even if every page is intact', async () => {
    const backup = await makeBackup();
    byHand(backup, "UPDATE postings SET amount = amount + 1 WHERE kind = 'add'");
    const target = join(temporaryFolder(), 'scrip.db');
    await assertRefused(restoreFile(backup, target, quietly), /is damaged \(\d+ problem/);
    assert(!existsSync(target));
  });

  test('a backup is not restored over an existing ledger, whether or not the ledger is in use', async (t) => {
    const backup = await makeBackup();
    const file = temporaryFile();
    await makeHistory(file);
    const before = contentOf(file);
    await assertRefused(
      restoreFile(backup, file, quietly),
      /already exists; move away \S+\.db, \S+-wal, \S+-shm and \S+-journal if they exist, or restore/,
    );
    const ledger = await openFor(t, file);
    await assertRefused(restoreFile(backup, file, quietly), /is in use by another Scrip process/);
    await ledger.close();
    assert.deepEqual(contentOf(file), before);
  });

  test('a backup is not restored next to the WAL of another ledger, because SQLite would apply that WAL to the restored file', async () => {
    const backup = await makeBackup();
    const target = join(temporaryFolder(), 'scrip.db');
    writeFileSync(`${target}-wal`, 'left over');
    await assertRefused(restoreFile(backup, target, quietly), /its log .*scrip\.db-wal contains data/);
    assert(!existsSync(target));
  });

  test('a ledger file that has a WAL is not accepted as a backup', async () => {
    const backup = await makeBackup();
    writeFileSync(`${backup}-wal`, 'something');
    await assertRefused(
      restoreFile(backup, join(temporaryFolder(), 'scrip.db'), quietly),
      /is not a backup: the file .*-wal exists, so this is a ledger whose server is still running or was killed/,
    );
    await assertRefused(restoreFile(`${backup}.none`, temporaryFile(), quietly), /^There is no backup at/);
  });

  test('a ledger file in WAL mode without a WAL, such as Litestream writes, is restored, and cursors of events are not valid after the restore', async (t) => {
    const file = temporaryFile();
    const { ledger, events } = await openSqliteStore(file);
    await ledger.write([new EndUser(1, 1).add(5)], () => {});
    await ledger.close();
    using db = new DatabaseSync(file, { readOnly: true });
    assert.equal(db.prepare('PRAGMA journal_mode').get()?.journal_mode, 'wal');
    const restored = temporaryFile();
    await restoreFile(file, restored, quietly);
    const again = await openFor(t, restored, {});
    assert.notEqual(again.events.epoch, events.epoch);
  });

  test('a server cannot open a ledger while a backup is being restored to it', async () => {
    const backup = await makeBackup();
    const target = join(temporaryFolder(), 'scrip.db');
    const refusals: string[] = [];
    const start = () => {
      openSqliteStore(target).then(
        ({ ledger }) => ledger.close(),
        (error) => refusals.push(error.message),
      );
    };
    await restoreFile(backup, target, start);
    await sleep(50);
    assert(refusals.length > 0);
    for (const message of refusals) assert.match(message, /is in use by another Scrip process/);
  });

  test('a backup can be restored through a symbolic link, and after an earlier restore was killed', async () => {
    const backup = await makeBackup();
    const folder = temporaryFolder();
    const linked = join(folder, 'linked.db');
    symlinkSync(join(folder, 'real.db'), linked);
    const killed = join(folder, 'killed.db');
    writeFileSync(killed, '');
    writeFileSync(`${killed}.restoring`, 'incomplete');
    for (const target of [linked, killed]) {
      await restoreFile(backup, target, quietly);
      assert.deepEqual(contentOf(target), contentOf(backup));
      assert(!existsSync(`${target}.restoring`));
    }
    assert.deepEqual(contentOf(join(folder, 'real.db')), contentOf(backup), 'the symbolic link is kept');
  });
});
