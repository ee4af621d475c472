// What went wrong, in words that help: for pages that are not there, for what is not allowed, and for failures.

import { html } from 'ghtml';
import { type Page, page } from '../layout.ts';

export interface ErrorView {
  readonly title: string;
  readonly detail: string;
  /** To be found again in the log of the server; null where nothing was logged. */
  readonly requestId: string | null;
}

export function errorPage({ title, detail, requestId }: ErrorView, { viewer }: Pick<Page, 'viewer'>): string {
  const path = viewer === null ? '/console/sign-in' : '/console/overview';
  return page({
    title,
    viewer,
    notice: null,
    current: null,
    body: html`<h1>${title}</h1>
<section class="card narrow">
<p>${detail}</p>
!${requestId === null ? '' : html`<p class="muted small">Request <span class="mono">${requestId}</span></p>`}
<p><a class="button secondary" href="${path}">Go to the start</a></p>
</section>`,
  });
}
