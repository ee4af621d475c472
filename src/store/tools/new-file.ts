// Creates a file completely or not at all: the file is written and synced under a temporary name before it gets its
// final name. An existing file is never replaced, with one exception: on a file system without hard links, a file that
// another program creates just before the rename is replaced.

import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { CannotOpen } from '../store-fault.ts';

/** Readable only by the owner, because the files contain postings, hashes of API keys, or an encryption key. */
export const OWNER_ONLY = 0o600;

/** The error codes of file systems that do not support hard links. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

export class NewFile implements Disposable {
  readonly file: string;
  readonly partial: string;
  readonly #onSignal = () => {
    this[Symbol.dispose]();
    process.exit(1);
  };

  /** @throws CannotOpen if the file exists or cannot be created */
  constructor(file: string) {
    this.file = file;
    this.partial = `${file}.partial-${randomBytes(4).toString('hex')}`;
    if (existsSync(file)) throw alreadyThere(file);
    // If a signal ends the process, the temporary file must be removed first.
    process.once('SIGINT', this.#onSignal);
    process.once('SIGTERM', this.#onSignal);
    try {
      closeSync(openSync(this.partial, 'wx', OWNER_ONLY));
    } catch (error) {
      this.#letSignalsEnd();
      throw new CannotOpen(
        `${file} cannot be written (${(error as Error).message}); choose a folder that you can write to.`,
        { cause: error },
      );
    }
  }

  /** @throws CannotOpen if `file` has been created in the meantime */
  publish(): void {
    syncToDisk(this.partial);
    try {
      // Unlike a rename, a link never replaces an existing file.
      linkSync(this.partial, this.file);
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      if (existsSync(this.file)) throw alreadyThere(this.file);
      if (!NO_LINKS.has(code)) throw error;
      renameSync(this.partial, this.file);
    }
    this[Symbol.dispose]();
    syncToDisk(dirname(this.file));
  }

  /** Can be called more than once. */
  [Symbol.dispose](): void {
    removeDatabase(this.partial);
    this.#letSignalsEnd();
  }

  #letSignalsEnd(): void {
    process.off('SIGINT', this.#onSignal);
    process.off('SIGTERM', this.#onSignal);
  }
}

/** Removes a database, and any files that SQLite has left next to it. */
export function removeDatabase(file: string): void {
  for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true });
}

/** Syncs a file, or the entries of a folder. */
export function syncToDisk(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function alreadyThere(file: string): CannotOpen {
  return new CannotOpen(`${file} already exists; choose another file name.`);
}
