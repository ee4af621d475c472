// Decides which connections Scrip reads from. Node.js parses everything that has arrived on a connection, up to 64 KiB
// or hundreds of pipelined requests, before it continues with the next connection. Scrip therefore stops reading from a
// connection with pipelined requests until it has started to process all of them. If too many pipelined requests arrive
// in one turn of the event loop, Scrip stops reading from all connections.

import type { Socket } from 'node:net';
import { FairQueue } from '../../batching/fair-queue.ts';
import { PIPELINED_MAX, PIPELINED_READ_MAX } from '../limits.ts';

/**
 * If this many pipelined requests arrive in one turn of the event loop, Scrip pauses all connections. Four connections
 * can send this many requests in one turn. Processing them takes about 10 ms.
 */
const TURN_PIPELINED_MAX = 1_024;

export interface PausableConnection {
  readonly socket: Socket;
  readonly account: number;
  readonly pipelined: readonly unknown[];
  isPaused: boolean;
}

export class Reading {
  readonly #open: ReadonlySet<PausableConnection>;
  /** Connections that were paused because they sent pipelined requests, and that have no queued requests left. */
  readonly #emptied = new FairQueue<PausableConnection>();
  readonly #held = new FairQueue<PausableConnection>();
  #pipelined = 0;
  #pipelinedInTurn = 0;
  #isScheduled = false;

  constructor(open: ReadonlySet<PausableConnection>) {
    this.#open = open;
  }

  begin(connection: PausableConnection): void {
    if (this.#held.length > 0 || this.#pipelinedInTurn >= TURN_PIPELINED_MAX) this.#hold(connection);
  }

  pipeline(connection: PausableConnection): void {
    pause(connection);
    this.#pipelined += 1;
    this.#pipelinedInTurn += 1;
    this.#schedule();
    if (this.#pipelinedInTurn === TURN_PIPELINED_MAX) for (const other of this.#open) this.#hold(other);
  }

  /** @param requests how many requests were removed from the queue of the connection */
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
    if (this.#pipelined < PIPELINED_READ_MAX) resume(this.#emptied.take());
    if (this.#pipelined < PIPELINED_MAX) resume(this.#held.take());
    const isMore = this.#held.length > 0 && this.#pipelined < PIPELINED_MAX;
    if (isMore || (this.#emptied.length > 0 && this.#pipelined < PIPELINED_READ_MAX)) this.#schedule();
  }
}

function pause(connection: PausableConnection): void {
  if (connection.isPaused) return;
  connection.isPaused = true;
  // Node.js resumes a socket whenever it reads the body of a request, so `pauseAgain` pauses the socket again.
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
