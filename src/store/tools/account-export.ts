// Exports all postings of an account as NDJSON or CSV. A store reads the postings in batches from one database
// snapshot.

import type { EndUserKey } from '../../ledger/command.ts';
import type { Posting } from '../../ledger/posting.ts';
import { csvLine } from '../csv.ts';
import type { LedgerRow } from './ledger-row.ts';

export const EXPORT_FORMATS = ['ndjson', 'csv'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

export interface ExportedPosting {
  readonly user: EndUserKey;
  readonly posting: Posting;
}

/** An account's postings in one database snapshot, which stays open until `close`. */
export interface AccountPostings {
  readonly total: number;
  /** The postings are sorted by end user, and those of one end user are sorted oldest first. */
  batches(): AsyncIterable<readonly ExportedPosting[]>;
  close(): Promise<void>;
}

/** The last possible end user of the previous account. The rows of `account` sort after this end user. */
export function beforeAccount(account: number): EndUserKey {
  return { account: account - 1, endUser: 'ffffffff-ffff-ffff-ffff-ffffffffffff' };
}

/** @param rows the rows of this account and of all accounts with higher numbers, sorted by account */
export async function* postingsOfAccount(
  account: number,
  rows: Iterable<readonly LedgerRow[]> | AsyncIterable<readonly LedgerRow[]>,
): AsyncGenerator<readonly ExportedPosting[]> {
  for await (const batch of rows) {
    yield batch.flatMap((row) => {
      if (row.kind === 'end-user' || row.user.account !== account) return [];
      return row.postings.map((posting) => ({ user: row.user, posting }));
    });
    if (batch.some(({ user }) => user.account > account)) return;
  }
}

const COLUMNS = {
  end_user_id: ({ user }) => user.endUser,
  transaction_id: ({ posting }) => posting.transactionId,
  kind: ({ posting }) => posting.kind,
  amount: ({ posting }) => posting.amount,
  held: ({ posting }) => posting.held,
  created_at: ({ posting }) => new Date(posting.createdAt).toISOString(),
  expires_at: ({ posting }) => new Date(posting.expiresAt).toISOString(),
  cycle_id: ({ posting }) => posting.cycleId,
  period: ({ posting }) => posting.period,
  actor: ({ posting }) => posting.actor,
  note: ({ posting }) => posting.note,
  reference: ({ posting }) => posting.reference,
  hold_expires_at: ({ posting: { holdExpiresAt: at } }) => (at === null ? null : new Date(at).toISOString()),
} satisfies Record<string, (exported: ExportedPosting) => string | number | null>;

/** @returns the text of the export in pieces; a CSV export without postings has only a header */
export async function* exportedText(
  batches: AsyncIterable<readonly ExportedPosting[]>,
  format: ExportFormat,
): AsyncGenerator<string> {
  if (format === 'csv') yield csvLine(Object.keys(COLUMNS));
  const lineOf = format === 'csv' ? csvOf : ndjsonOf;
  for await (const batch of batches) yield batch.map(lineOf).join('');
}

function ndjsonOf(exported: ExportedPosting): string {
  const members = Object.entries(COLUMNS).map(([name, read]) => [name, read(exported)]);
  return `${JSON.stringify(Object.fromEntries(members))}\n`;
}

function csvOf(exported: ExportedPosting): string {
  return csvLine(Object.values(COLUMNS).map((read) => read(exported)));
}
