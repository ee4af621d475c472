// Tests the audit of data that is derived from postings, such as totals and snapshots, and of the indexes, positions
// and pages of a ledger file.

import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { before, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { POSTING_KINDS } from '../../../src/ledger/posting.ts';
import { openSqliteTools } from '../../../src/store/sqlite/tools/ledger-tools.ts';
import { CannotOpen } from '../../../src/store/store-fault.ts';
import { byHand, damaged, otherProcess, readByHand } from '../outside.ts';
import { auditBeside, crashed, openFor, openInPlace } from '../sqlite/sqlite-ledger.ts';
import { ENDLESS, EndUser, makeHistory, PEOPLE, problemsOf, temporaryFile } from '../temporary-ledger.ts';

const AUDIT_MS_MAX = 20_000;

const [ada, eve] = [new EndUser(1, 1), new EndUser(2, 1)];

let file = '';
before(async () => {
  file = temporaryFile();
  await makeHistory(file);
});

async function problemsAfter(sql: string, of = file): Promise<string> {
  const copy = crashed(of);
  byHand(copy, sql);
  return problemsOf(await auditBeside(copy)).join('\n');
}

const TAMPERED_TOTALS: readonly (readonly [what: string, sql: string])[] = [
  [
    'a total with one credit too many',
    `UPDATE daily_totals SET credits = CAST(CAST(credits AS INTEGER) + 1 AS TEXT) WHERE kind = 'add'`,
  ],
  [
    'a total with one transaction too many',
    `UPDATE daily_totals SET transactions = transactions + 1 WHERE kind = 'subtract'`,
  ],
  ['a total of the wrong account', 'UPDATE daily_totals SET account = account + 7'],
  ['a total of the wrong day', 'UPDATE daily_totals SET day = day + 100'],
  ['a total of the wrong actor', `UPDATE daily_totals SET actor = actor || '0'`],
  ['a missing total', `DELETE FROM daily_totals WHERE kind = 'renew'`],
  ['an extra total', `INSERT INTO daily_totals VALUES (1, 20000, 'add', 'key:1', '5', 1)`],
  ['a total that is not a number', `UPDATE daily_totals SET credits = 'many' WHERE kind = 'renew'`],
  ['an expiry total of the wrong hour', 'UPDATE expiry_totals SET hour = hour + 1'],
  [
    'an expiry total with one credit too few',
    `UPDATE expiry_totals SET credits = CAST(CAST(credits AS INTEGER) - 1 AS TEXT) WHERE account = 2`,
  ],
  ['a missing expiry total', 'DELETE FROM expiry_totals WHERE account = 2'],
  ['the deletion of all totals', 'DELETE FROM daily_totals; DELETE FROM expiry_totals'],
  ['a wrong number of end users', 'UPDATE end_user_counts SET with_credits = with_credits - 1'],
  ['a missing number of end users', 'DELETE FROM end_user_counts WHERE account = 2'],
];

for (const [what, sql] of TAMPERED_TOTALS) {
  test(`${what} is found by the audit, and repaired by rebuilding the totals`, async (t) => {
    const copy = crashed(file);
    byHand(copy, sql);
    const audited = await auditBeside(copy);
    assert.deepEqual(audited.findings, []);
    assert.match(audited.store.join('\n'), /totals|summaries/);
    const { tools } = openSqliteTools(copy, { create: false });
    await tools.rebuildTotals();
    await tools.close();
    const ledger = await openFor(t, copy);
    const before = await ledger.console.overview(1, { days: 366 });
    assert.equal(before.outstanding, 0n, 'the totals are counted again from the first posting');
    assert.equal((await ledger.console.endUserCounts(1)).endUsers, 7, 'the end users are counted immediately');
    await ledger.consumeFeed();
    assert.deepEqual(problemsOf(await ledger.audit()), []);
  });
}

const TAMPERED_SUMMARIES: readonly (readonly [what: string, sql: string])[] = [
  ['a summary with a balance that is one credit too high', 'UPDATE end_user_summaries SET balance = balance + 1'],
  ['a summary with an expiry that is too early', 'UPDATE end_user_summaries SET expires_at = expires_at - 1'],
  ['a summary without its expiry', 'UPDATE end_user_summaries SET expires_at = NULL'],
  ['a summary with the wrong latest activity', 'UPDATE end_user_summaries SET latest_activity = latest_activity + 1'],
  ['a missing summary', 'DELETE FROM end_user_summaries WHERE account = 2'],
  [
    'a summary of an end user that does not exist',
    `INSERT INTO end_user_summaries VALUES (7, zeroblob(16), 1, NULL, 1, 1, 1, 1, 7, '[[]]', NULL)`,
  ],
  ['a summary with the wrong latest posting', 'UPDATE end_user_summaries SET latest_posting = latest_posting - 1'],
  [
    'a summary with a plan that the end user does not have',
    `UPDATE end_user_summaries SET state = replace(state, 'd"', 'd/7"')`,
  ],
  ['a summary without the instant of its next event', 'UPDATE end_user_summaries SET due_at = NULL'],
  ['a position in the journal before the postings that a summary includes', 'UPDATE feed_positions SET posting = 1'],
  ['a summary derived only up to an instant before the latest posting', 'UPDATE end_user_summaries SET derived_to = 1'],
];

for (const [what, sql] of TAMPERED_SUMMARIES)
  test(`${what} is found by the audit`, async () => {
    assert.match(await problemsAfter(sql), /summaries/);
  });

test('the audit finds totals for a day that a JavaScript date cannot represent', async () => {
  assert.match(
    await problemsAfter('UPDATE daily_totals SET day = day + 9000000000000'),
    /^the totals of account 1 \(kind subtract, actor key:1, day starting at 7776\d{17} ms since 1970\)/m,
  );
});

test('the audit finds a changed amount in an earlier period only until the totals are rebuilt', async () => {
  const past = `UPDATE postings SET amount = amount + 1 WHERE amount = -30`;
  assert.match(
    await problemsAfter(past),
    /^the totals of account 1 \(kind subtract, actor key:1, day starting at \d{4}-\d\d-\d\dT00:00:00\.000Z\) do not match the postings: the credits differ by 1,/m,
  );
  // Also deletes the snapshots: Scrip stores snapshots at random, and a snapshot would reveal the change.
  const uncounted =
    'DELETE FROM snapshots; DELETE FROM feed_positions; DELETE FROM daily_totals; DELETE FROM expiry_totals; DELETE FROM end_user_summaries; DELETE FROM end_user_counts';
  assert.equal(
    await problemsAfter(`${uncounted}; ${past}`),
    '',
    'totals that are not counted yet do not reveal the change',
  );
  const digestOf = async (path: string) => {
    const { tools } = openSqliteTools(path, { create: false });
    return await tools.digest(null).finally(() => tools.close());
  };
  const changed = crashed(file);
  byHand(changed, past);
  assert.notDeepEqual(await digestOf(changed), await digestOf(file));
});

test('the audit reports no problem if the latest postings are not counted in the totals yet', async (t) => {
  const ledger = await openInPlace(t, crashed(file), { wall: Date.UTC(2026, 5, 1) });
  await ledger.write([ada.add(5), eve.add(5)]);
  assert.deepEqual(problemsOf(await ledger.audit()), []);
});

const MARKS: readonly (readonly [what: string, sql: string, says: RegExp])[] = [
  [
    'a position of the latest flushed posting that is beyond the end of the journal',
    'UPDATE flushed SET posting = posting + 1',
    /flushed .* beyond the end of the journal/,
  ],
  ['a missing position of the latest flushed posting', 'DELETE FROM flushed', /position of the latest flushed posting/],
  [
    'a feed consumer whose position is beyond the end of the journal',
    'UPDATE feed_positions SET posting = posting + 100',
    /consumer .* beyond the end of the journal/,
  ],
  [
    'a feed consumer whose position was set back by one posting',
    `UPDATE feed_positions SET posting = posting - 1 WHERE consumer = 'totals'`,
    /^the totals of account/m,
  ],
];

for (const [what, sql, says] of MARKS)
  test(`${what} is found by the audit`, async () => {
    assert.match(await problemsAfter(sql), says);
  });

test('the audit reports pending balances that the ledger file wrongly marks as flushed', async (t) => {
  const path = temporaryFile();
  const ledger = await openInPlace(t, path);
  await ledger.write([ada.add(10), eve.add(5)]);
  await ledger.write([ada.subtract(1)]);
  const skipped = 'UPDATE flushed SET posting = (SELECT max(posting) FROM postings)';
  assert.match(
    await problemsAfter(skipped, path),
    /^the number of stored postings \(3\) differs from the number of postings that belong to an end user \(0\)$/m,
  );
});

async function makeSnapshots(t: TestContext): Promise<string> {
  const path = temporaryFile();
  const ledger = await openInPlace(t, path);
  await ledger.write([ada.add(1_000_000), eve.add(1)]);
  const count = () => Number(readByHand(path, 'SELECT count(*) AS count FROM snapshots WHERE account = 1')[0]?.count);
  for (let written = 0; count() < 3; written += 100) {
    assert(written < 10_000, 'about one in 128 transactions is followed by a snapshot');
    for (let batch = 0; batch < 100; batch++) await ledger.write([ada.subtract(1)]);
  }
  await ledger.close();
  return path;
}

const LATER = '(SELECT max(posting) FROM snapshots WHERE account = 1)';
const SNAPSHOTS: readonly (readonly [what: string, sql: string])[] = [
  ['a snapshot with a changed state', `UPDATE snapshots SET state = '[]' WHERE posting = ${LATER}`],
  [
    'a snapshot with one credit too many',
    `UPDATE snapshots SET state = replace(state, '"active",1000000,', '"active",1000001,') WHERE posting = ${LATER}`,
  ],
  [
    'a snapshot that was moved to another posting',
    `UPDATE snapshots SET posting = posting - 1 WHERE posting = ${LATER}`,
  ],
  [
    'a snapshot that was moved to a posting that does not exist',
    `UPDATE snapshots SET posting = 99999999 WHERE posting = ${LATER}`,
  ],
  [
    'a snapshot with the ID of another transaction',
    `UPDATE snapshots SET transaction_id = (SELECT min(transaction_id) FROM postings WHERE account = 2) WHERE posting = ${LATER}`,
  ],
  ['a snapshot that was moved to another end user', `UPDATE snapshots SET account = 2 WHERE posting = ${LATER}`],
  ['a snapshot that was moved to an unknown end user', `UPDATE snapshots SET account = 9 WHERE posting = ${LATER}`],
  ['a snapshot that is not JSON', `UPDATE snapshots SET state = '[' WHERE posting = ${LATER}`],
];

test('the audit finds a snapshot that was changed by hand', async (t) => {
  const path = await makeSnapshots(t);
  assert.equal(await problemsAfter('SELECT 1', path), '');
  for (const [what, sql] of SNAPSHOTS)
    await t.test(`${what} is found by the audit`, async () => {
      assert.match(await problemsAfter(sql, path), /snapshot/);
    });
});

const PARTIAL_INDEXES = {
  one_active_cycle: ['balances', `type = 'recurring' AND status = 'active'`],
  due: ['balances', 'due_at IS NOT NULL'],
  refunds: ['postings', `kind = 'refund'`],
} as const;

function emptyIndex(path: string, index: keyof typeof PARTIAL_INDEXES): void {
  const [row] = readByHand(
    path,
    `SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema WHERE name = '${index}'`,
  );
  const changeSchema = (sql: string, ...values: string[]) => {
    const db = new DatabaseSync(path);
    db.enableDefensive(false);
    db.exec('PRAGMA writable_schema = ON');
    db.prepare(sql).run(...values);
    db.close();
  };
  const [table, rows] = PARTIAL_INDEXES[index];
  byHand(path, `CREATE TABLE aside AS SELECT * FROM ${table} WHERE ${rows}; DELETE FROM ${table} WHERE ${rows}`);
  changeSchema('DELETE FROM sqlite_schema WHERE name = ?', index);
  byHand(path, `INSERT INTO ${table} SELECT * FROM aside; DROP TABLE aside`);
  changeSchema(
    'INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES (?, ?, ?, ?, ?)',
    ...(Object.values(row ?? {}) as string[]),
  );
}

for (const index of Object.keys(PARTIAL_INDEXES) as (keyof typeof PARTIAL_INDEXES)[])
  test(`the audit finds rows that are missing from the index ${index}`, async () => {
    const copy = crashed(file);
    emptyIndex(copy, index);
    const { findings, store } = await auditBeside(copy);
    assert.deepEqual(findings, []);
    assert.match(store.join('\n'), new RegExp(`missing from index ${index}`));
  });

for (const kind of POSTING_KINDS) {
  test(`the audit finds a posting of kind ${kind} that links to itself, and does not loop forever`, async (t) => {
    const circling = temporaryFile();
    copyFileSync(file, circling);
    byHand(
      circling,
      `UPDATE postings SET previous = posting WHERE posting = (SELECT max(posting) FROM postings WHERE kind = '${kind}')`,
    );
    const late = new AbortController();
    const found = await Promise.race([
      otherProcess(t, 'audit', circling).answer(),
      sleep(AUDIT_MS_MAX, ENDLESS, { signal: late.signal }),
    ]);
    late.abort();
    assert.notEqual(found, ENDLESS);
    assert(found.findings.length + found.store.length > 0);
  });
}

test('the audit finds a number that is too large for JavaScript, in any table', async () => {
  for (const [table, column] of [
    ['postings', 'created_at'],
    ['idempotency_records', 'recorded_at'],
    ['daily_totals', 'transactions'],
    ['expiry_totals', 'hour'],
    ['end_user_summaries', 'latest_activity'],
    ['clock', 'sequence'],
    ['balances', 'latest_posting'],
  ]) {
    const insert = `INSERT INTO idempotency_records VALUES (2, 1, 1, zeroblob(16), 'k', 'add 1 1', 'r', NULL, NULL, 1)`;
    const sql = `${insert}; UPDATE OR IGNORE ${table} SET ${column} = ${2n ** 60n} WHERE ${column} IS NOT NULL`;
    assert.notEqual(await problemsAfter(sql), '', `${table}.${column}`);
  }
});

test('if a page is damaged, either the audit finds the damage, or the file cannot be opened', async () => {
  for (const { file, page } of await damaged(temporaryFile(), 0)) {
    try {
      assert.notDeepEqual((await auditBeside(file)).store, [], `page ${page}`);
    } catch (error) {
      assert(error instanceof CannotOpen, `page ${page}: ${error}`);
    }
  }
});

test('the audit finds nothing wrong in a correct ledger while a server writes to it', async (t) => {
  const busy = crashed(file);
  const ledger = await openFor(t, busy);
  let isOver = false;
  const { oneTime, renewing, rich, replacing } = PEOPLE;
  const writing = (async () => {
    while (!isOver) {
      await ledger.write([oneTime.add(2), oneTime.subtract(1), renewing.subtract(1), rich.stopCycle()]);
      await ledger.write([replacing.startCycle(3, 7, 'replace')]);
      await ledger.store.updateTotals();
    }
  })();
  for (let audits = 0; audits < 10; audits++) assert.deepEqual(problemsOf(await auditBeside(busy)), []);
  isOver = true;
  await writing;
});
