// Counts what a batch costs in a ledger file: commits (one fsync each), log pages and bytes, and growth of the file.
// IDs are random, so these counts vary by up to a tenth from run to run. Lower the bounds when a change makes writes
// cheaper.

import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { endUserId } from '../../bench/workload.ts';
import type { Command } from '../../src/ledger/command.ts';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import { CACHE_LIMITS } from '../../src/store/sqlite/balances/end-user-cache.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { Random } from '../load/random.ts';
import { NOON, temporaryFile } from '../store/temporary-ledger.ts';
import { countLog, type LogCounts } from './log-file.ts';

const USERS = 2_000;
const BATCH = 64;
/** Few enough that SQLite does not checkpoint the log during the count. */
const BATCHES = 16;
const USER_BATCH = 500;

/** Small enough that Scrip flushes balances as often as in a large ledger. */
const CACHE = { ...CACHE_LIMITS, endUsersMax: USERS / 2, postingsMax: USERS };
/** After this many batches, the number of pending balances no longer grows. */
const BATCHES_BEFORE = (4 * USERS) / BATCH;

interface Counted extends LogCounts {
  readonly keptBytes: number;
}

/** `pages` and `keptBytes` are maximums per command. */
const BOUNDS: readonly {
  readonly what: string;
  readonly command: (number: number) => Command;
  readonly pages: number;
  readonly keptBytes: number;
}[] = [
  { what: 'a subtraction', command: (number) => subtract(number), pages: 0.26, keptBytes: 120 },
  { what: 'an addition', command: (number) => add(number), pages: 0.31, keptBytes: 150 },
  {
    what: 'a subtraction with an idempotency key',
    command: (number) => ({ ...subtract(number), idempotency: { key: nextKey(), requestId: 'mwoywi2f-e2h-4' } }),
    pages: 0.35,
    keptBytes: 225,
  },
];

let keys = 0;
function nextKey(): string {
  keys += 1;
  return `order-${keys.toString().padStart(8, '0')}`;
}

function subtract(number: number): Command {
  return { kind: 'subtract', account: 1, endUser: endUserId(number), actor: 'key:1', amount: 1 };
}

function add(number: number, amount = 1): Command {
  return { kind: 'add', account: 1, endUser: endUserId(number), actor: 'key:1', amount, validityDays: 31 };
}

interface FundedLedger {
  readonly ledger: LedgerStore;
  readonly file: string;
  readonly tick: () => void;
}

async function fundedLedger(t: TestContext): Promise<FundedLedger> {
  const file = temporaryFile();
  let now = NOON;
  const { ledger } = await openSqliteStore(file, () => now, { cache: CACHE });
  t.after(() => ledger.close());
  for (let first = 0; first < USERS; first += USER_BATCH)
    await write(
      ledger,
      Array.from({ length: USER_BATCH }, (_, index) => add(first + index, 1_000_000)),
    );
  const tick = () => {
    now += 1;
  };
  return { ledger, file, tick };
}

async function write(ledger: LedgerStore, commands: readonly Command[]): Promise<void> {
  const outcomes = await ledger.write(commands, () => {});
  assert(outcomes.every((outcome) => outcome?.refused === null));
}

async function counted(t: TestContext, command: (number: number) => Command): Promise<Counted> {
  const { ledger, file, tick } = await fundedLedger(t);
  const random = new Random(7);
  const batchOf = (make: (number: number) => Command) => Array.from({ length: BATCH }, () => make(random.below(USERS)));
  for (let batch = 0; batch < BATCHES_BEFORE; batch++) await write(ledger, batchOf(subtract));
  emptyLog(file);
  const before = statSync(file).size;
  for (let batch = 0; batch < BATCHES; batch++) {
    tick();
    await write(ledger, batchOf(command));
  }
  const log = countLog(file);
  emptyLog(file);
  return { ...log, keptBytes: statSync(file).size - before };
}

function emptyLog(file: string): void {
  const db = new DatabaseSync(file);
  const [result] = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').all();
  db.close();
  assert.equal(result?.busy, 0);
}

describe('a batch in a ledger file', () => {
  for (const { what, command, ...bound } of BOUNDS) {
    test(`${what} in a ledger file writes a bounded number of log pages and file bytes, with one fsync per batch`, async (t) => {
      const { commits, pages, keptBytes } = await counted(t, command);
      const each = (count: number) => count / (BATCHES * BATCH);
      t.diagnostic(`${each(pages)} pages, ${each(keptBytes)} bytes kept`);
      assert.equal(commits, BATCHES);
      assert(pages >= BATCHES, 'pages are counted');
      assert(each(pages) <= bound.pages, `${each(pages)} pages`);
      assert(each(keptBytes) <= bound.keptBytes, `${each(keptBytes)} bytes kept`);
    });
  }

  test('a batch in which every command is refused writes nothing to the ledger file', async (t) => {
    const { ledger, file, tick } = await fundedLedger(t);
    emptyLog(file);
    tick();
    const commands = Array.from({ length: BATCH }, (_, number) => ({ ...subtract(number), amount: 2_000_000 }));
    const outcomes = await ledger.write(commands, () => {});
    assert(outcomes.every((outcome) => outcome?.refused === 'InsufficientFunds'));
    assert.deepEqual(countLog(file), { commits: 0, pages: 0, bytes: 0 });
  });
});
