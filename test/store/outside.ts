// Helpers that open a ledger file in another process, edit it with SQL, or damage copies of it.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import type { TestContext } from 'node:test';
import { makeHistory } from './temporary-ledger.ts';

export const PAGE_BYTES = 2_048;

interface OtherProcess {
  readonly shell?: string;
  /** Both the user ID and the group ID of the process. */
  readonly user?: number;
}

/** Root can write to every file, so tests that run as root start the other process as another user. */
export const UNPRIVILEGED = process.getuid?.() === 0 ? { user: 65_534 } : {};

export function otherProcess(t: TestContext, work: string, file: string, { shell, user }: OtherProcess = {}) {
  const script = join(import.meta.dirname, 'other-process.ts');
  const command = [process.execPath, script, work, file];
  const line = shell === undefined ? command : ['sh', '-c', `${shell}; exec "$@"`, 'sh', ...command];
  const child: ChildProcess = spawn(line[0] as string, line.slice(1), {
    stdio: ['ignore', 'pipe', 'inherit'],
    ...(user !== undefined && { uid: user, gid: user }),
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const kill = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  t.after(kill);
  assert(child.stdout);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async () => JSON.parse((await lines.next()).value ?? 'null');
  return { answer, kill };
}

export function byHand(file: string, sql: string): void {
  const db = new DatabaseSync(file, { timeout: 5_000 });
  db.exec(`PRAGMA ignore_check_constraints = ON; ${sql}`);
  db.close();
}

/** Deletes the derived events and summaries, so that the next server derives them again from the first posting. */
export function forgetEvents(file: string): void {
  byHand(
    file,
    `DELETE FROM events; DELETE FROM end_user_summaries; DELETE FROM end_user_counts;
     DELETE FROM feed_positions WHERE consumer = 'events'`,
  );
}

export function readByHand(file: string, sql: string) {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return db.prepare(sql).all();
  } finally {
    db.close();
  }
}

/**
 * Creates the ledger file `whole`, and one damaged copy for each page of the file. In each copy, 64 bytes of that
 * page are inverted, beginning at `offset`.
 */
export async function damaged(whole: string, offset: number) {
  await makeHistory(whole);
  const bytes = readFileSync(whole);
  return Array.from({ length: bytes.length / PAGE_BYTES }, (_, page) => {
    const copy = Buffer.from(bytes);
    // The first 100 bytes of the file are its header, which stays intact.
    const from = page * PAGE_BYTES + (page === 0 && offset === 0 ? 100 : offset);
    for (let at = from; at < from + 64; at++) copy[at] = ~(copy[at] as number);
    const file = `${whole}.${page}`;
    writeFileSync(file, copy);
    return { file, page: page + 1 };
  });
}

const TABLES = ['balances', 'postings', 'snapshots', 'idempotency_records', 'daily_totals', 'accounts', 'api_keys'];

export function contentOf(file: string): unknown {
  const db = new DatabaseSync(file, { readOnly: true });
  const rows = TABLES.map((table) => db.prepare(`SELECT * FROM ${table}`).all());
  db.close();
  return rows;
}

export function locksOf(file: string): number {
  if (!existsSync('/proc/locks')) return 0;
  const inode = `:${statSync(file).ino} `;
  return readFileSync('/proc/locks', 'utf8')
    .split('\n')
    .filter((line) => line.includes(inode)).length;
}
