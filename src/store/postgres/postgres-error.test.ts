// What PostgreSQL's errors and the network's mean to a ledger.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DatabaseError } from 'pg';
import { isConnectionLost } from './postgres-error.ts';

function databaseError(code: string): DatabaseError {
  return Object.assign(new DatabaseError('the server says no', 0, 'error'), { code });
}

test('an error of the network is a lost connection, whatever its code looks like', () => {
  for (const code of ['EPIPE', 'ECONNRESET', 'ETIMEDOUT', undefined])
    assert(isConnectionLost(Object.assign(new Error('write'), { code })), `${code}`);
});

test('a server that ends the connection is a lost connection, one that says no is not', () => {
  for (const code of ['57P01', '57P02', '57P03', '57P05', '25P03', '25P04', '25006', '08006'])
    assert(isConnectionLost(databaseError(code)), code);
  for (const code of ['40001', '55P03', '57014', '23505', 'XX000'])
    assert(!isConnectionLost(databaseError(code)), code);
});
