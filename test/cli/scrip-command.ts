// Runs the `scrip` command as a child process and captures its output.

import assert from 'node:assert/strict';
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import { startingEnvironment } from '../run-folder.ts';

export const MAIN = join(import.meta.dirname, '..', '..', 'src', 'main.ts');

/** The number of concurrent commands is limited, because each command keeps one core busy while it starts. */
export const COMMANDS_AT_ONCE = 3;

export const SECRET = /scrip_(?:read|write)_[0-9A-Za-z]{33}_[0-9A-Za-z]{6}/g;

export interface Ended {
  readonly code: number | NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export type Environment = Record<string, string>;

export function scrip(args: readonly string[], environment: Environment = {}): Promise<Ended> {
  return new Running(args, environment).ended;
}

export function ledgerAt(file: string): Environment {
  return { DATABASE_URL: `file:${file}` };
}

export async function createKey(file: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await scrip(['key', 'create', '--account', 'Lovelace Ltd', ...args], ledgerAt(file));
  assert.deepEqual([code, stderr], [0, '']);
  return stdout.trimEnd().split('\n').at(-1) as string;
}

export async function assertOneLine(
  args: readonly string[],
  environment: Environment,
  expected: RegExp,
): Promise<void> {
  const { code, stdout, stderr } = await scrip(args, environment);
  assert.match(stderr, /^[^\n]+\n$/, 'one line on standard error');
  assert.match(stderr.trimEnd(), expected);
  assert.doesNotMatch(stderr, /hunter2/, 'the password is not printed');
  assert.deepEqual([code, stdout], [1, '']);
}

export class Running {
  readonly ended: Promise<Ended>;
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  #stdout = '';
  #stderr = '';

  constructor(args: readonly string[], environment: Environment) {
    // Scrip settings in the environment of the test run must have no effect.
    this.#child = spawn(process.execPath, [MAIN, ...args], {
      env: { ...startingEnvironment(), ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child.stdout.setEncoding('utf8').on('data', (text) => {
      this.#stdout += text;
    });
    this.#child.stderr.setEncoding('utf8').on('data', (text) => {
      this.#stderr += text;
    });
    this.ended = new Promise((resolve) => {
      this.#child.once('close', (code, signal) =>
        resolve({ code: code ?? signal, stdout: this.#stdout, stderr: this.#stderr }),
      );
    });
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  says(line: RegExp): Promise<string[]> {
    return this.#prints(line, this.#child.stdout, () => this.#stdout);
  }

  saysOnStandardError(line: RegExp): Promise<string[]> {
    return this.#prints(line, this.#child.stderr, () => this.#stderr);
  }

  async #prints(line: RegExp, stream: Readable, printed: () => string): Promise<string[]> {
    for (;;) {
      const found = line.exec(printed());
      if (found) return found.slice(1);
      const text = new Promise<null>((resolve) => stream.once('data', () => resolve(null)));
      const event = await Promise.race([text, this.ended]);
      if (event)
        assert.fail(`the command exited (${event.code}) before printing ${line}: ${event.stdout}${event.stderr}`);
    }
  }
}

export interface Server extends Running {
  readonly url: string;
}

export async function serve(
  t: TestContext,
  file: string,
  args: readonly string[] = [],
  environment: Environment = {},
): Promise<Server> {
  const running = new Running(['serve', ...args], { ...ledgerAt(file), PORT: '0', ...environment });
  t.after(async () => {
    running.kill('SIGKILL');
    await running.ended;
  });
  const [url] = await running.says(/^Scrip is listening on (\S+)$/m);
  await (await fetch(`${url}/healthz`)).text();
  return Object.assign(running, { url: String(url) });
}

export function add(url: string, secret: string, amount = 100): Promise<Response> {
  return fetch(`${url}/add`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${secret}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ end_user_id: '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23', amount }),
  });
}
