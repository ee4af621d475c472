// Whoever was refused is told to come back in a second. While the processor is full, who comes back at once is not read
// for a moment: a refusal costs half of what a write does, so that a server which refuses all that comes does little else.
// As long as there is time to spare, nobody waits to be refused.

import type { Socket } from 'node:net';
import type { Connection } from './connection.ts';

/** How long a connection rests behind a refusal, at the most. */
export const REST_MS_MAX = 250;
/** How long at first, and with each look at a full processor twice as long. */
const REST_MS_MIN = 8;
const LOOK_EVERY_MS = 50;
/** The part of the time that the event loop has something to do, from which on the processor counts as full. */
const FULL = 0.97;

export class RefusedConnections {
  /** In the order in which their rest ends, but for those that a shorter rest lets overtake. */
  readonly #resting: { connection: Connection; untilMs: number }[] = [];
  #restMs = 0;
  #lookedAtMs = 0;
  readonly #utilization: () => number;
  #timer: NodeJS.Timeout | null = null;

  /** @param utilization the part of the time since the latest call in which there was something to do */
  constructor(utilization: () => number = utilizationSince()) {
    this.#utilization = utilization;
  }

  /**
   * To be called for each connection on which a request was refused. It rests at once, or a client that is quick would be
   * refused over and over in the same turn of the event loop.
   */
  rest(connection: Connection): void {
    const nowMs = performance.now();
    if (nowMs - this.#lookedAtMs >= LOOK_EVERY_MS) this.#look(nowMs);
    if (this.#restMs === 0 || connection.isResting || connection.isHeld || connection.isDisconnected) return;
    connection.isResting = true;
    // Node goes on reading behind each answer, for what it may not have of the request.
    connection.socket.on('resume', pauseAgain);
    connection.socket.pause();
    this.#resting.push({ connection, untilMs: nowMs + this.#restMs });
    this.#timer ??= setTimeout(() => this.#letGo(), REST_MS_MIN).unref();
  }

  #look(nowMs: number): void {
    const utilization = this.#utilization();
    // After a pause in which nobody was refused nothing is known of now.
    const isKnown = nowMs - this.#lookedAtMs < 4 * LOOK_EVERY_MS;
    this.#lookedAtMs = nowMs;
    if (isKnown && utilization >= FULL) this.#restMs = Math.min(REST_MS_MAX, Math.max(REST_MS_MIN, 2 * this.#restMs));
    else this.#restMs = this.#restMs > REST_MS_MIN ? this.#restMs / 2 : 0;
  }

  #letGo(): void {
    const nowMs = performance.now();
    let rested = 0;
    for (const { connection, untilMs } of this.#resting) {
      if (untilMs > nowMs) break;
      rested += 1;
      connection.isResting = false;
      connection.socket.off('resume', pauseAgain);
      // Who is held as well is let go on by those who hold it.
      if (!connection.isHeld && !connection.isDisconnected) connection.socket.resume();
    }
    this.#resting.splice(0, rested);
    this.#timer = this.#resting.length > 0 ? setTimeout(() => this.#letGo(), REST_MS_MIN).unref() : null;
  }
}

function pauseAgain(this: Socket): void {
  this.pause();
}

function utilizationSince(): () => number {
  let before = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return utilization;
  };
}
