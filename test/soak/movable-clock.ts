// A clock of the machine that a test can move: loaded before everything else in a server and its writer thread
// (`NODE_OPTIONS=--import=…`), it shows the real time plus the milliseconds in CLOCK_FILE. Timers are not affected: the
// clock jumps, not the time.

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/** Threads see a jump up to this long after one another, as with a clock that is set between two looks. */
const LOOK_MS = 20;

const { CLOCK_FILE: file } = process.env;
if (file !== undefined) followClock(file, isMainThread ? 'the service' : "the writer's thread");

function followClock(file: string, thread: string): void {
  const { now } = Date;
  let aheadMs = read(file, thread);
  Date.now = () => now() + aheadMs;
  setInterval(() => {
    aheadMs = read(file, thread);
  }, LOOK_MS).unref();
}

function read(file: string, thread: string): number {
  const aheadMs = Number(readFileSync(file, 'utf8'));
  if (!Number.isSafeInteger(aheadMs)) throw new Error(`the clock of ${thread} cannot be read from ${file}`);
  return aheadMs;
}

/** Sets the clock of the processes that follow `file`, atomically. */
export function setClock(file: string, aheadMs: number): void {
  writeFileSync(`${file}.new`, String(aheadMs));
  renameSync(`${file}.new`, file);
}
