// Classifies PostgreSQL errors: https://www.postgresql.org/docs/current/errcodes-appendix.html

import { AssertionError } from 'node:assert';
import { DatabaseError } from 'pg';
import { InvalidCursor, StoreFault } from '../../store-fault.ts';

/** The SQLSTATE code for a lock that could not be taken in time. */
export const LOCK_NOT_AVAILABLE = '55P03';

/** The server ends the connection or is no longer the primary; a new connection can reach another server. */
const CONNECTION_ENDS = ['57P01', '57P02', '57P03', '57P05', '25P03', '25P04', '25006'];

/**
 * Whether the transaction had no effect and can be retried: PostgreSQL rolled it back after a serialization failure or
 * a deadlock, or did not begin it because the previous transaction on the connection had failed (25P02).
 */
export function isWorthRetrying(error: unknown): boolean {
  return ['40001', '40P01', '25P02'].includes(codeOf(error));
}

/**
 * Matches operating-system error codes, such as `ECONNRESET`, and the Node.js error codes for sockets and TLS. Apply
 * this pattern only to errors that are not from the server: an SQLSTATE code can also consist of five capital letters.
 */
const NETWORK_CODE = /^(E(?!RR_)[A-Z_]+|ERR_(STREAM|SOCKET|SSL|TLS)_[A-Z_]+)$/;

/**
 * Matches the messages of errors without a code. `pg`, its pool and `Connection` report such errors if a connection
 * times out, is closed, or receives an unexpected message.
 */
const DRIVER_MESSAGE =
  /^(Connection terminated|No answer within|timeout exceeded when trying to connect$|timeout expired$|Client has encountered a connection error|Client was closed|Received unexpected \w+ message from backend)/;

/**
 * Whether the error means that the connection is lost or will soon be lost. Such errors include network errors, errors
 * of class 08, and errors from a server that ends the connection or is no longer the primary. An unknown error that is
 * not from the server counts as a bug in Scrip, which a retry would not fix.
 */
export function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof StoreFault) return false;
  const code = codeOf(error);
  // For bytes that it cannot parse, the driver throws a `DatabaseError` without a code.
  if (error instanceof DatabaseError) return code === '' || code.startsWith('08') || CONNECTION_ENDS.includes(code);
  return NETWORK_CODE.test(code) || DRIVER_MESSAGE.test(error.message);
}

/**
 * Whether a Citus coordinator reports that it cannot reach a worker. If so, the connection to the coordinator still
 * works, and the transaction has been rolled back.
 */
export function isWorkerAway(error: unknown): boolean {
  return error instanceof DatabaseError && /^08(?!P01)/.test(codeOf(error));
}

/**
 * Whether an error from the coordinator can mean that a worker does not answer: a statement timeout (57014), or an
 * internal error (XX000).
 */
export function mayBeWorkerAway(error: unknown): boolean {
  return error instanceof DatabaseError && ['57014', 'XX000'].includes(codeOf(error));
}

/** Damaged data or indexes. XX000 is not included, because Citus reports temporary failures of its workers as XX000. */
const DAMAGED = ['XX001', 'XX002'];

/**
 * Returns the fault for an error that occurred before COMMIT. An invariant violation, damaged data or a bug in Scrip
 * stops the ledger (`Internal`). Any other error has an external cause (`StoreUnavailable`): the transaction is rolled
 * back, so nothing has changed.
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

/**
 * Runs `read`, and converts its errors to faults.
 *
 * @throws StoreFault or InvalidCursor (rejects)
 */
export async function attempt<Result>(read: () => Promise<Result>): Promise<Result> {
  return await read().catch((error) => {
    throw readFaultOf(error);
  });
}

/** Converts an error from a read: `Internal` if a row violates an invariant, otherwise `StoreUnavailable`. */
function readFaultOf(error: unknown): StoreFault | InvalidCursor {
  if (error instanceof StoreFault || error instanceof InvalidCursor) return error;
  return new StoreFault(error instanceof AssertionError ? 'Internal' : 'StoreUnavailable', (error as Error).message);
}
