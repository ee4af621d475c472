// The search for end users by UUID, and the lists of end users.

import { html } from 'ghtml';
import type { EndUserPage } from '../../store/end-user-lists.ts';
import type { EndUserCounts } from '../../store/end-user-summaries.ts';
import { endTime, moment, numberText, wrappableNumber } from '../figures.ts';
import { type Page, page } from '../layout.ts';
import { type FormState, field } from './form-field.ts';
import { endUserLink, freshnessText, pager, table } from './lists.ts';

export const LISTS = ['activity', 'balance', 'low-balance', 'no-credits', 'expiry', 'id'] as const;
export type ListName = (typeof LISTS)[number];

const LIST_TEXTS: Readonly<Record<ListName, { readonly link: string; readonly heading: string }>> = {
  activity: { link: 'Latest activity', heading: 'All end users, most recently active first' },
  balance: { link: 'Highest balance', heading: 'All end users, highest balance first' },
  'low-balance': { link: 'Low balance', heading: 'End users with credits left, lowest balance first' },
  'no-credits': { link: 'No credits', heading: 'End users with no credits left, most recently active first' },
  expiry: {
    link: 'Expiring soon',
    heading: 'End users with credits that expire without renewal, earliest expiry first',
  },
  id: { link: 'UUID', heading: 'All end users, by UUID' },
};

/** The list and its filters, as the user entered them. */
export interface EndUserFilter {
  readonly list: ListName;
  /** Only UUIDs with this prefix are listed; an empty prefix lists all end users. */
  readonly search: string;
  /** The maximum balance in the `low-balance` list. */
  readonly atMost: string;
  /** The number of days that the `expiry` list covers. */
  readonly days: string;
}

interface EndUsersView {
  readonly filter: EndUserFilter;
  readonly counts: EndUserCounts;
  readonly error: string | null;
  readonly page: EndUserPage | null;
  readonly isStoringDue: boolean;
  readonly isFirstPage: boolean;
}

export function endUsersPage(view: EndUsersView, viewer: Page['viewer']): string {
  const { filter, counts, error } = view;
  const isSearch = filter.search !== '';
  const state = { values: { search: filter.search }, errors: { search: isSearch ? error : null } };
  const wanted = { id: 'search', name: 'search', label: 'Search by UUID' };
  const body = html`<form class="search" method="get" action="/console/end-users" role="search">
!${field({ ...wanted, hint: 'Enter a UUID or the beginning of one.' }, state)}
<button class="button" type="submit">Search</button>
</form>
!${counts.endUsers === 0 && !isSearch ? NO_END_USERS : html`!${isSearch ? '' : listLinks(filter)}!${listCard(view)}`}`;
  return page({ title: 'End users', viewer, current: 'end-users', body });
}

function listLinks({ list }: EndUserFilter): string {
  const links = LISTS.map(
    (name) =>
      html`<a href="${pathOf({ list: name })}"!${name === list ? ' aria-current="true"' : ''}>${LIST_TEXTS[name].link}</a>`,
  );
  return html`<nav class="tabs" aria-label="Lists">!${links}</nav>`;
}

function listCard(view: EndUsersView): string {
  const { filter, page } = view;
  if (filter.search !== '' && page === null) return '';
  if (filter.search !== '' && page?.endUsers.length === 0 && view.isFirstPage) return notFound(filter.search);
  const heading = filter.search === '' ? LIST_TEXTS[filter.list].heading : `UUIDs that begin with ${filter.search}`;
  return html`<section class="card">
<h2>${heading}</h2>
!${filter.search === '' ? limitForm(view) : ''}
!${page === null ? '' : pageOfList(heading, page, view)}
</section>`;
}

function pageOfList(heading: string, { asOf, endUsers, next }: EndUserPage, view: EndUsersView): string {
  const { filter, counts, isStoringDue, isFirstPage } = view;
  const of = `${numberText(counts.endUsers)} end ${counts.endUsers === 1 ? 'user' : 'users'}, ${numberText(counts.withCredits)} with credits`;
  return html`!${endUsers.length === 0 ? '<p class="muted">No end users in this list.</p>' : tableOf(heading, endUsers)}
!${pager([
    { label: 'First page', path: isFirstPage ? null : pathOf(filter) },
    { label: 'Next page', path: next === null ? null : pathOf(filter, next), isNext: true },
    { label: 'Download CSV', path: endUsers.length === 0 ? null : pathOf(filter, null, '/console/end-users.csv') },
  ])}
<p class="muted small">${of}. !${freshnessText({ asOf, isStoringDue }, 'The lists')}</p>`;
}

function limitForm({ filter, error }: EndUsersView): string {
  const limits = {
    'low-balance': { id: 'at-most', name: 'at-most', label: 'Balance at most', initial: filter.atMost },
    expiry: { id: 'days', name: 'days', label: 'Expires within (days)', initial: filter.days },
  } as const;
  if (filter.list !== 'low-balance' && filter.list !== 'expiry') return '';
  const limit = { ...limits[filter.list], isWholeNumber: true };
  const state: FormState = { values: { [limit.name]: limit.initial }, errors: { [limit.name]: error } };
  return html`<form class="form pair" method="get" action="/console/end-users">
<input type="hidden" name="list" value="${filter.list}">
!${field(limit, state)}
<button class="button secondary" type="submit">Show</button>
</form>`;
}

function tableOf(label: string, endUsers: EndUserPage['endUsers']): string {
  const rows = endUsers.map(
    ({ endUser, balance, expiresAt, latestActivity }) => html`<tr role="row">
<td role="cell" data-label="End user">!${endUserLink(endUser)}</td>
<td role="cell" data-label="Balance" class="number">!${wrappableNumber(balance)}</td>
<td role="cell" data-label="Next expiry" class="when">!${expiresAt === null ? '' : endTime(expiresAt)}</td>
<td role="cell" data-label="Latest activity" class="when">!${moment(latestActivity)}</td>
</tr>`,
  );
  const columns = [
    ['End user'],
    ['Balance', 'number'],
    ['Next expiry (UTC)', 'when'],
    ['Latest activity (UTC)', 'when'],
  ] as const;
  return table({ label, classes: 'end-users', columns, rows });
}

function pathOf(filter: Partial<EndUserFilter>, after: string | null = null, path = '/console/end-users'): string {
  const { list = 'activity', search = '', atMost, days } = filter;
  const query = new URLSearchParams();
  if (search !== '') query.set('search', search);
  else if (list !== 'activity') query.set('list', list);
  if (search === '' && list === 'low-balance' && atMost !== undefined) query.set('at-most', atMost);
  if (search === '' && list === 'expiry' && days !== undefined) query.set('days', days);
  if (after !== null) query.set('after', after);
  return query.size === 0 ? path : `${path}?${query}`;
}

function notFound(search: string): string {
  return html`<section class="card empty"><h2>No UUID begins with ${search}</h2>
<p>An end user appears here after you add their first credits. To add credits to a new end user, search for the full UUID.</p>
<p><a href="/console/end-users">Show all end users</a></p></section>`;
}

const NO_END_USERS = `<section class="card empty"><h2>No end users yet</h2>
<p>You don't need to register end users. An end user appears here a few seconds after you add their first credits.</p>
<p><a href="/console/overview">Add your first credits</a></p></section>`;
