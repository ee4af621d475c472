// Sends a thousand concurrent requests that try to spend the same hundred credits, to close the same hold, or to refund
// the same subtraction, and counts how many succeed.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type Answer, AnswerReader } from '../load/answer-reader.ts';

export const REQUESTS = 1_000;
export const CREDITS = 100;
export const FEW_SOCKETS = 4;
export const MANY_SOCKETS = 1_000;

const ANSWERS_MS_MAX = 30_000;

export const RACES = {
  'subtract one credit each': { granted: CREDITS, refused: 402, left: 0 },
  'hold one credit each': { granted: CREDITS, refused: 402, left: 0 },
  'capture the same hold': { granted: 1, refused: 404, left: 0 },
  'release the same hold': { granted: 1, refused: 404, left: CREDITS },
  'refund one credit each': { granted: CREDITS, refused: 409, left: CREDITS },
  'refund the same subtraction': { granted: 1, refused: 409, left: CREDITS },
} as const;

export type Race = keyof typeof RACES;

interface Line {
  readonly socket: Socket;
  readonly reader: AnswerReader;
}

export class Spenders {
  readonly #lines: Line[];
  readonly #key: string;
  readonly #statuses = new Map<number, number>();
  #missing = 0;
  #latest: Answer | null = null;
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
      const reader = new AnswerReader((answer) => this.#count(answer));
      socket.on('data', (chunk: Buffer) => reader.push(chunk));
      socket.on('error', (error) => this.#onEnd(error));
      socket.on('close', () => this.#onEnd(new Error('the server closed a connection')));
      return { socket, reader };
    });
  }

  async run(race: Race, user: string): Promise<{ statuses: ReadonlyMap<number, number>; left: number }> {
    const one = (path: string, fields: object) =>
      this.#one(requestOf(path, this.#key, { end_user_id: user, ...fields }));
    await one('/add', { amount: CREDITS });
    const [path, fields] = await prepared(race, one);
    const request = requestOf(path, this.#key, { end_user_id: user, ...fields });
    const statuses = await this.#send(REQUESTS, (count) => request.repeat(count));
    const { body } = await this.#one(requestOf(`/get-active-balance?end_user_id=${user}`, this.#key, null));
    return { statuses, left: JSON.parse(body).active_balance };
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

  async #one(request: string): Promise<Answer> {
    await this.#send(1, () => request);
    return this.#latest as Answer;
  }

  #count(answer: Answer): void {
    const { status } = answer;
    this.#latest = answer;
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1);
    this.#missing -= 1;
    if (this.#missing === 0) this.#onEnd(null);
  }
}

async function prepared(
  race: Race,
  one: (path: string, fields: object) => Promise<Answer>,
): Promise<readonly [path: string, fields: object]> {
  switch (race) {
    case 'subtract one credit each':
      return ['/subtract', { amount: 1 }];
    case 'hold one credit each':
      return ['/hold', { amount: 1 }];
    case 'capture the same hold':
    case 'release the same hold': {
      const { body } = await one('/hold', { amount: CREDITS });
      return [race === 'capture the same hold' ? '/capture' : '/release', { hold_id: JSON.parse(body).hold_id }];
    }
    case 'refund one credit each':
    case 'refund the same subtraction': {
      const { head } = await one('/subtract', { amount: CREDITS });
      const fields = { transaction_id: /\r\ntransaction-id: *(\S+)/i.exec(head)?.[1] };
      return ['/refund', race === 'refund one credit each' ? { ...fields, amount: 1 } : fields];
    }
  }
}

function requestOf(path: string, key: string, fields: object | null): string {
  const method = fields === null ? 'GET' : 'POST';
  const begin = `${method} ${path} HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${key}\r\n`;
  if (fields === null) return `${begin}\r\n`;
  const body = JSON.stringify(fields);
  return `${begin}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

export interface DoubleSpends {
  readonly rounds: number;
  readonly requests: number;
  /** The number of requests that succeeded although the credits had already been spent or returned. */
  readonly overGrants: number;
  readonly faults: readonly string[];
}

export async function doubleSpends(
  spenders: readonly Spenders[],
  rounds: number,
  races: readonly Race[] = ALL_RACES,
): Promise<DoubleSpends> {
  const faults: string[] = [];
  let overGrants = 0;
  for (let round = 0; round < rounds; round++) {
    const race = races[round % races.length] as Race;
    const { granted, refused, left } = RACES[race];
    for (const each of spenders) {
      const found = await each.run(race, crypto.randomUUID());
      const succeeded = found.statuses.get(200) ?? 0;
      overGrants += Math.max(0, succeeded - granted);
      if (succeeded !== granted || found.statuses.get(refused) !== REQUESTS - granted || found.left !== left)
        faults.push(`round ${round}, ${race}: ${JSON.stringify([...found.statuses])}, ${found.left} credits are left`);
    }
  }
  return { rounds: rounds * spenders.length, requests: rounds * spenders.length * REQUESTS, overGrants, faults };
}

export const ALL_RACES = Object.keys(RACES) as Race[];
