// Landmarks of a ledger file: they are there where they belong, however the postings came there, the audit finds every one
// that is wrong, and a page far back costs what a page of a short list costs.

import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { before, test } from 'node:test';
import { idsBetween } from '../../src/ledger/transaction-id.ts';
import { openSqliteStore, openSqliteStoreBeside } from '../../src/store/sqlite/sqlite-store.ts';
import { byHand } from './outside.ts';
import { scrip } from './scrip-command.ts';
import { auditOf, EndUser, NOON, temporaryFile } from './temporary-ledger.ts';

const STRIDE = 256;
/** How many postings each has. */
const ADA = new EndUser(1, 1);
const BOB = new EndUser(1, 2);
const EVE = new EndUser(2, 1);
const COUNTS = [
  [ADA, 3 * STRIDE],
  [BOB, STRIDE - 1],
  [EVE, 2 * STRIDE + 1],
] as const;

const file = temporaryFile();

before(async () => {
  let now = NOON;
  const store = await openSqliteStore(file, () => now);
  await store.write(COUNTS.map(([user]) => user.add(10_000)));
  for (let place = 2; place <= 3 * STRIDE; place++) {
    now += 1_000;
    // Others come between, so that the postings of one end user are no row of numbers.
    await store.write(COUNTS.filter(([, count]) => place <= count).map(([user]) => user.subtract(1)));
  }
  await store.close();
});

interface LandmarkRow {
  readonly account: number;
  readonly user: string;
  readonly transaction: string;
  readonly posting: number;
}

const ROWS = 'SELECT account, hex(end_user) AS user, hex(transaction_id) AS "transaction", posting FROM';

/** The landmarks of a file, and what they ought to be by its postings. */
function landmarksOf(path: string): { stored: LandmarkRow[]; expected: LandmarkRow[]; counts: number[] } {
  const db = new DatabaseSync(path, { readOnly: true });
  const rows = (sql: string) => db.prepare(sql).all() as unknown as LandmarkRow[];
  const stored = rows(`${ROWS} landmarks ORDER BY account, end_user, transaction_id`);
  const places = new Map<string, number>();
  const expected = rows(`${ROWS} postings ORDER BY account, end_user, posting`).filter(({ account, user }) => {
    const place = (places.get(`${account}/${user}`) ?? 0) + 1;
    places.set(`${account}/${user}`, place);
    return place % STRIDE === 0;
  });
  const counted = db.prepare(
    "SELECT posting_count AS count FROM holdings WHERE type = 'end-user' ORDER BY account, end_user",
  );
  const counts = counted.all().map(({ count }) => Number(count));
  db.close();
  return { stored, expected, counts };
}

function assertRight(path: string): void {
  const { stored, expected, counts } = landmarksOf(path);
  assert.equal(expected.length, 5);
  assert.deepEqual(stored, expected);
  assert.deepEqual(
    counts,
    COUNTS.map(([, count]) => count),
  );
}

test('each 256th posting of an end user is a landmark, and the audit agrees', async () => {
  assertRight(file);
  const store = openSqliteStoreBeside(file);
  assert.deepEqual(await auditOf(store), { findings: [], store: [] });
  await store.close();
});

test('a copy has them too, and goes on with them', async () => {
  const copy = temporaryFile();
  const { code, stderr } = await scrip(['copy', '--from', `file:${file}`, '--to', `file:${copy}`]);
  assert.equal(code, 0, stderr);
  assertRight(copy);
  const store = await openSqliteStore(copy);
  await store.write(Array.from({ length: STRIDE }, () => BOB.subtract(1)));
  assert.deepEqual(await auditOf(store), { findings: [], store: [] });
  await store.close();
});

/** The schema as it was before there were landmarks, and so before there were chains. */
const WITHOUT = `ALTER TABLE holdings DROP COLUMN chain; ALTER TABLE holdings DROP COLUMN posting_count;
  DROP TABLE landmarks; DROP TABLE posted; DROP TABLE answer_slips; DROP TABLE answer_segments;
  DROP TABLE answer_buckets; DROP TABLE answer_seed; PRAGMA user_version = 4`;

test('a ledger that was written before there were any gets them when it is opened', async () => {
  const old = temporaryFile();
  copyFileSync(file, old);
  byHand(old, WITHOUT);
  const store = await openSqliteStore(old);
  assertRight(old);
  await store.write(Array.from({ length: 3 }, () => BOB.subtract(1)));
  assert.deepEqual(await auditOf(store), { findings: [], store: [] });
  await store.close();
});

const SOME = `posting = (SELECT min(posting) FROM landmarks)`;
const MINE = `account = 1 AND end_user = (SELECT end_user FROM landmarks WHERE ${SOME})`;
const RIGHT = /the landmarks of account 1, end user .*0001 are not its postings/;

const CHANGES: readonly (readonly [what: string, sql: string, says: RegExp])[] = [
  ['a landmark that is gone', `DELETE FROM landmarks WHERE ${SOME}`, RIGHT],
  [
    'the latest landmark that is gone',
    'DELETE FROM landmarks WHERE account = 1 AND posting = (SELECT max(posting) FROM landmarks WHERE account = 1)',
    RIGHT,
  ],
  ['all landmarks that are gone', 'DELETE FROM landmarks', RIGHT],
  [
    'one that is too many',
    `INSERT INTO landmarks SELECT account, end_user, transaction_id, posting FROM postings WHERE ${MINE} AND kind = 'add'`,
    RIGHT,
  ],
  [
    'one that names the posting before',
    `UPDATE landmarks SET posting = (SELECT previous FROM postings WHERE posting = landmarks.posting) WHERE ${SOME}`,
    RIGHT,
  ],
  [
    'one that names a posting of somebody else',
    `UPDATE landmarks SET posting = (SELECT max(posting) FROM postings WHERE account = 2) WHERE ${SOME}`,
    RIGHT,
  ],
  ['one that names a posting which is not there', `UPDATE landmarks SET posting = 999999 WHERE ${SOME}`, RIGHT],
  [
    'one of another time',
    `UPDATE landmarks SET transaction_id = (SELECT min(transaction_id) FROM postings WHERE account = 1) WHERE ${SOME}`,
    RIGHT,
  ],
  ['one of another end user', `UPDATE landmarks SET account = 2 WHERE ${SOME}`, RIGHT],
  [
    'one of nobody',
    `INSERT INTO landmarks SELECT 9, end_user, transaction_id, posting FROM landmarks WHERE ${SOME}`,
    /6 landmarks are stored, and 5 belong to an end user/,
  ],
  [
    'a count that is one more',
    `UPDATE holdings SET posting_count = posting_count + 1 WHERE ${MINE} AND type = 'end-user'`,
    /counts 769 postings, and has 768/,
  ],
  [
    'a count that is one less',
    `UPDATE holdings SET posting_count = posting_count - 1 WHERE ${MINE} AND type = 'end-user'`,
    /counts 767 postings, and has 768/,
  ],
  ['a count that is gone', `UPDATE holdings SET posting_count = NULL WHERE ${MINE} AND type = 'end-user'`, /has 768/],
  ['a landmark past 2^53', `UPDATE landmarks SET posting = ${2n ** 62n} WHERE ${SOME}`, RIGHT],
];

for (const [what, sql, says] of CHANGES) {
  test(`${what} is found`, async () => {
    const changed = temporaryFile();
    copyFileSync(file, changed);
    byHand(changed, sql);
    const store = openSqliteStoreBeside(changed);
    const { findings, store: faults } = await auditOf(store);
    await store.close();
    assert.deepEqual(findings, []);
    assert.match(faults.join('\n'), says);
  });
}

test('a place far back is found by way of its landmark, not along the whole chain', async () => {
  const broken = temporaryFile();
  copyFileSync(file, broken);
  const { expected } = landmarksOf(broken);
  const [, second] = expected;
  // The chain is cut behind the second landmark: whoever walks from the latest posting finds nothing.
  byHand(broken, `UPDATE postings SET previous = NULL WHERE previous = ${second?.posting}`);
  const store = openSqliteStoreBeside(broken);
  const all = await store.transactions(ADA.key, { from: null, limit: 1_000 });
  assert.equal(all.transactions.length, STRIDE, 'the cut is there');
  const within = idsBetween(0, NOON + 300 * 1_000);
  const page = await store.transactions(ADA.key, { from: null, limit: 1_000, within });
  assert.equal(page.transactions.length, 301);
  assert.equal(page.transactions[0]?.createdAt, NOON + 300 * 1_000);
  await store.close();
});
