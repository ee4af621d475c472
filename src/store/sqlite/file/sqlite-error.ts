// Converts SQLite errors into faults; the result codes are listed at https://sqlite.org/rescode.html.

import { AssertionError } from 'node:assert';
import { StoreFault } from '../../store-fault.ts';

export const SQLITE = {
  busy: 5,
  readonly: 8,
  corrupt: 11,
  full: 13,
  cantOpen: 14,
  constraint: 19,
  notADatabase: 26,
} as const;

/** Returns the primary result code; null if the error is not from SQLite. */
export function sqliteCode(error: unknown): number | null {
  const extended = (error as { errcode?: unknown } | null)?.errcode;
  return typeof extended === 'number' ? extended & 0xff : null;
}

/**
 * Converts an error that occurs before COMMIT into a fault. A violated constraint, a damaged file, or an error that
 * does not come from SQLite stops the ledger (`Internal`). Any other SQLite error has an external cause, such as a full
 * disk (`StoreUnavailable`). The caller rolls the transaction back.
 */
export function faultOf(error: unknown): StoreFault {
  if (error instanceof StoreFault) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const code = sqliteCode(error);
  const isBroken =
    code === null || code === SQLITE.constraint || code === SQLITE.corrupt || code === SQLITE.notADatabase;
  const isInternal = isBroken || error instanceof AssertionError;
  return new StoreFault(isInternal ? 'Internal' : 'StoreUnavailable', reason);
}
