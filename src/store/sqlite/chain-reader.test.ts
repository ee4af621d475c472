// The chain of an end user's postings, read one by one and then in pieces: all of them in order at any length, and no
// further than to where it is broken, wherever that is.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { EndUserKey } from '../../ledger/command.ts';
import { PostingsReader } from './rows.ts';
import { bytesOf } from './uuid.ts';

const ADA: EndUserKey = { account: 1, endUser: '0a5d6e7c-8f90-4123-8456-7890abcdef01' };
const GRACE: EndUserKey = { account: 1, endUser: 'ffeeddcc-bbaa-4988-8766-554433221100' };
const ELSEWHERE: EndUserKey = { ...ADA, account: 2 };
/** More than the first pieces and some of the longest. */
const POSTINGS = 400;

function uuid(number: number): string {
  return `00000000-0000-4000-8000-${number.toString(16).padStart(12, '0')}`;
}

/** Each posting follows the one two before it: those of Ada have odd numbers, those of Grace even ones. */
function ledger(): DatabaseSync {
  const db = new DatabaseSync(':memory:');
  db.exec(`CREATE TABLE postings (
    posting INTEGER PRIMARY KEY, previous INTEGER, account INTEGER, end_user BLOB, transaction_id BLOB, cycle_id BLOB,
    period INTEGER, kind TEXT, amount INTEGER, created_at INTEGER, expires_at INTEGER, actor TEXT, note TEXT) STRICT`);
  const insert = db.prepare('INSERT INTO postings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)');
  for (let number = 1; number <= 2 * POSTINGS; number++) {
    const { account, endUser } = number % 2 === 1 ? ADA : GRACE;
    const ids = [bytesOf(endUser), bytesOf(uuid(number)), bytesOf(uuid(2 ** 40 + number))];
    const rest = [number % 3, 'subtract', -number, 1_000 + number, 2_000 + number, `key:${number}`, null];
    insert.run(number, number > 2 ? number - 2 : null, account, ...ids, ...rest);
  }
  return db;
}

const latestOf = (user: EndUserKey) => (user === GRACE ? 2 * POSTINGS : 2 * POSTINGS - 1);

function numbersFrom(db: DatabaseSync, user: EndUserKey, start = latestOf(user)): number[] {
  return Array.from(new PostingsReader(db).from(start, user), ({ number }) => number);
}

/** Down to the last one, which is among them. */
function everySecond(first: number, last: number): number[] {
  return Array.from({ length: (first - last) / 2 + 1 }, (_, index) => first - 2 * index);
}

test('all postings of one end user come, latest first, wherever the chain begins', () => {
  const db = ledger();
  assert.deepEqual(numbersFrom(db, GRACE), everySecond(2 * POSTINGS, 2));
  for (const start of [1, 3, 5, 7, 9, 11, 39, 41, 43, 103, 105, 107, 231, 233, 235])
    assert.deepEqual(numbersFrom(db, ADA, start), everySecond(start, 1), `from ${start}`);
});

test('a posting is what is stored, read by itself or in a piece, as integers of either kind', () => {
  const db = ledger();
  for (const anyInteger of [false, true]) {
    const postings = Array.from(new PostingsReader(db, { anyInteger }).from(latestOf(ADA), ADA));
    assert.equal(postings.length, POSTINGS);
    for (const { number, posting } of postings)
      assert.deepEqual(posting, {
        transactionId: uuid(number),
        cycleId: uuid(2 ** 40 + number),
        period: number % 3,
        kind: 'subtract',
        amount: -number,
        createdAt: 1_000 + number,
        expiresAt: 2_000 + number,
        actor: `key:${number}`,
        note: null,
      });
  }
});

test('two chains that are followed at the same time do not disturb each other', () => {
  const reader = new PostingsReader(ledger());
  const graces = reader.from(latestOf(GRACE), GRACE);
  for (const { number } of reader.from(latestOf(ADA), ADA)) assert.equal(graces.next().value?.number, number + 1);
});

/** How far a broken chain is read, broken near its beginning, in a piece and at the end of one. */
for (const place of [0, 1, 3, 4, 19, 20, 30, 51, 52, 200]) {
  const number = latestOf(ADA) - 2 * place;
  const whole = everySecond(latestOf(ADA), number);
  const before = whole.slice(0, -1);
  for (const [what, sql, expected] of [
    ['is missing', `DELETE FROM postings WHERE posting = ${number}`, before],
    ["is another account's", `UPDATE postings SET account = 2 WHERE posting = ${number}`, before],
    ["is another's", `UPDATE postings SET end_user = zeroblob(16) WHERE posting = ${number}`, before],
    ['follows itself', `UPDATE postings SET previous = posting WHERE posting = ${number}`, whole],
    ['follows a later one', `UPDATE postings SET previous = posting + 2 WHERE posting = ${number}`, whole],
    ['follows none', `UPDATE postings SET previous = NULL WHERE posting = ${number}`, whole],
  ] as const)
    test(`a chain ends at its ${place + 1}th posting when that ${what}`, () => {
      const db = ledger();
      db.exec(sql);
      assert.deepEqual(numbersFrom(db, ADA), expected);
    });
}

test('nothing is read of the chain of somebody else', () => {
  const db = ledger();
  assert.deepEqual(numbersFrom(db, ELSEWHERE, latestOf(ADA)), []);
  assert.deepEqual(numbersFrom(db, GRACE, latestOf(ADA)), []);
  assert.deepEqual([...new PostingsReader(db).from(null, ADA)], []);
});
