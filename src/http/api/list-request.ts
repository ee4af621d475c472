// The parameters of a list of transactions: its time range and its page. The strings of a query string are converted to
// numbers and instants before they are validated.

import type { EndUserKey } from '../../ledger/command.ts';
import type { Instant } from '../../ledger/instant.ts';
import { instantIn } from '../../ledger/instant-text.ts';
import type { TransactionId } from '../../ledger/transaction-id.ts';
import { invalidFields, pointerTo } from '../problems.ts';
import { invalidCursor, readCursor } from './cursor.ts';
import { PAGE_LIMIT_DEFAULT, type TransactionListQuery } from './schemas.ts';

/** The fields of a request before they are validated. */
export type Fields = Readonly<Record<string, unknown>>;

export interface ListRequest {
  readonly user: EndUserKey;
  /** Inclusive lower bound; null if there is none. */
  readonly from: Instant | null;
  /** Exclusive upper bound; null if there is none. */
  readonly to: Instant | null;
  /** Null for the whole list. */
  readonly page: PageAsked | null;
}

export interface PageAsked {
  readonly limit: number;
  /** The last transaction of the previous page; null for the first page. */
  readonly after: TransactionId | null;
}

const DIGITS = /^(?:0|[1-9]\d*)$/;
/** A time zone whose plus sign was decoded as a space, as happens in a query string. */
const LOST_PLUS = / \d\d:?\d\d$/;

/** Converts `limit` to a number if it consists of digits. The validation refuses any other string. */
export function readLimitOfQuery(query: Fields): Fields {
  const { limit } = query;
  return typeof limit === 'string' && DIGITS.test(limit) ? { ...query, limit: Number(limit) } : query;
}

/**
 * Converts `from` and `to` to UTC.
 *
 * @throws InvalidRequest for a string that is not an instant. The validation refuses values that are not strings.
 */
export function readInstants(fields: Fields): Fields {
  const errors = [];
  const read: Record<string, unknown> = { ...fields };
  for (const name of ['from', 'to']) {
    const text = fields[name];
    if (typeof text !== 'string') continue;
    const instant = instantIn(text);
    if (instant === null) errors.push({ path: pointerTo(name), message: messageFor(text) });
    else read[name] = new Date(instant).toISOString();
  }
  if (errors.length === 0) return read;
  throw invalidFields(errors);
}

/** @throws InvalidRequest if valid fields contradict each other */
export function listRequestOf(user: EndUserKey, query: TransactionListQuery): ListRequest {
  const [from, to] = [parsed(query.from), parsed(query.to)];
  if (from !== null && to !== null && from > to) {
    throw invalidFields([{ path: '/from', message: 'must not be later than `to`' }]);
  }
  const { limit, cursor } = query;
  if (cursor === undefined) return { user, from, to, page: limit === undefined ? null : { limit, after: null } };
  const kept = readCursor(cursor, user);
  for (const [name, asked] of [['from', from] as const, ['to', to] as const]) {
    if (asked !== null && asked !== kept[name]) throw invalidCursor(`belongs to a list with another \`${name}\``);
  }
  return { user, from: kept.from, to: kept.to, page: { limit: limit ?? PAGE_LIMIT_DEFAULT, after: kept.last } };
}

function parsed(text: string | undefined): Instant | null {
  return text === undefined ? null : Date.parse(text);
}

function messageFor(text: string): string {
  const message = 'must be an ISO 8601 instant with a zone, such as 2026-11-20T08:00:00.123Z';
  return LOST_PLUS.test(text) ? `${message}; in a query string, + is written %2B` : message;
}
