// Prints the output of commands: lines, tables, instants, counts with their nouns, and progress.

import { writeSync } from 'node:fs';
import type { Progress, ReportProgress } from '../store/tools/ledger-tools.ts';

const STANDARD_OUTPUT = 1;

/** Pause before the next attempt to write to a full pipe. */
const FULL_PIPE_PAUSE_MS = 5;
const PAUSE = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

/** Thrown if the reader of standard output has closed the pipe, as `head` does after its last line. */
export class OutputClosed extends Error {}

/**
 * Prints to standard output synchronously. The audit does not pause for a slow reader, so an asynchronous stream would
 * buffer all unread lines in memory.
 *
 * @throws OutputClosed
 */
export function printLine(line: string): void {
  let rest = Buffer.from(`${line}\n`);
  while (rest.length > 0) rest = rest.subarray(writeSome(rest));
}

function writeSome(bytes: Uint8Array): number {
  try {
    return writeSync(STANDARD_OUTPUT, bytes);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EPIPE') throw new OutputClosed('the reader of standard output has closed the pipe');
    if (code !== 'EAGAIN') throw error;
    Atomics.wait(PAUSE, 0, 0, FULL_PIPE_PAUSE_MS);
    return 0;
  }
}

/** Formats a count with its noun: `1 posting`, `2 postings`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Formats an instant in UTC, to the minute: `2026-11-20 08:00`. */
export function minute(instant: number): string {
  return new Date(instant).toISOString().slice(0, 16).replace('T', ' ');
}

/** Formats rows as columns, each as wide as its longest cell. @param rows the first row contains the headings */
export function table(rows: readonly string[][]): string {
  const widths = (rows[0] as string[]).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] as string).length)),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] as number))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

const BAR_WIDTH = 30;
const TERMINAL_INTERVAL_MS = 100;
const LOG_INTERVAL_MS = 5_000;

/** Shows progress on standard error: a progress bar on a terminal, otherwise a line every few seconds. */
export async function withProgress<Result>(work: (show: ReportProgress) => Promise<Result>): Promise<Result> {
  const { stderr } = process;
  const intervalMs = stderr.isTTY ? TERMINAL_INTERVAL_MS : LOG_INTERVAL_MS;
  let shownAt = Number.NEGATIVE_INFINITY;
  let shownStep = '';
  const show = (progress: Progress) => {
    const now = performance.now();
    if (progress.step === shownStep && progress.done < progress.total && now - shownAt < intervalMs) return;
    shownAt = now;
    shownStep = progress.step;
    stderr.write(stderr.isTTY ? `\r\x1b[K${bar(progress)} ${text(progress)}` : `${text(progress)}\n`);
  };
  try {
    return await work(show);
  } finally {
    if (stderr.isTTY && shownStep !== '') stderr.write('\n');
  }
}

function bar({ done, total }: Progress): string {
  const full = Math.round(share(done, total) * BAR_WIDTH);
  return `[${'='.repeat(full)}${' '.repeat(BAR_WIDTH - full)}]`;
}

function text({ step, done, total, unit }: Progress): string {
  return `${step}: ${done} of ${total} ${unit}, ${Math.floor(100 * share(done, total))}%`;
}

function share(done: number, total: number): number {
  return total === 0 ? 1 : Math.min(1, done / total);
}
