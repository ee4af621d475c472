// Finding an end user. A whole UUID leads to its page at once, whether anything ever happened to it or not.

import { endUsersPage, type ListedEndUser } from '../pages/end-users.ts';
import { type ConsolePorts, goTo, isInvalidCursor, queryField, type RouteTable, sendPage } from './console-ports.ts';

const PAGE_END_USERS = 50;
/** As many as the store gives at a time. */
const RECENT_TRANSACTIONS = 100;
const RECENT_END_USERS_MAX = 10;
const LIST = '/console/end-users';

const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/;
const BEGINNING = /^[0-9a-f-]*$/;
const DIGITS_MAX = 32;

export function endUserListRoutes(routes: RouteTable<'GET /console/end-users'>, ports: ConsolePorts): void {
  routes.on('GET /console/end-users', async (request, reply, viewer) => {
    const search = queryField(request, 'search').trim().toLowerCase();
    const endUser = wholeUuid(search);
    if (endUser !== null) return goTo(reply, `${LIST}/${endUser}`);
    const after = queryField(request, 'after') || null;
    const seen = { viewer, notice: null };
    const view = { search, isFirst: after === null };
    const searchError = whatIsWrongWith(search);
    if (searchError !== null)
      return sendPage(reply, endUsersPage({ ...view, searchError, endUsers: [], recent: [], next: null }, seen));
    try {
      const [page, recent] = await Promise.all([
        ports.reads.endUsers(viewer.account, { after, prefix: search, limit: PAGE_END_USERS }),
        search === '' && after === null ? recentlyActive(ports, viewer.account) : [],
      ]);
      const endUsers = page.endUsers.map(({ endUser, latestActivity }) => ({ endUser, latestAt: latestActivity }));
      return sendPage(reply, endUsersPage({ ...view, searchError: null, endUsers, recent, next: page.next }, seen));
    } catch (error) {
      if (isInvalidCursor(error)) return goTo(reply, LIST);
      throw error;
    }
  });
}

/** Of the latest transactions those to whom they happened, each once. */
async function recentlyActive({ reads }: ConsolePorts, account: number): Promise<ListedEndUser[]> {
  const latestOf = new Map<string, ListedEndUser>();
  for (const { endUser, createdAt } of await reads.recent(account, RECENT_TRANSACTIONS)) {
    if (latestOf.size < RECENT_END_USERS_MAX && !latestOf.has(endUser))
      latestOf.set(endUser, { endUser, latestAt: createdAt });
  }
  return [...latestOf.values()];
}

/** As the ledger writes it; null when it is not a whole one. */
export function wholeUuid(text: string): string | null {
  const lower = text.toLowerCase();
  if (!UUID.test(lower)) return null;
  return lower.replaceAll('-', '').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function whatIsWrongWith(search: string): string | null {
  if (!BEGINNING.test(search)) return 'A UUID has the digits 0 to 9 and a to f, and hyphens.';
  return search.replaceAll('-', '').length > DIGITS_MAX ? 'That is longer than a UUID.' : null;
}
