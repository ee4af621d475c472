// What a request for transactions asks for: which of them, from where on, and how many. Before its fields are validated,
// the text of a query string becomes the number or the instant that it stands for.

import type { EndUserKey } from '../ledger/command.ts';
import { INSTANT_MAX, type Instant } from '../ledger/instant.ts';
import type { TransactionId } from '../ledger/transaction-id.ts';
import { invalidCursor, readCursor } from './page-cursor.ts';
import { InvalidRequest, pointerTo } from './problem.ts';
import { PAGE_LIMIT_DEFAULT, type TransactionListQuery } from './schemas.ts';

export interface ListRequest {
  readonly user: EndUserKey;
  /** The first instant that is listed; null when all are from the beginning on. */
  readonly from: Instant | null;
  /** The first instant that is listed no more. */
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
/** A zone with the plus sign that a query string makes a space of. */
const LOST_PLUS = / \d\d:\d\d$/;
const MINUTE_MS = 60_000;

type Fields = Record<string, unknown>;

/** A number of a query string is written in digits; anything else stays text, and is refused as such. */
export function readLimitOfQuery(query: Fields): Fields {
  const { limit } = query;
  return typeof limit === 'string' && DIGITS.test(limit) ? { ...query, limit: Number(limit) } : query;
}

/**
 * Puts the instants into one form.
 *
 * @throws InvalidRequest for text that is no instant; what is no text is for the validation to refuse
 */
export function readInstants(fields: Fields): Fields {
  const errors = [];
  const read = { ...fields };
  for (const name of ['from', 'to']) {
    const text = fields[name];
    if (typeof text !== 'string') continue;
    const instant = instantOf(text);
    if (instant === null) errors.push({ path: pointerTo(name), message: messageFor(text) });
    else read[name] = new Date(instant).toISOString();
  }
  if (errors.length === 0) return read;
  throw new InvalidRequest('InvalidField', errors.map(({ path, message }) => `${path} ${message}`).join('; '), errors);
}

/** @throws InvalidRequest when the fields, each right by itself, do not go together */
export function listRequestOf(user: EndUserKey, query: TransactionListQuery): ListRequest {
  const [from, to] = [parsed(query.from), parsed(query.to)];
  if (from !== null && to !== null && from > to) {
    const message = 'must not be later than `to`';
    throw new InvalidRequest('InvalidField', `/from ${message}`, [{ path: '/from', message }]);
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

/** @returns the first millisecond that is not before it, within the instants that there are; null for what is no instant */
function instantOf(text: string): Instant | null {
  const parts = INSTANT.exec(text);
  if (parts === null) return null;
  const [, minute = '', second = '00', fraction = '', sign, hours = '0', minutes = '0'] = parts;
  const local = Date.parse(`${minute}:${second}Z`);
  // A day that its month does not have would become one of the next month.
  if (Number.isNaN(local) || new Date(local).toISOString().slice(0, minute.length) !== minute) return null;
  const offset = (Number(hours) * 60 + Number(minutes)) * MINUTE_MS * (sign === '-' ? -1 : 1);
  const milliseconds = Math.ceil(Number(fraction.padEnd(9, '0')) / 1e6);
  return Math.min(Math.max(local + milliseconds - offset, 0), INSTANT_MAX);
}

function messageFor(text: string): string {
  const message = 'must be an ISO 8601 instant with a zone, such as 2026-11-20T08:00:00.123Z';
  return LOST_PLUS.test(text) ? `${message}; in a query string, + is written %2B` : message;
}
