// Where support begins: find an end user by the UUID, or by how it begins, or among those to whom something happened last.

import { html } from 'ghtml';
import type { Instant } from '../../ledger/instant.ts';
import { moment } from '../figures.ts';
import { type Page, page } from '../layout.ts';
import { endUserLink } from './activity.ts';
import { type Entered, field } from './form-field.ts';

export interface ListedEndUser {
  readonly endUser: string;
  readonly latestAt: Instant;
}

export interface EndUsersView {
  /** What was searched for; empty for all. */
  readonly search: string;
  /** Why what was searched for is no beginning of a UUID. */
  readonly searchError: string | null;
  /** In the order of their UUIDs. */
  readonly endUsers: readonly ListedEndUser[];
  /** Those to whom something happened last, latest first; empty beside a search. */
  readonly recent: readonly ListedEndUser[];
  /** Where the next page begins; null on the last. */
  readonly next: string | null;
  readonly isFirst: boolean;
}

export function endUsersPage(view: EndUsersView, { viewer, notice }: Pick<Page, 'viewer' | 'notice'>): string {
  return page({ title: 'End users', viewer, notice, current: 'end-users', body: bodyOf(view) });
}

function bodyOf(view: EndUsersView): string {
  const entered: Entered = {
    values: { search: view.search },
    errors: view.searchError === null ? {} : { search: view.searchError },
  };
  return html`<h1>End users</h1>
<form class="search" method="get" action="/console/end-users" role="search">
!${field({ id: 'search', name: 'search', label: 'Find by UUID', hint: 'The whole UUID, or how it begins.', charactersMax: 64 }, entered)}
<button class="button" type="submit">Find</button>
</form>
!${view.endUsers.length === 0 ? nobody(view) : listOf(view)}`;
}

function listOf({ search, endUsers, recent, next, isFirst }: EndUsersView): string {
  return html`!${recent.length === 0 ? '' : html`<section class="card">!${tableOf('Recently active', recent)}</section>`}
<section class="card">
!${tableOf(search === '' ? 'All, by UUID' : `Beginning with ${search}`, endUsers)}
!${pager({ isFirst, first: pathOf(search, null), next: next === null ? null : pathOf(search, next), labels: ['First page', 'Next'] })}
</section>`;
}

function tableOf(heading: string, endUsers: readonly ListedEndUser[]): string {
  const rows = endUsers.map(
    ({ endUser, latestAt }) =>
      html`<tr role="row"><td role="cell" data-label="End user">!${endUserLink(endUser)}</td><td role="cell" data-label="Last" class="when">!${moment(latestAt)}</td></tr>`,
  );
  return html`<h2>${heading}</h2>
<div class="scroll" role="region" aria-label="${heading}" tabindex="0">
<table class="table stack people" role="table"><thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">End user</th><th scope="col" role="columnheader" class="when">Last activity (UTC)</th></tr></thead><tbody role="rowgroup">!${rows}</tbody></table>
</div>`;
}

function pathOf(search: string, after: string | null): string {
  const query = new URLSearchParams();
  if (search !== '') query.set('search', search);
  if (after !== null) query.set('after', after);
  return query.size === 0 ? '/console/end-users' : `/console/end-users?${query}`;
}

export interface Pager {
  readonly isFirst: boolean;
  readonly first: string;
  readonly next: string | null;
  readonly labels: readonly [first: string, next: string];
}

/** Links to the first page and to the next one, each where there is one. */
export function pager({ isFirst, first, next, labels }: Pager): string {
  if (isFirst && next === null) return '';
  return html`<nav class="pager" aria-label="Pages">!${isFirst ? '' : html`<a class="button secondary" href="${first}">${labels[0]}</a>`}!${next === null ? '' : html`<a class="button secondary" href="${next}" rel="next">${labels[1]}</a>`}</nav>`;
}

function nobody({ search, searchError }: EndUsersView): string {
  if (searchError !== null) return '';
  if (search !== '') {
    return html`<section class="card empty"><h2>No end user begins with ${search}</h2>
<p>Credits make an end user: one that never had any is not in this list. The whole UUID leads to its page all the same, where you can add credits.</p>
<p><a href="/console/end-users">Show all</a></p></section>`;
  }
  return html`<section class="card empty"><h2>No end users yet</h2>
<p>End users need not be registered. The first credits that you add to a UUID make it one, and it shows up here.</p>
<p><a href="/console/overview">How to add the first credits</a></p></section>`;
}
