// A writer that is broken on purpose, for the controls of the kill test, and one that keeps a record of its batches.
// Loaded before everything else in a process and its threads: `NODE_OPTIONS=--import=…`.
//
//   BATCH_RECORD=FILE         appends the amounts of each batch's additions, a line of JSON, before it is written
//   WEAKENED_WRITER=late      answers first, and commits up to 50 ms later, as who wants fewer fsyncs might
//   WEAKENED_WRITER=halves    commits each half of a batch by itself
//   WEAKENED_WRITER=deaf      takes a COMMIT that fails for one that worked

import { openSync, writeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { isMainThread } from 'node:worker_threads';
import type { Command } from '../../src/ledger/command.ts';
import { Writer } from '../../src/store/sqlite/writer.ts';

const LATE_MS = 50;

const { BATCH_RECORD: record, WEAKENED_WRITER: weakness } = process.env;
// The main thread has no writer, and its own commits are not what is weakened here.
if (!isMainThread) {
  if (weakness === 'halves') halveBatches();
  if (weakness === 'late') commitLate();
  if (weakness === 'deaf') commitDeaf();
  if (record) recordBatches(openSync(record, 'a'));
}

function recordBatches(descriptor: number): void {
  const { write } = Writer.prototype;
  Writer.prototype.write = function (this: Writer, commands: readonly Command[]) {
    const additions = commands.flatMap((command) => (command.kind === 'add' ? command.amount : []));
    writeSync(descriptor, `${JSON.stringify(additions)}\n`);
    return write.call(this, commands);
  };
}

function halveBatches(): void {
  const { write } = Writer.prototype;
  Writer.prototype.write = function (this: Writer, commands: readonly Command[]) {
    const half = Math.ceil(commands.length / 2);
    const first = write.call(this, commands.slice(0, half));
    const second = write.call(this, commands.slice(half));
    return {
      outcomes: [...first.outcomes, ...second.outcomes],
      heads: [...first.heads, ...second.heads],
      posted: [...first.posted, ...second.posted],
    };
  };
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
    // What comes meanwhile goes into the same transaction.
    const isSwallowed = sql === 'COMMIT' || (isLate && (sql === 'BEGIN IMMEDIATE' || sql === 'ROLLBACK'));
    if (!isSwallowed) exec.call(this, sql);
  };
}

function commitDeaf(): void {
  const { exec } = DatabaseSync.prototype;
  DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string): void {
    try {
      exec.call(this, sql);
    } catch (error) {
      if (sql !== 'COMMIT') throw error;
    }
  };
}
