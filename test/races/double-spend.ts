// Sends a thousand requests at once, for one credit each, to an end user with a hundred credits, and counts how many
// succeed. They are pipelined on a few sockets, so that many are in one batch, or sent on many sockets, so that their
// order varies.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { AnswerReader } from '../load/answer-reader.ts';

export const REQUESTS = 1_000;
export const CREDITS = 100;
export const FEW_SOCKETS = 4;
export const MANY_SOCKETS = 1_000;

const ANSWERS_MS_MAX = 30_000;

interface Line {
  readonly socket: Socket;
  readonly reader: AnswerReader;
}

/** Sockets to all ports, which stay open between rounds. */
export class Spenders {
  readonly #lines: Line[];
  readonly #key: string;
  readonly #statuses = new Map<number, number>();
  #missing = 0;
  #onEnd: (trouble: Error | null) => void = () => {};

  static async open(ports: readonly number[], sockets: number, key: string): Promise<Spenders> {
    const opened = Array.from({ length: sockets }, async (_, index) => {
      const socket = connect(ports[index % ports.length] as number, '127.0.0.1').setNoDelay();
      await once(socket, 'connect');
      return socket;
    });
    return new Spenders(await Promise.all(opened), key);
  }

  private constructor(sockets: readonly Socket[], key: string) {
    this.#key = key;
    this.#lines = sockets.map((socket) => {
      const reader = new AnswerReader(({ status }) => this.#count(status));
      socket.on('data', (chunk: Buffer) => reader.push(chunk));
      socket.on('error', (error) => this.#onEnd(error));
      socket.on('close', () => this.#onEnd(new Error('the server closed a connection')));
      return { socket, reader };
    });
  }

  /** @returns the number of responses by status */
  async spend(user: string): Promise<ReadonlyMap<number, number>> {
    await this.#send(1, () => requestOf('/add', this.#key, { end_user_id: user, amount: CREDITS }));
    const request = requestOf('/subtract', this.#key, { end_user_id: user, amount: 1 });
    return this.#send(REQUESTS, (count) => request.repeat(count));
  }

  close(): void {
    for (const { socket } of this.#lines)
      socket
        .removeAllListeners()
        .on('error', () => {})
        .destroy();
  }

  async #send(requests: number, bytes: (count: number) => string): Promise<ReadonlyMap<number, number>> {
    this.#statuses.clear();
    this.#missing = requests;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#onEnd = (trouble) => (trouble === null ? resolve() : reject(trouble));
    const impatience = setTimeout(() => reject(new Error(`${this.#missing} responses are missing`)), ANSWERS_MS_MAX);
    const lines = this.#lines.slice(0, requests);
    for (const { socket } of lines) socket.write(bytes(requests / lines.length));
    await promise.finally(() => clearTimeout(impatience));
    return new Map(this.#statuses);
  }

  #count(status: number): void {
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1);
    this.#missing -= 1;
    if (this.#missing === 0) this.#onEnd(null);
  }
}

function requestOf(path: string, key: string, fields: unknown): string {
  const body = JSON.stringify(fields);
  return `POST ${path} HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

export interface DoubleSpends {
  readonly rounds: number;
  readonly requests: number;
  /** Requests that succeeded although the credits were already spent. */
  readonly overGrants: number;
  /** Rounds with any responses other than a hundred 200 and nine hundred 402. */
  readonly faults: readonly string[];
}

/** @param spenders each of them runs its rounds one after the other */
export async function doubleSpends(spenders: readonly Spenders[], rounds: number): Promise<DoubleSpends> {
  const faults: string[] = [];
  let overGrants = 0;
  for (let round = 0; round < rounds; round++) {
    for (const each of spenders) {
      const statuses = await each.spend(crypto.randomUUID());
      const granted = statuses.get(200) ?? 0;
      overGrants += Math.max(0, granted - CREDITS);
      if (granted !== CREDITS || statuses.get(402) !== REQUESTS - CREDITS)
        faults.push(`round ${round}: ${JSON.stringify([...statuses])}`);
    }
  }
  return { rounds: rounds * spenders.length, requests: rounds * spenders.length * REQUESTS, overGrants, faults };
}
