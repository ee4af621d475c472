// The ledger file: what SQLite itself refuses, who may open it, what is said when it cannot be opened, and what becomes
// of it when a process is killed, a disk is full or a row was changed by hand.

import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { hashOf } from '../../src/accounts/api-key.ts';
import { createApiKey } from '../../src/app.ts';
import { ACCEPTED } from '../../src/ledger/command.ts';
import { connect } from '../../src/store/sqlite/ledger-file.ts';
import { openSqliteStore, openSqliteStoreBeside } from '../../src/store/sqlite/sqlite-store.ts';
import { CannotOpen, type Store } from '../../src/store/store.ts';
import { byHand, contentOf, damaged, locksOf, otherProcess, PAGE_BYTES } from './outside.ts';
import { auditOf, balanceOf, EndUser, makeHistory, NOON, openFor, PEOPLE, temporaryFile } from './temporary-ledger.ts';

const IS_ROOT = process.getuid?.() === 0;
const WHOLE = { findings: [], store: [] };

async function refusalOf(
  file: string,
  open: (file: string) => Promise<Store> | Store = openSqliteStore,
): Promise<string> {
  const started = performance.now();
  let refusal: unknown = null;
  try {
    await (await open(file)).close();
  } catch (error) {
    refusal = error;
  }
  const ms = performance.now() - started;
  assert(refusal instanceof CannotOpen, `${file} is refused with a reason, not ${refusal}`);
  assert(ms < 1_000, `it takes ${ms} ms to say so`);
  assert.match(refusal.message, /^[A-Z/.].*\.$/s);
  return refusal.message;
}

test('a commit is on stable storage: write-ahead log, synchronous FULL, every table STRICT', async (t) => {
  const file = temporaryFile();
  await makeHistory(file);
  const db = connect(file);
  t.after(() => db.close());
  const pragma = (name: string) => Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0];
  assert.equal(pragma('journal_mode'), 'wal');
  assert.equal(pragma('synchronous'), 2, 'FULL');
  assert.equal(pragma('fullfsync'), 1, 'on macOS fsync alone does not reach the disk');
  const tables = db.prepare(
    `SELECT name, strict FROM pragma_table_list WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`,
  );
  assert.deepEqual(
    tables.all().filter(({ strict }) => strict !== 1),
    [],
  );
  assert.throws(() => db.exec(`UPDATE holdings SET remaining = 'many'`), /cannot store TEXT/);
});

test('a file without a write-ahead log, such as VACUUM INTO makes, gets one when it is opened', async () => {
  const file = temporaryFile();
  await makeHistory(file);
  byHand(file, 'PRAGMA journal_mode = DELETE');
  await (await openSqliteStore(file)).close();
  const db = new DatabaseSync(file);
  assert.equal(db.prepare('PRAGMA journal_mode').get()?.journal_mode, 'wal');
  db.close();
});

const OVERDRAFTS: readonly (readonly [what: string, sql: string])[] = [
  ['less than nothing remains', 'UPDATE holdings SET remaining = -1'],
  ['more remains than there was', 'UPDATE holdings SET remaining = amount + 1'],
  ['a subtraction adds', `UPDATE postings SET amount = 1 WHERE kind = 'subtract'`],
  ['an addition subtracts', `UPDATE postings SET amount = -1 WHERE kind = 'add'`],
  ['a posting follows itself', 'UPDATE postings SET previous = posting'],
  ['a cycle ends before it starts', 'UPDATE holdings SET starts_at = ends_at WHERE remaining >= 0'],
  ['nobody did it', `UPDATE postings SET actor = ''`],
];

test('the database itself refuses an overdraft, whoever writes it', async (t) => {
  const file = temporaryFile();
  await makeHistory(file);
  const db = new DatabaseSync(file);
  t.after(() => db.close());
  for (const [what, sql] of OVERDRAFTS) assert.throws(() => db.exec(sql), /CHECK constraint failed/, what);
  const second = `UPDATE holdings SET status = 'active' WHERE type = 'recurring'`;
  assert.throws(() => db.exec(second), /UNIQUE constraint failed/, 'two active cycles');
});

test('a ledger in use is refused: in this process, through a link, and to another process', async (t) => {
  const file = temporaryFile();
  const folder = dirname(file);
  const store = await openFor(t, file);
  symlinkSync(file, join(folder, 'link.db'));
  symlinkSync(folder, join(folder, 'folder'));
  for (const name of [file, relative('', file), join(folder, 'link.db'), join(folder, 'folder', 'scrip.db')])
    assert.match(await refusalOf(name), /is in use by another Scrip process; stop that one first/);
  const { cannotOpen, message, ms } = await otherProcess(t, 'hold', file).answer();
  assert(cannotOpen && ms < 1_000, `another process is refused at once, after ${ms} ms`);
  assert.match(message, /is in use by another Scrip process; stop that one first/);
  await store.close();
  await (await openSqliteStore(join(folder, 'link.db'))).close();
});

test('a ledger that was made through a link is in use under both names', async (t) => {
  const file = temporaryFile();
  const link = join(dirname(file), 'link.db');
  symlinkSync(file, link);
  await openFor(t, link);
  for (const name of [file, link]) assert.match(await refusalOf(name), /is in use by another Scrip process/);
});

test('a ledger whose holder was killed can be opened at once', async (t) => {
  const file = temporaryFile();
  const holder = otherProcess(t, 'hold', file);
  assert.deepEqual(await holder.answer(), { open: true });
  assert.match(await refusalOf(file), /is in use/);
  await holder.kill();
  const store = await openFor(t, file);
  assert.deepEqual(await store.write([new EndUser(1, 1).add(1)]), [ACCEPTED]);
  await store.close();
});

test('a ledger whose making was interrupted is made', async (t) => {
  const file = temporaryFile();
  byHand(file, 'PRAGMA page_size = 2048; PRAGMA journal_mode = WAL');
  assert(statSync(file).size > 0);
  const store = await openFor(t, file);
  assert.deepEqual(await store.write([new EndUser(1, 1).add(1)]), [ACCEPTED]);
  await store.close();
});

test('a ledger left by kill -9 in the middle of writing has all that was answered, and is whole', async (t) => {
  const file = temporaryFile();
  let times = 0;
  for (const killAfter of [1, 20, 60]) {
    const writer = otherProcess(t, 'write', file);
    const before = times;
    while (times < before + killAfter) times = before + (await writer.answer()).times;
    await writer.kill();
    const store = await openFor(t, file);
    const balances = await Promise.all(
      Array.from({ length: 8 }, (_, index) => balanceOf(store, new EndUser(1, index))),
    );
    assert.equal(new Set(balances).size, 1, 'a batch is there as one or not at all');
    assert(Number(balances[0]) >= 2 * times, `${balances[0]} credits are there after ${times} batches`);
    times = Number(balances[0]) / 2;
    assert.deepEqual(await auditOf(store), WHOLE);
    await store.close();
  }
});

const FOREIGN = /is not a Scrip ledger; point DATABASE_URL at another file/;
const DAMAGED = /is damaged .*; restore a backup/s;
const CLOCK = /clock .*run `scrip verify` and restore a backup/;

/** Pages and the clock are looked at by the one who wants to write; the rest by everybody. */
const REFUSED: readonly (readonly [what: string, make: (file: string) => void, says: RegExp, to: 'all' | 'writers'])[] =
  [
    [
      'a ledger of a newer Scrip',
      (file) => byHand(file, 'PRAGMA user_version = 99'),
      /newer .*start that version/,
      'all',
    ],
    ['a database of another program', (file) => byHand(file, 'PRAGMA application_id = 7'), FOREIGN, 'all'],
    ['a text file', (file) => writeFileSync(file, 'account,credits\n'), FOREIGN, 'all'],
    ['a file of zeroes', (file) => writeFileSync(file, Buffer.alloc(8_192)), FOREIGN, 'all'],
    ['half a header', (file) => truncateSync(file, 10), FOREIGN, 'all'],
    ['half a page', (file) => truncateSync(file, PAGE_BYTES / 2), DAMAGED, 'all'],
    ['half a ledger', (file) => truncateSync(file, statSync(file).size / 2), DAMAGED, 'writers'],
    ['all but the last page', (file) => truncateSync(file, statSync(file).size - PAGE_BYTES), DAMAGED, 'writers'],
    ['a clock a millisecond on', (file) => byHand(file, 'UPDATE clock SET at = at + 1'), CLOCK, 'writers'],
    ['a clock a millisecond back', (file) => byHand(file, 'UPDATE clock SET at = at - 1'), CLOCK, 'writers'],
    ['a clock further on', (file) => byHand(file, 'UPDATE clock SET sequence = sequence + 1'), CLOCK, 'writers'],
    ['a clock of no checksum', (file) => byHand(file, 'UPDATE clock SET checksum = 0'), CLOCK, 'writers'],
    ['a ledger without its clock', (file) => byHand(file, 'DELETE FROM clock'), /clock/, 'writers'],
  ];

for (const [what, make, says, to] of REFUSED) {
  test(`${what} is refused in a sentence, and left as it is`, async () => {
    const file = temporaryFile();
    await makeHistory(file);
    make(file);
    const before = readFileSync(file);
    assert.match(await refusalOf(file), says);
    if (to === 'all') assert.match(await refusalOf(file, openSqliteStoreBeside), says);
    assert(readFileSync(file).equals(before), 'nothing is written');
  });
}

test('a folder is refused in a sentence, and so is a path through a file', async () => {
  const file = temporaryFile();
  mkdirSync(file);
  assert.match(await refusalOf(file), FOREIGN);
  writeFileSync(`${file}.txt`, 'a file');
  assert.match(await refusalOf(`${file}.txt/scrip.db`), /folder .* cannot be made .*point DATABASE_URL/);
});

test('a folder or a file that Scrip may not write is refused in a sentence', {
  skip: IS_ROOT && 'root may',
}, async (t) => {
  const file = temporaryFile();
  await makeHistory(file);
  const says = /cannot be opened for writing .*check that it and its folder belong to the user that runs Scrip/;
  chmodSync(file, 0o400);
  assert.match(await refusalOf(file), says);
  chmodSync(dirname(file), 0o500);
  t.after(() => chmodSync(dirname(file), 0o700));
  assert.match(await refusalOf(join(dirname(file), 'new.db')), says);
});

test('a page whose head is damaged is refused, whichever it is', async () => {
  for (const { file, page } of await damaged(temporaryFile(), 0))
    assert.match(await refusalOf(file), DAMAGED, `page ${page}`);
});

test('what is said of a damaged page is one line', async () => {
  for (const { file, page } of await damaged(temporaryFile(), 0)) {
    const message = await refusalOf(file);
    assert(!message.includes('\n'), `page ${page}: ${JSON.stringify(message)}`);
  }
});

test('damage in the middle of a page is refused, or found by the audit, or hit nothing', async () => {
  const original = temporaryFile();
  const files = await damaged(original, PAGE_BYTES / 2);
  const whole = contentOf(original);
  let found = 0;
  for (const { file, page } of files) {
    const store = await openSqliteStore(file, () => NOON).catch((error) => error);
    if (store instanceof CannotOpen) {
      found += 1;
      continue;
    }
    const { findings, store: faults } = await auditOf(store);
    await store.close();
    if (findings.length + faults.length > 0) found += 1;
    else assert.deepEqual(contentOf(file), whole, `the damage of page ${page} went unseen`);
  }
  assert(found > 0 && found < files.length, `${found} of ${files.length} pages were hit`);
});

test('a ledger that is refused is let go of', async () => {
  const file = temporaryFile();
  await makeHistory(file);
  byHand(file, 'UPDATE clock SET at = at + 1');
  await refusalOf(file);
  assert(!existsSync(`${file}-shm`), 'the last one to close a ledger takes its shared memory away');
});

describe('while another program writes to the file', { concurrency: 2 }, () => {
  // SQLite waits five seconds for it, in the writer's thread: these two do so together.
  test('commands wait; after five seconds they are answered, and nothing has happened', async (t) => {
    const file = temporaryFile();
    const ada = new EndUser(1, 1);
    const store = await openFor(t, file);
    const other = new DatabaseSync(file);
    other.exec('BEGIN IMMEDIATE');
    const waited = store.write([ada.add(1)]);
    await sleep(200);
    other.exec('ROLLBACK');
    assert.deepEqual(await waited, [ACCEPTED]);
    other.exec('BEGIN IMMEDIATE');
    const refused = store.write([ada.add(10)]);
    assert.equal(await balanceOf(store, ada), 1, 'reads do not wait');
    await assert.rejects(refused, { name: 'StoreFault', code: 'StoreUnavailable' });
    assert.notEqual(store.trouble(), null);
    other.close();
    assert.deepEqual(await store.write([ada.subtract(1)]), [ACCEPTED]);
    assert.equal(store.trouble(), null);
    assert.equal(await balanceOf(store, ada), 0, 'what was refused did not happen');
    assert.deepEqual(await auditOf(store), WHOLE);
  });

  test('a start waits as long, and then says what to do', async (t) => {
    const file = temporaryFile();
    await makeHistory(file);
    const other = new DatabaseSync(file);
    t.after(() => other.close());
    other.exec('BEGIN IMMEDIATE');
    const sentence = /^\/.*scrip\.db .*(busy|in use).*; stop that one/;
    await assert.rejects(openSqliteStore(file), { name: 'CannotOpen', message: sentence });
  });
});

test('on a full disk writes fail, reads go on, and what was answered is there', {
  skip: process.platform === 'win32',
}, async (t) => {
  const file = temporaryFile();
  const filled = otherProcess(t, 'fill', file, 'ulimit -f 2048');
  const { added, first, second, cycles } = await filled.answer();
  assert.equal(first.code, 'OutcomeUnknown', 'a commit that fails may have happened');
  assert.match(first.trouble, /disk|full/);
  assert.equal(cycles, 1, 'what is there can be read');
  await filled.kill();
  const store = await openFor(t, file);
  assert(added > 0 && (await balanceOf(store, new EndUser(1, added - 1))) === 1, 'the last that was answered is there');
  // A smaller batch may find room in the log: it goes through, or it fails as well.
  if (second?.code !== 'OutcomeUnknown')
    assert.equal(await balanceOf(store, new EndUser(2, 1)), second === null ? 1 : 0);
  assert.deepEqual(await auditOf(store), WHOLE);
  await store.close();
});

test('a row that was changed by hand stops all writes, and the reads of that end user alone', async (t) => {
  const file = temporaryFile();
  await makeHistory(file);
  const store = await openFor(t, file);
  const { eternal, namesake } = PEOPLE;
  assert.deepEqual(await store.write([namesake.subtract(1)]), [ACCEPTED]);
  byHand(file, `UPDATE holdings SET validity_days = validity_days + 1 WHERE type = 'recurring' AND amount = 9`);
  const halted = { name: 'StoreFault', code: 'Internal', message: 'a cycle ends its validity after its start' };
  await assert.rejects(store.write([namesake.subtract(1), eternal.subtract(1)]), halted);
  await assert.rejects(store.write([namesake.subtract(1)]), halted, 'it stays halted, also for the others');
  assert.equal(store.trouble(), halted.message);
  await assert.rejects(store.cycles(eternal.key), halted);
  await assert.rejects(store.transactions(eternal.key, { from: null, limit: 1 }), halted);
  assert.equal(await balanceOf(store, namesake), 4, 'the batch that was halted did nothing');
});

test('keys made and revoked by another connection are seen at once', async (t) => {
  const file = temporaryFile();
  const store = await openFor(t, file);
  const beside = openSqliteStoreBeside(file);
  t.after(() => beside.close());
  const secret = await createApiKey(beside, { accountName: 'Lovelace Ltd', scope: 'read' });
  const key = await store.apiKeys.find(hashOf(secret));
  assert.equal(key?.scope, 'read');
  assert.deepEqual(await store.apiKeys.list(), await beside.apiKeys.list());
  assert.equal(await beside.apiKeys.revoke(key.id), true);
  assert.equal(await store.apiKeys.find(hashOf(secret)), null);
});

test('who looks on beside a server writes no credits', async (t) => {
  const file = temporaryFile();
  await makeHistory(file);
  const beside = openSqliteStoreBeside(file);
  t.after(() => beside.close());
  await assert.rejects(beside.write([PEOPLE.namesake.add(1)]), { code: 'StoreUnavailable' });
  assert.equal(await balanceOf(beside, PEOPLE.namesake), 5);
});

test('who looks on in the same process leaves the locks of the writer in place', async (t) => {
  const file = temporaryFile();
  const store = await openFor(t, file);
  await store.write([new EndUser(1, 1).add(1)]);
  const held = locksOf(file);
  if (held === 0) return t.skip('this system does not show its locks');
  await openSqliteStoreBeside(file).close();
  // Without them, another program that closes the file takes the log away that commits go to.
  assert.equal(locksOf(file), held);
});

test('what a reader has seen of time is kept, though nobody writes', async (t) => {
  const file = temporaryFile();
  const store = await openFor(t, file);
  const db = new DatabaseSync(file, { readOnly: true });
  t.after(() => db.close());
  await sleep(5);
  const { now } = await store.cycles(new EndUser(1, 1).key);
  for (let tries = 0; Number(db.prepare('SELECT at FROM clock').get()?.at) < now; tries++) {
    assert(tries < 100, 'a kill would make the ledger forget what it has shown');
    await sleep(50);
  }
});
