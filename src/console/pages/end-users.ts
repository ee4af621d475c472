// Search for an end user by UUID, and lists of end users.

import { html } from 'ghtml';
import type { EndUserPage } from '../../store/console-store.ts';
import { moment } from '../figures.ts';
import { type Page, page } from '../layout.ts';
import { field } from './form-field.ts';
import { endUserLink, pager, table } from './lists.ts';

export interface EndUsersView extends EndUserPage {
  /** The beginning of the UUIDs listed; empty for all. */
  readonly search: string;
  /** Set when the search term cannot be the beginning of a UUID. */
  readonly searchError: string | null;
  /** The end users with the latest activity, newest first; empty for a search. */
  readonly recent: EndUserPage['endUsers'];
  readonly isFirstPage: boolean;
}

export function endUsersPage(view: EndUsersView, viewer: Page['viewer']): string {
  const { search, searchError, endUsers } = view;
  const state = { values: { search }, errors: { search: searchError } };
  const wanted = { id: 'search', name: 'search', label: 'Search by UUID', charactersMax: 64 };
  const body = html`<form class="search" method="get" action="/console/end-users" role="search">
!${field({ ...wanted, hint: 'Enter a UUID or the beginning of one.' }, state)}
<button class="button" type="submit">Search</button>
</form>
!${endUsers.length === 0 ? emptyList(view) : lists(view)}`;
  return page({ title: 'End users', viewer, current: 'end-users', body });
}

function lists({ search, endUsers, recent, next, isFirstPage }: EndUsersView): string {
  return html`!${recent.length === 0 ? '' : html`<section class="card">!${tableOf('Recently active', recent)}</section>`}
<section class="card">
!${tableOf(search === '' ? 'All end users' : `UUIDs that begin with ${search}`, endUsers)}
!${pager([
    { label: 'First page', path: isFirstPage ? null : pathOf(search, null) },
    { label: 'Next page', path: next === null ? null : pathOf(search, next), isNext: true },
  ])}
</section>`;
}

function tableOf(heading: string, endUsers: EndUserPage['endUsers']): string {
  const rows = endUsers.map(
    ({ endUser, latestActivity }) =>
      html`<tr role="row"><td role="cell" data-label="End user">!${endUserLink(endUser)}</td><td role="cell" data-label="Last activity" class="when">!${moment(latestActivity)}</td></tr>`,
  );
  const columns = [['End user'], ['Last activity (UTC)', 'when']] as const;
  return html`<h2>${heading}</h2>
!${table({ label: heading, classes: 'end-users', columns, rows })}`;
}

function pathOf(search: string, after: string | null): string {
  const query = new URLSearchParams();
  if (search !== '') query.set('search', search);
  if (after !== null) query.set('after', after);
  return query.size === 0 ? '/console/end-users' : `/console/end-users?${query}`;
}

function emptyList({ search, searchError }: EndUsersView): string {
  if (searchError !== null) return '';
  if (search !== '') {
    return html`<section class="card empty"><h2>No UUID begins with ${search}</h2>
<p>An end user appears here once you add credits to their UUID. To add credits to a new one, search for the whole UUID.</p>
<p><a href="/console/end-users">Show all end users</a></p></section>`;
  }
  return html`<section class="card empty"><h2>No end users yet</h2>
<p>You don't need to register end users. An end user appears here once you add credits to their UUID.</p>
<p><a href="/console/overview">Add your first credits</a></p></section>`;
}
