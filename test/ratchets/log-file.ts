// Counts the commits, pages and bytes in the write-ahead log of a ledger file.
// https://www.sqlite.org/fileformat2.html#the_write_ahead_log

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

export interface LogCounts {
  /** With `synchronous = FULL`, each commit is one fsync of the log. */
  readonly commits: number;
  readonly pages: number;
  readonly bytes: number;
}

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const MAGIC = 0x377f0682;

/** Stops at the first frame whose salt differs from the header's: that frame was written before the log restarted. */
export function countLog(file: string): LogCounts {
  const log = readFileSync(`${file}-wal`);
  if (log.length === 0) return { commits: 0, pages: 0, bytes: 0 };
  assert.equal(log.readUInt32BE(0) & ~1, MAGIC, 'the file is a write-ahead log');
  const frameBytes = FRAME_HEADER_BYTES + log.readUInt32BE(8);
  const salt = log.readBigUInt64BE(16);
  let [commits, pages] = [0, 0];
  for (let at = HEADER_BYTES; at + frameBytes <= log.length; at += frameBytes) {
    if (log.readBigUInt64BE(at + 8) !== salt) break;
    pages += 1;
    if (log.readUInt32BE(at + 4) > 0) commits += 1;
  }
  return { commits, pages, bytes: pages * frameBytes };
}
