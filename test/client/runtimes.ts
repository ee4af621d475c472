// Runs essentials.ts in Bun, Deno, workerd and Node 20 to 24, against a real Scrip. npx downloads the runtimes from the
// npm registry, so this script is not part of `npm test`.
//
//   npm run client:runtimes

import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { pathWithoutNodeModules } from './client-package.ts';
import { RuntimeRun } from './runtime-run.ts';
import { unpackClient } from './unpacked-client.ts';
import { runInWorkerd, WORKERD } from './workerd.ts';

/** The script runs the latest releases of Bun, Deno and workerd, to find problems with new versions. */
const RUNTIMES: Readonly<Record<string, readonly string[]>> = {
  'bun@latest': ['run'],
  'node@20': [],
  'node@22': [],
  'node@24': [],
  'deno@latest': ['run', '--no-prompt', '--node-modules-dir=manual', '--allow-net=127.0.0.1'],
  [WORKERD]: [],
};
/** Includes the time to download the runtime. */
const TIMEOUT_MS = 300_000;

const print = (line: string) => process.stdout.write(`${line}\n`);

const env = { ...process.env, PATH: pathWithoutNodeModules(), npm_config_loglevel: 'error' };

async function run(folder: string, runtime: string, args: readonly string[]): Promise<string> {
  const options = { cwd: folder, env, timeout: TIMEOUT_MS };
  const { stdout } = await promisify(execFile)('npx', ['--yes', runtime, ...args], options);
  return stdout;
}

print('Downloading Bun, Deno, workerd and Node from npm, unless the npx cache has them.');
const folder = await mkdtemp(join(tmpdir(), 'scrip-runtimes-'));
try {
  const user = await unpackClient(folder);
  for (const [runtime, args] of Object.entries(RUNTIMES)) {
    const [version = ''] = (await run(user, runtime, ['--version'])).split('\n');
    const runtimeRun = await RuntimeRun.prepare();
    try {
      const program = await runtimeRun.writeProgram(user);
      const isWorkerd = runtime === WORKERD;
      const output = isWorkerd ? await runInWorkerd(user, env) : await run(user, runtime, [...args, program]);
      await runtimeRun.assertPassed(output);
    } finally {
      await runtimeRun.stop();
    }
    print(`${runtime.split('@')[0]} ${/\d[\d.]*/.exec(version)?.[0]}: all checks passed.`);
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
