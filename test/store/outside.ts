// What befalls a ledger file from outside: other processes that open it, other programs that write to it, and damage.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import type { TestContext } from 'node:test';
import { makeHistory, temporaryFile } from './temporary-ledger.ts';

export const PAGE_BYTES = 2_048;

/** The lines that another process says about the file, as they come; it is killed at the end of the test. */
export function otherProcess(t: TestContext, work: string, file: string, shell?: string) {
  const script = join(import.meta.dirname, 'other-process.ts');
  const command = [process.execPath, script, work, file];
  const child: ChildProcess = shell
    ? spawn('sh', ['-c', `${shell}; exec "$@"`, 'sh', ...command], { stdio: ['ignore', 'pipe', 'inherit'] })
    : spawn(process.execPath, command.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] });
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

/** Changes the file as somebody with another program would. */
export function byHand(file: string, sql: string): void {
  const db = new DatabaseSync(file);
  db.exec(`PRAGMA ignore_check_constraints = ON; ${sql}`);
  db.close();
}

/** What somebody with another program reads in the file. */
export function readByHand(file: string, sql: string) {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return db.prepare(sql).all();
  } finally {
    db.close();
  }
}

/** What a crash at this moment leaves. */
export function crashed(file: string, copy = temporaryFile()): string {
  for (const end of ['', '-wal']) if (existsSync(file + end)) copyFileSync(file + end, copy + end);
  return copy;
}

/** Copies of a ledger, in each of which 64 bytes of one page were flipped. */
export async function damaged(whole: string, offset: number) {
  await makeHistory(whole);
  const bytes = readFileSync(whole);
  return Array.from({ length: bytes.length / PAGE_BYTES }, (_, page) => {
    const copy = Buffer.from(bytes);
    // The first page begins with the header of the file, 100 bytes of it.
    const from = page * PAGE_BYTES + (page === 0 && offset === 0 ? 100 : offset);
    for (let at = from; at < from + 64; at++) copy[at] = ~(copy[at] as number);
    const file = `${whole}.${page}`;
    writeFileSync(file, copy);
    return { file, page: page + 1 };
  });
}

export function contentOf(file: string): unknown {
  const db = new DatabaseSync(file, { readOnly: true });
  const rows = ['holdings', 'postings', 'accounts', 'api_keys'].map((table) =>
    db.prepare(`SELECT * FROM ${table}`).all(),
  );
  db.close();
  return rows;
}

/** How many locks the kernel knows of on the file. */
export function locksOf(file: string): number {
  if (!existsSync('/proc/locks')) return 0;
  const inode = `:${statSync(file).ino} `;
  return readFileSync('/proc/locks', 'utf8')
    .split('\n')
    .filter((line) => line.includes(inode)).length;
}
