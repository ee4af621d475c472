// Tests faults of a ledger file, such as a full disk, a COMMIT with an unknown outcome, and a killed process.

import assert from 'node:assert/strict';
import { copyFileSync, existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { openSqliteStore } from '../../../../src/store/sqlite/sqlite-store.ts';
import { byHand, otherProcess } from '../../outside.ts';
import {
  ACCEPTED,
  balanceOf,
  EndUser,
  historyOf,
  keyed,
  makeHistory,
  PEOPLE,
  problemsOf,
  temporaryFile,
} from '../../temporary-ledger.ts';
import type { TestLedger } from '../../test-ledger.ts';
import { openFor, openInPlace, SMALL } from '../sqlite-ledger.ts';

const [ada, bob] = [new EndUser(1, 1), new EndUser(1, 2)];
const REFUSED = { refused: 'InsufficientFunds', requested: 100, available: 9 };
const UNKNOWN = { name: 'StoreFault', code: 'OutcomeUnknown' };

test('a failed COMMIT has an unknown outcome, and writes succeed again as soon as COMMITs do', async (t) => {
  for (const options of [{}, SMALL]) {
    const ledger = await openInPlace(t, temporaryFile(), options);
    await ledger.write([ada.add(10), bob.add(5)]);
    await ledger.write([ada.subtract(1)]);
    await ledger.whileCommitsFail(async () => {
      await assert.rejects(ledger.write([ada.subtract(2), keyed(bob.add(1), 'k', '1')]), UNKNOWN);
      assert.equal(await balanceOf(ledger, ada), 9, 'reads continue');
      await assert.rejects(ledger.write([ada.subtract(2)]), UNKNOWN);
      assert.deepEqual(
        await ledger.results([ada.subtract(100)]),
        [REFUSED],
        'a command that needs no COMMIT has an outcome',
      );
    });
    assert.deepEqual(await ledger.results([ada.subtract(3), keyed(bob.add(1), 'k', '2')]), [ACCEPTED, ACCEPTED]);
    assert.equal(ledger.trouble(), null);
    assert.deepEqual([await balanceOf(ledger, ada), await balanceOf(ledger, bob)], [6, 6]);
    assert.deepEqual(await historyOf(ledger, ada), ['-3 subtract', '-1 subtract', '+10 add']);
    assert.deepEqual(problemsOf(await ledger.audit()), []);
  }
});

async function troubleOf(ledger: TestLedger): Promise<string> {
  const until = performance.now() + 10_000;
  while (ledger.trouble() === null && performance.now() < until) await sleep(50);
  return ledger.trouble() ?? '';
}

for (const isReplaced of [false, true])
  test(`if the ledger file is ${isReplaced ? 'replaced by another ledger' : 'deleted'} while it is served, writes fail`, async (t) => {
    const file = temporaryFile();
    const ledger = await openFor(t, file);
    await ledger.write([ada.add(10)]);
    const other = temporaryFile();
    await makeHistory(other);
    if (isReplaced) renameSync(other, file);
    else rmSync(file);
    assert.match(await troubleOf(ledger), /its log or its lock was deleted or replaced while Scrip served it/);
    await assert.rejects(ledger.write([ada.subtract(1)]), { code: 'Internal' });
  });

test('if the ledger file is moved away while the writer is closed after a fault, the writer does not create a new file', async (t) => {
  const file = temporaryFile();
  const ledger = await openInPlace(t, file);
  await ledger.write([ada.add(10)]);
  const away = temporaryFile();
  await ledger.whileCommitsFail(async () => {
    renameSync(file, away);
    await assert.rejects(ledger.write([ada.subtract(1)]), UNKNOWN);
    assert(!existsSync(file));
    renameSync(away, file);
  });
  await assert.rejects(ledger.write([ada.subtract(1)]), { code: 'Internal', message: /was deleted or replaced/ });
});

for (const suffix of ['-wal', '.lock'])
  test(`if the file with the suffix ${suffix} is deleted while a ledger is served, writes fail`, async (t) => {
    const file = temporaryFile();
    const ledger = await openFor(t, file);
    await ledger.write([ada.add(10)]);
    await sleep(1_500);
    assert.equal(ledger.trouble(), null);
    rmSync(`${file}${suffix}`);
    assert.match(await troubleOf(ledger), /its log or its lock was deleted or replaced/);
  });

for (const isEmpty of [false, true])
  test(`a log beside ${isEmpty ? 'an empty' : 'no'} ledger file is not deleted: the file is refused until it is put back`, async (t) => {
    const file = temporaryFile();
    const ledger = await openFor(t, file);
    await ledger.write([ada.add(10)]);
    const [copy, away] = [temporaryFile(), temporaryFile()];
    copyFileSync(`${file}-wal`, `${copy}-wal`);
    copyFileSync(file, away);
    if (isEmpty) writeFileSync(copy, '');
    await assert.rejects(openFor(t, copy), { message: /is missing or empty, but its log .*-wal contains data/ });
    renameSync(away, copy);
    assert.equal(await balanceOf(await openFor(t, copy), ada), 10);
  });

test('consuming the feed and deleting expired idempotency records fail if their COMMIT fails, and succeed when they are repeated', async (t) => {
  const ledger = await openInPlace(t, temporaryFile());
  const key = await ledger.keys.create({ accountName: 'Lovelace Ltd', scope: 'read', secret: 'a secret' });
  await ledger.write([keyed(ada.add(10), 'k', '1')]);
  ledger.wall += 1_000;
  const retention = { grantsMs: 1, othersMs: 1 };
  await ledger.whileCommitsFail(async () => {
    await assert.rejects(ledger.consumeFeed(), UNKNOWN);
    await assert.rejects(ledger.deleteExpiredRecords(retention), UNKNOWN);
    await assert.rejects(ledger.keys.recordUses([key.id]), UNKNOWN);
  });
  await ledger.deleteExpiredRecords(retention);
  await ledger.consumeFeed();
  assert.deepEqual(await ledger.results([keyed(ada.add(10), 'k', '2')]), [ACCEPTED]);
  assert.deepEqual(problemsOf(await ledger.audit()), []);
});

test('the transaction IDs of a failed COMMIT are not used again', async (t) => {
  const ledger = await openInPlace(t, temporaryFile());
  await ledger.write([ada.add(10)]);
  for (let round = 0; round < 3; round++) {
    await ledger.whileCommitsFail(() => assert.rejects(ledger.write([bob.add(1), bob.add(1)]), UNKNOWN));
    await ledger.write([ada.subtract(1)]);
  }
  const { transactions } = await ledger.transactions(ada.key);
  const sequences = transactions.map(({ id }) => Number.parseInt(id.slice(19, 23), 16) & 0x3fff);
  assert.deepEqual(sequences, [11, 8, 5, 2], 'each failed COMMIT skips two transaction IDs');
});

test('after a failed COMMIT, reads show renewals as soon as the writer has reopened the ledger file', async (t) => {
  const ledger = await openInPlace(t, temporaryFile());
  await ledger.write([ada.startCycle(10, 1), ada.subtract(3)]);
  await ledger.whileCommitsFail(() => assert.rejects(ledger.write([ada.subtract(1)]), UNKNOWN));
  await turn();
  assert.equal(ledger.trouble(), null);
  assert.equal(await balanceOf(ledger, ada), 7);
  ledger.wall += 86_400_000;
  assert.equal(await balanceOf(ledger, ada), 10);
});

test('the writer of a ledger file recovers by itself when COMMITs succeed again', async (t) => {
  const ledger = await openFor(t, temporaryFile());
  await ledger.write([ada.add(10)]);
  await ledger.whileCommitsFail(() => assert.rejects(ledger.write([ada.subtract(1)]), UNKNOWN));
  for (let tries = 0; ledger.trouble() !== null; tries++) {
    assert(tries < 100, 'the writer tries again once a second');
    await sleep(50);
  }
  assert.equal(await balanceOf(ledger, ada), 10);
  assert.deepEqual(await ledger.results([ada.subtract(1)]), [ACCEPTED]);
});

describe('another program writes to the ledger file', { concurrency: 2 }, () => {
  // These two tests run at the same time, because each waits five seconds for the lock.
  test('while another program holds the write lock of a ledger file, writes wait for a while and then fail without effect', async (t) => {
    const file = temporaryFile();
    const ledger = await openFor(t, file);
    const other = new DatabaseSync(file);
    other.exec('BEGIN IMMEDIATE');
    const waited = ledger.results([ada.add(1)]);
    await sleep(200);
    other.exec('ROLLBACK');
    assert.deepEqual(await waited, [ACCEPTED]);
    other.exec('BEGIN IMMEDIATE');
    const refused = ledger.write([ada.add(10)]);
    assert.equal(await balanceOf(ledger, ada), 1, 'reads do not wait');
    await assert.rejects(refused, { name: 'StoreFault', code: 'StoreUnavailable' });
    assert.notEqual(ledger.trouble(), null);
    other.close();
    assert.deepEqual(await ledger.results([ada.subtract(1)]), [ACCEPTED]);
    assert.equal(ledger.trouble(), null);
    assert.equal(await balanceOf(ledger, ada), 0, 'the failed addition did not happen');
    assert.deepEqual(problemsOf(await ledger.audit()), []);
  });

  test('if another program holds the write lock of a ledger file, a starting server waits for a while and then fails with an error that says what to do', async (t) => {
    const file = temporaryFile();
    await makeHistory(file);
    const other = new DatabaseSync(file);
    t.after(() => other.close());
    other.exec('BEGIN IMMEDIATE');
    const message = /^\/.*scrip\.db is locked by another process .*\. Stop that process, then try again\.$/;
    await assert.rejects(openSqliteStore(file), { name: 'CannotOpen', message });
  });
});

test('on a full disk, writes fail, reads continue, and no acknowledged write is lost', {
  skip: process.platform === 'win32' && 'Windows has no limit on the size of files',
}, async (t) => {
  const file = temporaryFile();
  const filled = otherProcess(t, 'fill', file, { shell: 'ulimit -f 2048' });
  const { added, first, second, cycles } = await filled.answer();
  assert.match(first.code, /^(OutcomeUnknown|StoreUnavailable)$/);
  assert.match(first.trouble, /disk|full/);
  assert.equal(cycles, 1, 'stored data can be read');
  await filled.kill();
  const ledger = await openFor(t, file);
  assert(
    added > 0 && (await balanceOf(ledger, new EndUser(1, added - 1))) === 1,
    'the last acknowledged write is stored',
  );
  // The second batch is smaller, so it may still fit into the write-ahead log and succeed.
  if (second?.code !== 'OutcomeUnknown')
    assert.equal(await balanceOf(ledger, new EndUser(2, 1)), second === null ? 1 : 0);
  assert.deepEqual(problemsOf(await ledger.audit()), []);
});

test('after a kill -9 during writes, the ledger is correct and has all acknowledged writes', async (t) => {
  const file = temporaryFile();
  let times = 0;
  for (const killAfter of [1, 20, 60]) {
    const writer = otherProcess(t, 'write', file);
    const before = times;
    while (times < before + killAfter) times = before + (await writer.answer()).times;
    await writer.kill();
    const ledger = await openFor(t, file);
    const users = Array.from({ length: 8 }, (_, index) => new EndUser(1, index));
    const balances = await Promise.all(users.map((user) => balanceOf(ledger, user)));
    assert.equal(new Set(balances).size, 1, 'a batch is stored as a whole or not at all');
    assert(Number(balances[0]) >= 2 * times, `${balances[0]} credits are stored after ${times} batches`);
    times = Number(balances[0]) / 2;
    assert.deepEqual(problemsOf(await ledger.audit()), []);
    await ledger.close();
  }
});

test('if a write finds a row that was changed by hand, all further writes fail, but reads fail only for the end user of the row', async (t) => {
  const file = temporaryFile();
  await makeHistory(file);
  const ledger = await openFor(t, file);
  const { eternal, namesake } = PEOPLE;
  assert.deepEqual(await ledger.results([namesake.subtract(1)]), [ACCEPTED]);
  byHand(file, `UPDATE balances SET plan = '9/366d' WHERE type = 'recurring' AND amount = 9`);
  const halted = { name: 'StoreFault', code: 'Internal', message: 'a cycle ends when its validity ends' };
  await assert.rejects(ledger.write([namesake.subtract(1), eternal.subtract(1)]), halted);
  await assert.rejects(ledger.write([namesake.subtract(1)]), halted, 'writes for other end users fail too');
  assert.equal(ledger.trouble(), halted.message);
  await assert.rejects(ledger.load(eternal.key), halted);
  await assert.rejects(ledger.transactions(eternal.key), halted);
  assert.equal(await balanceOf(ledger, namesake), 4, 'the failed batch changed nothing');
});

test('as soon as a read finds a row that was changed by hand, all writes fail', async (t) => {
  const file = temporaryFile();
  await makeHistory(file);
  const ledger = await openFor(t, file);
  byHand(file, `UPDATE balances SET plan = '9/366d' WHERE type = 'recurring' AND amount = 9`);
  const halted = { name: 'StoreFault', code: 'Internal', message: 'a cycle ends when its validity ends' };
  await assert.rejects(ledger.load(PEOPLE.eternal.key), halted);
  assert.equal(ledger.trouble(), halted.message);
  await assert.rejects(ledger.write([PEOPLE.namesake.subtract(1)]), halted);
});
