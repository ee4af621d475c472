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
/** From so many on an end user's reads wait behind those of all others, of which each takes a hundredth of the time. */
export const MANY_CYCLES = 256;
/** End users who are known to have many. They are found out again. */
const KNOWN_MAX = 10_000;

interface Waiting {
  readonly user: EndUserKey;
  /** @returns the number of cycles that were read */
  attempt(): number;
}

export class ReadsInTurn {
  readonly #db: DatabaseSync;
  readonly #writes: WritesUnderWay;
  readonly #waiting: Waiting[] = [];
  /** Of end users with many cycles. */
  readonly #large: Waiting[] = [];
  readonly #haveMany = new Set<string>();
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
        else void writing.then(() => this.#enqueue({ user, attempt }));
        this.#learn(user, result.cycles.length);
        return result.cycles.length;
      } catch (error) {
        reject(error);
        return 0;
      }
    };
    this.#enqueue({ user, attempt });
    return promise;
  }

  #enqueue(waiting: Waiting): void {
    (this.#hasMany(waiting.user) ? this.#large : this.#waiting).push(waiting);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#doSome());
  }

  #doSome(): void {
    try {
      this.#db.exec('BEGIN');
    } catch {
      // Then each of them finds out by itself what is wrong.
    }
    const cycles = this.#doWaiting();
    this.#doLarge(cycles);
    if (this.#db.isOpen && this.#db.isTransaction) this.#db.exec('COMMIT');
    this.#isScheduled = this.#waiting.length + this.#large.length > 0;
    if (this.#isScheduled) setImmediate(() => this.#doSome());
  }

  /** @returns how many cycles were read */
  #doWaiting(): number {
    let cycles = 0;
    let done = 0;
    for (const waiting of this.#waiting) {
      if (cycles >= CYCLES_A_TURN) break;
      // It may have been found out by the read before.
      if (this.#hasMany(waiting.user)) this.#large.push(waiting);
      else cycles += waiting.attempt();
      done += 1;
    }
    this.#waiting.splice(0, done);
    return cycles;
  }

  /** One at the least, or they would wait for as long as there are others. */
  #doLarge(cyclesBefore: number): void {
    let cycles = cyclesBefore;
    let done = 0;
    do cycles += this.#large[done++]?.attempt() ?? 0;
    while (cycles < CYCLES_A_TURN && done < this.#large.length);
    this.#large.splice(0, done);
  }

  #hasMany(user: EndUserKey): boolean {
    return this.#haveMany.size > 0 && this.#haveMany.has(nameOf(user));
  }

  #learn(user: EndUserKey, cycles: number): void {
    if (cycles < MANY_CYCLES) {
      if (this.#haveMany.size > 0) this.#haveMany.delete(nameOf(user));
      return;
    }
    if (this.#haveMany.size === KNOWN_MAX) this.#haveMany.clear();
    this.#haveMany.add(nameOf(user));
  }
}

function nameOf({ account, endUser }: EndUserKey): string {
  return `${account}/${endUser}`;
}
