// Tests that an end user is identified by its account and its UUID.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ADA, add } from '../../test/ledger/ledger-builders.ts';
import { endUserText, isSameEndUser } from './command.ts';

const OTHERS = [
  { ...ADA, account: 2 },
  { ...ADA, account: 11 },
  { ...ADA, endUser: '5f0c6f7e-0000-4000-8000-000000000002' },
];

test('commands with the same account and the same UUID are for the same end user', () => {
  assert(isSameEndUser(ADA, add(5)));
  assert.equal(endUserText(ADA), `1/${ADA.endUser}`);
  assert.equal(endUserText(add(5)), endUserText(ADA));
});

test('the same UUID in another account, or another UUID in the same account, is a different end user', () => {
  for (const other of OTHERS) {
    assert(!isSameEndUser(ADA, other));
    assert.notEqual(endUserText(ADA), endUserText(other));
  }
});
