// Routes that search and list end users. A search for a full UUID opens the page for that end user, even if the end
// user has no credits yet.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { DAY_MS } from '../../ledger/instant.ts';
import type { ConsoleStore } from '../../store/console-store.ts';
import { csvLine } from '../../store/csv.ts';
import { type EndUserList, LISTED_MAX, type ListedEndUser, uuidsWithPrefix } from '../../store/end-user-lists.ts';
import { isDueUnstored } from '../../store/ledger-store.ts';
import { InvalidCursor } from '../../store/store-fault.ts';
import type { ConsoleContext } from '../console-context.ts';
import { dateText } from '../figures.ts';
import type { Viewer } from '../layout.ts';
import { type EndUserFilter, endUsersPage, LISTS, type ListName } from '../pages/end-users.ts';
import type { On } from '../permissions.ts';
import { queryField, redirectTo, sendCsv, sendPage } from '../request-reply.ts';
import { readAmount, readDays } from './form-input.ts';

const PAGE_END_USERS = 50;
const LIST = '/console/end-users';

const AT_MOST_DEFAULT = '100';
const DAYS_DEFAULT = '7';

export function endUserListRoutes(on: On, context: ConsoleContext): void {
  const reads = context.options.stores.console;
  on('GET /console/end-users', async (request, reply, viewer) => {
    const filter = filterOf(request);
    const endUser = normalizedUuid(filter.search);
    if (endUser !== null) return redirectTo(reply, `${LIST}/${endUser}`);
    const after = queryField(request, 'after') || null;
    const { list, error } = readList(filter, context.ledgerNow(request));
    const [counts, isStoringDue] = await Promise.all([
      reads.endUserCounts(viewer.account),
      isDueUnstored(context.options.stores.ledger),
    ]);
    const view = { filter, counts, error, page: null, isStoringDue, isFirstPage: after === null };
    if (list === null) return sendPage(reply, endUsersPage(view, viewer));
    try {
      const page = await reads.endUsers(viewer.account, { list, after, limit: PAGE_END_USERS });
      return sendPage(reply, endUsersPage({ ...view, page }, viewer));
    } catch (error) {
      if (error instanceof InvalidCursor) return redirectTo(reply, LIST);
      throw error;
    }
  });

  on('GET /console/end-users.csv', (request, reply, viewer) => sendList(context, request, reply, viewer));
}

function sendList(context: ConsoleContext, request: FastifyRequest, reply: FastifyReply, viewer: Viewer): FastifyReply {
  const { stores } = context.options;
  const now = context.ledgerNow(request);
  const { list } = readList(filterOf(request), now);
  if (list === null) return redirectTo(reply, LIST);
  return sendCsv(reply, `end-users-${dateText(now)}`, linesOf(stores.console, viewer.account, list));
}

async function* linesOf(reads: ConsoleStore, account: number, list: EndUserList): AsyncGenerator<string> {
  yield csvLine(['end_user_id', 'balance', 'expires_at', 'latest_activity']);
  for (let after: string | null = null, isMore = true; isMore; isMore = after !== null) {
    const page = await reads.endUsers(account, { list, after, limit: LISTED_MAX });
    yield page.endUsers.map(lineOf).join('');
    after = page.next;
  }
}

function lineOf({ endUser, balance, expiresAt, latestActivity }: ListedEndUser): string {
  const [expires, activity] = [expiresAt, latestActivity].map((at) => (at === null ? '' : new Date(at).toISOString()));
  return csvLine([endUser, balance, expires ?? '', activity ?? '']);
}

function filterOf(request: FastifyRequest): EndUserFilter {
  const name = queryField(request, 'list');
  const list: ListName = LISTS.find((known) => known === name) ?? 'activity';
  return {
    list,
    search: queryField(request, 'search').trim().toLowerCase(),
    atMost: queryField(request, 'at-most').trim() || AT_MOST_DEFAULT,
    days: queryField(request, 'days').trim() || DAYS_DEFAULT,
  };
}

function readList(
  { list, search, atMost, days }: EndUserFilter,
  now: number,
): { list: EndUserList; error: null } | { list: null; error: string } {
  if (search !== '') {
    const error = searchErrorOf(search);
    return error === null ? { list: { by: 'id', prefix: search }, error } : { list: null, error };
  }
  if (list === 'low-balance') {
    const { value: balanceMax, error } = readAmount(atMost);
    return error === null ? { list: { by: list, balanceMax }, error } : { list: null, error };
  }
  if (list === 'expiry') {
    const { value, error } = readDays(days);
    return error === null ? { list: { by: list, until: now + value * DAY_MS }, error } : { list: null, error };
  }
  return { list: list === 'id' ? { by: list, prefix: '' } : { by: list }, error: null };
}

/** Returns the UUID in lower case with hyphens, as the ledger stores it; null if the text is not a UUID. */
export function normalizedUuid(text: string): string | null {
  const range = uuidsWithPrefix(text);
  return range !== null && range.first === range.last ? range.first : null;
}

function searchErrorOf(search: string): string | null {
  if (uuidsWithPrefix(search) !== null) return null;
  return /[^0-9a-f-]/.test(search)
    ? 'Use only the digits 0–9, the letters a–f and hyphens.'
    : 'Enter at most 32 digits and letters, not counting hyphens.';
}
