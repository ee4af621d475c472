// The cursor of a page of transactions. The cursor is opaque to clients, and is the base64url encoding of these bytes:
//
//   version 1 byte · transaction 16 bytes · from 6 bytes · to 6 bytes · checksum 8 bytes
//
// The cursor contains the ID of the last transaction of the page, so it is valid on every store and after a restart.
// The ID of a renewal is the same before and after Scrip stores the renewal. The checksum covers the fields before it,
// and the account, the end user and the filters of the list. The checksum detects mistakes, such as a cursor for
// another list. It does not prevent forgery, but a forged cursor gives no access to other accounts.

import { createHash } from 'node:crypto';
import type { EndUserKey } from '../../ledger/command.ts';
import { type Instant, isInstant } from '../../ledger/instant.ts';
import type { TransactionId } from '../../ledger/transaction-id.ts';
import { type InvalidRequest, invalidField } from '../problems.ts';

export interface PageCursor {
  readonly last: TransactionId;
  /** Inclusive lower bound; null if there is none. */
  readonly from: Instant | null;
  /** Exclusive upper bound; null if there is none. */
  readonly to: Instant | null;
}

const VERSION = 1;
const ID_AT = 1;
const FROM_AT = 17;
const TO_AT = 23;
const CHECKSUM_AT = 29;
const LENGTH = 37;
const INSTANT_BYTES = 6;
/** Encodes null. Every valid instant is less than this number. */
const NO_INSTANT = 2 ** 48 - 1;

/** @param filters the filters of the list, as `filtersOf` returns them */
export function writeCursor({ last, from, to }: PageCursor, user: EndUserKey, filters = ''): string {
  const bytes = Buffer.alloc(LENGTH);
  bytes[0] = VERSION;
  bytes.write(last.replaceAll('-', ''), ID_AT, 'hex');
  bytes.writeUIntBE(from ?? NO_INSTANT, FROM_AT, INSTANT_BYTES);
  bytes.writeUIntBE(to ?? NO_INSTANT, TO_AT, INSTANT_BYTES);
  checksumOf(bytes, user, filters).copy(bytes, CHECKSUM_AT);
  return bytes.toString('base64url');
}

/** @throws InvalidRequest if `text` is not a cursor for this list */
export function readCursor(text: string, user: EndUserKey, filters = ''): PageCursor {
  const bytes = Buffer.from(text, 'base64url');
  // The decoder skips invalid characters, so check that encoding the bytes again returns the same text.
  const isCursor = bytes.length === LENGTH && bytes[0] === VERSION && bytes.toString('base64url') === text;
  if (!isCursor || !checksumOf(bytes, user, filters).equals(bytes.subarray(CHECKSUM_AT))) throw invalidCursor();
  const hex = bytes.toString('hex', ID_AT, FROM_AT);
  return {
    last: hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'),
    from: instantAt(bytes, FROM_AT),
    to: instantAt(bytes, TO_AT),
  };
}

export function invalidCursor(
  message = 'is not a `next_cursor` that was returned for the same end user, `kind` and `note`',
): InvalidRequest {
  return invalidField('/cursor', `${message}; start again without a cursor`);
}

function checksumOf(bytes: Buffer, { account, endUser }: EndUserKey, filters: string): Buffer {
  const list = `${account}/${endUser}/${filters}`;
  const hash = createHash('sha256').update(list).update(bytes.subarray(0, CHECKSUM_AT));
  return hash.digest().subarray(0, LENGTH - CHECKSUM_AT);
}

function instantAt(bytes: Buffer, at: number): Instant | null {
  const instant = bytes.readUIntBE(at, INSTANT_BYTES);
  return isInstant(instant) ? instant : null;
}
