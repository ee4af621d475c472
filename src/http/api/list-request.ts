// The parameters of a list of transactions.

import type { EndUserKey } from '../../ledger/command.ts';
import type { Instant } from '../../ledger/instant.ts';
import { isNote, type PostingKind } from '../../ledger/posting.ts';
import type { TransactionId } from '../../ledger/transaction-id.ts';
import { invalidField } from '../problems.ts';
import { PAGE_LIMIT_DEFAULT, type TransactionListQuery } from './calls/transactions.ts';
import { invalidCursor, type PageCursor, readCursor } from './cursor.ts';
import { invalidNote } from './submit.ts';

export interface ListRequest extends Pick<PageCursor, 'from' | 'to'> {
  readonly user: EndUserKey;
  /** Null for the whole list. */
  readonly page: PageAsked | null;
  /** Absent for a plain list, which has neither details nor filters. */
  readonly recorded?: Recorded;
}

export interface PageAsked {
  readonly limit: number;
  /** The last transaction of the previous page; null for the first page. */
  readonly after: TransactionId | null;
}

export interface Recorded {
  readonly isDetailed: boolean;
  /** Only transactions of this kind; undefined for all transactions that added or spent credits. */
  readonly kind: PostingKind | undefined;
  /** Only transactions whose note begins with this text; undefined for all notes. */
  readonly notePrefix: string | undefined;
}

/** @throws InvalidRequest if the cursor or the note is invalid, or if the fields contradict each other */
export function listRequestOf(user: EndUserKey, query: TransactionListQuery): ListRequest {
  const [from, to] = [parsed(query.from), parsed(query.to)];
  if (from !== null && to !== null && from > to) {
    throw invalidField('/from', 'must not be later than `to`');
  }
  const { limit, cursor } = query;
  const recorded = recordedOf(query);
  const shown = recorded === null ? {} : { recorded };
  if (cursor === undefined) {
    return { user, from, to, page: limit === undefined ? null : { limit, after: null }, ...shown };
  }
  const kept = readCursor(cursor, user, filtersOf(shown));
  for (const [name, asked] of [['from', from] as const, ['to', to] as const]) {
    if (asked !== null && asked !== kept[name]) throw invalidCursor(`belongs to a list with a different \`${name}\``);
  }
  const page = { limit: limit ?? PAGE_LIMIT_DEFAULT, after: kept.last };
  return { user, from: kept.from, to: kept.to, page, ...shown };
}

/** Returns the filters in the form `kind/note`; an empty string if there are none. */
export function filtersOf({ recorded }: Pick<ListRequest, 'recorded'>): string {
  const { kind, notePrefix } = recorded ?? {};
  return kind === undefined && notePrefix === undefined ? '' : `${kind ?? ''}/${notePrefix ?? ''}`;
}

function recordedOf({ details: isDetailed = false, kind, note: notePrefix }: TransactionListQuery): Recorded | null {
  if (notePrefix !== undefined && !isNote(notePrefix)) throw invalidNote();
  return isDetailed || kind !== undefined || notePrefix !== undefined ? { isDetailed, kind, notePrefix } : null;
}

function parsed(text: string | undefined): Instant | null {
  return text === undefined ? null : Date.parse(text);
}
