// Tests how Scrip classifies errors from PostgreSQL, the driver and the network: the connection is lost, the batch
// failed, or the ledger must stop.

import assert, { AssertionError } from 'node:assert/strict';
import { test } from 'node:test';
import { DatabaseError } from 'pg';
import { StoreFault } from '../../store-fault.ts';
import { faultOf, isConnectionLost, isWorkerAway } from './postgres-error.ts';

function fromServer(code?: string): DatabaseError {
  return Object.assign(new DatabaseError('the server says no', 0, 'error'), { code });
}

function fromNetwork(code: string): Error {
  return Object.assign(new Error(`read ${code}`), { code });
}

const LOST: readonly Error[] = [
  ...['EPIPE', 'ECONNRESET', 'ECONNREFUSED', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENOTFOUND', 'EAI_AGAIN'].map(fromNetwork),
  ...['ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC', 'ERR_STREAM_DESTROYED', 'ERR_SOCKET_CLOSED'].map(fromNetwork),
  new Error('Connection terminated'),
  new Error('Connection terminated unexpectedly'),
  new Error('Connection terminated due to connection timeout'),
  new Error('No answer within 5000 ms'),
  new Error('timeout exceeded when trying to connect'),
  new Error('timeout expired'),
  new Error('Client has encountered a connection error and is not queryable'),
  new Error('Client was closed and is not queryable'),
  new Error('Received unexpected dataRow message from backend.'),
  // The server ends the connection or is no longer the primary, or the connection has failed (class 08).
  ...['57P01', '57P02', '57P03', '57P05', '25P03', '25P04', '25006', '08000', '08003', '08006'].map(fromServer),
  // For a message that it cannot parse, the driver throws a `DatabaseError` without a code.
  fromServer(),
];

/** SQLSTATE codes of errors that do not stop the ledger: nothing has been written, and the next batch can succeed. */
const UNAVAILABLE = ['40001', '40P01', '25P02', '55P03', '57014', '53300', '53100', '26000', '42P05', '42501', 'XX000'];

const BROKEN: readonly unknown[] = [
  ...['23505', '23514', '22003', 'XX001', 'XX002'].map(fromServer),
  new AssertionError({ message: 'the remaining credits are between 0 and the amount' }),
  Object.assign(new TypeError('x is not a function'), { code: undefined }),
  Object.assign(new TypeError('an argument'), { code: 'ERR_INVALID_ARG_TYPE' }),
  new RangeError('Invalid array length'),
  new ReferenceError('x is not defined'),
  new Error('an error that was not foreseen'),
  new Error('the Connection terminated here is only mentioned'),
  'a string that was thrown',
  undefined,
];

for (const error of LOST) {
  test(`on PostgreSQL, ${nameOf(error)} means that the connection is lost`, () => {
    assert(isConnectionLost(error));
    assert.equal(faultOf(error).code, 'StoreUnavailable');
  });
}

for (const error of UNAVAILABLE.map(fromServer)) {
  test(`on PostgreSQL, ${nameOf(error)} means that the batch failed, and the connection is still usable`, () => {
    assert(!isConnectionLost(error));
    assert.equal(faultOf(error).code, 'StoreUnavailable');
  });
}

for (const error of BROKEN) {
  test(`on PostgreSQL, ${nameOf(error)} means an invariant violation or a bug, and stops the ledger`, () => {
    assert(!isConnectionLost(error));
    assert.equal(faultOf(error).code, 'Internal');
  });
}

test('classifying a store fault again returns the same fault', () => {
  for (const code of ['StoreUnavailable', 'OutcomeUnknown', 'Internal'] as const) {
    const fault = new StoreFault(code, 'Connection terminated');
    assert.equal(faultOf(fault), fault);
    assert(!isConnectionLost(fault));
  }
});

function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return `${error.constructor.name} ${(error as { code?: string }).code ?? ''} "${error.message}"`;
}

test('errors of class 08 from a Citus coordinator, except 08P01, mean that a worker cannot be reached; other errors do not', () => {
  for (const code of ['08000', '08003', '08006']) assert(isWorkerAway(fromServer(code)), code);
  for (const error of [fromServer('08P01'), fromServer('57P01'), fromServer(), fromNetwork('ECONNRESET')])
    assert(!isWorkerAway(error), nameOf(error));
});
