// The process whose disk is recorded: `node recorded-load.ts LEDGER JOURNAL SEED TURNS FIRST`. It writes to the
// real store through group commit, and says in JOURNAL, a line of JSON each, what it sends off as a batch and what was
// answered. Whoever records the writes of this process finds the lines between them, in the order of time.

import { openSync, writeSync } from 'node:fs';
import { GroupCommit } from '../../src/batching/group-commit.ts';
import type { Command, Outcome } from '../../src/ledger/command.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { type Store, StoreFault } from '../../src/store/store.ts';
import { below, randomFrom } from './randomness.ts';
import { commandOf, type JournalLine } from './recorded-commands.ts';

const COMMANDS_A_TURN_MAX = 12;
const TURNS_PER_TOTAL = 13;
/** A disk that fails this often is not going to recover: as good a moment as any to be killed. */
const FAULTS_MAX = 8;

const [file, journal, seed, turns, first] = process.argv.slice(2) as [string, string, string, string, string];
const descriptor = openSync(journal, 'a');
const random = randomFrom(Number(seed));
const numbers = new WeakMap<Command, number>();
let serial = Number(first);
let faults = 0;

const store = await openSqliteStore(file, undefined, {
  answerLimits: { recentMax: 20, fanOut: 2, filterBytesMax: 1_024 },
});
say({ open: true });
const commit = new GroupCommit(telling(store));
for (let turn = 0; turn < Number(turns) && faults < FAULTS_MAX; turn++) {
  const count = 1 + below(COMMANDS_A_TURN_MAX, random);
  const answers = Array.from({ length: count }, () => submit(serial++));
  // Half of the time the next commands come while these are being written.
  if (random() < 0.5) await Promise.all(answers);
  else await Promise.race(answers);
  if (turn % TURNS_PER_TOTAL === 0) await store.addUpTotals().catch(() => {});
}
// The end of a process that says nothing to anybody.
process.kill(process.pid, 'SIGKILL');

function submit(number: number): Promise<void> {
  const command = commandOf(number);
  numbers.set(command, number);
  return new Promise((resolve) =>
    commit.submit(command, (result) => {
      say({ answered: number, ...answerOf(result) });
      resolve();
    }),
  );
}

function answerOf(result: Outcome | StoreFault): { answer: string; stopped?: number } {
  if (result instanceof StoreFault) return { answer: result.code };
  if (result.refused !== null) return { answer: 'refused' };
  return { answer: 'acknowledged', ...(result.cycle?.status === 'canceled' ? { stopped: result.cycle.amount } : {}) };
}

/** The store, which says before each batch what is in it. */
function telling(inner: Store): Store {
  return new Proxy(inner, {
    get(target, name) {
      if (name === 'write') {
        return (commands: readonly Command[]) => {
          say({ batch: commands.flatMap((command) => numbers.get(command) ?? []) });
          return target.write(commands).catch((fault) => {
            faults += 1;
            throw fault;
          });
        };
      }
      const member = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

function say(line: JournalLine): void {
  writeSync(descriptor, `${JSON.stringify(line)}\n`);
}
