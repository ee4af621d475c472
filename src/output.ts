// Standard output for a command that may say a great deal. An audit does not pause for whoever reads, so that the stream of
// Node would hold in memory all that has not been taken yet; here each line waits until it is.

import { writeSync } from 'node:fs';

const STANDARD_OUTPUT = 1;

/** A pipe that is full, and does not wait by itself, is tried again after so long: it holds 64 KiB. */
const FULL_PIPE_MS = 5;
const PAUSE = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

/** Whoever read has had enough, as `head` does. */
export class NobodyReads extends Error {}

/** @throws NobodyReads */
export function printLine(line: string): void {
  let rest = Buffer.from(`${line}\n`);
  while (rest.length > 0) rest = rest.subarray(printSome(rest));
}

function printSome(bytes: Uint8Array): number {
  try {
    return writeSync(STANDARD_OUTPUT, bytes);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EPIPE') throw new NobodyReads('Nobody reads what is printed.');
    if (code !== 'EAGAIN') throw error;
    Atomics.wait(PAUSE, 0, 0, FULL_PIPE_MS);
    return 0;
  }
}
