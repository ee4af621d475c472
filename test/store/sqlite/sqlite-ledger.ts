// SQLite ledgers for tests: with the writer in this thread and a clock that the test sets, or with a writer thread.

import { copyFileSync, existsSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { TestContext } from 'node:test';
import type { Instant } from '../../../src/ledger/instant.ts';
import { openSqliteAccountDatabase } from '../../../src/store/sqlite/reads/account-database.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { openSqliteTools } from '../../../src/store/sqlite/tools/ledger-tools.ts';
import type { WriterOptions } from '../../../src/store/sqlite/writer/writer.ts';
import { type Audited, auditOf, NOON, temporaryFile } from '../temporary-ledger.ts';
import { type NewLedger, type PluggedLedger, TestLedger } from '../test-ledger.ts';

export const SMALL: WriterOptions = {
  cache: { endUsersMax: 2, postingsMax: 2, cyclesMax: 5, ageMaxMs: 60_000, perUserMax: 3 },
  indexRunMax: 2,
};

/** @param wall if absent, the writer runs in its own thread and uses the machine's clock */
export function pluggedFile(
  file: string,
  wall?: () => Instant,
  options: Partial<WriterOptions> = {},
): PluggedLedger & { file: string } {
  const plugged = {
    file,
    open: () => openSqliteStore(plugged.file, wall, options),
    openTools: async () => openSqliteTools(plugged.file, { create: false }).tools,
    openAccounts: () => openSqliteAccountDatabase(plugged.file),
    crash: () => {
      plugged.file = crashed(plugged.file);
    },
    failCommits: async (isFailing: boolean) => failCommits(plugged.file, isFailing),
    async remove() {
      rmSync(dirname(plugged.file), { recursive: true, force: true });
    },
  };
  return plugged;
}

/**
 * `failCommits` makes the COMMIT of these changes fail. A ledger can still be opened, because opening a ledger makes
 * none of these changes.
 */
const FAILING = [
  'INSERT ON postings',
  'INSERT ON idempotency_records',
  'DELETE ON idempotency_records',
  'INSERT ON feed_positions',
  'UPDATE ON api_keys',
];

function failCommits(file: string, isFailing: boolean): void {
  const db = new DatabaseSync(file, { timeout: 5_000 });
  const orphans = 'test_orphans (account INTEGER REFERENCES accounts (account) DEFERRABLE INITIALLY DEFERRED)';
  const trigger = (event: string) => `"test failing ${event}"`;
  const fail = (event: string) =>
    `CREATE TRIGGER ${trigger(event)} AFTER ${event} BEGIN INSERT INTO test_orphans VALUES (-1); END`;
  if (isFailing) for (const sql of [`CREATE TABLE ${orphans}`, ...FAILING.map(fail)]) db.exec(sql);
  else
    for (const sql of [...FAILING.map((event) => `DROP TRIGGER ${trigger(event)}`), 'DROP TABLE test_orphans'])
      db.exec(sql);
  db.close();
}

export const inPlace =
  (options: Partial<WriterOptions> = {}): NewLedger =>
  async (wall) =>
    pluggedFile(temporaryFile(), wall, options);

export const inThread =
  (options: Partial<WriterOptions> = {}): NewLedger =>
  async () =>
    pluggedFile(temporaryFile(), undefined, options);

/** Closes the ledger after the test, because its writer thread would keep the test process running. */
export async function openFor(t: TestContext, file: string, options: Partial<WriterOptions> = {}): Promise<TestLedger> {
  return closedAfter(
    t,
    TestLedger.open(async () => pluggedFile(file, undefined, options)),
  );
}

export async function openInPlace(
  t: TestContext,
  file: string,
  { wall = NOON, ...options }: Partial<WriterOptions> & { wall?: Instant } = {},
): Promise<TestLedger> {
  return closedAfter(
    t,
    TestLedger.open(async (clock) => pluggedFile(file, clock, options), wall),
  );
}

async function closedAfter(t: TestContext, opening: Promise<TestLedger>): Promise<TestLedger> {
  const ledger = await opening;
  t.after(() => ledger.close().catch(() => {}));
  return ledger;
}

export async function auditBeside(file: string): Promise<Audited> {
  const { tools } = openSqliteTools(file, { create: false });
  return await auditOf(tools).finally(() => tools.close());
}

export function crashed(file: string, copy = temporaryFile()): string {
  for (const end of ['', '-wal']) if (existsSync(file + end)) copyFileSync(file + end, copy + end);
  return copy;
}
