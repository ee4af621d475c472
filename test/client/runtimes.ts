// Runs essentials.ts in Bun and in Deno, which npx downloads from npm, against a real Scrip. It needs the npm registry, so it is
// not part of `npm test`.
//
//   npm run client:runtimes

import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { RuntimeRun } from './runtime-run.ts';
import { unpackClient } from './unpacked-client.ts';

/** The arguments of each runtime. Deno gets permission for the network and for modules only. */
const RUNTIMES: Readonly<Record<string, readonly string[]>> = {
  bun: ['run'],
  deno: ['run', '--no-prompt', '--node-modules-dir=manual', '--allow-net=127.0.0.1'],
};
/** The first run downloads the runtimes, which are large. */
const TIMEOUT_MS = 300_000;

const print = (line: string) => process.stdout.write(`${line}\n`);

/** Runs the latest version, to find out about changes in it. */
async function run(folder: string, runtime: string, args: readonly string[]): Promise<string> {
  const path = (process.env.PATH ?? '').split(delimiter).filter((part) => !part.includes('node_modules'));
  const env = { ...process.env, PATH: path.join(delimiter), npm_config_loglevel: 'error' };
  const options = { cwd: folder, env, timeout: TIMEOUT_MS };
  const { stdout } = await promisify(execFile)('npx', ['--yes', `${runtime}@latest`, ...args], options);
  return stdout;
}

print('Downloading Bun and Deno from npm, unless they are in the cache of npx.');
const folder = await mkdtemp(join(tmpdir(), 'scrip-runtimes-'));
try {
  const user = await unpackClient(folder);
  for (const [runtime, args] of Object.entries(RUNTIMES)) {
    const [version = ''] = (await run(user, runtime, ['--version'])).split('\n');
    const runtimeRun = await RuntimeRun.prepare();
    try {
      await runtimeRun.assertPassed(await run(user, runtime, [...args, await runtimeRun.writeProgram(user)]));
    } finally {
      await runtimeRun.stop();
    }
    print(`${runtime} ${/\d[\d.]*/.exec(version)?.[0]}: all checks passed.`);
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
