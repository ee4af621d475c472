// Runs a real server in a separate process, for tests that load, kill or measure the server.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { databaseOf } from '../../src/config.ts';
import { openTools } from '../../src/open-tools.ts';
import { createApiKey } from '../../src/store/key-store.ts';
import { startingEnvironment } from '../run-folder.ts';
import { auditOf, problemsOf } from '../store/temporary-ledger.ts';

const CLI = join(import.meta.dirname, '..', '..', 'src', 'main.ts');
const FATAL_LINES = /"level":(?:50|60)|^\s+at /m;

export class ServerProcess {
  readonly port: number;
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #log: string[];

  /** `script` must start a server and print its URL; null runs `scrip serve`. */
  static async start(
    databaseUrl: string,
    environment: Readonly<Record<string, string>> = {},
    script: string | null = null,
  ): Promise<ServerProcess> {
    const command = script === null ? [CLI, 'serve'] : [script];
    const child = spawn(process.execPath, command, {
      env: { ...startingEnvironment(), DATABASE_URL: databaseUrl, PORT: '0', LOG_LEVEL: 'error', ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const log: string[] = [];
    child.stderr.setEncoding('utf8').on('data', (text) => void log.push(text));
    const ended = once(child, 'exit').then(() => assert.fail(`the server ended: ${log.join('')}`));
    ended.catch(() => {});
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      said += text;
    });
    while (!/http:\/\/[\d.]+:\d+/.test(said)) await Promise.race([once(child.stdout, 'data'), ended]);
    return new ServerProcess(child, Number(/http:\/\/[\d.]+:(\d+)/.exec(said)?.[1]), log);
  }

  private constructor(child: ChildProcess, port: number, log: string[]) {
    this.#child = child;
    this.#log = log;
    this.port = port;
    this.pid = child.pid as number;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get complaints(): string {
    return this.#log
      .join('')
      .split('\n')
      .filter((line) => FATAL_LINES.test(line))
      .join('\n');
  }

  /** The resident memory of the server, or 0 if the system has no `/proc`. */
  get memoryMib(): number {
    try {
      const [, kib = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.pid}/status`, 'utf8')) ?? [];
      return Number(kib) / 1_024;
    } catch {
      return 0;
    }
  }

  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (!this.isRunning) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill(signal);
    await ended;
  }
}

export function newKey(databaseUrl: string, accountName = 'Acme'): Promise<string> {
  return newKeyIn({ DATABASE_URL: databaseUrl }, accountName);
}

/** Creates the ledger if it does not exist. */
export async function newKeyIn(environment: NodeJS.ProcessEnv, accountName: string): Promise<string> {
  const { tools, keys } = await openTools(databaseOf(environment));
  return await createApiKey(keys, { accountName, scope: 'write' }).finally(() => tools.close());
}

export async function auditProblems(databaseUrl: string): Promise<readonly string[]> {
  const { tools } = await openTools(databaseOf({ DATABASE_URL: databaseUrl }), { create: false });
  return auditOf(tools)
    .then(problemsOf)
    .finally(() => tools.close());
}
