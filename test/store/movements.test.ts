// Movements in a ledger file: that verify sees when they are not what the postings say, that they can be added up again,
// that those of many batches are, and that a ledger from before there were any gets them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DAY_MS } from '../../src/ledger/instant.ts';
import { openSqliteStore, openSqliteStoreBeside } from '../../src/store/sqlite/sqlite-store.ts';
import { byHand, readByHand } from './outside.ts';
import { ledgerAt, scrip } from './scrip-command.ts';
import { auditOf, EndUser, makeHistory, NOON, temporaryFile } from './temporary-ledger.ts';

const WHOLE = { findings: [], store: [] };

async function auditAt(file: string) {
  const beside = openSqliteStoreBeside(file);
  return auditOf(beside).finally(() => beside.close());
}

/** A ledger in which some movements are added up already, and some are not. */
async function makeBoth(file: string): Promise<void> {
  let now = NOON;
  const store = await openSqliteStore(file, () => now);
  // Each of these ends in an hour of its own, so that all entries differ.
  for (let batch = 0; batch < 12; batch++) {
    now += 3_600_000;
    await store.write(Array.from({ length: 200 }, (_, index) => new EndUser(1, index).add(9, 1 + index)));
    await store.write(Array.from({ length: 200 }, (_, index) => new EndUser(1, index).subtract(1)));
  }
  await store.close();
}

const CHANGES: readonly (readonly [what: string, sql: string])[] = [
  ['one credit more', 'UPDATE movements SET low = low + 1'],
  ['2^31 credits more', 'UPDATE movements SET high = high + 1'],
  ['one end user or transaction more', 'UPDATE movements SET count = count + 1'],
  ['another account', 'UPDATE movements SET account = 2'],
  ['another slot', 'UPDATE movements SET slot = -slot'],
  ['a row that is gone', 'DELETE FROM movements'],
];

test('a movement that was changed by hand is found, and put right by adding up again', async () => {
  const file = temporaryFile();
  await makeBoth(file);
  assert.deepEqual(await auditAt(file), WHOLE);
  const future = 'slot = (SELECT max(slot) FROM movements WHERE series = 0)';
  const past = 'series = 4 AND slot = (SELECT min(slot) FROM movements WHERE series = 4)';
  for (const [what, change] of CHANGES) {
    for (const which of [future, past]) {
      const sql = `${change} WHERE ${which}`;
      byHand(file, sql);
      const { findings, store } = await auditAt(file);
      assert.deepEqual(findings, []);
      assert.match(
        store.join('\n'),
        /^the totals of account \d \(series \d, slot -?\d+\) lack -?\d+ credits/,
        `${what}: ${sql}`,
      );
      const again = openSqliteStoreBeside(file);
      await again.addUpTotals();
      await again.close();
      assert.deepEqual(await auditAt(file), WHOLE, `${what}: ${sql}`);
    }
  }
});

test('movements that wait are found when they are changed, and recent activity when it is gone', async () => {
  const file = temporaryFile();
  await makeHistory(file);
  assert(readByHand(file, 'SELECT * FROM recent_movements').length > 1);
  for (const [sql, says] of [
    ['DELETE FROM recent_movements WHERE batch = 1', /^the totals of account 1 /],
    [
      `UPDATE recent_movements SET entries = replace(entries, '[1,', '[2,') WHERE batch = 2`,
      /^the totals of account 2 /m,
    ],
    ['DELETE FROM account_activity WHERE account = 2', /^the recent activity of account 2 /],
  ] as const) {
    byHand(file, sql);
    const { code, stdout } = await scrip(['verify'], ledgerAt(file));
    assert.equal(code, 1, sql);
    assert.match(stdout.replaceAll('store: ', ''), says, sql);
    const { stdout: told } = await scrip(['migrate', '--totals'], ledgerAt(file));
    assert.match(told, /The totals are what the postings say\./);
    assert.deepEqual(await auditAt(file), WHOLE, sql);
  }
});

test('the movements of many batches are added up, and those that wait outlive a restart', async () => {
  const file = temporaryFile();
  await makeBoth(file);
  assert(readByHand(file, 'SELECT * FROM movements').length > 200, 'some are added up');
  const waiting = readByHand(file, 'SELECT json_array_length(entries) AS count FROM recent_movements');
  const count = waiting.reduce((sum, { count }) => sum + Number(count), 0);
  assert(count > 0 && count < 4_096, `${count} wait`);
  const store = await openSqliteStore(file, () => NOON + DAY_MS);
  for (let batch = 0; batch < 45; batch++)
    await store.write(Array.from({ length: 200 }, (_, index) => new EndUser(1, index).subtract(1)));
  await store.close();
  assert.deepEqual(await auditAt(file), WHOLE);
});

test('a ledger from before there were movements gets them from its postings', async () => {
  const file = temporaryFile();
  await makeHistory(file);
  const before = await overviewsAt(file);
  byHand(
    file,
    `DROP VIEW movement_differences; DROP VIEW movement_entries; DROP TABLE movements; DROP TABLE recent_movements;
     DROP TABLE account_activity; ALTER TABLE postings DROP COLUMN note;
     ALTER TABLE api_keys DROP COLUMN name; ALTER TABLE api_keys DROP COLUMN last_used_at;
     ALTER TABLE holdings DROP COLUMN chain; ALTER TABLE holdings DROP COLUMN posting_count; DROP TABLE landmarks; DROP TABLE posted;
     DROP TABLE answer_slips; DROP TABLE answer_segments; DROP TABLE answer_buckets;
     DROP TABLE answer_seed;
     PRAGMA user_version = 3`,
  );
  const after = await overviewsAt(file);
  assert.deepEqual(after, before);
  assert(after.every(({ outstanding }) => outstanding > 0n));
  assert.deepEqual(await auditAt(file), WHOLE);
});

/** At the instant at which the history ends. */
async function overviewsAt(file: string) {
  const store = await openSqliteStore(file, () => NOON + 21 * DAY_MS);
  const overviews = await Promise.all([1, 2].map((account) => store.accountReads.overview(account, { days: 30 })));
  const recent = await Promise.all([1, 2].map((account) => store.accountReads.recent(account, 100)));
  await store.close();
  return overviews.map((overview, index) => ({
    ...overview,
    recent: recent[index]?.map(({ note: _, ...each }) => each),
  }));
}
