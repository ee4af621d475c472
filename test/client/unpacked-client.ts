// Builds and packs the client, and unpacks the package into an empty folder, as `npm install` would.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { CLIENT, REPOSITORY } from './client-package.ts';

const PACK_MS_MAX = 120_000;

export async function unpackClient(folder: string): Promise<string> {
  const clone = join(folder, 'clone');
  await cp(CLIENT, join(clone, 'client'), { recursive: true, filter: (path) => !path.endsWith('/dist') });
  await symlink(join(REPOSITORY, 'node_modules'), join(clone, 'node_modules'));
  // npm must build the client with the Node version that runs the tests.
  const PATH = [dirname(process.execPath), process.env.PATH].join(delimiter);
  const env = { ...process.env, PATH, npm_config_offline: 'true', npm_config_loglevel: 'silent' };
  const args = ['pack', './client', '--json', '--pack-destination', folder];
  const packed = await promisify(execFile)('npm', args, { cwd: clone, env, timeout: PACK_MS_MAX });
  const [{ filename, files }] = JSON.parse(packed.stdout) as [{ filename: string; files: { path: string }[] }];
  const paths = files.map(({ path }) => path).sort();
  const modules = ['errors', 'exchange', 'generated', 'queries', 'scrip', 'test-clock', 'webhooks'].flatMap((name) => [
    `${name}.d.ts`,
    `${name}.js`,
  ]);
  const compiled = ['', 'cjs/'].flatMap((place) => modules.map((name) => `dist/${place}${name}`));
  const expected = ['LICENSE', 'README.md', ...compiled, 'dist/cjs/package.json', 'package.json'];
  assert.deepEqual(paths, expected.sort(), 'the package contains the expected files');
  const installed = join(folder, 'user', 'node_modules', 'scrip-client');
  await mkdir(installed, { recursive: true });
  await promisify(execFile)('tar', ['-xzf', join(folder, filename), '-C', installed, '--strip-components', '1']);
  await writeFile(join(folder, 'user', 'package.json'), '{"type":"module"}');
  return join(folder, 'user');
}
