// Runs the client in Bun and in Deno, which npx fetches from npm, against a real Scrip: the program of essentials.ts in
// each, and what the services saw of it. It needs the registry of npm, so it is no part of `npm test`.
//
//   npm run client:runtimes

import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { RuntimeTrial } from './runtime-trial.ts';
import { unpackClient } from './unpacked-client.ts';

/** With what each is started. Deno may use the network, and read modules, and nothing else. */
const RUNTIMES: Readonly<Record<string, readonly string[]>> = {
  bun: ['run'],
  deno: ['run', '--no-prompt', '--node-modules-dir=manual', '--allow-net=127.0.0.1'],
};
/** They are large, and come from the registry the first time. */
const TIME_MS = 300_000;

const say = (line: string) => process.stdout.write(`${line}\n`);

/** Newer versions than those that were tried may do otherwise, and that is worth knowing: the latest is run. */
async function run(folder: string, runtime: string, args: readonly string[]): Promise<string> {
  const path = (process.env.PATH ?? '').split(delimiter).filter((part) => !part.includes('node_modules'));
  const env = { ...process.env, PATH: path.join(delimiter), npm_config_loglevel: 'error' };
  const options = { cwd: folder, env, timeout: TIME_MS };
  const { stdout } = await promisify(execFile)('npx', ['--yes', `${runtime}@latest`, ...args], options);
  return stdout;
}

say('Bun and Deno come from npm, by npx: this needs the registry, or that they have been fetched before.');
const folder = await mkdtemp(join(tmpdir(), 'scrip-runtimes-'));
try {
  const user = await unpackClient(folder);
  for (const [runtime, args] of Object.entries(RUNTIMES)) {
    const [version = ''] = (await run(user, runtime, ['--version'])).split('\n');
    const trial = await RuntimeTrial.prepare();
    try {
      await trial.assertHeld(await run(user, runtime, [...args, await trial.writeProgram(user)]));
    } finally {
      await trial.stop();
    }
    say(`${runtime} ${/\d[\d.]*/.exec(version)?.[0]}: the client does there what it must.`);
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
