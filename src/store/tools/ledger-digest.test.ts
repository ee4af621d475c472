// Tests the text format of digests, and the `through` ID that marks the end of a digest.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lastIdAt } from '../../ledger/transaction-id.ts';
import { throughPosition } from '../transaction-ids.ts';
import { digestsIn, LedgerDigester, lineOf } from './ledger-digest.ts';

const AT = Date.UTC(2026, 1, 21, 12);
const [digest] = new LedgerDigester([throughPosition({ at: AT, sequence: 5 })]).digests();
assert(digest);

test('digests can be read back from a file with one or more lines', () => {
  const line = lineOf(digest);
  assert.match(
    line,
    /^scrip-digest-1 at=2026-02-21T12:00:00\.000Z end_users=0 postings=0 through=\S+ sha256=[0-9a-f]{64}$/,
  );
  const other = { ...digest, endUsers: 7, postings: 123_456, through: lastIdAt(AT + 1) };
  assert.deepEqual(digestsIn(line), [digest]);
  assert.deepEqual(digestsIn(`${line}\n\n${lineOf(other)}\r\n`), [digest, other]);
});

test('a file of digests is rejected if it is empty, too long, or contains anything other than valid digests', () => {
  const line = lineOf(digest);
  const texts = [
    '',
    '\n',
    'something else\n',
    `${line}0`,
    `${line}\nmore`,
    line.replace('at=2026', 'at=2025'),
    line.replace('postings=0', 'postings=-1'),
    line.replace('digest-1', 'digest-2'),
    line.replace(/sha256=.*/, 'sha256=short'),
    line.replace(/through=\S+/, 'through=00000000-0000-0000-0000-000000000000'),
    `${line}\n`.repeat(10_001),
  ];
  for (const text of texts) assert.equal(digestsIn(text), null, text.slice(0, 80));
});

test('the `through` ID of a digest sorts after all transaction IDs that the digest covers, and before all later IDs', () => {
  const through = throughPosition({ at: AT, sequence: 5 });
  assert(through < throughPosition({ at: AT, sequence: 6 }));
  assert(through < lastIdAt(AT) && lastIdAt(AT) < throughPosition({ at: AT + 1, sequence: 0 }));
});
