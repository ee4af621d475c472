// What the lists of the console have in common: the table, how a transaction is shown in it, and links to other pages.

import { html } from 'ghtml';
import type { PostingKind } from '../../ledger/posting.ts';
import type { RecordedTransaction } from '../../store/console-store.ts';
import { signedText } from '../figures.ts';

/** Who made a transaction. */
export type ActorView =
  | { readonly kind: 'api-key'; readonly name: string; readonly hint: string }
  | { readonly kind: 'member'; readonly email: string }
  | { readonly kind: 'renewal' }
  /** A removed member, a key of the operator, or anything else that the console cannot name. */
  | { readonly kind: 'unknown'; readonly id: string };

/** A transaction, or a stop of a cycle. */
export interface Activity extends Pick<RecordedTransaction, 'id' | 'kind' | 'amount' | 'createdAt' | 'note'> {
  readonly by: ActorView;
}

const KIND_LABELS: Readonly<Record<PostingKind, string>> = {
  add: 'Added',
  'start-cycle': 'Cycle started',
  renew: 'Cycle renewed',
  subtract: 'Subtracted',
  'stop-cycle': 'Cycle stopped',
};

export function kindBadge(kind: PostingKind): string {
  return html`<span class="badge kind-${kind}">${KIND_LABELS[kind]}</span>`;
}

export function amountText({ kind, amount }: Pick<Activity, 'kind' | 'amount'>): string {
  // A stop moves no credits.
  return kind === 'stop-cycle' ? '0' : signedText(amount);
}

export function actorLabel(actor: ActorView): string {
  switch (actor.kind) {
    case 'api-key':
      return html`${actor.name} <span class="muted mono">${actor.hint}</span>`;
    case 'member':
      return html`${actor.email}`;
    case 'renewal':
      return '<span class="muted">Scrip</span>';
    case 'unknown':
      return html`<span class="muted mono">${actor.id}</span>`;
  }
}

export function endUserLink(endUser: string): string {
  return html`<a class="mono" href="/console/end-users/${endUser}">${endUser}</a>`;
}

export interface Table {
  /** For screen readers. */
  readonly label: string;
  /** Each with its heading, and the class of its cells if they have one. */
  readonly columns: readonly (readonly [heading: string, cells?: 'number' | 'when' | 'end'])[];
  /** Trusted HTML: rows whose cells name their column in `data-label`, for narrow screens. */
  readonly rows: readonly string[];
  readonly classes?: string;
  /** Whether a long table scrolls within its card. */
  readonly isTall?: boolean;
}

/** On a narrow screen, the cells of a row stand one below the other; the roles keep it a table for screen readers. */
export function table({ label, columns, rows, classes = '', isTall = false }: Table): string {
  const headings = columns.map(
    ([heading, cells]) =>
      html`<th scope="col" role="columnheader"!${cells === undefined ? '' : ` class="${cells}"`}>${heading}</th>`,
  );
  return html`<div class="scroll${isTall ? ' tall' : ''}" role="region" aria-label="${label}" tabindex="0">
<table class="table stack ${classes}" role="table"><thead role="rowgroup"><tr role="row">!${headings}</tr></thead><tbody role="rowgroup">!${rows}</tbody></table>
</div>`;
}

export interface PagerLink {
  readonly label: string;
  /** Null when there is no such page. */
  readonly path: string | null;
  readonly isNext?: boolean;
}

export function pager(links: readonly PagerLink[]): string {
  const shown = links.map(({ label, path, isNext }) =>
    path === null ? '' : html`<a class="button secondary" href="${path}"!${isNext ? ' rel="next"' : ''}>${label}</a>`,
  );
  return shown.join('') === '' ? '' : html`<nav class="pager" aria-label="Pages">!${shown}</nav>`;
}
