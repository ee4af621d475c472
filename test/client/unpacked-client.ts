// The client as its users get it: compiled, packed as npm packs it, and unpacked in an empty folder, where a program
// finds it by its name.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CLIENT, runNode, TSC } from './client-package.ts';

/**
 * As npm does it, but for the registry: a copy of the package without its dist, which is built anew.
 *
 * @param folder an empty one
 * @returns the folder in which a program says `import '@scrip/client'`
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
  assert.deepEqual(paths, ['README.md', ...modules, 'package.json'].sort(), 'what is in the package, and nothing else');
  const place = join(folder, 'user', 'node_modules', '@scrip');
  await mkdir(place, { recursive: true });
  await promisify(execFile)('tar', ['-xzf', join(folder, filename), '-C', place]);
  await cp(join(place, 'package'), join(place, 'client'), { recursive: true });
  await writeFile(join(folder, 'user', 'package.json'), '{"type":"module"}');
  return join(folder, 'user');
}
