// Compiles src to dist as ES modules for `import`, and to dist/cjs as CommonJS for `require`. Then replaces `.ts` with
// `.js` in the imports of the type declarations, since only recent compilers resolve `./errors.ts`.

import { spawnSync } from 'node:child_process';
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const HERE = import.meta.dirname;
const DIST = join(HERE, 'dist');
const COMPILER = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc');

rmSync(DIST, { recursive: true, force: true });
for (const config of ['tsconfig.json', 'tsconfig.cjs.json']) {
  const { status } = spawnSync(process.execPath, [COMPILER, '-p', join(HERE, config)], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
writeFileSync(join(DIST, 'cjs/package.json'), '{ "type": "commonjs" }\n');
for (const path of globSync('**/*.d.ts', { cwd: DIST })) {
  const text = readFileSync(join(DIST, path), 'utf8');
  writeFileSync(join(DIST, path), text.replaceAll(/'(\.\/[\w-]+)\.ts'/g, "'$1.js'"));
}
