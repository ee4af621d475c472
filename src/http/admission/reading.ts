// Decides which connections are read. Node parses everything that has arrived on a connection, up to 64 KiB or hundreds
// of pipelined requests, before it continues with the next connection. Connections that pipeline are therefore paused
// until their requests are begun, and then resumed, one per turn of the event loop. If too many requests are pipelined
// in the same turn, all connections are paused, and resumed one per turn. Accounts take turns in both queues.

import type { Socket } from 'node:net';
import { FairQueue } from '../../batching/fair-queue.ts';
import { PIPELINED_MAX, PIPELINED_READ_MAX } from '../limits.ts';

/**
 * If this many requests are pipelined in one turn, all connections are paused. Four connections can send this many;
 * they take some 10 ms.
 */
const TURN_PIPELINED_MAX = 1_024;

export interface PausableConnection {
  readonly socket: Socket;
  /** The account of the connection, since sockets are read in an order that is fair to accounts. */
  readonly account: number;
  /** Pipelined requests that are not begun. */
  readonly pipelined: readonly unknown[];
  isPaused: boolean;
}

export class Reading {
  readonly #open: ReadonlySet<PausableConnection>;
  /** Connections that pipelined and have no more requests to begin. */
  readonly #emptied = new FairQueue<PausableConnection>();
  readonly #held = new FairQueue<PausableConnection>();
  /** Pipelined requests that are not begun, and how many requests were pipelined in this turn. */
  #pipelined = 0;
  #pipelinedInTurn = 0;
  #isScheduled = false;

  constructor(open: ReadonlySet<PausableConnection>) {
    this.#open = open;
  }

  /** Must be called for each new connection. */
  begin(connection: PausableConnection): void {
    if (this.#held.length > 0 || this.#pipelinedInTurn >= TURN_PIPELINED_MAX) this.#hold(connection);
  }

  /** Must be called for each request that is pipelined. */
  pipeline(connection: PausableConnection): void {
    pause(connection);
    this.#pipelined += 1;
    this.#pipelinedInTurn += 1;
    this.#schedule();
    if (this.#pipelinedInTurn === TURN_PIPELINED_MAX) for (const other of this.#open) this.#hold(other);
  }

  /** Must be called when pipelined requests of the connection are begun or dropped, with their number. */
  unpipeline(connection: PausableConnection, requests: number): void {
    this.#pipelined -= requests;
    if (connection.pipelined.length === 0 && connection.isPaused) this.#emptied.push(connection.account, connection);
    this.#schedule();
  }

  #hold(connection: PausableConnection): void {
    if (connection.isPaused) return;
    pause(connection);
    this.#held.push(connection.account, connection);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#nextTurn());
  }

  #nextTurn(): void {
    this.#isScheduled = false;
    this.#pipelinedInTurn = 0;
    if (this.#pipelined < PIPELINED_READ_MAX) resume(this.#emptied.takeOne());
    if (this.#pipelined < PIPELINED_MAX) resume(this.#held.takeOne());
    const isMore = this.#held.length > 0 && this.#pipelined < PIPELINED_MAX;
    if (isMore || (this.#emptied.length > 0 && this.#pipelined < PIPELINED_READ_MAX)) this.#schedule();
  }
}

function pause(connection: PausableConnection): void {
  if (connection.isPaused) return;
  connection.isPaused = true;
  // Node resumes a socket whenever the body of one of its requests is read.
  connection.socket.on('resume', pauseAgain).pause();
}

function resume(connection: PausableConnection | undefined): void {
  if (connection === undefined) return;
  connection.isPaused = false;
  connection.socket.off('resume', pauseAgain).resume();
}

function pauseAgain(this: Socket): void {
  this.pause();
}
