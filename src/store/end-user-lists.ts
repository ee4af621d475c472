// Filters, sorts and paginates the lists of end users. Each list is a range of an index on the summaries. A page begins
// after the last row of the previous page, so reading page 10,000 is as fast as reading page 1. Cursors come from
// browsers, so they are checked before they reach a database.

import assert from 'node:assert/strict';
import type { Amount } from '../ledger/amount.ts';
import type { Instant } from '../ledger/instant.ts';
import type { Summary } from './end-user-summaries.ts';
import type { PageCursor } from './loaded-end-user.ts';
import { InvalidCursor } from './store-fault.ts';

/** The maximum number of rows on a page. An export reads its list in pages of this size. */
export const LISTED_MAX = 1_000;

export interface ListedEndUser extends Summary {
  readonly endUser: string;
  readonly latestActivity: Instant;
}

export type EndUserList =
  /** All end users, most recently active first. */
  | { readonly by: 'activity' }
  /** All end users, highest balance first. */
  | { readonly by: 'balance' }
  /** End users with 1 to `balanceMax` credits, lowest balance first. */
  | { readonly by: 'low-balance'; readonly balanceMax: Amount }
  /** End users without credits, most recently active first. */
  | { readonly by: 'no-credits' }
  /** End users with credits that expire at or before `until` and are not renewed, earliest expiry first. */
  | { readonly by: 'expiry'; readonly until: Instant }
  /**
   * End users whose UUID begins with `prefix`. The prefix consists of hexadecimal digits in upper or lower case, with
   * or without hyphens. An empty prefix matches all UUIDs.
   */
  | { readonly by: 'id'; readonly prefix: string };

export interface ListRequest {
  readonly list: EndUserList;
  readonly after: PageCursor | null;
  /** 1 to `LISTED_MAX`. */
  readonly limit: number;
}

export interface EndUserPage {
  /** The list includes all changes up to this instant. */
  readonly asOf: Instant;
  readonly endUsers: readonly ListedEndUser[];
  /** The cursor for the next page; null if there is none. */
  readonly next: PageCursor | null;
}

type Value = number | string;

/** The parts of an SQL query on the summaries, with `?` as the placeholder of each value. */
export interface ListQuery {
  /** Follows `WHERE account = ?` in the query. Begins with ` AND `, or is empty. */
  readonly condition: string;
  readonly order: string;
  readonly values: readonly Value[];
}

interface Sorting {
  /** The columns by which the list is sorted. The last column makes the order unique. */
  readonly columns: readonly (keyof typeof COLUMNS)[];
  readonly isDescending: boolean;
}

const COLUMNS = {
  balance: ({ balance }) => balance,
  latest_activity: ({ latestActivity }) => latestActivity,
  expires_at: ({ expiresAt }) => expiresAt ?? 0,
  end_user: ({ endUser }) => endUser,
} as const satisfies Record<string, (endUser: ListedEndUser) => Value>;

const SORTINGS: Readonly<Record<EndUserList['by'], Sorting>> = {
  activity: { columns: ['latest_activity', 'end_user'], isDescending: true },
  balance: { columns: ['balance', 'latest_activity', 'end_user'], isDescending: true },
  'low-balance': { columns: ['balance', 'latest_activity', 'end_user'], isDescending: false },
  'no-credits': { columns: ['latest_activity', 'end_user'], isDescending: true },
  expiry: { columns: ['expires_at', 'end_user'], isDescending: false },
  id: { columns: ['end_user'], isDescending: false },
};

/** Returns null if no UUID can begin with the prefix of the list. @throws InvalidCursor */
export function listQuery({ list, after, limit }: ListRequest): ListQuery | null {
  assert(Number.isInteger(limit) && limit >= 1 && limit <= LISTED_MAX, 'a page of end users has 1 to 1,000 rows');
  const { columns, isDescending } = SORTINGS[list.by];
  const behind = after === null ? null : keyOf(after, columns);
  const range = rangeOf(list);
  if (range === null) return null;
  // The page starts at the cursor or at the start of the list, whichever comes later. Of these two bounds, the query
  // must contain only the later one: given both, a database might search the index only by the earlier one, and
  // would then scan all previous pages.
  const { from, to } = range;
  const isBefore = behind === null || (from !== null && (behind[0] as Value) < (from.values[0] as Value));
  const follows = `(${columns.join(', ')}) ${isDescending ? '<' : '>'} (${columns.map(() => '?').join(', ')})`;
  const bounds = [isBefore ? from : { condition: follows, values: behind }, to].filter((bound) => bound !== null);
  return {
    condition: bounds.map(({ condition }) => ` AND ${condition}`).join(''),
    order: columns.map((column) => `${column}${isDescending ? ' DESC' : ''}`).join(', '),
    values: bounds.flatMap(({ values }) => values),
  };
}

/** The cursor for a page that begins after this end user. */
export function cursorBehind(endUser: ListedEndUser, { by }: EndUserList): PageCursor {
  return SORTINGS[by].columns.map((column) => COLUMNS[column](endUser)).join('.');
}

/** @param found the rows of the query; if there are more than `limit` rows, the list has a next page */
export function pageOf(
  found: readonly ListedEndUser[],
  { list, limit }: ListRequest,
): Pick<EndUserPage, 'endUsers' | 'next'> {
  const endUsers = found.slice(0, limit);
  const last = endUsers.at(-1);
  return { endUsers, next: found.length > limit && last !== undefined ? cursorBehind(last, list) : null };
}

interface Bound {
  readonly condition: string;
  readonly values: readonly Value[];
}

/** The bounds of a list in its index; null if no UUID can begin with the list's prefix. */
function rangeOf(list: EndUserList): { readonly from: Bound | null; readonly to: Bound | null } | null {
  switch (list.by) {
    case 'low-balance':
      return {
        from: { condition: 'balance >= ?', values: [1] },
        to: { condition: 'balance <= ?', values: [list.balanceMax] },
      };
    case 'no-credits':
      return { from: null, to: { condition: 'balance = 0', values: [] } };
    case 'expiry':
      return { from: null, to: { condition: 'expires_at <= ?', values: [list.until] } };
    case 'id': {
      const range = uuidsWithPrefix(list.prefix);
      if (range === null) return null;
      return {
        from: { condition: 'end_user >= ?', values: [range.first] },
        to: { condition: 'end_user <= ?', values: [range.last] },
      };
    }
    default:
      return { from: null, to: null };
  }
}

function keyOf(cursor: PageCursor, columns: Sorting['columns']): readonly Value[] {
  const parts = cursor.split('.');
  if (parts.length !== columns.length) throw new InvalidCursor();
  return parts.map((part, index) => {
    if (columns[index] === 'end_user') {
      if (!isUuid(part)) throw new InvalidCursor();
      return part;
    }
    if (!/^\d{1,16}$/.test(part) || !Number.isSafeInteger(Number(part))) throw new InvalidCursor();
    return Number(part);
  });
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** @returns the first and the last UUID with this prefix; null if no UUID can begin with it */
export function uuidsWithPrefix(prefix: string): { readonly first: string; readonly last: string } | null {
  const digits = prefix.toLowerCase().replaceAll('-', '');
  if (!/^[0-9a-f]{0,32}$/.test(digits)) return null;
  const uuid = (filler: string) =>
    digits.padEnd(32, filler).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  return { first: uuid('0'), last: uuid('f') };
}
