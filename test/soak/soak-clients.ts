// Sends requests at a fixed rate for a changing set of end users, so that no history grows without bound. The note of
// each write is the number of the write, so that the test can look for every acknowledged write.

import { connect, type Socket } from 'node:net';
import { answered, KnownTransactions, requestText, type Sent } from '../crash/requests.ts';
import { type Answer, AnswerReader } from '../load/answer-reader.ts';
import type { Random } from '../load/random.ts';

const END_USERS = 200;
/** Each end user is replaced with a new one after this many requests. */
const REQUESTS_AN_END_USER = 60;
/** All connections are opened at the start, because connections opened later would look like a leak. */
const CONNECTIONS = 32;
const TICK_MS = 5;
/** The delay before a connection is opened again, and before a write that got a 5xx response is retried. */
const RECONNECT_MS = 50;
const REST_MS_MAX = 30_000;

/** The share of each kind of write among all requests. All other requests are reads. */
const WRITES: readonly (readonly [Sent['kind'], number])[] = [
  ['add', 0.3],
  ['subtract', 0.22],
  ['hold', 0.08],
  ['capture', 0.06],
  ['release', 0.02],
  ['refund', 0.04],
  ['start-cycle', 0.04],
  ['stop-cycle', 0.03],
];
const READS = [
  ...(['get-active-balance', 'get-active-balance', 'get-active-balance'] as const),
  ...(['get-all-user-transactions', 'get-holds', 'get-balance-history'] as const),
];

interface Due {
  readonly text: string;
  readonly at: number;
  readonly sent: Sent | null;
  readonly isAgain: boolean;
}

interface Line {
  readonly socket: Socket;
  under: Due | null;
}

export interface Counts {
  requests: number;
  reads: number;
  cut: number;
  sentAgain: number;
  readonly statuses: Record<number, number>;
}

export class SoakClients {
  readonly writes: Sent[] = [];
  readonly #known = new KnownTransactions();
  readonly endUsers: string[] = [];
  readonly counts: Counts = { requests: 0, reads: 0, cut: 0, sentAgain: 0, statuses: {} };
  #latencies: number[] = [];
  readonly #random: Random;
  readonly #rate: number;
  #address: { readonly port: number; readonly secret: string } | null = null;
  readonly #present: { endUser: string; left: number }[] = [];
  readonly #waiting: Due[] = [];
  #again: Due[] = [];
  readonly #idle: Line[] = [];
  readonly #lines = new Set<Line>();
  #ticking: NodeJS.Timeout | null = null;
  #started = 0;
  #due = 0;

  constructor(rate: number, random: Random) {
    this.#rate = rate;
    this.#random = random;
    for (let count = 0; count < END_USERS; count++) this.#present.push(this.#newEndUser());
  }

  start(): void {
    this.#started = performance.now();
    this.#ticking = setInterval(() => this.#tick(), TICK_MS);
  }

  /** @param address null while no server is running; requests that become due during that time are never sent */
  setServer(address: { readonly port: number; readonly secret: string } | null): void {
    this.#address = address;
    this.#waiting.length = 0;
    this.#connect();
  }

  takeLatencies(): number[] {
    const taken = this.#latencies;
    this.#latencies = [];
    return taken.sort((a, b) => a - b);
  }

  async stop(): Promise<void> {
    if (this.#ticking) clearInterval(this.#ticking);
    const by = performance.now() + REST_MS_MAX;
    const isBusy = () => this.#again.length + this.#waiting.length + this.#lines.size > this.#idle.length;
    while (isBusy() && performance.now() < by) {
      this.#pump();
      await new Promise((resolve) => setTimeout(resolve, TICK_MS));
    }
    this.#address = null;
    for (const { socket } of this.#lines) socket.destroy();
  }

  #tick(): void {
    const until = ((performance.now() - this.#started) * this.#rate) / 1_000;
    for (; this.#due < until; this.#due++) {
      if (this.#address !== null) this.#waiting.push(this.#draw(this.#started + (this.#due / this.#rate) * 1_000));
    }
    this.#pump();
  }

  #pump(): void {
    while (this.#address !== null && this.#again.length + this.#waiting.length > 0) {
      // The clients use the connections in turn, so that the server does not close any of them as idle.
      const line = this.#idle.shift();
      if (line === undefined) return;
      const due = (this.#again.shift() ?? this.#waiting.shift()) as Due;
      line.under = due;
      this.counts.requests += 1;
      if (due.isAgain) this.counts.sentAgain += 1;
      line.socket.write(due.text);
    }
  }

  #connect(): void {
    if (this.#address === null) return;
    while (this.#lines.size < CONNECTIONS) this.#open(this.#address.port);
  }

  #open(port: number): void {
    const socket = connect(port, '127.0.0.1').setNoDelay();
    const line: Line = { socket, under: null };
    this.#lines.add(line);
    const reader = new AnswerReader((answer) => this.#answered(line, answer));
    socket.on('connect', () => {
      this.#idle.push(line);
      this.#pump();
    });
    socket.on('data', (chunk: Buffer) => reader.push(chunk));
    socket.on('error', () => {});
    socket.on('close', () => this.#closed(line));
  }

  #closed(line: Line): void {
    this.#lines.delete(line);
    const index = this.#idle.indexOf(line);
    if (index !== -1) this.#idle.splice(index, 1);
    setTimeout(() => this.#connect(), RECONNECT_MS).unref();
    if (line.under === null) return;
    this.counts.cut += 1;
    this.#sendAgain(line.under);
  }

  #answered(line: Line, answer: Answer): void {
    const due = line.under;
    // A response without a request means that the server is closing an idle connection.
    if (due === null) return void line.socket.destroy();
    line.under = null;
    this.#idle.push(line);
    const { statuses } = this.counts;
    statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
    if (!due.isAgain) this.#latencies.push(performance.now() - due.at);
    if (due.sent === null) this.counts.reads += 1;
    else this.#learn(due.sent, answer);
    if (answer.status >= 500) setTimeout(() => this.#sendAgain(due), RECONNECT_MS);
    else this.#pump();
  }

  /** A write without an idempotency key is not repeated, because it may already be stored. */
  #sendAgain(due: Due): void {
    if (due.sent?.key) this.#again.push({ ...due, isAgain: true });
  }

  #newEndUser(): { endUser: string; left: number } {
    const endUser = this.#random.uuid();
    this.endUsers.push(endUser);
    return { endUser, left: REQUESTS_AN_END_USER };
  }

  #draw(at: number): Due {
    const place = this.#random.below(END_USERS);
    const one = this.#present[place] as { endUser: string; left: number };
    one.left -= 1;
    if (one.left === 0) {
      this.#present[place] = this.#newEndUser();
      return this.#post('stop-cycle', one.endUser, at);
    }
    const choice = this.#random.next();
    let left = choice;
    for (const [kind, share] of WRITES) {
      if (left < share) return this.#post(kind, one.endUser, at);
      left -= share;
    }
    return this.#get(this.#random.pick(READS), one.endUser, at);
  }

  #post(kind: Sent['kind'], endUser: string, at: number): Due {
    const random = () => this.#random.next();
    const write = this.#known.draw(kind, endUser, random);
    const key = this.#random.chance(0.5) ? `soak ${this.#due}` : null;
    const fields = { ...write.fields, ...validityOf(write.kind, this.#random) };
    const number = this.writes.length + 1;
    const sent: Sent = { number, kind: write.kind, fields, endUser, key, answer: null };
    this.writes.push(sent);
    return { text: requestText(sent, String(this.#address?.secret)), at, sent, isAgain: false };
  }

  /** Does not keep the text of the response, because the texts of all responses would take too much memory. */
  #learn(sent: Sent, { head, body }: Answer): void {
    sent.answer = { ...answered(head, body), text: '' };
    this.#known.learn(sent);
  }

  #get(path: string, endUser: string, at: number): Due {
    const text = `GET /${path}?end_user_id=${endUser} HTTP/1.1\r\n${this.#head()}\r\n`;
    return { text, at, sent: null, isAgain: false };
  }

  #head(): string {
    return `Host: scrip\r\nAuthorization: Bearer ${this.#address?.secret}\r\n`;
  }
}

function validityOf(kind: Sent['kind'], random: Random): Sent['fields'] {
  if (kind === 'add') return { validity_days: 1 + random.below(3) };
  return kind === 'start-cycle' ? { validity_days: 1 + random.below(31) } : {};
}
