// What a test does to a ledger from another process, which it can then kill: `node other-process.ts WORK FILE`. It prints
// lines of JSON to standard output.

import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { StoreFault } from '../../src/store/store-fault.ts';
import { CannotOpen } from '../../src/store/store-fault.ts';
import { auditBeside } from './sqlite/sqlite-ledger.ts';
import { EndUser } from './temporary-ledger.ts';

const END_USERS = 8;
const FILL_COMMANDS = 400;

const [work, file] = process.argv.slice(2) as [string, string];
const works: Record<string, () => Promise<void>> = { hold, write, fill, audit };
await works[work]?.();

/** Opens the ledger, says so, and holds it until this process is killed. */
async function hold(): Promise<void> {
  const started = performance.now();
  try {
    await openSqliteStore(file);
    say({ open: true });
    setInterval(() => {}, 60_000);
  } catch (error) {
    const { message } = error as Error;
    say({ cannotOpen: error instanceof CannotOpen, message, ms: performance.now() - started });
  }
}

/** Adds 3 credits to each end user and subtracts 1, again and again, and says how often that is durable. */
async function write(): Promise<void> {
  const { ledger } = await openSqliteStore(file);
  const people = Array.from({ length: END_USERS }, (_, index) => new EndUser(1, index));
  for (let times = 1; ; times++) {
    await ledger.write([...people.map((user) => user.add(3)), ...people.map((user) => user.subtract(1))], () => {});
    say({ times });
  }
}

/** Adds credits until the disk is full, then tries whether the store still reads, and whether it writes. */
async function fill(): Promise<void> {
  const { ledger } = await openSqliteStore(file);
  let added = 0;
  const faultOf = async (attempt: () => Promise<unknown>) => {
    try {
      await attempt();
      return null;
    } catch (error) {
      return { code: (error as StoreFault).code, trouble: ledger.trouble() };
    }
  };
  const first = await faultOf(async () => {
    for (;;) {
      const users = Array.from({ length: FILL_COMMANDS }, (_, index) => new EndUser(1, added + index));
      await ledger.write(
        users.map((user) => user.add(1)),
        () => {},
      );
      added += FILL_COMMANDS;
    }
  });
  const { state } = await ledger.load(new EndUser(1, 0).key);
  const second = await faultOf(() => ledger.write([new EndUser(2, 1).add(1)], () => {}));
  await ledger.close();
  say({ added, first, second, cycles: state.cycles.length });
}

/** Audits beside the process that may have the ledger open. */
async function audit(): Promise<void> {
  say(await auditBeside(file).catch((error: Error) => error.message));
}

function say(what: unknown): void {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}
