// Opens a ledger after a crash and compares it with the recorded batches and outcomes. Acknowledged writes must be
// stored, and each batch must be stored completely or not at all.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WriteCommand } from '../../src/ledger/command.ts';
import type { TransactionId } from '../../src/ledger/transaction-id.ts';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { CannotOpen } from '../../src/store/store-fault.ts';
import type { Stores } from '../../src/store/stores.ts';
import { PAGE_ROWS_MAX } from '../../src/store/transaction-history.ts';
import { auditProblems } from '../load/server-process.ts';
import { EndUser } from '../store/temporary-ledger.ts';
import { commandOf, END_USERS, isAddition, type JournalLine, kindOf } from './recorded-commands.ts';

const SENT_AGAIN = 24;

export class Known {
  readonly batches: (readonly number[])[] = [];
  readonly answers = new Map<number, string>();
  readonly made = new Map<number, TransactionId | null>();
  readonly #named = new Map<number, TransactionId>();

  learn(line: JournalLine): void {
    if ('open' in line) return;
    if ('batch' in line) {
      this.batches.push(line.batch);
      for (const [serial, id] of Object.entries(line.named)) this.#named.set(Number(serial), id);
    } else {
      this.answers.set(line.answered, line.answer);
      if (line.answer === 'acknowledged') this.made.set(line.answered, line.id ?? null);
    }
  }

  commandOf(serial: number): WriteCommand {
    return commandOf(serial, this.#named.get(serial));
  }

  timesOf(serial: number): readonly number[] {
    const answer = this.answers.get(serial);
    if (answer === 'acknowledged') return this.made.get(serial) === null ? [0] : [1];
    return answer === undefined || answer === 'OutcomeUnknown' ? [0, 1] : [0];
  }

  get acknowledged(): number {
    return [...this.answers.values()].filter((answer) => answer === 'acknowledged').length;
  }
}

export interface Faults {
  readonly lost: string[];
  readonly broken: string[];
}

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
  readonly times: ReadonlyMap<number, number>;
  readonly ids: ReadonlyMap<number, TransactionId>;
}

async function effectsOf(ledger: LedgerStore): Promise<Effects> {
  const times = new Map<number, number>();
  const ids = new Map<number, TransactionId>();
  for (let index = 0; index < END_USERS; index++) {
    const { key } = new EndUser(1, index);
    for (let from: string | null = null; ; ) {
      const { transactions, next } = await ledger.history(key, { from, limit: PAGE_ROWS_MAX });
      for (const { id, kind, note } of transactions) {
        const serial = Number(note);
        // Automatic transactions have no note. The transaction that stops a replaced cycle has the note of the command
        // that starts the new cycle, but a different kind.
        const requested = kind === 'schedule-plan' ? 'start-cycle' : kind;
        if (note === null || kindOf(serial) !== requested) continue;
        times.set(serial, (times.get(serial) ?? 0) + 1);
        ids.set(serial, id);
      }
      if (next === null) break;
      from = next;
    }
  }
  return { times, ids };
}

async function compare(
  ledger: LedgerStore,
  known: Known,
  { lost, broken }: Faults,
): Promise<ReadonlyMap<number, number>> {
  const { times, ids } = await effectsOf(ledger);
  const sent = new Set(known.batches.flat());
  for (const serial of sent) {
    const found = times.get(serial) ?? 0;
    const answer = known.answers.get(serial);
    const name = `${kindOf(serial)} ${serial} (${answer ?? 'no response'})`;
    if (!known.timesOf(serial).includes(found)) (found === 0 ? lost : broken).push(`${name} is stored ${found} times`);
    const id = known.made.get(serial) ?? null;
    if (id !== null && found > 0 && ids.get(serial) !== id) broken.push(`${name} is not stored as ${id}`);
  }
  for (const serial of times.keys()) if (!sent.has(serial)) broken.push(`command ${serial} was never sent`);
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
    // If a later batch is stored, an earlier batch may be missing only if it failed.
    const hasFailed = additions.some((serial) => /Unknown|Unavailable/.test(answers.get(serial) ?? ''));
    if (there === 0 && !hasFailed) missing ??= index;
    if (there > 0 && missing !== null) faults.push(`batch ${index} is stored, and the earlier batch ${missing} is not`);
  }
  return faults;
}

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
  const outcomes = await ledger.write(
    again.map((serial) => known.commandOf(serial)),
    () => {},
  );
  const after = (await effectsOf(ledger)).times;
  for (const [index, serial] of again.entries()) {
    const outcome = outcomes[index];
    const wasThere = before.has(serial);
    if (wasThere && outcome?.replayOf === undefined)
      broken.push(`the effect of command ${serial} is stored without its idempotency record`);
    if (!wasThere && outcome?.replayOf !== undefined && outcome.refused === null && outcome.transactionId !== null)
      broken.push(`the idempotency record of command ${serial} is stored without its effect`);
    if (isAddition(serial) && after.get(serial) !== 1)
      broken.push(`command ${serial} was repeated and is stored ${after.get(serial) ?? 0} times`);
  }
}
