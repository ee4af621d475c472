// What a test does to a ledger from another process, which it can then kill: `node other-process.ts WORK FILE`. Answers
// go to standard output, a line of JSON each.

import { openSqliteStore, openSqliteStoreBeside } from '../../src/store/sqlite/sqlite-store.ts';
import { CannotOpen, type Store, type StoreFault } from '../../src/store/store.ts';
import { auditOf, EndUser } from './temporary-ledger.ts';

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
  const store = await openSqliteStore(file);
  const people = Array.from({ length: END_USERS }, (_, index) => new EndUser(1, index));
  for (let times = 1; ; times++) {
    await store.write([...people.map((user) => user.add(3)), ...people.map((user) => user.subtract(1))]);
    say({ times });
  }
}

/** Adds credits until the disk is full, then looks whether the store still reads, and whether it writes. */
async function fill(): Promise<void> {
  const store = await openSqliteStore(file);
  let added = 0;
  const first = await faultOf(store, async () => {
    for (;;) {
      await store.write(Array.from({ length: FILL_COMMANDS }, (_, index) => new EndUser(1, added + index).add(1)));
      added += FILL_COMMANDS;
    }
  });
  const { cycles } = await store.cycles(new EndUser(1, 0).key);
  const second = await faultOf(store, () => store.write([new EndUser(2, 1).add(1)]));
  await store.close();
  say({ added, first, second, cycles: cycles.length });
}

async function faultOf(store: Store, attempt: () => Promise<unknown>): Promise<unknown> {
  try {
    await attempt();
    return null;
  } catch (error) {
    return { code: (error as StoreFault).code, trouble: store.trouble() };
  }
}

/** Audits beside whoever has the ledger open. */
async function audit(): Promise<void> {
  const store = openSqliteStoreBeside(file);
  say(await auditOf(store).catch((error: Error) => error.message));
  await store.close();
}

function say(what: unknown): void {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}
