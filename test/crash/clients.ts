// Clients of the crash tests: each sends writes of all kinds, several at a time, and records the responses.

import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { below, type Random } from './randomness.ts';
import { type Answered, answered, KnownTransactions, requestText, type Sent, someKind } from './requests.ts';

const REQUESTS_AT_ONCE_MAX = 16;
/** Without this pause after an error, the clients would send a thousand requests per second to a failing store. */
const PAUSE_MS = 5;

export class Requests {
  readonly all: Sent[] = [];
  readonly known = new KnownTransactions();
  readonly #random: Random;
  #endUsers: readonly string[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  /** All later writes are for the new end users. */
  newEndUsers(count: number): readonly string[] {
    this.#endUsers = Array.from({ length: count }, () => crypto.randomUUID());
    return this.#endUsers;
  }

  next(): Sent {
    const number = this.all.length + 1;
    const endUser = this.#endUsers[below(this.#endUsers.length, this.#random)] as string;
    const write = this.known.draw(someKind(this.#random), endUser, this.#random);
    const key = this.#random() < 0.5 ? `write ${number}` : null;
    const sent: Sent = { number, ...write, endUser, key, answer: null };
    this.all.push(sent);
    return sent;
  }
}

export interface Address {
  readonly url: string;
  readonly secret: string;
}

export async function runClient(address: Address, requests: Requests, random: Random, isStopped = () => false) {
  const connection = new Connection(address);
  while (!isStopped() && !connection.isClosed) {
    const sent = Array.from({ length: 1 + below(REQUESTS_AT_ONCE_MAX, random) }, () => requests.next());
    await connection.exchange(sent);
    for (const one of sent) requests.known.learn(one);
    if (sent.some(({ answer }) => answer === null || answer.status >= 500)) await sleep(PAUSE_MS);
  }
  connection.close();
}

export async function sendAgain(address: Address, sent: readonly Sent[]): Promise<(Answered | null)[]> {
  const again = sent.map((one) => ({ ...one, answer: null }));
  const connection = new Connection(address);
  for (const one of again) await connection.exchange([one]);
  connection.close();
  return again.map(({ answer }) => answer);
}

class Connection {
  isClosed = false;
  readonly #socket: Socket;
  readonly #address: Address;
  #unread = Buffer.alloc(0);
  #waiting: Sent[] = [];
  #done: (() => void) | null = null;

  constructor(address: Address) {
    this.#address = address;
    const { hostname, port } = new URL(address.url);
    this.#socket = connect(Number(port), hostname);
    this.#socket.setNoDelay();
    this.#socket.on('data', (bytes: Buffer) => this.#read(bytes));
    this.#socket.on('error', () => {});
    this.#socket.on('close', () => {
      this.isClosed = true;
      this.#done?.();
    });
  }

  exchange(sent: readonly Sent[]): Promise<void> {
    if (this.isClosed) return Promise.resolve();
    this.#waiting = [...sent];
    return new Promise((resolve) => {
      this.#done = resolve;
      this.#socket.write(sent.map((one) => requestText(one, this.#address.secret)).join(''));
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(bytes: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, bytes]);
    for (;;) {
      const end = this.#unread.indexOf('\r\n\r\n');
      if (end === -1) return;
      const head = this.#unread.toString('latin1', 0, end);
      const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
      if (this.#unread.length < end + 4 + length) return;
      const text = this.#unread.toString('utf8', end + 4, end + 4 + length);
      this.#unread = this.#unread.subarray(end + 4 + length);
      const sent = this.#waiting.shift();
      if (sent) sent.answer = answered(head, text);
      if (this.#waiting.length === 0) this.#done?.();
    }
  }
}
