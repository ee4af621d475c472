// The cursor of a list of events. The cursor is opaque to clients, and is the base64url encoding of these bytes:
//
//   version 1 byte · checksum 8 bytes · position as text
//
// The checksum covers the version, the position, the account and the epoch of the event log. It detects mistakes, such
// as a cursor for another account, or a cursor from before a backup was restored. It need not prevent forgery, because
// the store checks the position, and returns only events of the API key's account.

import { hash } from 'node:crypto';
import type { EventPosition } from '../../store/event-log.ts';
import { type InvalidRequest, invalidField } from '../problems.ts';

const VERSION = 1;
const CHECKSUM_AT = 1;
const POSITION_AT = 9;

/** An account's events in an event log. */
export interface EventListKey {
  readonly account: number;
  /** See `EventLog.epoch`. */
  readonly epoch: string;
}

export function writeEventCursor(position: EventPosition, list: EventListKey): string {
  const head = Buffer.alloc(POSITION_AT);
  head[0] = VERSION;
  checksumOf(position, list).copy(head, CHECKSUM_AT);
  return Buffer.concat([head, Buffer.from(position)]).toString('base64url');
}

/** @throws InvalidRequest if `text` is not a cursor for this list */
export function readEventCursor(text: string, list: EventListKey): EventPosition {
  const bytes = Buffer.from(text, 'base64url');
  const position = bytes.toString('utf8', POSITION_AT);
  // The decoder skips invalid characters, so check that encoding the bytes again returns the same text.
  if (bytes.length <= POSITION_AT || writeEventCursor(position, list) !== text) throw invalidAfter();
  return position;
}

export function invalidAfter(): InvalidRequest {
  return invalidField(
    '/after',
    'is not a `next_cursor` that `/get-events` returned for this account; to read from the oldest event, omit `after`',
  );
}

function checksumOf(position: EventPosition, { account, epoch }: EventListKey): Buffer {
  return hash('sha256', `events/${epoch}/${account}/${VERSION}/${position}`, 'buffer').subarray(
    0,
    POSITION_AT - CHECKSUM_AT,
  );
}
