// Tests that each list of end users is read from a range of one index, so that later pages cost no more than the first.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { type EndUserList, listQuery } from '../../../../src/store/end-user-lists.ts';
import { listSql } from '../../../../src/store/sqlite/reads/console-reads.ts';
import { temporaryFile } from '../../temporary-ledger.ts';
import { openInPlace } from '../sqlite-ledger.ts';

const UUID = '5f000000-0000-4000-8000-000000000000';
const BEHIND = `7.8.${UUID}`;

const PLANS: readonly (readonly [list: EndUserList, after: string, plan: string])[] = [
  [{ by: 'activity' }, `8.${UUID}`, 'INDEX summaries_by_activity (account=? AND (latest_activity,end_user)<(?,?))'],
  [{ by: 'balance' }, BEHIND, 'INDEX summaries_by_balance (account=? AND (balance,latest_activity,end_user)<(?,?,?))'],
  [
    { by: 'low-balance', balanceMax: 9 },
    BEHIND,
    'INDEX summaries_by_balance (account=? AND (balance,latest_activity,end_user)>(?,?,?) AND balance<?)',
  ],
  [
    { by: 'no-credits' },
    `8.${UUID}`,
    'INDEX summaries_by_balance (account=? AND balance=? AND (latest_activity,end_user)<(?,?))',
  ],
  [
    { by: 'expiry', until: 9 },
    `8.${UUID}`,
    'INDEX summaries_by_expiry (account=? AND (expires_at,end_user)>(?,?) AND expires_at<?)',
  ],
  [{ by: 'id', prefix: '5' }, UUID, 'PRIMARY KEY (account=? AND end_user>? AND end_user<?)'],
];

for (const [list, after, plan] of PLANS) {
  test(`each page of the list of end users by ${list.by} is read with an index search that begins after the previous page`, async (t) => {
    const file = temporaryFile();
    await openInPlace(t, file);
    const db = new DatabaseSync(file, { readOnly: true });
    const query = listQuery({ list, after, limit: 50 });
    assert(query);
    const steps = db.prepare(`EXPLAIN QUERY PLAN ${listSql(query)}`).all(1, ...query.values, 51);
    db.close();
    assert.deepEqual(
      steps.map(({ detail }) => detail),
      [`SEARCH end_user_summaries USING ${plan}`],
    );
  });
}
