// What happened, in the words of the console: what kind it was, and who did it. The overview and the page of an end user
// say it alike.

import { html } from 'ghtml';
import type { Instant } from '../../ledger/instant.ts';
import type { PostingKind } from '../../ledger/posting.ts';
import type { TransactionId } from '../../ledger/transaction-id.ts';
import { movement } from '../figures.ts';

/** Who did something, by the name that people know. */
export type DoneBy =
  | { readonly kind: 'key'; readonly name: string; readonly hint: string }
  | { readonly kind: 'member'; readonly email: string }
  | { readonly kind: 'renewal' }
  /** Kept in the record by an id that nobody knows any more, or that belongs to the operator. */
  | { readonly kind: 'other'; readonly actor: string };

/** One transaction, or one stop. */
export interface Happening {
  readonly id: TransactionId;
  readonly kind: PostingKind;
  readonly amount: number;
  readonly createdAt: Instant;
  readonly by: DoneBy;
  readonly note: string | null;
}

const KINDS: Readonly<Record<PostingKind, string>> = {
  add: 'Added',
  'start-cycle': 'Cycle started',
  renew: 'Cycle renewed',
  subtract: 'Subtracted',
  'stop-cycle': 'Cycle stopped',
};

export function kindBadge(kind: PostingKind): string {
  return html`<span class="badge kind-${kind}">${KINDS[kind]}</span>`;
}

/** A stop moves no credits. */
export function amountOf({ kind, amount }: Pick<Happening, 'kind' | 'amount'>): string {
  return kind === 'stop-cycle' ? '0' : movement(amount);
}

export function doneBy(by: DoneBy): string {
  switch (by.kind) {
    case 'key':
      return html`${by.name} <span class="muted mono">${by.hint}</span>`;
    case 'member':
      return html`${by.email}`;
    case 'renewal':
      return '<span class="muted">renewal</span>';
    case 'other':
      return html`<span class="muted mono">${by.actor}</span>`;
  }
}

/** Where many keys' doings stand together: by name alone, in one line. */
export function doneByShortly(by: DoneBy): string {
  return by.kind === 'key' ? html`${by.name}` : doneBy(by);
}

export function endUserLink(endUser: string): string {
  return html`<a class="mono" href="/console/end-users/${endUser}">${endUser}</a>`;
}
