// A program that runs in its own process, so that a test can kill it. `node other-process.ts WORK FILE` runs the
// function WORK of this file on the ledger FILE, and prints the results as lines of JSON.

import { createApiKey } from '../../src/store/key-store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { openSqliteSource } from '../../src/store/sqlite/tools/copying.ts';
import { openSqliteTools } from '../../src/store/sqlite/tools/ledger-tools.ts';
import type { StoreFault } from '../../src/store/store-fault.ts';
import { CannotOpen } from '../../src/store/store-fault.ts';
import { FIRST_ROUND_MS, ROUNDS, untilRound } from './rounds.ts';
import { auditBeside } from './sqlite/sqlite-ledger.ts';
import { EndUser } from './temporary-ledger.ts';

const END_USERS = 8;
const FILL_COMMANDS = 400;

const [work, file] = process.argv.slice(2) as [string, string];
const works: Record<string, () => Promise<void>> = { hold, write, fill, audit, createKeys, countForCopy };
await works[work]?.();

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

async function countForCopy(): Promise<void> {
  const source = openSqliteSource(file);
  say(await source.counts());
  await source.close();
}

async function write(): Promise<void> {
  const { ledger } = await openSqliteStore(file);
  const people = Array.from({ length: END_USERS }, (_, index) => new EndUser(1, index));
  for (let times = 1; ; times++) {
    await ledger.write([...people.map((user) => user.add(3)), ...people.map((user) => user.subtract(1))], () => {});
    say({ times });
  }
}

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

async function audit(): Promise<void> {
  say(await auditBeside(file).catch((error: Error) => error.message));
}

async function createKeys(): Promise<void> {
  const firstAt = Date.now() + FIRST_ROUND_MS;
  say({ firstAt });
  const failures: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    await untilRound(firstAt, round);
    try {
      const { tools, keys } = openSqliteTools(`${file}.${round}`, { create: true });
      await createApiKey(keys, { accountName: 'acme', scope: 'write' });
      await tools.close();
    } catch (error) {
      failures.push((error as Error).message);
    }
  }
  say({ failures });
}

function say(what: unknown): void {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}
