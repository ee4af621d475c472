// Moves the clock of a server: `Date.now` returns the real time plus the milliseconds in CLOCK_FILE. This file must be
// loaded before all other modules (`NODE_OPTIONS=--import=…`).

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/** For this long after a jump, one thread may see the new time and another thread the old time. */
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

export function setClock(file: string, aheadMs: number): void {
  writeFileSync(`${file}.new`, String(aheadMs));
  renameSync(`${file}.new`, file);
}
