// Runs a server under load while its disk fails temporarily. The server must continue to serve reads, recover without
// help, and lose no acknowledged write.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ledgerAt, Running } from '../cli/scrip-command.ts';
import { auditProblems, newKey } from '../load/server-process.ts';
import { type Address, Requests, runClient } from './clients.ts';
import { findingsOf, isAcknowledged } from './findings.ts';
import type { Random } from './randomness.ts';
import type { Sent } from './requests.ts';

const WEAKENED = new URL('./weakened-writer.ts', import.meta.url).href;

const CLIENTS = 6;
const END_USERS = 12;
const PATIENCE_MS = 30_000;
const LOOK_EVERY_MS = 10;

/** Breaks the disk of a server, and returns a function that repairs it. */
export type BreakDisk = (server: Running) => Promise<() => Promise<void>>;

export interface Failure {
  readonly name: string;
  readonly breakDisk: BreakDisk;
  readonly lastsMs: number;
  readonly mustFail: boolean;
  /** How long to wait for writes to work again. */
  readonly patienceMs?: number;
}

export interface Seen {
  /** The number of responses by status or error. The key `none` counts the requests without a response. */
  readonly answers: Map<string, number>;
  readonly notReady: number;
  readonly reads: number;
  readonly lost: number;
  readonly wrong: readonly string[];
  readonly backMs: number;
}

export class FailingServer {
  readonly #file: string;
  readonly #random: Random;
  readonly #requests: Requests;
  readonly #weakness: 'deaf' | null;
  #secret = '';
  #server: Running | null = null;
  #address: Address = { url: '', secret: '' };

  constructor(file: string, random: Random, weakness: 'deaf' | null) {
    this.#file = file;
    this.#random = random;
    this.#requests = new Requests(random);
    this.#weakness = weakness;
  }

  async start(): Promise<void> {
    if (this.#secret === '') {
      this.#secret = await newKey(`file:${this.#file}`);
    }
    const weakened = this.#weakness ? { NODE_OPTIONS: `--import=${WEAKENED}`, WEAKENED_WRITER: this.#weakness } : {};
    this.#server = new Running(['serve'], { ...ledgerAt(this.#file), PORT: '0', LOG_LEVEL: 'silent', ...weakened });
    const [url] = await this.#server.says(/^Scrip is listening on (\S+)$/m);
    this.#address = { url: String(url), secret: this.#secret };
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    this.#server?.kill(signal);
    await this.#server?.ended;
  }

  async under(failure: Failure, restart: NodeJS.Signals | null): Promise<Seen> {
    const server = this.#server;
    if (server === null) throw new Error('the server is not running');
    const endUsers = this.#requests.newEndUsers(END_USERS);
    const from = this.#requests.all.length;
    const sent = () => this.#requests.all.slice(from);
    let isStopped = false;
    const clients = Array.from({ length: CLIENTS }, () =>
      runClient(this.#address, this.#requests, this.#random, () => isStopped),
    );
    await until(() => sent().some(isAcknowledged), 'the load has begun');
    const idle = await this.#idleEndUser();
    const mend = await failure.breakDisk(server);
    const during = await this.#watch([idle, endUsers[0] as string], failure, sent);
    await mend();
    const mended = performance.now();
    const before = this.#requests.all.length;
    const { patienceMs = PATIENCE_MS } = failure;
    await until(() => this.#requests.all.slice(before).some(isAcknowledged), 'writes work again', patienceMs);
    const backMs = performance.now() - mended;
    isStopped = true;
    await Promise.all(clients);
    await until(async () => (await fetch(`${this.#address.url}/readyz`)).ok, 'the server is ready again');
    if (restart !== null) {
      await this.end(restart);
      await this.start();
    }
    const findings = await findingsOf(this.#address, endUsers, sent());
    const wrong = [...during.wrong, ...findings.wrong, ...(await auditProblems(`file:${this.#file}`))];
    return { answers: answersOf(sent()), ...during, lost: findings.lost, wrong, backMs };
  }

  async #idleEndUser(): Promise<string> {
    const endUser = randomUUID();
    const headers = { authorization: `Bearer ${this.#secret}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ end_user_id: endUser, amount: 1 });
    const added = await fetch(`${this.#address.url}/add`, { method: 'POST', headers, body });
    if (!added.ok) throw new Error(`an addition failed before the disk did: ${await added.text()}`);
    return endUser;
  }

  /**
   * Every read of the idle end user must succeed, because no renewal or lapse of this end user is due. Scrip refuses a
   * read of the busy end user with a 503 if the outcome of a write is unknown and a renewal or a lapse is due.
   */
  async #watch(
    [idle, busy]: readonly [idle: string, busy: string],
    { lastsMs, mustFail }: Failure,
    sent: () => readonly Sent[],
  ) {
    const headers = { authorization: `Bearer ${this.#secret}` };
    const watched = { notReady: 0, reads: 0, wrong: [] as string[] };
    const hasFailed = () => sent().some(({ answer }) => answer !== null && answer.status >= 500);
    const begun = performance.now();
    const isOver = () => {
      const passed = performance.now() - begun;
      return passed > PATIENCE_MS || (passed > lastsMs && (!mustFail || (hasFailed() && watched.notReady > 0)));
    };
    while (!isOver()) {
      const ready = await fetch(`${this.#address.url}/readyz`);
      if (!ready.ok) watched.notReady += 1;
      for (const endUser of [idle, busy]) {
        const read = await fetch(`${this.#address.url}/get-active-balance?end_user_id=${endUser}`, { headers });
        const text = await read.text();
        if (read.ok) watched.reads += 1;
        else if (endUser === idle || read.status !== 503) watched.wrong.push(`a read failed: ${text}`);
      }
      await sleep(LOOK_EVERY_MS);
    }
    if (mustFail && !hasFailed()) watched.wrong.push('no write has failed');
    if (mustFail && watched.notReady === 0) watched.wrong.push('the server never reported that it was not ready');
    return watched;
  }
}

function answersOf(sent: readonly Sent[]): Map<string, number> {
  const answers = new Map<string, number>();
  for (const { answer } of sent) {
    const name = answer === null ? 'none' : (answer.error ?? String(answer.status));
    answers.set(name, (answers.get(name) ?? 0) + 1);
  }
  return answers;
}

async function until(holds: () => boolean | Promise<boolean>, what: string, patienceMs = PATIENCE_MS): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${patienceMs} ms`);
    await sleep(5);
  }
}

export function summaryOf({ answers, notReady, reads, lost, wrong, backMs }: Seen): string {
  const counts = [...answers].map(([name, count]) => `${count} ${name}`).join(', ');
  return `${counts}; ${reads} reads, ${notReady} times not ready; ${lost} lost, ${wrong.length} other problems; writing again after ${Math.round(backMs)} ms`;
}
