// Copies a whole ledger from one store to another. End users are copied one after another, sorted by account and UUID.
// Then the copied data of both ledgers is compared. Until the copy is finished, the destination contains a mark, so
// that only the command that makes the copy can open it.
//
//   empty ──begin──▶ marked ──commit──▶ mark updated ──rows equal, both verified──▶ finished, mark removed
//                      └──── killed or failed: the same command resumes after the last complete end user

import { AssertionError } from 'node:assert';
import type { EndUserKey } from '../../ledger/command.ts';
import { instantOf, sequenceOf } from '../../ledger/transaction-id.ts';
import type { DeriveEvents } from '../event-log.ts';
import { CannotOpen, StoreFault } from '../store-fault.ts';
import type { IdPosition } from '../transaction-ids.ts';
import { CopiedEvents } from './copied-events.ts';
import { accountsDigest, type CopyDigest, digestOf } from './copy-digest.ts';
import type { CopyDestination, CopySource } from './ledger-copy.ts';
import { type LedgerRow, rowSize } from './ledger-row.ts';
import { auditSummary, type ReportProgress } from './ledger-tools.ts';

/** After the last row of an end user, the copy commits if at least this many rows are uncommitted. */
const ROWS_PER_COMMIT = 5_000;

/** Thrown if a copy stops before it is complete. The message says why the copy stopped, and what to do. */
export class CopyStopped extends Error {
  override readonly name = 'CopyStopped';
}

export interface CopyReport extends CopyDigest {
  /** The number of end users that earlier runs copied. */
  readonly resumedAfter: number;
}

/**
 * @param open opens the destination; called only when the state of the source is known, so that the destination can be
 * marked as soon as it exists
 * @param derive computes the progress of event derivation for the copy
 * @param report called after every batch of rows
 * @throws CopyStopped, CannotOpen
 */
export async function copyLedger(
  source: CopySource,
  open: () => Promise<CopyDestination>,
  derive: DeriveEvents,
  report: ReportProgress,
): Promise<CopyReport> {
  try {
    return await copyAll(source, open, derive, report);
  } catch (error) {
    if (!isFromOutside(error)) throw error;
    throw new CopyStopped(`The copy stopped (${error.message}); run the same command again to resume.`);
  }
}

/**
 * Whether an error has an external cause, such as a full disk. If the connection to the database is lost, the error is
 * an `Error` without a code. A failed assertion is a bug, so its stack trace must be printed.
 */
function isFromOutside(error: unknown): error is Error {
  if (!(error instanceof Error) || error instanceof AssertionError || error instanceof StoreFault) return false;
  return error.constructor === Error || 'code' in error;
}

async function copyAll(
  source: CopySource,
  open: () => Promise<CopyDestination>,
  derive: DeriveEvents,
  report: ReportProgress,
): Promise<CopyReport> {
  const counts = await source.counts();
  const state = await stateOf(source);
  const destination = await open();
  const after = await destination.begin(state);
  await refuseBroken(source, `${source.name} was not copied`);
  const there = await destination.counts();
  const events = new CopiedEvents(derive, await source.tableRows(), (await source.clock()).at);
  await copyEndUsers({ source, destination, events }, after, (postings) =>
    report({ step: 'copying', done: there.postings + postings, total: counts.postings, unit: 'postings' }),
  );
  await destination.loadIdempotencyRecords(source.idempotencyRecords());
  await destination.loadTables(await source.tableRows());
  let compared = 0;
  const advance = (postings: number) => {
    compared += postings;
    report({ step: 'comparing', done: compared, total: 2 * counts.postings, unit: 'postings' });
  };
  const [from, to] = await Promise.all([digestOf(source, advance), digestOf(destination, advance)]);
  if ((await stateOf(source)) !== state)
    throw new CopyStopped(
      `${source.name} changed while it was being copied; stop everything that writes to it, delete ${destination.name}, and copy again.`,
    );
  refuseDifferent(source, from, destination, to);
  await destination.moveClock(clockOf(await source.clock(), to));
  await destination.rebuildTotals();
  await refuseBroken(destination, `The copy in ${destination.name} is not finished`);
  await destination.finish();
  return { ...to, resumedAfter: there.endUsers };
}

async function copyEndUsers(
  { source, destination, events }: { source: CopySource; destination: CopyDestination; events: CopiedEvents },
  after: EndUserKey | null,
  progress: (postings: number) => void,
): Promise<void> {
  let postings = 0;
  let uncommitted = 0;
  let last: EndUserKey | null = null;
  for await (const read of source.rows(after)) {
    const rows = events.follow(read);
    const complete = rows.findLastIndex(({ kind }) => kind === 'end-user') + 1;
    await destination.load(rows.slice(0, complete));
    last = rows[complete - 1]?.user ?? last;
    uncommitted += totalSize(rows);
    if (last !== null && complete > 0 && uncommitted >= ROWS_PER_COMMIT) {
      await destination.commit(last);
      uncommitted = totalSize(rows.slice(complete));
      last = null;
    }
    await destination.load(rows.slice(complete));
    postings += totalSize(rows.filter(({ kind }) => kind === 'transaction'));
    progress(postings);
  }
  if (last !== null) await destination.commit(last);
}

function totalSize(rows: readonly LedgerRow[]): number {
  return rows.reduce((sum, row) => sum + rowSize(row), 0);
}

/**
 * Returns a string that changes whenever credits, accounts or API keys change. The string contains the numbers of end
 * users and postings, which never decrease, and a digest of accounts and API keys. Idempotency records, imports,
 * thresholds, webhook endpoints and console users do not change the string, because each run copies and compares all of
 * them.
 */
async function stateOf(source: CopySource): Promise<string> {
  const { endUsers, postings } = await source.counts();
  return `${accountsDigest(await source.tableRows())} ${endUsers} end users, ${postings} postings`;
}

/**
 * Returns the position to which the copy's clock must move: the position of the source's clock, or the position of the
 * latest copied transaction if that transaction is later. New transaction IDs then sort after all copied IDs.
 */
function clockOf(kept: IdPosition, { latest }: CopyDigest): IdPosition {
  if (latest === null) return kept;
  const given = { at: instantOf(latest), sequence: sequenceOf(latest) };
  const isGivenLater = given.at > kept.at || (given.at === kept.at && given.sequence > kept.sequence);
  return isGivenLater ? given : kept;
}

function refuseDifferent(source: CopySource, from: CopyDigest, destination: CopySource, to: CopyDigest): void {
  if (from.sha256 === to.sha256) return;
  throw new CopyStopped(
    `${destination.name} differs from ${source.name}. Another program might have changed the copy. Copy again to an empty destination. Copy: ${contents(to)}. Source: ${contents(from)}.`,
  );
}

function contents({ accounts, keys, people, endUsers, postings, sha256 }: CopyDigest): string {
  return `accounts ${accounts}, API keys ${keys}, console users ${people}, end users ${endUsers}, postings ${postings}, digest ${sha256.slice(0, 12)}`;
}

async function refuseBroken(ledger: CopySource, consequence: string): Promise<void> {
  const { broken, example } = await auditSummary((report) => ledger.audit(report));
  if (broken === 0) return;
  throw new CannotOpen(
    `${consequence}: the ledger has problems (${broken} found, for example: ${example}); \`scrip verify\` lists them.`,
  );
}
