// All postings of an account as lines of text, for a spreadsheet or another program. A store gives them out a batch at a
// time, from one snapshot; here they become NDJSON or CSV.

import type { EndUserKey } from '../../ledger/command.ts';
import type { Posting } from '../../ledger/posting.ts';
import type { LedgerRow } from './ledger-copy.ts';

export const EXPORT_FORMATS = ['ndjson', 'csv'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

export interface ExportedPosting {
  readonly user: EndUserKey;
  readonly posting: Posting;
}

/** What a store knows of an account, for as long as this is open. */
export interface AccountPostings {
  /** How many there are. */
  readonly total: number;
  /** By end user, and within one from the first to the latest. */
  batches(): AsyncIterable<readonly ExportedPosting[]>;
  close(): Promise<void>;
}

/** The last end user of the account before: the rows of `account` are those behind it. */
export function beforeAccount(account: number): EndUserKey {
  return { account: account - 1, endUser: 'ffffffff-ffff-ffff-ffff-ffffffffffff' };
}

/** @param rows those behind `beforeAccount` */
export async function* postingsOfAccount(
  account: number,
  rows: Iterable<readonly LedgerRow[]> | AsyncIterable<readonly LedgerRow[]>,
): AsyncGenerator<readonly ExportedPosting[]> {
  for await (const batch of rows) {
    yield batch.filter((row) => row.kind === 'posting' && row.user.account === account) as ExportedPosting[];
    if (batch.some(({ user }) => user.account > account)) return;
  }
}

/** In the order of the columns. */
const COLUMNS = {
  end_user_id: ({ user }: ExportedPosting) => user.endUser,
  transaction_id: ({ posting }: ExportedPosting) => posting.transactionId,
  kind: ({ posting }: ExportedPosting) => posting.kind,
  amount: ({ posting }: ExportedPosting) => posting.amount,
  created_at: ({ posting }: ExportedPosting) => new Date(posting.createdAt).toISOString(),
  expires_at: ({ posting }: ExportedPosting) => new Date(posting.expiresAt).toISOString(),
  cycle_id: ({ posting }: ExportedPosting) => posting.cycleId,
  period: ({ posting }: ExportedPosting) => posting.period,
  actor: ({ posting }: ExportedPosting) => posting.actor,
  note: ({ posting }: ExportedPosting) => posting.note,
};

/** @returns the document in pieces, a batch each; a CSV without postings is its header */
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

/** RFC 4180: lines end with CRLF, and what would end a field early is quoted. */
function csvLine(fields: readonly (string | number | null)[]): string {
  return `${fields.map(csvField).join(',')}\r\n`;
}

function csvField(field: string | number | null): string {
  if (typeof field === 'number') return String(field);
  return field === null ? '' : quoted(inert(field));
}

/** Spreadsheets take text that begins like this for a formula, and run it. https://owasp.org/www-community/attacks/CSV_Injection */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;

function inert(text: string): string {
  return FORMULA.test(text) ? `'${text}` : text;
}

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
