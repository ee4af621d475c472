// What is known at the moment of a crash, and whether a ledger that is found afterwards fits it: nothing that was
// answered is lost, no batch is there in part, none is missing before one that is there, and the books are whole.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { CannotOpen, type Store } from '../../src/store/store.ts';
import { auditOf, EndUser, transactionsOf } from '../store/temporary-ledger.ts';
import { commandOf, END_USERS, isAddition, type JournalLine, serialOfTransaction } from './recorded-commands.ts';

/** Of the last commands of a ledger, how many are sent again. */
const SENT_AGAIN = 24;

/** What the journal has said so far. */
export class Known {
  isOpen = false;
  readonly batches: (readonly number[])[] = [];
  readonly answers = new Map<number, string>();
  /** The amounts of cycles that were stopped. */
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

/** By what is wrong: sentences. `lost` is what the controls are caught by. */
export interface Faults {
  readonly lost: string[];
  readonly broken: string[];
}

/** How often the effect of a command may be found; an answer that is missing allows both. */
function timesOf(answer: string | undefined): readonly number[] {
  if (answer === 'acknowledged') return [1];
  return answer === undefined || answer === 'OutcomeUnknown' ? [0, 1] : [0];
}

/** Writes the files into an empty folder and opens the ledger among them, as a start after the crash would. */
export async function faultsOfImage(files: ReadonlyMap<string, Buffer>, known: Known, folder: string): Promise<Faults> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [name, content] of files) writeFileSync(join(folder, name), content);
  const faults: Faults = { lost: [], broken: [] };
  let store: Store;
  try {
    store = await openSqliteStore(join(folder, 'scrip.db'), Date.now);
  } catch (error) {
    if (!(error instanceof CannotOpen)) throw error;
    faults.broken.push(`it cannot be opened: ${error.message}`);
    return faults;
  }
  try {
    const times = await compare(store, known, faults);
    await sendAgain(store, known, times, faults);
  } catch (error) {
    faults.broken.push(`it cannot be used: ${(error as Error).message}`);
  } finally {
    await store.close().catch(() => {});
  }
  return faults;
}

async function effectsOf(store: Store): Promise<{ times: Map<number, number>; canceled: Set<number> }> {
  const times = new Map<number, number>();
  const canceled = new Set<number>();
  for (let index = 0; index < END_USERS; index++) {
    const user = new EndUser(1, index);
    for (const transaction of await transactionsOf(store, user)) {
      const serial = serialOfTransaction(transaction);
      times.set(serial, (times.get(serial) ?? 0) + 1);
    }
    const { cycles } = await store.cycles(user.key);
    for (const { status, amount } of cycles) if (status === 'canceled') canceled.add(amount);
  }
  return { times, canceled };
}

/** @returns how often the effect of each command is there */
async function compare(store: Store, known: Known, { lost, broken }: Faults): Promise<ReadonlyMap<number, number>> {
  const { findings, store: inStore } = await auditOf(store);
  broken.push(...findings.map(({ message }) => message), ...inStore);
  const { times, canceled } = await effectsOf(store);
  const sent = new Set(known.batches.flat());
  for (const serial of sent) {
    const found = times.get(serial) ?? 0;
    const isStop = commandOf(serial).kind === 'stop-cycle';
    const answer = known.answers.get(serial);
    if (isStop || timesOf(answer).includes(found)) continue;
    const sentence = `command ${serial} was ${answer ?? 'not answered'}, and is there ${found} times`;
    (found === 0 ? lost : broken).push(sentence);
  }
  for (const serial of times.keys()) if (!sent.has(serial)) broken.push(`command ${serial} was never sent`);
  for (const amount of known.stopped) if (!canceled.has(amount)) lost.push(`the end of cycle ${amount} is gone`);
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
      faults.push(`of batch ${index}, ${there} of ${additions.length} additions are there`);
    // A batch that failed may be missing in the middle; one that merely got no answer may not.
    const hasFailed = additions.some((serial) => /Unknown|Unavailable/.test(answers.get(serial) ?? ''));
    if (there === 0 && !hasFailed) missing ??= index;
    if (there > 0 && missing !== null) faults.push(`batch ${index} is there, and batch ${missing} before it is not`);
  }
  return faults;
}

/** The last commands, as their clients would: whoever has a key finds the effect made once, and made now if it was lost. */
async function sendAgain(
  store: Store,
  known: Known,
  before: ReadonlyMap<number, number>,
  { broken }: Faults,
): Promise<void> {
  const again = known.batches
    .flat()
    .slice(-SENT_AGAIN)
    .filter((serial) => hasKey(serial));
  const outcomes = await store.write(again.map(commandOf));
  const after = (await effectsOf(store)).times;
  for (const [index, serial] of again.entries()) {
    const outcome = outcomes[index];
    const kind = commandOf(serial).kind;
    const wasThere = before.has(serial);
    if (wasThere && outcome?.replayOf === undefined)
      broken.push(`the answer of command ${serial} is gone, its effect is not`);
    if (!wasThere && outcome?.replayOf !== undefined && outcome.refused === null && kind !== 'stop-cycle')
      broken.push(`the answer of command ${serial} is there, its effect is not`);
    if (kind === 'add' && after.get(serial) !== 1)
      broken.push(`command ${serial} was sent again, and is there ${after.get(serial) ?? 0} times`);
  }
  const { findings, store: inStore } = await auditOf(store);
  broken.push(...findings.map(({ message }) => `afterwards: ${message}`), ...inStore);
}

function hasKey(serial: number): boolean {
  return commandOf(serial).idempotency != null;
}
