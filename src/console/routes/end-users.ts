// The list of end users and the search. Searching for a whole UUID opens its page, whether or not it ever had credits.

import {
  type AccountTransaction,
  type ConsoleStore,
  type EndUserPage,
  uuidsWithPrefix,
} from '../../store/console-store.ts';
import { InvalidCursor } from '../../store/store-fault.ts';
import type { ConsoleContext } from '../console-context.ts';
import { endUsersPage } from '../pages/end-users.ts';
import type { On } from '../permissions.ts';
import { queryField, redirectTo, sendPage } from '../request-reply.ts';

const PAGE_END_USERS = 50;
/** The most that the store returns at once. */
const RECENT_TRANSACTIONS = 100;
const RECENT_END_USERS_MAX = 10;
const LIST = '/console/end-users';

export function endUserListRoutes(on: On, context: ConsoleContext): void {
  const reads = context.options.stores.console;
  on('GET /console/end-users', async (request, reply, viewer) => {
    const search = queryField(request, 'search').trim().toLowerCase();
    const endUser = normalizedUuid(search);
    if (endUser !== null) return redirectTo(reply, `${LIST}/${endUser}`);
    const after = queryField(request, 'after') || null;
    const isFirstPage = after === null;
    const searchError = searchErrorOf(search);
    const view = { search, searchError, isFirstPage, endUsers: [], recent: [], next: null };
    if (searchError !== null) return sendPage(reply, endUsersPage(view, viewer));
    try {
      const [list, recent] = await Promise.all([
        reads.endUsers(viewer.account, { after, prefix: search, limit: PAGE_END_USERS }),
        search === '' && isFirstPage ? recentlyActive(reads, viewer.account) : [],
      ]);
      return sendPage(reply, endUsersPage({ ...view, ...list, recent }, viewer));
    } catch (error) {
      if (error instanceof InvalidCursor) return redirectTo(reply, LIST);
      throw error;
    }
  });
}

/** The end users of the latest transactions, each once. */
async function recentlyActive(reads: ConsoleStore, account: number): Promise<EndUserPage['endUsers']> {
  const transactions = await reads.recent(account, RECENT_TRANSACTIONS);
  return Map.groupBy(transactions, ({ endUser }) => endUser)
    .entries()
    .take(RECENT_END_USERS_MAX)
    .map(([endUser, [latest]]) => ({ endUser, latestActivity: (latest as AccountTransaction).createdAt }))
    .toArray();
}

/** A UUID in lower case and with hyphens, as the ledger stores it; null for any other text. */
export function normalizedUuid(text: string): string | null {
  const range = uuidsWithPrefix(text);
  return range !== null && range.first === range.last ? range.first : null;
}

function searchErrorOf(search: string): string | null {
  if (uuidsWithPrefix(search) !== null) return null;
  return /[^0-9a-f-]/.test(search)
    ? 'A UUID contains only the digits 0–9, the letters a–f and hyphens.'
    : 'This is longer than a UUID.';
}
