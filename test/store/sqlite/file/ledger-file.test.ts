// Tests the constraints of a ledger file, the processes that may open the file, and the error messages.

import assert from 'node:assert/strict';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { connect, SCHEMA_LATEST } from '../../../../src/store/sqlite/file/ledger-file.ts';
import { openSqliteStore } from '../../../../src/store/sqlite/sqlite-store.ts';
import { openSqliteTools } from '../../../../src/store/sqlite/tools/ledger-tools.ts';
import { CannotOpen } from '../../../../src/store/store-fault.ts';
import { byHand, contentOf, damaged, locksOf, otherProcess, PAGE_BYTES, UNPRIVILEGED } from '../../outside.ts';
import { ACCEPTED, auditOf, EndUser, makeHistory, NOON, problemsOf, temporaryFile } from '../../temporary-ledger.ts';
import { openFor } from '../sqlite-ledger.ts';

async function serve(file: string): Promise<void> {
  const { ledger } = await openSqliteStore(file);
  await ledger.close();
}

async function operate(file: string): Promise<void> {
  await openSqliteTools(file, { create: false }).tools.close();
}

async function refusalOf(file: string, open: (file: string) => Promise<void> = serve): Promise<string> {
  const refusal = await open(file).catch((error: unknown) => error);
  assert(refusal instanceof CannotOpen, `${file} is refused with a reason, not ${refusal}`);
  assert.match(refusal.message, /^[A-Z/][^\n]*\.$/, 'the message is one sentence on one line');
  return refusal.message;
}

test('a ledger file opens after a power loss during a write outside of WAL mode', async () => {
  const file = temporaryFile();
  await makeHistory(file);
  const backup = `${file}.backup`;
  const crashed = `${file}.crashed`;
  using ledger = new DatabaseSync(file);
  ledger.exec(`VACUUM INTO '${backup}'`);
  using writing = new DatabaseSync(backup);
  // With a cache of one page, SQLite writes changed pages to the file before the transaction ends.
  writing.exec(`PRAGMA cache_size = 1; BEGIN; UPDATE postings SET note = 'unfinished'`);
  for (const end of ['', '-journal']) copyFileSync(`${backup}${end}`, `${crashed}${end}`);
  writing.exec('ROLLBACK');
  assert.notDeepEqual(readFileSync(crashed), readFileSync(backup), 'the file contains unfinished changes');
  await serve(crashed);
  assert.deepEqual(contentOf(crashed), contentOf(file));
});

test('a ledger file has a write-ahead log, synchronous FULL for durable commits, and only STRICT tables', async (t) => {
  const file = temporaryFile();
  await makeHistory(file);
  const db = connect(file);
  t.after(() => db.close());
  const pragma = (name: string) => Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0];
  assert.equal(pragma('journal_mode'), 'wal');
  assert.equal(pragma('synchronous'), 2, 'FULL');
  assert.equal(pragma('fullfsync'), 1, 'on macOS, fsync alone does not reach the disk');
  const tables = db.prepare(
    `SELECT name, strict FROM pragma_table_list WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`,
  );
  assert.deepEqual(
    tables.all().filter(({ strict }) => strict !== 1),
    [],
  );
  assert.throws(() => db.exec(`UPDATE balances SET remaining = 'many'`), /cannot store TEXT/);
});

test('a ledger file without a write-ahead log, for example a copy made by VACUUM INTO, gets a write-ahead log when it is opened', async () => {
  const file = temporaryFile();
  await makeHistory(file);
  byHand(file, 'PRAGMA journal_mode = DELETE');
  await serve(file);
  const db = new DatabaseSync(file);
  assert.equal(db.prepare('PRAGMA journal_mode').get()?.journal_mode, 'wal');
  db.close();
});

const INVALID_ROWS: readonly (readonly [what: string, sql: string])[] = [
  ['a negative remaining amount', 'UPDATE balances SET remaining = -1'],
  ['a remaining amount above the amount', 'UPDATE balances SET remaining = amount + 1'],
  ['a cycle of 0 credits', 'UPDATE balances SET amount = 0, remaining = 0'],
  ['a cycle ends before it starts', 'UPDATE balances SET starts_at = ends_at WHERE remaining >= 0'],
  ['a cycle ends past the last instant', `UPDATE balances SET ends_at = 253402300800000 WHERE type = 'one-time'`],
  ['a cycle without a plan', 'UPDATE balances SET plan = NULL WHERE remaining >= 0'],
  ['a plan is scheduled after a one-time cycle', `UPDATE balances SET next = '100/1m' WHERE type = 'one-time'`],
  ['a cycle with an unknown status', `UPDATE balances SET status = 'renewed' WHERE remaining >= 0`],
  ['a cycle without an amount', `UPDATE balances SET amount = NULL, remaining = NULL WHERE type = 'recurring'`],
  ['an end user without postings', `UPDATE balances SET latest_posting = NULL WHERE type = 'end-user'`],
  ['a subtraction adds', `UPDATE postings SET amount = 1 WHERE kind = 'subtract'`],
  ['an addition subtracts', `UPDATE postings SET amount = -1 WHERE kind = 'add'`],
  ['a stop moves credits', `UPDATE postings SET amount = 1 WHERE kind = 'stop-cycle'`],
  ['an addition without terms', `UPDATE postings SET terms = NULL WHERE kind = 'add'`],
  ['a posting of an unknown kind', `UPDATE postings SET kind = 'gift'`],
  ['a posting follows itself', 'UPDATE postings SET previous = posting'],
  ['a posting expires before it happens', 'UPDATE postings SET expires_at = created_at'],
  ['a posting without an actor', `UPDATE postings SET actor = ''`],
  ['an end user that is not a UUID', `UPDATE postings SET end_user = x'00'`],
];

test('the constraints of a ledger file reject invalid rows, whichever program writes them', async (t) => {
  const file = temporaryFile();
  await makeHistory(file);
  const db = new DatabaseSync(file);
  t.after(() => db.close());
  for (const [what, sql] of INVALID_ROWS) assert.throws(() => db.exec(sql), /CHECK constraint failed/, what);
  const second = `UPDATE balances SET status = 'active' WHERE type = 'recurring'`;
  assert.throws(() => db.exec(second), /UNIQUE constraint failed/, 'two active cycles');
});

test('a ledger file that is in use cannot be opened again by the same process or another one, not even through a symbolic link', async (t) => {
  const file = temporaryFile();
  const folder = dirname(file);
  const ledger = await openFor(t, file);
  symlinkSync(file, join(folder, 'link.db'));
  symlinkSync(folder, join(folder, 'folder'));
  for (const name of [file, relative('', file), join(folder, 'link.db'), join(folder, 'folder', 'scrip.db')])
    await assert.rejects(serve(name), {
      name: 'CannotOpen',
      message: /is in use by another Scrip process; stop that process/,
    });
  const { cannotOpen, message } = await otherProcess(t, 'hold', file).answer();
  assert(cannotOpen, 'another process is refused');
  assert.match(message, /is in use by another Scrip process; stop that process first/);
  await ledger.close();
  await serve(join(folder, 'link.db'));
});

test('a ledger file that was created through a symbolic link and is in use cannot be opened under either name', async (t) => {
  const file = temporaryFile();
  const link = join(dirname(file), 'link.db');
  symlinkSync(file, link);
  await openFor(t, link);
  for (const name of [file, link]) assert.match(await refusalOf(name), /is in use by another Scrip process/);
});

test('a ledger can be opened as soon as the process that was using it has been killed', async (t) => {
  const file = temporaryFile();
  const holder = otherProcess(t, 'hold', file);
  assert.deepEqual(await holder.answer(), { open: true });
  assert.match(await refusalOf(file), /is in use/);
  await holder.kill();
  const ledger = await openFor(t, file);
  assert.deepEqual(await ledger.results([new EndUser(1, 1).add(1)]), [ACCEPTED]);
});

test('if the creation of a ledger was interrupted, the next start completes it', async (t) => {
  const file = temporaryFile();
  byHand(file, 'PRAGMA page_size = 2048; PRAGMA journal_mode = WAL');
  assert(statSync(file).size > 0);
  const ledger = await openFor(t, file);
  assert.deepEqual(await ledger.results([new EndUser(1, 1).add(1)]), [ACCEPTED]);
});

const FOREIGN = /is not a Scrip ledger; point DATABASE_URL at a new file/;
const DAMAGED = /is damaged .*; restore a backup/;
const CLOCK = /clock .*run `scrip verify` and restore a backup/;
const OLD = /was written before the first release of Scrip .*; point DATABASE_URL at another file/;
const NEWER = /was written by a newer version of Scrip .*; use the newer version, or point DATABASE_URL elsewhere/;
const UNFINISHED = /contains an unfinished copy; run the same `scrip copy` command again/;

const sql = (text: string) => (file: string) => byHand(file, text);
const copying = (values: string) =>
  sql(`CREATE TABLE copying (only INTEGER PRIMARY KEY, source TEXT, account INTEGER, end_user BLOB); ${values}`);

/**
 * `serving`: only the server refuses the file. The tools do not check the pages or the stored time of a ledger file.
 */
const REFUSED: readonly (readonly [
  what: string,
  change: (file: string) => void,
  says: RegExp,
  by: 'all' | 'serving',
])[] = [
  ['a ledger of a newer version of Scrip', sql(`PRAGMA user_version = ${SCHEMA_LATEST + 1}`), NEWER, 'all'],
  ['a ledger of a much newer version of Scrip', sql('PRAGMA user_version = 99'), NEWER, 'all'],
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].map(
    (schema) => [`a ledger with schema version ${schema}`, sql(`PRAGMA user_version = ${schema}`), OLD, 'all'] as const,
  ),
  ['a database of another program', sql('PRAGMA application_id = 7'), FOREIGN, 'all'],
  ['a database without an application ID', sql('PRAGMA application_id = 0; PRAGMA user_version = 0'), FOREIGN, 'all'],
  ['a text file', (file) => writeFileSync(file, 'account,credits\n'), FOREIGN, 'all'],
  ['a file of zeroes', (file) => writeFileSync(file, Buffer.alloc(8_192)), FOREIGN, 'all'],
  ['a ledger file that was cut off within its header', (file) => truncateSync(file, 10), FOREIGN, 'all'],
  ['a ledger file that was cut off after half a page', (file) => truncateSync(file, PAGE_BYTES / 2), DAMAGED, 'all'],
  ['a ledger file that was cut in half', (file) => truncateSync(file, statSync(file).size / 2), DAMAGED, 'serving'],
  [
    'a ledger file without its last page',
    (file) => truncateSync(file, statSync(file).size - PAGE_BYTES),
    DAMAGED,
    'serving',
  ],
  ['a ledger whose clock was moved forward by a millisecond', sql('UPDATE clock SET at = at + 1'), CLOCK, 'serving'],
  ['a ledger whose clock was moved back by a millisecond', sql('UPDATE clock SET at = at - 1'), CLOCK, 'serving'],
  ['a ledger whose clock has a later sequence', sql('UPDATE clock SET sequence = sequence + 1'), CLOCK, 'serving'],
  ['a ledger whose clock has a wrong checksum', sql('UPDATE clock SET checksum = 0'), CLOCK, 'serving'],
  ['a ledger without a clock', sql('DELETE FROM clock'), /clock/, 'serving'],
  ['a copy that has just begun', copying(`INSERT INTO copying VALUES (1, 'elsewhere', NULL, NULL)`), UNFINISHED, 'all'],
  ['a copy that was interrupted', copying(`INSERT INTO copying VALUES (1, 'a', 1, zeroblob(16))`), UNFINISHED, 'all'],
  ['a copy whose table `copying` is empty', copying(''), UNFINISHED, 'all'],
];

for (const [what, change, says, by] of REFUSED) {
  test(`${what} is refused with a one-sentence message, and the file is not changed`, async () => {
    const file = temporaryFile();
    await makeHistory(file);
    change(file);
    const before = readFileSync(file);
    assert.match(await refusalOf(file), says);
    if (by === 'all') assert.match(await refusalOf(file, operate), says);
    assert(readFileSync(file).equals(before), 'nothing is written');
  });
}

test('if Scrip refuses to open a ledger, it closes the ledger file', async () => {
  const file = temporaryFile();
  await makeHistory(file);
  byHand(file, 'UPDATE clock SET at = at + 1');
  await refusalOf(file);
  assert(!existsSync(`${file}-shm`), 'SQLite deletes this file when the last connection closes');
});

test('if a file is not a ledger, Scrip creates no lock file beside it', async () => {
  for (const change of [
    (file: string) => writeFileSync(file, 'root:x:0:0\n'),
    sql('CREATE TABLE contacts (name TEXT)'),
    mkdirSync,
  ]) {
    const file = temporaryFile();
    change(file);
    assert.match(await refusalOf(file), FOREIGN);
    assert.deepEqual(readdirSync(dirname(file)), [basename(file)]);
  }
});

test('an empty file is a new ledger for a server, but `scrip` commands that need a ledger refuse it', async () => {
  const file = temporaryFile();
  writeFileSync(file, '');
  assert.match(
    await refusalOf(file, operate),
    /is empty and contains no ledger; check DATABASE_URL, or restore a backup/,
  );
  assert.equal(statSync(file).size, 0, 'nothing is written');
  await serve(file);
});

test('a folder instead of a ledger file is refused with a one-sentence message', async () => {
  const file = temporaryFile();
  mkdirSync(file);
  assert.match(await refusalOf(file), FOREIGN);
});

test('a folder or a file without write permission is refused with a one-sentence message', async (t) => {
  const says = /cannot be opened for writing .*check that the file and its folder belong to the user that runs Scrip/;
  const file = temporaryFile();
  await makeHistory(file);
  const folder = dirname(file);
  t.after(() => chmodSync(folder, 0o700));
  const refusal = async (name: string) => {
    const { cannotOpen, message } = await otherProcess(t, 'hold', name, UNPRIVILEGED).answer();
    assert(cannotOpen, `${name} is refused`);
    return message;
  };
  chmodSync(file, 0o444);
  chmodSync(folder, 0o777);
  chmodSync(`${file}.lock`, 0o666);
  assert.match(await refusal(file), says);
  chmodSync(folder, 0o555);
  assert.match(await refusal(join(folder, 'new.db')), says);
  assert(!existsSync(join(folder, 'new.db')));
});

test('a `scrip` command that must not create a ledger reports that the ledger file is missing, and does not create it', async () => {
  const file = temporaryFile();
  assert.match(await refusalOf(file, operate), /^There is no ledger at .*; check DATABASE_URL\.$/);
  assert(!existsSync(file));
});

test('a ledger file is refused if the header of any page is damaged', async () => {
  for (const { file, page } of await damaged(temporaryFile(), 0))
    assert.match(await refusalOf(file), DAMAGED, `page ${page}`);
});

test('if damage in the middle of a page of a ledger file changes data, the file is refused or the audit finds the damage', async () => {
  const original = temporaryFile();
  const files = await damaged(original, PAGE_BYTES / 2);
  const whole = contentOf(original);
  let found = 0;
  for (const { file, page } of files) {
    const opened = await openSqliteStore(file, () => NOON).catch((error) => error);
    if (opened instanceof CannotOpen) {
      found += 1;
      continue;
    }
    await opened.ledger.close();
    const { tools } = openSqliteTools(file, { create: false });
    const problems = problemsOf(await auditOf(tools).finally(() => tools.close()));
    if (problems.length > 0) found += 1;
    else assert.deepEqual(contentOf(file), whole, `the damage to page ${page} was not found`);
  }
  assert(found > 0 && found < files.length, `damage was found in ${found} of ${files.length} files`);
});

test('tools that open a ledger file do not release the locks of a writer in the same process', async (t) => {
  const file = temporaryFile();
  const ledger = await openFor(t, file);
  await ledger.write([new EndUser(1, 1).add(1)]);
  const held = locksOf(file);
  if (held === 0) return t.diagnostic('this system has no /proc/locks, so the test cannot see the locks');
  await operate(file);
  // If the locks were released, another program could delete the write-ahead log that the writer still uses.
  assert.equal(locksOf(file), held);
});
