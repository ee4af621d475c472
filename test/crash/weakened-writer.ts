// Breaks the writer of a server on purpose, or records its batches. Load this module before all others:
// `NODE_OPTIONS=--import=…`.
//
//   BATCH_RECORD=FILE         before writing a batch, appends the numbers of its additions to FILE as JSON
//   WEAKENED_WRITER=late      responds first and commits up to 50 ms later, as a writer might to save fsyncs
//   WEAKENED_WRITER=halves    commits each half of a batch separately
//   WEAKENED_WRITER=deaf      treats a failed COMMIT as a success

import { DatabaseSync } from 'node:sqlite';
import { isMainThread } from 'node:worker_threads';
import { substitute } from '../load/substituted-module.ts';

const LATE_MS = 50;

const { BATCH_RECORD: record, WEAKENED_WRITER: weakness } = process.env;
// Change only the writer thread: the main thread must commit as usual.
if (!isMainThread) {
  if (weakness === 'late') commitLate();
  if (weakness === 'deaf') ignoreFailedCommits();
  if (weakness === 'halves' || record)
    substitute({
      importer: '/writer-thread.ts',
      specifier: '/writer.ts',
      replacement: new URL('./substituted-writer.ts', import.meta.url),
    });
}

function commitLate(): void {
  const { exec } = DatabaseSync.prototype;
  const late = new WeakSet<DatabaseSync>();
  DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string): void {
    const isLate = late.has(this);
    if (sql === 'COMMIT' && !isLate) {
      late.add(this);
      setTimeout(() => {
        late.delete(this);
        if (this.isOpen && this.isTransaction) exec.call(this, 'COMMIT');
      }, LATE_MS);
    }
    // Until the delayed COMMIT runs, all further writes become part of the open database transaction.
    const isSwallowed = sql === 'COMMIT' || (isLate && (sql === 'BEGIN IMMEDIATE' || sql === 'ROLLBACK'));
    if (!isSwallowed) exec.call(this, sql);
  };
}

function ignoreFailedCommits(): void {
  const { exec } = DatabaseSync.prototype;
  DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string): void {
    try {
      exec.call(this, sql);
    } catch (error) {
      if (sql !== 'COMMIT') throw error;
    }
  };
}
