// Tests that a cursor keeps its time range, and that a cursor for another end user or with an unknown version is
// refused.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { INSTANT_MAX } from '../../ledger/instant.ts';
import { readCursor, writeCursor } from './cursor.ts';

const user = { account: 7, endUser: '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23' };
const last = '01a1f874-bfc4-4000-8001-2a537451e192';

for (const [from, to] of [
  [null, null],
  [0, null],
  [null, INSTANT_MAX],
  [5, 1_763_625_600_123],
] as const) {
  test(`a cursor with the range from ${from} to ${to} is read back unchanged`, () => {
    assert.deepEqual(readCursor(writeCursor({ last, from, to }, user), user), { last, from, to });
  });
}

test('a cursor is refused for any other end user', () => {
  const text = writeCursor({ last, from: null, to: null }, user);
  const others = [
    { ...user, account: 8 },
    { account: 77, endUser: user.endUser },
    { ...user, endUser: user.endUser.replace('5f', '6f') },
  ];
  for (const other of others) assert.throws(() => readCursor(text, other), { code: 'InvalidField' });
});

test('a cursor with an unknown version is refused', () => {
  const bytes = Buffer.from(writeCursor({ last, from: null, to: null }, user), 'base64url');
  assert.equal(bytes[0], 1, 'the first byte is the version');
  for (const version of [0, 2, 255]) {
    const changed = Buffer.from(bytes);
    changed[0] = version;
    assert.throws(() => readCursor(changed.toString('base64url'), user), { code: 'InvalidField' });
  }
});
