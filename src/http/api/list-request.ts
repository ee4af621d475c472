// The parameters of a list of transactions: its bounds in time, and its page. Before they are validated, the texts of a
// query string are converted to numbers and instants.

import type { EndUserKey } from '../../ledger/command.ts';
import { INSTANT_MAX, type Instant } from '../../ledger/instant.ts';
import type { TransactionId } from '../../ledger/transaction-id.ts';
import { invalidFields, pointerTo } from '../problems.ts';
import { invalidCursor, readCursor } from './cursor.ts';
import { PAGE_LIMIT_DEFAULT, type TransactionListQuery } from './schemas.ts';

/** The fields of a request before they are validated. */
export type Fields = Readonly<Record<string, unknown>>;

export interface ListRequest {
  readonly user: EndUserKey;
  /** The first instant that is listed; null for no bound. */
  readonly from: Instant | null;
  /** The first instant that is not listed. */
  readonly to: Instant | null;
  /** Null for the whole list. */
  readonly page: PageAsked | null;
}

export interface PageAsked {
  readonly limit: number;
  /** The transaction that was listed last before; null for the first page. */
  readonly after: TransactionId | null;
}

const DIGITS = /^(?:0|[1-9]\d*)$/;
/** Seconds may be left out. Times of a zone are up to 23:59 from UTC. */
const INSTANT =
  /^(\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/;
/** A zone whose plus sign was decoded as a space, as it is in a query string. */
const LOST_PLUS = / \d\d:\d\d$/;
const MINUTE_MS = 60_000;

/** Converts a number of a query string if it is written in digits. Other texts are left, and refused by the validation. */
export function readLimitOfQuery(query: Fields): Fields {
  const { limit } = query;
  return typeof limit === 'string' && DIGITS.test(limit) ? { ...query, limit: Number(limit) } : query;
}

/**
 * Converts the instants to UTC.
 *
 * @throws InvalidRequest for a text that is not an instant. Values that are not texts are refused by the validation.
 */
export function readInstants(fields: Fields): Fields {
  const errors = [];
  const read: Record<string, unknown> = { ...fields };
  for (const name of ['from', 'to']) {
    const text = fields[name];
    if (typeof text !== 'string') continue;
    const instant = instantOf(text);
    if (instant === null) errors.push({ path: pointerTo(name), message: messageFor(text) });
    else read[name] = new Date(instant).toISOString();
  }
  if (errors.length === 0) return read;
  throw invalidFields(errors);
}

/** @throws InvalidRequest if fields that are valid one by one contradict each other */
export function listRequestOf(user: EndUserKey, query: TransactionListQuery): ListRequest {
  const [from, to] = [parsed(query.from), parsed(query.to)];
  if (from !== null && to !== null && from > to) {
    throw invalidFields([{ path: '/from', message: 'must not be later than `to`' }]);
  }
  const { limit, cursor } = query;
  if (cursor === undefined) return { user, from, to, page: limit === undefined ? null : { limit, after: null } };
  const kept = readCursor(cursor, user);
  for (const [name, asked] of [['from', from] as const, ['to', to] as const]) {
    if (asked !== null && asked !== kept[name]) throw invalidCursor(`was given out for another \`${name}\``);
  }
  return { user, from: kept.from, to: kept.to, page: { limit: limit ?? PAGE_LIMIT_DEFAULT, after: kept.last } };
}

function parsed(text: string | undefined): Instant | null {
  return text === undefined ? null : Date.parse(text);
}

/** @returns the instant, rounded up to milliseconds and clamped to the instants that the ledger has; null for other texts */
function instantOf(text: string): Instant | null {
  const parts = INSTANT.exec(text);
  if (parts === null) return null;
  const [, minute = '', second = '00', fraction = '', sign, hours = '0', minutes = '0'] = parts;
  const local = Date.parse(`${minute}:${second}Z`);
  // `Date.parse` takes 31 June for 1 July.
  if (Number.isNaN(local) || new Date(local).toISOString().slice(0, minute.length) !== minute) return null;
  const offset = (Number(hours) * 60 + Number(minutes)) * MINUTE_MS * (sign === '-' ? -1 : 1);
  const milliseconds = Math.ceil(Number(fraction.padEnd(9, '0')) / 1e6);
  return Math.min(Math.max(local + milliseconds - offset, 0), INSTANT_MAX);
}

function messageFor(text: string): string {
  const message = 'must be an ISO 8601 instant with a zone, such as 2026-11-20T08:00:00.123Z';
  return LOST_PLUS.test(text) ? `${message}; in a query string, + is written %2B` : message;
}
