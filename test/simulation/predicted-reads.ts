// Uses the reference model to predict the responses to reads, and prepares predictions and responses for comparison.

import { isDeepStrictEqual } from 'node:util';
import type { ModelBalance, ModelHistoryEntry, ModelPreview, ModelRefused, ModelUser } from '../model/model-types.ts';
import type { StartCommand } from '../model/reference-model.ts';
import type { Operation } from './operation.ts';
import {
  balanceHistoryText,
  balanceText,
  comparablePage,
  holdsText,
  listText,
  pageText,
  previewText,
  problemOf,
  withoutRefundable,
} from './predicted-replies.ts';

export const AT_REST = 0;

type Previews = ReadonlyMap<StartCommand, ModelPreview | ModelRefused>;

export type Read =
  | { readonly kind: 'balance'; readonly balance: ModelBalance; readonly previews: Previews }
  | { readonly kind: 'balances'; readonly instants: readonly number[]; readonly balances: readonly ModelBalance[] }
  | { readonly kind: 'transactions'; readonly texts: readonly string[] }
  | { readonly kind: 'history'; readonly entries: readonly ModelHistoryEntry[] };

export function predictedBy({ kind, user, instants, filter, previewed }: Operation, read: Read): string | null {
  switch (read.kind) {
    case 'balance':
      if (kind === 'balance') return balanceText(user, read.balance);
      if (kind === 'holds') return holdsText(user, read.balance);
      return previewed === undefined ? null : previewedBy(user, read.previews.get(previewed));
    case 'transactions':
      return kind === 'transactions' ? listText(user, read.texts) : null;
    case 'history':
      return filter === undefined ? null : pageText(user, read.entries, filter);
    case 'balances':
      if (!isDeepStrictEqual(instants, read.instants)) return null;
      return kind === 'balance history'
        ? balanceHistoryText(user, read.instants, read.balances)
        : balanceText(user, read.balances[0] as ModelBalance);
  }
}

/** `refundable` is compared only in the final reads, because credits may be refunded between two pages of a list. */
export function comparableFor({ number, filter, previewed }: Operation): (body: string) => string {
  if (previewed !== undefined) return comparablePreview;
  if (filter === undefined) return (body) => body;
  if (number === AT_REST) return comparablePage;
  return (body) => withoutRefundable(comparablePage(body));
}

function previewedBy(user: ModelUser, preview: ModelPreview | ModelRefused | undefined): string | null {
  if (preview === undefined) return null;
  return preview.refused === null ? previewText(user, preview) : JSON.stringify(problemOf(user, preview));
}

export const UNPREDICTED: readonly string[] = [
  ...['type', 'title', 'detail', 'message', 'request_id', 'timestamp', 'error_code'],
];

function comparablePreview(body: string): string {
  const document: Record<string, unknown> = JSON.parse(body);
  if (!('error' in document)) return body;
  const members = Object.entries(document).filter(([name]) => !UNPREDICTED.includes(name));
  return JSON.stringify(members.sort(([a], [b]) => (a < b ? -1 : 1)));
}
