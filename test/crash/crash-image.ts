// Compares a ledger after a crash with the journal of the commands before it: no acknowledged write is missing, each
// batch is stored whole or not at all, no batch is missing before a stored one, and the audit finds nothing.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { CannotOpen } from '../../src/store/store-fault.ts';
import type { Stores } from '../../src/store/stores.ts';
import { auditProblems } from '../load/server-process.ts';
import { EndUser, transactionsOf } from '../store/temporary-ledger.ts';
import { commandOf, END_USERS, isAddition, type JournalLine, serialOfTransaction } from './recorded-commands.ts';

/** How many of the last commands are repeated. */
const SENT_AGAIN = 24;

/** The content of the recorded journal up to the crash. */
export class Known {
  isOpen = false;
  readonly batches: (readonly number[])[] = [];
  readonly answers = new Map<number, string>();
  /** The amounts of stopped cycles. */
  readonly stopped = new Set<number>();

  learn(line: JournalLine): void {
    if ('open' in line) this.isOpen = true;
    else if ('batch' in line) this.batches.push(line.batch);
    else {
      this.answers.set(line.answered, line.answer);
      if (line.stopped !== undefined && line.answer === 'acknowledged') this.stopped.add(line.stopped);
    }
  }

  get acknowledged(): number {
    return [...this.answers.values()].filter((answer) => answer === 'acknowledged').length;
  }
}

/** A sentence for each problem. A control counts as caught if writes are lost. */
export interface Faults {
  readonly lost: string[];
  readonly broken: string[];
}

/** How often the effect of a command may be stored. If there was no response, 0 and 1 are both right. */
function timesOf(answer: string | undefined): readonly number[] {
  if (answer === 'acknowledged') return [1];
  return answer === undefined || answer === 'OutcomeUnknown' ? [0, 1] : [0];
}

/** Writes the files to an empty folder and opens the ledger in it, as a restart after the crash does. */
export async function faultsOfImage(files: ReadonlyMap<string, Buffer>, known: Known, folder: string): Promise<Faults> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [name, content] of files) writeFileSync(join(folder, name), content);
  const faults: Faults = { lost: [], broken: [] };
  const file = join(folder, 'scrip.db');
  let stores: Stores;
  try {
    stores = await openSqliteStore(file, Date.now);
  } catch (error) {
    if (!(error instanceof CannotOpen)) throw error;
    faults.broken.push(`the ledger cannot be opened: ${error.message}`);
    return faults;
  }
  const { ledger } = stores;
  try {
    faults.broken.push(...(await auditProblems(`file:${file}`)));
    const times = await compare(ledger, known, faults);
    await sendAgain(ledger, known, times, faults);
    const problems = await auditProblems(`file:${file}`);
    faults.broken.push(...problems.map((problem) => `after repeated commands: ${problem}`));
  } catch (error) {
    faults.broken.push(`the ledger cannot be used: ${(error as Error).message}`);
  } finally {
    await ledger.close().catch(() => {});
  }
  return faults;
}

interface Effects {
  /** How often the effect of each command is stored. */
  readonly times: ReadonlyMap<number, number>;
  /** The amounts of stopped cycles that have not ended. */
  readonly stopped: ReadonlySet<number>;
}

async function effectsOf(ledger: LedgerStore): Promise<Effects> {
  const times = new Map<number, number>();
  const stopped = new Set<number>();
  for (let index = 0; index < END_USERS; index++) {
    const user = new EndUser(1, index);
    for (const transaction of await transactionsOf(ledger, user)) {
      const serial = serialOfTransaction(transaction);
      times.set(serial, (times.get(serial) ?? 0) + 1);
    }
    const { state } = await ledger.load(user.key);
    for (const { status, amount } of state.cycles) if (status !== 'active') stopped.add(amount);
  }
  return { times, stopped };
}

/** @returns how often the effect of each command is stored */
async function compare(
  ledger: LedgerStore,
  known: Known,
  { lost, broken }: Faults,
): Promise<ReadonlyMap<number, number>> {
  const { times, stopped } = await effectsOf(ledger);
  const sent = new Set(known.batches.flat());
  for (const serial of sent) {
    const found = times.get(serial) ?? 0;
    const isStop = commandOf(serial).kind === 'stop-cycle';
    const answer = known.answers.get(serial);
    if (isStop || timesOf(answer).includes(found)) continue;
    const sentence = `command ${serial} (${answer ?? 'no response'}) is stored ${found} times`;
    (found === 0 ? lost : broken).push(sentence);
  }
  for (const serial of times.keys()) if (!sent.has(serial)) broken.push(`command ${serial} was never sent`);
  for (const amount of known.stopped) if (!stopped.has(amount)) lost.push(`the stop of cycle ${amount} is missing`);
  broken.push(...batchFaults(known, times));
  return times;
}

function batchFaults({ batches, answers }: Known, times: ReadonlyMap<number, number>): string[] {
  const faults: string[] = [];
  let missing: number | null = null;
  for (const [index, batch] of batches.entries()) {
    const additions = batch.filter(isAddition);
    if (additions.length === 0) continue;
    const there = additions.filter((serial) => times.has(serial)).length;
    if (there !== 0 && there !== additions.length)
      faults.push(`${there} of the ${additions.length} additions of batch ${index} are stored`);
    // A batch that failed may be missing although later batches are stored; a batch without a response may not.
    const hasFailed = additions.some((serial) => /Unknown|Unavailable/.test(answers.get(serial) ?? ''));
    if (there === 0 && !hasFailed) missing ??= index;
    if (there > 0 && missing !== null) faults.push(`batch ${index} is stored, and the earlier batch ${missing} is not`);
  }
  return faults;
}

/**
 * Repeats the last commands, as their clients would. A command with a key then has an effect only if it had none
 * before.
 */
async function sendAgain(
  ledger: LedgerStore,
  known: Known,
  before: ReadonlyMap<number, number>,
  { broken }: Faults,
): Promise<void> {
  const again = known.batches
    .flat()
    .slice(-SENT_AGAIN)
    .filter((serial) => commandOf(serial).idempotency != null);
  const outcomes = await ledger.write(again.map(commandOf), () => {});
  const after = (await effectsOf(ledger)).times;
  for (const [index, serial] of again.entries()) {
    const outcome = outcomes[index];
    const { kind } = commandOf(serial);
    const wasThere = before.has(serial);
    if (wasThere && outcome?.replayOf === undefined)
      broken.push(`the effect of command ${serial} is stored without its idempotency record`);
    if (!wasThere && outcome?.replayOf !== undefined && outcome.refused === null && kind !== 'stop-cycle')
      broken.push(`the idempotency record of command ${serial} is stored without its effect`);
    if (kind === 'add' && after.get(serial) !== 1)
      broken.push(`command ${serial} was repeated and is stored ${after.get(serial) ?? 0} times`);
  }
}
