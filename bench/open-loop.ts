// Generates load in an open loop: requests are due at a fixed rate, and their latency is measured from the due time. A
// closed loop would hide delays (coordinated omission).

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { AnswerReader } from '../test/load/answer-reader.ts';
import type { Answered, Target } from './closed-loop.ts';
import { bytesOf, type Request, RequestSource, type Workload } from './workload.ts';

export interface OpenLoop {
  readonly rate: number;
  readonly seconds: number;
  /** This also limits the number of requests in flight, because the generator does not pipeline requests. */
  readonly connections: number;
}

const DRAIN_MAX_MS = 10_000;
const OK = 200;

export interface Source {
  next(): Request;
}

export function openLoop(target: Target, workload: Workload, settings: OpenLoop): Promise<Answered> {
  return openLoopFrom(target, new RequestSource(workload, Math.random), settings);
}

export async function openLoopFrom(target: Target, source: Source, settings: OpenLoop): Promise<Answered> {
  const generator = new OpenLoopGenerator(target, source, settings);
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
  readonly #source: Source;
  readonly #sockets: Socket[] = [];
  readonly #idle: Connection[] = [];
  /**
   * The due times of requests that found no idle connection, oldest first. The first `#taken` of these requests have
   * been sent.
   */
  readonly #waiting: number[] = [];
  #taken = 0;
  readonly #latencies: Float64Array;
  #answered = 0;
  #failures = 0;

  constructor(target: Target, source: Source, settings: OpenLoop) {
    this.#target = target;
    this.#settings = settings;
    this.#source = source;
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
    const deadline = performance.now() + DRAIN_MAX_MS;
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
    // The server closes a new connection that is not used for ten seconds, so use all connections in turn.
    const connection = this.#idle.shift();
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
