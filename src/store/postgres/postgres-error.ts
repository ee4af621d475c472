// What PostgreSQL's errors mean to a ledger: https://www.postgresql.org/docs/current/errcodes-appendix.html

import { AssertionError } from 'node:assert';
import { DatabaseError } from 'pg';
import { StoreFault } from '../store.ts';

/** The server ends the connection, or is no longer the primary: the next one may find another server. */
const CONNECTION_ENDS = ['57P01', '57P02', '57P03', '57P05', '25P03', '25P04', '25006'];

/** A serialization failure or a deadlock: the transaction is rolled back, and worth another try. */
export function isWorthRetrying(error: unknown): boolean {
  return ['40001', '40P01'].includes(codeOf(error));
}

/** The connection is gone, or about to go: an error of the network, of class 08, or the server shutting down. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof StoreFault || error instanceof AssertionError) return false;
  // What the server did not say comes from the network. The codes cannot tell: EPIPE looks like one of PostgreSQL.
  if (!(error instanceof DatabaseError)) return true;
  return codeOf(error).startsWith('08') || CONNECTION_ENDS.includes(codeOf(error));
}

/** Data or an index that is damaged. XX000 is left out: Citus reports passing failures of its workers by it. */
const DAMAGED = ['XX001', 'XX002'];

/** What an error before COMMIT means: a broken invariant or damaged data stops the ledger, for the rest nothing happened. */
export function faultOf(error: unknown): StoreFault {
  if (error instanceof StoreFault) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const code = codeOf(error);
  const isBroken =
    error instanceof AssertionError || code.startsWith('23') || DAMAGED.includes(code) || code.startsWith('22');
  return new StoreFault(isBroken ? 'Internal' : 'StoreUnavailable', reason);
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown } | null)?.code ?? '');
}

/** For reads: whatever the server says, the store cannot be read now. What it hands out that cannot be true is a bug. */
export function readFaultOf(error: unknown): StoreFault {
  return new StoreFault(error instanceof AssertionError ? 'Internal' : 'StoreUnavailable', (error as Error).message);
}
