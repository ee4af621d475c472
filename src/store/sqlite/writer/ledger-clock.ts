// The ledger's clock: the system clock, but never earlier than the latest instant that any thread of this process has
// seen. Setting the system clock back therefore does not make expired credits valid again. The threads share the latest
// instant in memory, and the writer saves it in the file. A test clock advances only when the writer moves it.

import type { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { type Instant, LAST_INSTANT } from '../../../ledger/instant.ts';
import { CannotOpen } from '../../store-fault.ts';
import type { IdPosition } from '../../transaction-ids.ts';
import { prepare, type Statement } from '../file/statements.ts';

/** The system clock, in milliseconds since 1970. */
export type WallClock = () => number;

export class LedgerClock {
  /** The latest instant as one BigInt64, which the main thread and the writer thread share. */
  readonly shared: SharedArrayBuffer;
  readonly isTest: boolean;
  readonly #latest: BigInt64Array;
  readonly #machine: WallClock;
  readonly #wall: WallClock;

  constructor(machine: WallClock, { isTest = false, shared = new SharedArrayBuffer(8) } = {}) {
    this.shared = shared;
    this.isTest = isTest;
    this.#latest = new BigInt64Array(shared);
    this.#machine = machine;
    this.#wall = isTest ? () => 0 : machine;
  }

  /** Advances the clock. */
  now(): Instant {
    return this.notBefore(Math.floor(this.#wall()));
  }

  /**
   * Returns the time without advancing the clock. Use `peek` to check whether anything is due, but never to decide the
   * outcome of a command.
   */
  peek(): Instant {
    return Math.min(Math.max(Math.floor(this.#wall()), this.latest()), LAST_INSTANT);
  }

  /**
   * Returns the machine's time if the ledger has a test clock, and otherwise `now`. Use `machineTime` for data that
   * must not follow a test clock, such as API keys.
   */
  machineTime(now: Instant): Instant {
    return this.isTest ? Math.floor(this.#machine()) : now;
  }

  latest(): Instant {
    return Number(Atomics.load(this.#latest, 0));
  }

  /** Advances the clock to `instant`, unless the clock is already past it. Returns the latest instant. */
  notBefore(instant: Instant): Instant {
    const wanted = Math.min(instant, LAST_INSTANT);
    for (;;) {
      const seen = this.latest();
      if (seen >= wanted) return seen;
      const before = BigInt(seen);
      if (Atomics.compareExchange(this.#latest, 0, before, BigInt(wanted)) === before) return wanted;
    }
  }
}

/** The clock that is saved in the file; null if none is saved. It is intact unless another program changed it. */
export function savedClock(db: DatabaseSync): { position: IdPosition; isIntact: boolean } | null {
  const row = db.prepare('SELECT at, sequence, checksum FROM clock').get();
  if (row === undefined) return null;
  const [at, sequence] = [Number(row.at), Number(row.sequence)];
  return { position: { at, sequence }, isIntact: row.checksum === clockChecksum(at, sequence) };
}

/** The position of the saved clock; the earliest position if no clock is saved. */
export function savedPosition(db: DatabaseSync): IdPosition {
  return savedClock(db)?.position ?? { at: 0, sequence: 0 };
}

export class SavedClock {
  readonly #db: DatabaseSync;
  readonly #replace: Statement;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#replace = prepare(db, 'REPLACE INTO clock (only, at, sequence, checksum) VALUES (1, ?, ?, ?)');
  }

  save({ at, sequence }: IdPosition): void {
    this.#replace.run(at, sequence, clockChecksum(at, sequence));
  }

  /** @throws CannotOpen if a ledger with postings has no clock, or if something other than Scrip changed the clock */
  read(hasPostings: boolean): IdPosition {
    const saved = savedClock(this.#db);
    if (saved === null && hasPostings) throw new CannotOpen('The clock of the ledger is missing; restore a backup.');
    if (saved?.isIntact === false)
      throw new CannotOpen(
        'The clock of the ledger was changed by something other than Scrip; run `scrip verify` and restore a backup.',
      );
    return savedPosition(this.#db);
  }
}

export function clockChecksum(at: Instant, sequence: number): number {
  return crc32(`${at}/${sequence}`);
}
