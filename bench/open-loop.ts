// Generates load in an open loop: requests are due at a fixed rate, however fast the server responds, and the latency
// of each request is measured from its due time. If a server stalls for a second, the delay counts for all requests
// that became due in that second. A closed loop would not send these requests, since each client waits for a response
// first (coordinated omission).
//
// Requests that are due in the same millisecond are sent together. If no connection is free, the generator queues the
// request, and the time in the queue counts. The generator's own delay counts too; measurements of the echo server show
// how large this delay is.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { AnswerReader } from '../test/load/answer-reader.ts';
import type { Answered, Target } from './closed-loop.ts';
import { bytesOf, RequestSource, type Workload } from './workload.ts';

export interface OpenLoop {
  /** Requests per second. */
  readonly rate: number;
  readonly seconds: number;
  /** The fixed number of connections. There is no pipelining, so no more requests than this are in flight. */
  readonly connections: number;
}

/** How long to wait for responses after the last request. Requests without a response by then count as failures. */
const REST_MS = 10_000;
const OK = 200;

export async function openLoop(target: Target, workload: Workload, settings: OpenLoop): Promise<Answered> {
  const generator = new OpenLoopGenerator(target, workload, settings);
  await generator.connect();
  try {
    return await generator.run();
  } finally {
    generator.close();
  }
}

class OpenLoopGenerator {
  readonly #target: Target;
  readonly #settings: OpenLoop;
  readonly #source: RequestSource;
  readonly #sockets: Socket[] = [];
  readonly #idle: Connection[] = [];
  /** Due times of queued requests, oldest first. Requests before the index `#taken` have been sent. */
  readonly #waiting: number[] = [];
  #taken = 0;
  readonly #latencies: Float64Array;
  #answered = 0;
  #failures = 0;

  constructor(target: Target, workload: Workload, settings: OpenLoop) {
    this.#target = target;
    this.#settings = settings;
    this.#source = new RequestSource(workload, Math.random);
    this.#latencies = new Float64Array(Math.ceil(settings.rate * settings.seconds));
  }

  async connect(): Promise<void> {
    const { hostname, port } = new URL(this.#target.url);
    for (let index = 0; index < this.#settings.connections; index++) {
      const socket = connect(Number(port), hostname).setNoDelay();
      await once(socket, 'connect');
      const connection: Connection = { socket, dueAt: 0 };
      const reader = new AnswerReader(({ status }) => this.#take(connection, status));
      socket.on('data', (chunk: Buffer) => reader.push(chunk));
      socket.on('error', () => {});
      this.#sockets.push(socket);
      this.#idle.push(connection);
    }
  }

  async run(): Promise<Answered> {
    const { rate, seconds } = this.#settings;
    const total = this.#latencies.length;
    const started = performance.now();
    for (let due = 0; due < total; ) {
      const elapsed = Math.floor(performance.now() - started);
      const until = Math.min(total, Math.floor((elapsed * rate) / 1_000));
      for (; due < until; due++) this.#send(started + Math.floor((due * 1_000) / rate));
      await sleep(1);
    }
    const deadline = performance.now() + REST_MS;
    while (this.#answered < total && performance.now() < deadline) await sleep(1);
    const sorted = this.#latencies.subarray(0, this.#answered).toSorted();
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
    const failures = this.#failures + total - this.#answered;
    return { requests: this.#answered, seconds, p50: at(0.5), p99: at(0.99), p999: at(0.999), failures };
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #send(dueAt: number): void {
    const connection = this.#idle.pop();
    if (connection === undefined) this.#waiting.push(dueAt);
    else this.#sendOn(connection, dueAt);
  }

  #sendOn(connection: Connection, dueAt: number): void {
    connection.dueAt = dueAt;
    connection.socket.write(bytesOf(this.#source.next(), this.#target.secret), 'latin1');
  }

  #take(connection: Connection, status: number): void {
    this.#latencies[this.#answered] = performance.now() - connection.dueAt;
    this.#answered += 1;
    if (status !== OK) this.#failures += 1;
    const next = this.#waiting[this.#taken];
    if (next === undefined) {
      this.#idle.push(connection);
      return;
    }
    this.#taken += 1;
    this.#sendOn(connection, next);
  }
}

interface Connection {
  readonly socket: Socket;
  dueAt: number;
}
