// Installs the client into an empty folder as npm does from the registry: compiled, packed and unpacked, so that a program
// there can import it by name.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CLIENT, runNode, TSC } from './client-package.ts';

/**
 * @param folder an empty folder
 * @returns the folder in which a program can import '@scrip/client'
 */
export async function unpackClient(folder: string): Promise<string> {
  const source = join(folder, 'source');
  await cp(CLIENT, source, { recursive: true, filter: (path) => !path.endsWith('/dist') });
  await runNode(source, TSC, '-p', '.');
  const packed = await promisify(execFile)(
    'npm',
    ['pack', '--ignore-scripts', '--json', '--pack-destination', folder],
    {
      cwd: source,
      env: { ...process.env, npm_config_offline: 'true', npm_config_loglevel: 'silent' },
      timeout: 60_000,
    },
  );
  const [{ filename, files }] = JSON.parse(packed.stdout) as [{ filename: string; files: { path: string }[] }];
  const paths = files.map(({ path }) => path).sort();
  const modules = ['errors', 'exchange', 'generated', 'scrip'].flatMap((name) => [
    `dist/${name}.d.ts`,
    `dist/${name}.js`,
  ]);
  assert.deepEqual(paths, ['README.md', ...modules, 'package.json'].sort(), 'the files of the package');
  const scopeFolder = join(folder, 'user', 'node_modules', '@scrip');
  await mkdir(scopeFolder, { recursive: true });
  await promisify(execFile)('tar', ['-xzf', join(folder, filename), '-C', scopeFolder]);
  await cp(join(scopeFolder, 'package'), join(scopeFolder, 'client'), { recursive: true });
  await writeFile(join(folder, 'user', 'package.json'), '{"type":"module"}');
  return join(folder, 'user');
}
