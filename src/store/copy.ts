// Copies a whole ledger from one store to another, exactly, and proves it: end user after end user in the order of their
// keys, then a comparison of all rows on both sides.
//
//   empty ──begin──▶ marked ──commit──▶ marked further on ──same rows, and whole──▶ finished, the mark is gone
//                      └──── killed, or failed: the same command goes on behind the last end user that is complete

import { AssertionError } from 'node:assert';
import type { Finding } from '../ledger/audit.ts';
import type { EndUserKey } from '../ledger/command.ts';
import { instantOf, sequenceOf } from '../ledger/transaction-id.ts';
import { digestOf, headDigest, type LedgerDigest } from './copy-digest.ts';
import type { CopyDestination, CopySource, LedgerRecord, Totals } from './ledger-copy.ts';
import { CannotOpen, StoreFault } from './store.ts';
import type { IdPosition } from './transaction-ids.ts';

/** Records between two commits, but for an end user that has more: it is copied whole or not at all. */
const RECORDS_PER_COMMIT = 5_000;

/** Why a copy ended before its end, as a sentence that says what to do. */
export class CopyStopped extends Error {
  override readonly name = 'CopyStopped';
}

export interface CopyProgress {
  readonly step: 'copying' | 'comparing';
  readonly postings: number;
  /** Of how many. */
  readonly total: number;
}

export interface CopyReport extends LedgerDigest {
  /** End users that an earlier run of the same copy had brought over already. */
  readonly resumedBehind: number;
}

/**
 * @param report called after every batch
 * @throws CopyStopped, CannotOpen
 */
export async function copyLedger(
  source: CopySource,
  destination: CopyDestination,
  report: (progress: CopyProgress) => void,
): Promise<CopyReport> {
  try {
    return await copyAll(source, destination, report);
  } catch (error) {
    if (!isOfWorld(error)) throw error;
    throw new CopyStopped(
      `The copy stopped (${error.message}); run the same command again, and it goes on where it stopped.`,
    );
  }
}

/** A database that went away, which has no code, or a disk that is full. A broken assertion is a bug, and keeps its stack. */
function isOfWorld(error: unknown): error is Error {
  if (!(error instanceof Error) || error instanceof AssertionError || error instanceof StoreFault) return false;
  return error.constructor === Error || 'code' in error;
}

async function copyAll(
  source: CopySource,
  destination: CopyDestination,
  report: (progress: CopyProgress) => void,
): Promise<CopyReport> {
  await refuseBroken(source, `${source.name} is not copied`);
  const head = await source.head();
  const totals = await source.totals();
  const state = stateOf(headDigest(head), totals);
  const after = await destination.begin(state, head);
  const there = await destination.totals();
  await copyEndUsers(source, destination, after, (postings) =>
    report({ step: 'copying', postings: there.postings + postings, total: totals.postings }),
  );
  await destination.loadAnswers(source.answers());
  await destination.loadPeople(await source.people());
  let compared = 0;
  const advance = (postings: number) => {
    compared += postings;
    report({ step: 'comparing', postings: compared, total: 2 * totals.postings });
  };
  const [from, to] = await Promise.all([digestOf(source, advance), digestOf(destination, advance)]);
  if (stateOf(headDigest(await source.head()), await source.totals()) !== state)
    throw new CopyStopped(
      `${source.name} was written to while it was copied; stop whatever writes to it, delete ${destination.name}, and copy again.`,
    );
  refuseDifferent(source, from, destination, to);
  await destination.moveClock(clockOf((await source.head()).clock, to));
  await destination.addUpTotals();
  await refuseBroken(destination, `The copy in ${destination.name} is not finished`);
  await destination.finish();
  return { ...to, resumedBehind: there.endUsers };
}

async function copyEndUsers(
  source: CopySource,
  destination: CopyDestination,
  after: EndUserKey | null,
  progress: (postings: number) => void,
): Promise<void> {
  let postings = 0;
  let uncommitted = 0;
  let last: EndUserKey | null = null;
  for await (const records of source.dump(after)) {
    const complete = records.findLastIndex(({ kind }) => kind === 'end-user') + 1;
    await destination.load(records.slice(0, complete));
    last = records[complete - 1]?.user ?? last;
    uncommitted += records.length;
    if (last !== null && complete > 0 && uncommitted >= RECORDS_PER_COMMIT) {
      await destination.commit(last);
      uncommitted = records.length - complete;
      last = null;
    }
    await destination.load(records.slice(complete));
    postings += count(records);
    progress(postings);
  }
  if (last !== null) await destination.commit(last);
}

function count(records: readonly LedgerRecord[]): number {
  return records.filter(({ kind }) => kind === 'posting').length;
}

/** Every change of a ledger enters a posting, an account or a key, or revokes one, and nothing is ever deleted. */
function stateOf(head: string, { endUsers, postings }: Totals): string {
  return `${head} ${endUsers} end users, ${postings} postings`;
}

/** No earlier than the source's, and behind every transaction there is: the next one sorts after them all. */
function clockOf(kept: IdPosition, { latest }: LedgerDigest): IdPosition {
  if (latest === null) return kept;
  const given = { at: instantOf(latest), sequence: sequenceOf(latest) };
  const isGivenLater = given.at > kept.at || (given.at === kept.at && given.sequence > kept.sequence);
  return isGivenLater ? given : kept;
}

function refuseDifferent(source: CopySource, from: LedgerDigest, destination: CopySource, to: LedgerDigest): void {
  if (from.sha256 === to.sha256) return;
  throw new CopyStopped(
    `${destination.name} differs from ${source.name} (${contents(to)} there, ${contents(from)} here): something else changed it; delete it and copy again.`,
  );
}

function contents({ accounts, keys, people, endUsers, cycles, postings, sha256 }: LedgerDigest): string {
  return `${accounts} accounts, ${keys} keys, ${people} people, ${endUsers} end users, ${cycles} cycles and ${postings} postings of digest ${sha256.slice(0, 12)}`;
}

async function refuseBroken(ledger: CopySource, consequence: string): Promise<void> {
  let first: Finding | null = null;
  let findings = 0;
  const { store } = await ledger.audit((finding) => {
    first ??= finding;
    findings += 1;
  });
  if (findings + store.length === 0) return;
  const example = store[0] ?? (first as Finding | null)?.message;
  throw new CannotOpen(
    `${consequence}: the ledger is broken in ${findings + store.length} places (${example}); \`scrip verify\` lists them.`,
  );
}
