// What PostgreSQL's errors mean to a ledger: https://www.postgresql.org/docs/current/errcodes-appendix.html

import { AssertionError } from 'node:assert';
import { DatabaseError } from 'pg';
import { InvalidCursor, StoreFault } from '../../store-fault.ts';

/** A lock that was not given in time. */
export const LOCK_NOT_AVAILABLE = '55P03';

/** The server ends the connection, or is no longer the primary: the next one may find another server. */
const CONNECTION_ENDS = ['57P01', '57P02', '57P03', '57P05', '25P03', '25P04', '25006'];

/**
 * A serialization failure or a deadlock: the transaction is rolled back, and worth another try. As is one that never began,
 * since the one before it on the same connection had failed (25P02).
 */
export function isWorthRetrying(error: unknown): boolean {
  return ['40001', '40P01', '25P02'].includes(codeOf(error));
}

/**
 * Of the operating system (`ECONNRESET`), and of Node's sockets and TLS. Only looked at where the error is not the server's:
 * EPIPE looks like a code of PostgreSQL.
 */
const NETWORK_CODE = /^(E(?!RR_)[A-Z_]+|ERR_(STREAM|SOCKET|SSL|TLS)_[A-Z_]+)$/;

/** Errors without a code, of a connection that `pg`, its pool or `Connection` gave up, or that sent what it should not. */
const DRIVER_MESSAGE =
  /^(Connection terminated|No answer within|timeout exceeded when trying to connect$|timeout expired$|Client has encountered a connection error|Client was closed|Received unexpected \w+ message from backend)/;

/**
 * The connection is gone, or about to go: an error of the network, of class 08, or the server shutting down. An error that
 * is not known to be one is a bug of ours, and running a batch with a bug again makes nothing better.
 */
export function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof StoreFault) return false;
  const code = codeOf(error);
  // Without a code it is not the server's: the driver throws it for bytes that it cannot read.
  if (error instanceof DatabaseError) return code === '' || code.startsWith('08') || CONNECTION_ENDS.includes(code);
  return NETWORK_CODE.test(code) || DRIVER_MESSAGE.test(error.message);
}

/** Data or an index that is damaged. XX000 is left out: Citus reports passing failures of its workers by it. */
const DAMAGED = ['XX001', 'XX002'];

/**
 * What an error before COMMIT means. An invariant violation, damaged data or a bug of ours stops the ledger. Any other error
 * comes from outside, and since the transaction is rolled back, nothing happened.
 */
export function faultOf(error: unknown): StoreFault {
  if (error instanceof StoreFault) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new StoreFault(isFromOutside(error) ? 'StoreUnavailable' : 'Internal', reason);
}

function isFromOutside(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return isConnectionLost(error);
  const code = codeOf(error);
  return !code.startsWith('22') && !code.startsWith('23') && !DAMAGED.includes(code);
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown } | null)?.code ?? '');
}

/** @throws (rejects) StoreFault or InvalidCursor, as `readFaultOf` */
export async function attempt<Result>(read: () => Promise<Result>): Promise<Result> {
  return await read().catch((error) => {
    throw readFaultOf(error);
  });
}

/** For reads: the store cannot be read now, unless a row violates an invariant, which is a bug. */
function readFaultOf(error: unknown): StoreFault | InvalidCursor {
  if (error instanceof StoreFault || error instanceof InvalidCursor) return error;
  return new StoreFault(error instanceof AssertionError ? 'Internal' : 'StoreUnavailable', (error as Error).message);
}
