// The names of a ledger's files. SQLite finds the log of a ledger file by the name of the file, so a file that is moved,
// deleted or opened under a second name can lose acknowledged writes.

import { existsSync, lstatSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { CannotOpen } from '../../store-fault.ts';

/** The size of the file in bytes; 0 if the file does not exist. */
export function fileSize(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/** Refuses a missing or empty file beside a log: SQLite would delete the log, which can contain acknowledged writes. */
export function refuseLogWithoutLedger(file: string): void {
  const log = `${canonical(file)}-wal`;
  if (fileSize(file) > 0 || fileSize(log) === 0) return;
  throw new CannotOpen(
    `${file} is missing or empty, but its log ${log} contains data; put the ledger file back, or move the log to another folder.`,
  );
}

/**
 * SQLite finds the write-ahead log by the name of the file. If the file were opened under a second name, the latest
 * commits would be missing, and two processes would not notice each other.
 */
export function refuseSecondName(file: string): void {
  const status = statSync(file, { throwIfNoEntry: false });
  if (!status?.isFile() || status.nlink <= 1) return;
  const target = canonical(file);
  const folder = dirname(target);
  const others = readdirSync(folder).filter((name) => {
    if (name === basename(target)) return false;
    const other = lstatSync(join(folder, name), { throwIfNoEntry: false });
    return other?.ino === status.ino && other.dev === status.dev;
  });
  const also = others.length === 0 ? '' : ` (in the same folder: ${others.join(', ')})`;
  throw new CannotOpen(
    `${file} has ${status.nlink} hard links${also}, and SQLite keeps a separate log for each; stop Scrip, and remove all links except the one that Scrip was using.`,
  );
}

/** Returns the path with all symbolic links resolved, so that all paths to a file share one lock. */
export function canonical(file: string): string {
  return existsSync(file) ? realpathSync(file) : join(realpathSync(dirname(file)), basename(file));
}

/**
 * Identifies the ledger file, its log and its lock file by device and inode; an element is empty if there is no such
 * file. Returns an empty list if the folder cannot be read at the moment.
 */
export function identityOf(file: string): readonly string[] {
  try {
    const path = canonical(file);
    return [path, `${path}-wal`, `${path}.lock`].map((each) => {
      const found = statSync(each, { bigint: true, throwIfNoEntry: false });
      return found === undefined ? '' : `${found.dev}/${found.ino}`;
    });
  } catch {
    return [];
  }
}

export function hasChanged(before: readonly string[], now: readonly string[]): boolean {
  return now.length > 0 && before.some((each, index) => each !== '' && each !== now[index]);
}
