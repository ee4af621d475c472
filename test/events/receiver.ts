// Starts and kills receiver-process.ts, and reads the requests that it recorded.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { startingEnvironment } from '../run-folder.ts';

const PROGRAM = join(import.meta.dirname, 'receiver-process.ts');
const READ_BYTES = 1 << 20;

export interface Arrival {
  readonly path: string;
  /** The `webhook-id` header. */
  readonly id: string;
  readonly body: string;
  readonly at: number;
}

export class Receiver {
  readonly #port: number;
  readonly #file: string;
  readonly #responseMsMax: number;
  #process: ChildProcess | null = null;
  readonly #arrivals: Arrival[] = [];
  #readTo = 0;
  #rest = '';

  constructor(port: number, file: string, responseMsMax = 0) {
    this.#port = port;
    this.#file = file;
    this.#responseMsMax = responseMsMax;
  }

  urlOf(path: string): string {
    return `http://127.0.0.1:${this.#port}${path}`;
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [PROGRAM, String(this.#port), this.#file], {
      env: { ...startingEnvironment(), RESPONSE_MS_MAX: String(this.#responseMsMax) },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#process = child;
    const failed = once(child, 'exit').then(() => Promise.reject(new Error('the receiver did not start')));
    failed.catch(() => {});
    await Promise.race([once(child.stdout, 'data'), failed]);
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (child === null) return;
    this.#process = null;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  read(): readonly Arrival[] {
    const descriptor = openSync(this.#file, 'r');
    const bytes = Buffer.alloc(READ_BYTES);
    for (;;) {
      const count = readSync(descriptor, bytes, 0, READ_BYTES, this.#readTo);
      if (count === 0) break;
      this.#readTo += count;
      const lines = (this.#rest + bytes.toString('latin1', 0, count)).split('\n');
      this.#rest = lines.pop() as string;
      for (const line of lines) this.#add(line);
    }
    closeSync(descriptor);
    return this.#arrivals;
  }

  /** Ignores a request whose line is incomplete, because the sender got no response to it. */
  #add(line: string): void {
    if (line.endsWith('}')) this.#arrivals.push(JSON.parse(Buffer.from(line, 'latin1').toString('utf8')));
  }
}
