// Imports the rows of a file in batches, and resumes an interrupted import.
//
//   started ──batch──▶ advanced ──batch──▶ … ──▶ all rows done
//                └── killed, interrupted or failed: importing the same file again resumes after the last batch

import type { Add, Outcome } from '../../ledger/command.ts';
import { DAY_MS, type Instant } from '../../ledger/instant.ts';
import type { Note } from '../../ledger/posting.ts';
import { StoreFault } from '../store-fault.ts';
import type { ImportTarget, LedgerImport } from './ledger-import.ts';
import type { ReportProgress } from './ledger-tools.ts';

/** Importing a batch takes about 20 ms. Requests to a running server can be delayed by that long. */
const ROWS_PER_BATCH = 256;

export interface ImportRow {
  /** The number of the line on which the row begins, counted from 1. */
  readonly line: number;
  /** A UUID in lower case. */
  readonly endUser: string;
  readonly amount: number;
  readonly validity: { readonly days: number } | { readonly expiresAt: Instant };
  readonly note: Note | null;
}

export type NotGranted = 'expired' | 'BalanceTooLarge';

/** Thrown if an import stops before it is complete. The message says why the import stopped, and what to do. */
export class ImportStopped extends Error {
  override readonly name = 'ImportStopped';
}

export interface ImportOptions {
  readonly report: ReportProgress;
  readonly onNotGranted: (row: ImportRow, why: NotGranted) => void;
  readonly signal: AbortSignal;
}

/**
 * @param rows all rows of the file, in order
 * @throws ImportStopped
 */
export async function importRows(
  target: ImportTarget,
  started: LedgerImport,
  rows: AsyncIterable<ImportRow>,
  { report, onNotGranted, signal }: ImportOptions,
): Promise<LedgerImport> {
  let one = started;
  const progress = () => report({ step: 'importing', done: one.done, total: one.rows, unit: 'rows' });
  progress();
  try {
    for await (const batch of inBatches(rows, one.done)) {
      if (signal.aborted) throw stopped('was interrupted', one);
      one = await grant(target, one, batch, onNotGranted);
      progress();
    }
    return one;
  } catch (error) {
    if (!(error instanceof StoreFault)) throw error;
    throw stopped('stopped', one, ` (${error.message})`);
  }
}

function stopped(how: string, { done, rows }: LedgerImport, reason = ''): ImportStopped {
  return new ImportStopped(
    `The import ${how} after ${done} of ${rows} rows${reason}; run the same command again to resume.`,
  );
}

async function grant(
  target: ImportTarget,
  one: LedgerImport,
  batch: readonly ImportRow[],
  onNotGranted: ImportOptions['onNotGranted'],
): Promise<LedgerImport> {
  const now = await target.now();
  const valid = batch.filter((row) => daysLeft(row, now) > 0);
  const outcomes = await target.grant(
    one,
    valid.map((row) => commandOf(row, one, now)),
    batch.length,
  );
  for (const row of batch) if (daysLeft(row, now) <= 0) onNotGranted(row, 'expired');
  const refused = valid.filter((_, index) => (outcomes[index] as Outcome).refused !== null);
  // An addition is refused only if the balance would become too large.
  for (const row of refused) onNotGranted(row, 'BalanceTooLarge');
  const granted = valid.length - refused.length;
  return { ...one, done: one.done + batch.length, granted: one.granted + granted };
}

function commandOf(row: ImportRow, { id, account }: LedgerImport, now: Instant): Add {
  const { endUser, amount, note } = row;
  const validityDays = daysLeft(row, now);
  return { kind: 'add', account, endUser, actor: `import:${id}`, amount, validityDays, note };
}

/** Rounds up to whole days, so that credits never expire before the `expires_at` in the imported file. */
function daysLeft({ validity }: ImportRow, now: Instant): number {
  return 'days' in validity ? validity.days : Math.ceil((validity.expiresAt - now) / DAY_MS);
}

async function* inBatches(rows: AsyncIterable<ImportRow>, skipped: number): AsyncGenerator<readonly ImportRow[]> {
  let index = 0;
  let batch: ImportRow[] = [];
  for await (const row of rows) {
    index += 1;
    if (index <= skipped) continue;
    if (batch.push(row) < ROWS_PER_BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
