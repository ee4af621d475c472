// Tests tamper evidence: a digest that is stored elsewhere reveals every change to the history.

import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { before, test } from 'node:test';
import { deriveEvents } from '../../../src/events/derive.ts';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import { InvariantViolation } from '../../../src/ledger/invariant.ts';
import { backUpFile, restoreFile } from '../../../src/store/sqlite/tools/backup.ts';
import { openSqliteDestination, openSqliteSource } from '../../../src/store/sqlite/tools/copying.ts';
import { openSqliteTools } from '../../../src/store/sqlite/tools/ledger-tools.ts';
import { copyLedger } from '../../../src/store/tools/copy.ts';
import type { PostingsDigest } from '../../../src/store/tools/ledger-digest.ts';
import { byHand } from '../outside.ts';
import { auditBeside, openInPlace } from '../sqlite/sqlite-ledger.ts';
import { EndUser, makeHistory, NOON, PEOPLE, problemsOf, temporaryFile } from '../temporary-ledger.ts';

let file = '';
before(async () => {
  file = temporaryFile();
  await makeHistory(file);
  // Scrip stores snapshots at random, and a snapshot would reveal some changes.
  byHand(file, 'DELETE FROM snapshots');
});

const ADA = "account = 1 AND substr(hex(end_user), 32) = '1'";
const LAST = `posting = (SELECT latest_posting FROM balances WHERE ${ADA} AND type = 'end-user')`;
const flipTail = (column: string) =>
  `CAST(substr(${column}, 1, 15) || CASE substr(hex(${column}), 31) WHEN '01' THEN x'02' ELSE x'01' END AS BLOB)`;

interface Tampering {
  readonly what: string;
  readonly sql: string;
  /** What reveals the change: always the audit, the audit only until the totals are rebuilt, or only a digest. */
  readonly foundBy: 'audit' | 'totals' | 'digest';
}

const TAMPERINGS: readonly Tampering[] = [
  {
    what: 'a changed note',
    sql: `UPDATE postings SET note = 'x' WHERE note IS NOT NULL`,
    foundBy: 'digest',
  },
  { what: 'a removed note', sql: 'UPDATE postings SET note = NULL WHERE note IS NOT NULL', foundBy: 'digest' },
  {
    what: 'a transaction ID whose random part was changed',
    sql: `UPDATE postings SET transaction_id = ${flipTail('transaction_id')} WHERE ${LAST}`,
    foundBy: 'digest',
  },
  {
    what: 'a released hold whose credits were changed',
    sql: 'UPDATE postings SET held = 9 WHERE held = 8; UPDATE postings SET held = -9 WHERE held = -8',
    foundBy: 'digest',
  },
  {
    what: 'a released hold whose expiry was changed',
    sql: 'UPDATE postings SET hold_expires_at = hold_expires_at + 1 WHERE held = 8',
    foundBy: 'digest',
  },
  {
    what: 'a refund whose reference was changed to another transaction',
    sql: `UPDATE postings SET reference = (SELECT transaction_id FROM postings WHERE kind = 'capture' AND amount = -6)
      WHERE kind = 'refund' AND amount = 2`,
    foundBy: 'digest',
  },
  {
    what: 'an earlier plan whose rollover limit was changed',
    sql: `UPDATE postings SET terms = 'recurring/200/3d/151' WHERE terms = 'recurring/200/3d/150';
      UPDATE balances SET plan = '200/3d/151' WHERE plan = '200/3d/150'`,
    foundBy: 'digest',
  },
  {
    what: 'a posting whose actor was changed to another API key',
    sql: `UPDATE postings SET actor = 'key:9' WHERE ${LAST}`,
    foundBy: 'totals',
  },
  {
    what: 'a changed subtraction in an earlier period',
    sql: 'UPDATE postings SET amount = amount + 1 WHERE amount = -30',
    foundBy: 'totals',
  },
  {
    what: 'a removed subtraction whose credits were returned',
    sql: `CREATE TEMP TABLE gone AS SELECT * FROM postings WHERE ${LAST};
      UPDATE balances SET latest_posting = (SELECT previous FROM gone) WHERE ${ADA} AND type = 'end-user';
      UPDATE balances SET remaining = remaining - (SELECT amount FROM gone)
        WHERE ${ADA} AND cycle_id = (SELECT cycle_id FROM gone);
      DELETE FROM postings WHERE posting = (SELECT posting FROM gone)`,
    foundBy: 'audit',
  },
  {
    what: 'a larger subtraction with matching remaining credits',
    sql: `UPDATE postings SET amount = amount - 1 WHERE ${LAST};
      UPDATE balances SET remaining = remaining - 1
        WHERE ${ADA} AND cycle_id = (SELECT cycle_id FROM postings WHERE ${LAST})`,
    foundBy: 'audit',
  },
  {
    what: 'the removal of an end user with its whole history',
    sql: `DELETE FROM postings WHERE ${ADA}; DELETE FROM balances WHERE ${ADA}`,
    foundBy: 'audit',
  },
  {
    what: 'a subtraction that was moved to another cycle',
    sql: `UPDATE postings SET cycle_id = ${flipTail('cycle_id')} WHERE ${LAST}`,
    foundBy: 'audit',
  },
  {
    what: 'a posting whose period was changed',
    sql: `UPDATE postings SET period = period + 1 WHERE ${LAST}`,
    foundBy: 'audit',
  },
  {
    what: 'a posting whose kind was changed',
    sql: `UPDATE postings SET kind = 'stop-cycle' WHERE ${LAST}`,
    foundBy: 'audit',
  },
  {
    what: 'a posting whose amount was changed',
    sql: `UPDATE postings SET amount = amount + 1 WHERE ${LAST}`,
    foundBy: 'audit',
  },
  {
    what: 'a posting whose instant was changed',
    sql: `UPDATE postings SET created_at = created_at + 1 WHERE ${LAST}`,
    foundBy: 'audit',
  },
  {
    what: 'a posting whose expiry was changed',
    sql: `UPDATE postings SET expires_at = expires_at + 1 WHERE ${LAST}`,
    foundBy: 'audit',
  },
];

const FOUND = {
  audit: 'by the audit and by a digest',
  totals: 'by the audit until the totals are rebuilt, and always by a digest',
  digest: 'only by a digest',
};

for (const { what, sql, foundBy } of TAMPERINGS) {
  test(`${what} is found ${FOUND[foundBy]}`, async (t) => {
    const [digest] = await digestsOf(file);
    assert(digest);
    const tampered = copied(file);
    byHand(tampered, sql);
    const isFound = async () => problemsOf(await auditBeside(tampered)).length > 0;
    assert.equal(await isFound(), foundBy !== 'digest', 'with the old totals');
    await rebuildTotals(tampered);
    assert.equal(await isFound(), foundBy === 'audit', 'with rebuilt totals');
    // A digest cannot be computed if the postings violate an invariant.
    const [later] = await digestsOf(tampered, [digest.through]).catch((error) => {
      assert(error instanceof InvariantViolation && foundBy === 'audit', error);
      return [];
    });
    assert.notDeepEqual(later, digest);
    if (foundBy === 'audit') return;
    const ledger = await openInPlace(t, tampered, { wall: NOON + 30 * DAY_MS });
    await ledger.consumeFeed();
    assert.deepEqual(
      problemsOf(await ledger.audit()),
      [],
      'the audit finds nothing wrong when the totals are counted from the changed postings',
    );
  });
}

test('a digest reveals that a ledger was replaced with an older backup, and a digest stays valid after later writes', async (t) => {
  const grown = copied(file);
  const ledger = await openInPlace(t, grown, { wall: NOON + 30 * DAY_MS });
  const [early] = await ledger.digest();
  await ledger.write([PEOPLE.oneTime.add(5), PEOPLE.renewing.settle(), PEOPLE.eternal.settle()]);
  const [late] = await ledger.digest();
  assert(early && late);
  const both = [early.through, late.through];
  assert.deepEqual(await ledger.digest(both), [early, late]);
  assert.deepEqual(problemsOf(await auditBeside(file)), [], 'the audit finds nothing wrong in the older ledger');
  const [same, other] = await digestsOf(file, both);
  assert.deepEqual([same, other?.sha256 === late.sha256], [early, false]);
});

test('a copy and a restored backup match the digest of their source, and can be written to', async (t) => {
  const [digest] = await digestsOf(file);
  assert(digest);
  const [backup, restored, copy] = [temporaryFile(), temporaryFile(), temporaryFile()];
  await backUpFile(file, backup, () => {});
  await restoreFile(backup, restored, () => {});
  const [source, destination] = [openSqliteSource(file), openSqliteDestination(copy)];
  await copyLedger(
    source,
    async () => destination,
    deriveEvents,
    () => {},
  );
  await Promise.all([source.close(), destination.close()]);
  for (const path of [restored, copy]) {
    assert.deepEqual(await digestsOf(path, [digest.through]), [digest]);
    const ledger = await openInPlace(t, path, { wall: NOON + 40 * DAY_MS });
    await ledger.write([PEOPLE.oneTime.add(5), new EndUser(3, 1).add(1)]);
    assert.deepEqual(await ledger.digest([digest.through]), [digest]);
    byHand(path, `UPDATE postings SET note = 'x' WHERE note IS NOT NULL`);
    assert.notDeepEqual(await ledger.digest([digest.through]), [digest]);
  }
});

function copied(path: string): string {
  const copy = temporaryFile();
  copyFileSync(path, copy);
  return copy;
}

async function digestsOf(path: string, through: readonly string[] | null = null): Promise<readonly PostingsDigest[]> {
  const { tools } = openSqliteTools(path, { create: false });
  return await tools.digest(through).finally(() => tools.close());
}

async function rebuildTotals(path: string): Promise<void> {
  const { tools } = openSqliteTools(path, { create: false });
  await tools.rebuildTotals().finally(() => tools.close());
}
