// A file that is there whole or not at all: written under another name, put on stable storage, and only then given its
// own. A file of that name which is there already is never replaced.

import { closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { CannotOpen } from '../store-fault.ts';

/** It holds hashes of keys and what customers bought: for the eyes of its owner. */
export const OWNER_ONLY = 0o600;

/** What file systems without hard links say of one. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

export class NewFile implements Disposable {
  readonly file: string;
  /** Where to write. */
  readonly partial: string;
  readonly #onSignal = () => {
    this[Symbol.dispose]();
    process.exit(1);
  };

  /** @throws CannotOpen when there is a file of that name, or none can be made */
  constructor(file: string) {
    this.file = file;
    this.partial = `${file}.partial-${process.pid}`;
    if (existsSync(file)) throw alreadyThere(file);
    // First, so that there is no moment in which a signal leaves something behind.
    process.once('SIGINT', this.#onSignal);
    process.once('SIGTERM', this.#onSignal);
    try {
      closeSync(openSync(this.partial, 'wx', OWNER_ONLY));
    } catch (error) {
      this.#letSignalsEnd();
      throw new CannotOpen(
        `${file} cannot be written (${(error as Error).message}); name a file in a folder of yours.`,
      );
    }
  }

  /** @throws CannotOpen when a file of that name has been created meanwhile */
  publish(): void {
    syncToDisk(this.partial);
    try {
      // Unlike a rename, a link never replaces what is there.
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

  /** Takes away what is not published. Twice is no error. */
  [Symbol.dispose](): void {
    removeDatabase(this.partial);
    this.#letSignalsEnd();
  }

  #letSignalsEnd(): void {
    process.off('SIGINT', this.#onSignal);
    process.off('SIGTERM', this.#onSignal);
  }
}

/** Also what SQLite may have left beside it. */
export function removeDatabase(file: string): void {
  for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true });
}

/** A file, or a folder with the names in it. */
export function syncToDisk(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function alreadyThere(file: string): CannotOpen {
  return new CannotOpen(`${file} is there already; name a file that is not.`);
}
