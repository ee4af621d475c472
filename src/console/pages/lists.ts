// Shared parts of the console's lists: the table, labels for transactions and actors, and links to other pages.

import { html } from 'ghtml';
import type { Instant } from '../../ledger/instant.ts';
import { isListed, type PostingKind, type Transaction } from '../../ledger/posting.ts';
import { momentUtc, signedText, UTC_MARK, wrappable } from '../figures.ts';

export type ActorView =
  | { readonly kind: 'api-key'; readonly name: string; readonly hint: string }
  | { readonly kind: 'member'; readonly email: string }
  /** Scrip itself: the actor of renewals, scheduled changes of plan, and lapses of holds. */
  | { readonly kind: 'time' }
  | { readonly kind: 'operator' }
  /** A removed member, an import, or another actor without a name. */
  | { readonly kind: 'unknown'; readonly id: string };

export interface Activity extends Pick<Transaction, 'id' | 'kind' | 'amount' | 'createdAt' | 'note'> {
  readonly by: ActorView;
}

const KIND_LABELS: Readonly<Record<PostingKind, string>> = {
  add: 'Added',
  'start-cycle': 'Cycle started',
  renew: 'Cycle renewed',
  'schedule-plan': 'Plan scheduled',
  'change-plan': 'Plan changed',
  subtract: 'Subtracted',
  'stop-cycle': 'Cycle stopped',
  hold: 'Held',
  capture: 'Captured',
  release: 'Hold released',
  lapse: 'Hold lapsed',
  refund: 'Refunded',
};

export const KINDS = Object.keys(KIND_LABELS) as readonly PostingKind[];

export function kindLabel(kind: PostingKind): string {
  return KIND_LABELS[kind];
}

export function kindBadge(kind: PostingKind): string {
  return html`<span class="badge kind-${kind}">${KIND_LABELS[kind]}</span>`;
}

/** Returns the signed amount of a transaction; empty for kinds that neither grant nor spend credits, such as holds. */
export function amountLabel({ kind, amount }: Pick<Activity, 'kind' | 'amount'>): string {
  return isListed(kind) ? wrappable(signedText(amount)) : '';
}

export function actorLabel(actor: ActorView): string {
  switch (actor.kind) {
    case 'api-key':
      return html`<bdi class="whole">${actor.name}</bdi> <span class="whole muted mono">${actor.hint}</span>`;
    case 'member':
      return html`${actor.email}`;
    case 'time':
      return '<span class="muted">Scrip</span>';
    case 'operator':
      return '<span class="muted">Command line</span>';
    case 'unknown':
      return html`<span class="muted mono">${actor.id}</span>`;
  }
}

/** Returns the label of an actor as plain text, for CSV files. */
export function actorText(actor: ActorView): string {
  switch (actor.kind) {
    case 'api-key':
      return `${actor.name} (${actor.hint})`;
    case 'member':
      return actor.email;
    case 'time':
      return 'Scrip';
    case 'operator':
      return 'Command line';
    case 'unknown':
      return actor.id;
  }
}

export function byCell({ by, note }: Pick<Activity, 'by' | 'note'>): string {
  return html`<td role="cell" data-label="By" class="by"><span>!${actorLabel(by)}</span>!${note === null ? '' : html`<bdi class="note">“${note}”</bdi>`}</td>`;
}

export function endUserLink(endUser: string): string {
  return html`<a class="mono" href="/console/end-users/${endUser}">${endUser}</a>`;
}

export interface Table {
  /** The name of the table for screen readers. */
  readonly label: string;
  /** The heading of each column, and optionally the class of its cells. */
  readonly columns: readonly (readonly [heading: string, cells?: 'number' | 'when' | 'end'])[];
  /** Trusted HTML. Each cell names its column in `data-label`, for narrow screens. */
  readonly rows: readonly string[];
  readonly classes?: string;
  /** Whether the table scrolls within its card. */
  readonly isTall?: boolean;
}

/** On narrow screens, CSS stacks the cells of a row, so ARIA roles tell screen readers that the cells form a table. */
export function table({ label, columns, rows, classes = '', isTall = false }: Table): string {
  const headings = columns.map(
    ([heading, cells]) =>
      html`<th scope="col" role="columnheader"!${cells === undefined ? '' : ` class="${cells}"`}>!${headingOf(heading)}</th>`,
  );
  return html`<div class="scroll${isTall ? ' tall' : ''}" role="region" aria-label="${label}" tabindex="0">
<table class="table stack ${classes}" role="table"><thead role="rowgroup"><tr role="row">!${headings}</tr></thead><tbody role="rowgroup">!${rows}</tbody></table>
</div>`;
}

function headingOf(heading: string): string {
  const zone = ' (UTC)';
  return heading.endsWith(zone) ? html`${heading.slice(0, -zone.length)}!${UTC_MARK}` : html`${heading}`;
}

/** @property trusted the value as trusted HTML; a fact with an empty value is left out */
export type Fact = readonly [name: string, trusted: string];

export function factList(facts: readonly Fact[]): string {
  const shown = facts.filter(([, text]) => text !== '').map(([name, text]) => html`<dt>${name}</dt><dd>!${text}</dd>`);
  return html`<dl class="facts">!${shown}</dl>`;
}

interface PagerLink {
  readonly label: string;
  /** If null, the link is left out. */
  readonly path: string | null;
  readonly isNext?: boolean;
}

export function pager(links: readonly PagerLink[]): string {
  const shown = links.map(({ label, path, isNext }) =>
    path === null ? '' : html`<a class="button secondary" href="${path}"!${isNext ? ' rel="next"' : ''}>${label}</a>`,
  );
  return shown.join('') === '' ? '' : html`<nav class="pager" aria-label="Pages">!${shown}</nav>`;
}

/** When the figures of a page were computed from stored transactions. */
export interface Freshness {
  /** The figures include all stored transactions up to this instant; 0 while Scrip recomputes them. */
  readonly asOf: Instant;
  /** Whether renewals or lapses are due but not stored yet, so that the figures do not include them. */
  readonly isStoringDue: boolean;
}

export const STORING_DUE =
  'Renewals and lapses that were due earlier are still being stored, and are not included yet.';

/** @param figures for example `The totals` */
export function freshnessText({ asOf, isStoringDue }: Freshness, figures: string): string {
  if (asOf === 0) return html`${figures} are being rebuilt. Reload this page in a moment.`;
  return html`As of !${momentUtc(asOf)}. ${isStoringDue ? STORING_DUE : ''}`;
}
