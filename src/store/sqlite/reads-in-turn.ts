// Reads of single end users. Those that are asked for in one turn of the event loop are done in one, behind it: they share
// a snapshot, and their answers leave one behind the other, which costs the kernel half of what it costs to wake a client
// for each. A renewal that is not stored yet is shown only where no write can come before it any more.

import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import { renewalsDueCount } from '../../ledger/settle.ts';
import type { Loaded } from '../loaded.ts';
import type { WritesUnderWay } from './writes-under-way.ts';

export class ReadsInTurn {
  readonly #db: DatabaseSync;
  readonly #writes: WritesUnderWay;
  readonly #waiting: (() => void)[] = [];

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
      } catch (error) {
        reject(error);
      }
    };
    this.#enqueue(attempt);
    return promise;
  }

  #enqueue(attempt: () => void): void {
    this.#waiting.push(attempt);
    if (this.#waiting.length === 1) setImmediate(() => this.#doAll());
  }

  #doAll(): void {
    const attempts = this.#waiting.splice(0);
    try {
      this.#db.exec('BEGIN');
    } catch {
      // Then each of them finds out by itself what is wrong.
    }
    for (const attempt of attempts) attempt();
    if (this.#db.isOpen && this.#db.isTransaction) this.#db.exec('COMMIT');
  }
}
