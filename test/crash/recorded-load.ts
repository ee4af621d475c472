// The process whose system calls are recorded: `node recorded-load.ts LEDGER JOURNAL SEED TURNS FIRST`. In each
// of TURNS iterations, it submits a few commands. The commands are numbered consecutively, starting with FIRST. The
// process appends each batch and each outcome to JOURNAL as a line of JSON.

import { openSync, writeSync } from 'node:fs';
import { type CommitResult, GroupCommit } from '../../src/batching/group-commit.ts';
import type { Command } from '../../src/ledger/command.ts';
import type { TransactionId } from '../../src/ledger/transaction-id.ts';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import { makeFolder } from '../../src/store/sqlite/file/ledger-file.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { below, randomFrom } from './randomness.ts';
import { commandOf, type JournalLine, namedBy } from './recorded-commands.ts';

const COMMANDS_A_TURN_MAX = 12;
const TURNS_PER_FEED_PART = 13;
/** The process ends after this many faults, because the disk is then unlikely to recover. */
const FAULTS_MAX = 8;
/** These limits make Scrip flush balances and index idempotency records all the time. */
const SMALL_LIMITS = {
  cache: { endUsersMax: 4, postingsMax: 40, cyclesMax: 40, perUserMax: 16, ageMaxMs: 60_000 },
  indexRunMax: 20,
};

const [file, journal, seed, turns, first] = process.argv.slice(2) as [string, string, string, string, string];
const descriptor = openSync(journal, 'a');
const random = randomFrom(Number(seed));
const numbers = new WeakMap<Command, number>();
const made = new Map<number, TransactionId>();
const named = new Map<number, TransactionId>();
let serial = Number(first);
let faults = 0;

makeFolder(file);
const { ledger } = await openSqliteStore(file, undefined, SMALL_LIMITS);
note({ open: true });
const commit = new GroupCommit(noting(ledger));
for (let turn = 0; turn < Number(turns) && faults < FAULTS_MAX; turn++) {
  const count = 1 + below(COMMANDS_A_TURN_MAX, random);
  const answers = Array.from({ length: count }, () => submit(serial++));
  // Half of the iterations wait for only one of their commands, so that commands of two iterations overlap.
  if (random() < 0.5) await Promise.all(answers);
  else await Promise.race(answers);
  if (turn % TURNS_PER_FEED_PART === 0) await ledger.updateTotals().catch(() => {});
}
process.kill(process.pid, 'SIGKILL');

function submit(number: number): Promise<void> {
  const id = made.get(namedBy(number) ?? 0);
  if (id !== undefined) named.set(number, id);
  const command = commandOf(number, id);
  numbers.set(command, number);
  return new Promise((resolve) =>
    commit.submit(command, (result) => {
      const { answer, id = null } = answerOf(result);
      if (id !== null) made.set(number, id);
      note({ answered: number, answer, id });
      resolve();
    }),
  );
}

function answerOf(result: CommitResult): { answer: string; id?: TransactionId | null } {
  if ('code' in result) return { answer: result.code };
  if (result.refused !== null) return { answer: 'refused' };
  return { answer: 'acknowledged', id: result.transactionId };
}

function noting(store: LedgerStore): LedgerStore {
  const noted: Pick<LedgerStore, 'lanes' | 'write'> = {
    lanes: store.lanes,
    write(commands, onDecided) {
      const batch = commands.flatMap((command) => numbers.get(command) ?? []);
      const ids = batch.flatMap((number) => (named.has(number) ? [[number, named.get(number)]] : []));
      note({ batch, named: Object.fromEntries(ids) });
      return store.write(commands, onDecided).catch((fault) => {
        faults += 1;
        throw fault;
      });
    },
  };
  return noted as LedgerStore;
}

function note(line: JournalLine): void {
  writeSync(descriptor, `${JSON.stringify(line)}\n`);
}
