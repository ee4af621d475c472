// Generates open-loop load: each request is sent at its scheduled time, even if earlier requests have no response yet.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { AnswerReader } from '../load/answer-reader.ts';

export interface LoadTarget {
  readonly port: number;
  readonly request: () => string;
}

export interface Outcome {
  readonly seconds: number;
  readonly sent: number;
  /** The number of requests for which the generator had no free connection. */
  readonly unsent: number;
  readonly doneInTime: number;
  /** The number of responses by status; the status 0 stands for a connection that ended without a response. */
  readonly answers: ReadonlyMap<number, number>;
  /** Milliseconds from the scheduled time to the response, by status and in ascending order. */
  readonly latencies: ReadonlyMap<number, readonly number[]>;
}

interface Line {
  readonly socket: Socket;
  dueAt: number;
  isBusy: boolean;
}

const REST_MS_MAX = 15_000;
const OPENING_MAX = 512;
/**
 * The pause between opening the connections and sending requests. libuv accepts one connection per event-loop iteration
 * (https://github.com/libuv/libuv/pull/3696), so under load the last connections would wait for seconds.
 */
const ACCEPTING_MS = 500;

export class Generator {
  readonly #target: LoadTarget;
  readonly #connectionsMax: number;
  readonly #idle: Line[] = [];
  readonly #lines = new Set<Line>();
  #opening = 0;
  #busy = 0;
  #answers = new Map<number, number>();
  #latencies = new Map<number, number[]>();
  #doneInTime = 0;
  #endsAt = Number.POSITIVE_INFINITY;
  #onIdle: ((line: Line) => void) | null = null;

  constructor(target: LoadTarget, connectionsMax: number) {
    this.#target = target;
    this.#connectionsMax = connectionsMax;
  }

  async connect(connections: number): Promise<void> {
    while (this.#lines.size < connections) {
      const some = Math.min(OPENING_MAX, connections - this.#lines.size);
      await Promise.all(Array.from({ length: some }, () => this.#open()));
    }
    await sleep(ACCEPTING_MS);
  }

  async closedLoop(connections: number, seconds: number): Promise<Outcome> {
    await this.connect(connections);
    this.#reset();
    const started = performance.now();
    const end = started + seconds * 1_000;
    this.#endsAt = end;
    let sent = 0;
    const next = (line: Line) => {
      const now = performance.now();
      if (now >= end) return void this.#idle.push(line);
      sent += 1;
      this.#send(line, now);
    };
    this.#onIdle = next;
    for (const line of this.#idle.splice(0, connections)) next(line);
    while (performance.now() < end || this.#busy > 0) await sleep(1);
    this.#onIdle = null;
    return this.#outcome(started, sent, 0);
  }

  async openLoop(rate: number, seconds: number): Promise<Outcome> {
    this.#reset();
    const started = performance.now();
    const total = Math.round(rate * seconds);
    this.#endsAt = started + seconds * 1_000;
    let [due, sent, unsent] = [0, 0, 0];
    while (due < total) {
      const now = performance.now();
      for (const until = Math.min(total, ((now - started) * rate) / 1_000); due < until; due++) {
        const dueAt = started + (due / rate) * 1_000;
        const line = this.#idle.pop();
        if (line) {
          sent += 1;
          this.#send(line, dueAt);
        } else if (this.#lines.size + this.#opening < this.#connectionsMax && this.#opening < OPENING_MAX) {
          sent += 1;
          void this.#open(dueAt);
        } else {
          unsent += 1;
        }
      }
      await turn();
    }
    const deadline = performance.now() + REST_MS_MAX;
    while (this.#busy + this.#opening > 0 && performance.now() < deadline) await sleep(1);
    return this.#outcome(started, sent, unsent);
  }

  close(): void {
    for (const { socket } of this.#lines)
      socket
        .removeAllListeners()
        .on('error', () => {})
        .destroy();
  }

  #outcome(started: number, sent: number, unsent: number): Outcome {
    const latencies = new Map([...this.#latencies].map(([status, all]) => [status, all.toSorted((a, b) => a - b)]));
    const doneInTime = this.#doneInTime;
    return {
      seconds: (performance.now() - started) / 1_000,
      sent,
      unsent,
      doneInTime,
      answers: this.#answers,
      latencies,
    };
  }

  #reset(): void {
    this.#answers = new Map();
    this.#latencies = new Map();
    this.#doneInTime = 0;
  }

  async #open(dueAt: number | null = null): Promise<void> {
    this.#opening += 1;
    const socket = connect(this.#target.port, '127.0.0.1').setNoDelay();
    const line: Line = { socket, dueAt: 0, isBusy: false };
    const reader = new AnswerReader(({ status }) => this.#answered(line, status));
    socket.on('data', (chunk: Buffer) => reader.push(chunk));
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#lines.delete(line);
      if (line.isBusy) this.#count(line, 0);
    });
    try {
      await once(socket, 'connect');
    } catch {
      this.#opening -= 1;
      if (dueAt !== null) this.#answers.set(0, (this.#answers.get(0) ?? 0) + 1);
      return;
    }
    this.#opening -= 1;
    this.#lines.add(line);
    if (dueAt === null) this.#idle.push(line);
    else this.#send(line, dueAt);
  }

  #send(line: Line, dueAt: number): void {
    if (line.socket.destroyed) {
      line.dueAt = dueAt;
      this.#busy += 1;
      this.#count(line, 0);
      return;
    }
    line.dueAt = dueAt;
    line.isBusy = true;
    this.#busy += 1;
    line.socket.write(this.#target.request());
  }

  #answered(line: Line, status: number): void {
    this.#count(line, status);
    if (this.#onIdle) this.#onIdle(line);
    else this.#idle.push(line);
  }

  #count(line: Line, status: number): void {
    line.isBusy = false;
    this.#busy -= 1;
    this.#answers.set(status, (this.#answers.get(status) ?? 0) + 1);
    const latencies = this.#latencies.get(status) ?? [];
    this.#latencies.set(status, latencies);
    const now = performance.now();
    latencies.push(now - line.dueAt);
    if (status === 200 && now <= this.#endsAt) this.#doneInTime += 1;
  }
}

export function percentile(latencies: readonly number[] | undefined, share: number): number {
  if (latencies === undefined || latencies.length === 0) return 0;
  return latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] as number;
}
