// Compiles the TypeScript files of src to dist for the npm package, because Node.js does not strip types from files in
// node_modules. Copies the other files of src unchanged.

import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const source = join(root, 'src');
const target = join(root, 'dist');
const EXECUTABLE = 0o755;

rmSync(target, { recursive: true, force: true });
const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
const { status } = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json')], { stdio: 'inherit' });
if (status !== 0) process.exit(status ?? 1);
cpSync(source, target, { recursive: true, filter: (path) => !path.endsWith('.ts') });
chmodSync(join(target, 'main.js'), EXECUTABLE);
