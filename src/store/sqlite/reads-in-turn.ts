// Reads of single end users. Those that are asked for in one turn of the event loop are done in one, behind it: they share
// a snapshot, and their answers leave one behind the other, which costs the kernel half of what it costs to wake a client
// for each. A renewal that is not stored yet is shown only where no write can come before it any more. Reads of end users
// with thousands of cycles are done a few in a turn.

import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import { renewalsDueCount } from '../../ledger/settle.ts';
import type { Loaded } from '../loaded.ts';
import type { WritesUnderWay } from './writes-under-way.ts';

/**
 * Cycles that are read in a turn, and those of one read more: some 10 ms of work. What 500 clients ask for at once of end users
 * who have a few is done in one.
 */
export const CYCLES_A_TURN = 4_096;

export class ReadsInTurn {
  readonly #db: DatabaseSync;
  readonly #writes: WritesUnderWay;
  /** Each gives the number of cycles that it has read. */
  readonly #waiting: (() => number)[] = [];
  #isScheduled = false;

  constructor(db: DatabaseSync, writes: WritesUnderWay) {
    this.#db = db;
    this.#writes = writes;
  }

  /** @throws what `read` throws; StoreFault when a write of this end user was lost, and a renewal would be shown */
  add<Result extends Loaded>(user: EndUserKey, read: () => Result): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const attempt = () => {
      try {
        const result = read();
        const writing = renewalsDueCount(result.cycles, result.now) === 0 ? null : this.#writes.of(user);
        if (writing === null) resolve(result);
        else void writing.then(() => this.#enqueue(attempt));
        return result.cycles.length;
      } catch (error) {
        reject(error);
        return 0;
      }
    };
    this.#enqueue(attempt);
    return promise;
  }

  #enqueue(attempt: () => number): void {
    this.#waiting.push(attempt);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#doSome());
  }

  #doSome(): void {
    this.#isScheduled = false;
    try {
      this.#db.exec('BEGIN');
    } catch {
      // Then each of them finds out by itself what is wrong.
    }
    let cycles = 0;
    let done = 0;
    for (const attempt of this.#waiting) {
      if (cycles >= CYCLES_A_TURN) break;
      cycles += attempt();
      done += 1;
    }
    this.#waiting.splice(0, done);
    if (this.#db.isOpen && this.#db.isTransaction) this.#db.exec('COMMIT');
    if (this.#waiting.length > 0) this.#schedule();
  }
}
