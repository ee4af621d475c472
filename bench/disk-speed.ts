// Measures how fast the disk writes to stable storage.

import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Figure, median } from './results.ts';

/** A batch of 50 subtractions adds about this many bytes to the write-ahead log. */
const BYTES = 100_000;
const WRITES = 100;

export function diskSpeed(when: string): Figure[] {
  const folder = mkdtempSync(join(tmpdir(), 'scrip-disk-'));
  const file = openSync(join(folder, 'log'), 'w');
  const bytes = Buffer.alloc(BYTES, 1);
  const times: number[] = [];
  for (let write = 0; write < WRITES; write++) {
    const started = performance.now();
    writeSync(file, bytes);
    fdatasyncSync(file);
    times.push(performance.now() - started);
  }
  closeSync(file);
  rmSync(folder, { recursive: true });
  const slow = times.toSorted((a, b) => a - b)[Math.floor(0.95 * WRITES)] as number;
  return [
    { name: `Median time to append and sync 100 kB, ${when} the benchmark`, value: median(times), unit: 'ms' },
    { name: `95th percentile of the time to append and sync 100 kB, ${when} the benchmark`, value: slow, unit: 'ms' },
  ];
}
