// Starts the servers that a benchmark compares, each a process of its own, and ends them.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const running: ChildProcess[] = [];

/**
 * Starts a script of this folder or, by a relative path, of another.
 *
 * @returns the address that it prints when it is up
 */
export async function startServer(
  script: string,
  commands: readonly string[],
  settings: Readonly<Record<string, string>>,
): Promise<string> {
  const env = { ...process.env, ...settings, PORT: '0' };
  const path = join(import.meta.dirname, script);
  const server = spawn(process.execPath, [path, ...commands], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  running.push(server);
  const [line] = (await once(server.stdout, 'data')) as [Buffer];
  const [address] = /http:\/\/[\d.:]+/.exec(line.toString()) ?? [];
  if (address === undefined) throw new Error(`${script} did not start`);
  return address;
}

export async function stopServers(): Promise<void> {
  const stopping = running.splice(0);
  for (const server of stopping) server.kill('SIGTERM');
  await Promise.all(stopping.map((server) => server.exitCode ?? once(server, 'exit')));
}
