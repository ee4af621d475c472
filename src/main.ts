#!/usr/bin/env node
// Entry point of the package. Checks the version of Node.js first, since an older version would fail with a misleading
// stack trace at the first import that it cannot resolve.
//
// Compiling the modules takes most of the start-up time, so the compiled code is cached. The cache is in the folder of
// the program, where only users who can change the program can write. In a shared temporary folder, other users could
// plant code that Scrip would run. If the cache cannot be written, Scrip takes 50% longer to start.

import module from 'node:module';
import { join } from 'node:path';

/** The same version as `engines` in package.json. */
const NODE_MIN = [24, 7] as const;

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < NODE_MIN[0] || (major === NODE_MIN[0] && minor < NODE_MIN[1])) {
  process.stderr.write(`Scrip requires Node.js ${NODE_MIN.join('.')} or later; this is ${process.version}.\n`);
  process.exit(1);
}
module.enableCompileCache(join(import.meta.dirname, '..', 'node_modules', '.cache', 'scrip'));
const { runCommandLine } = await import('./cli/program.ts');
await runCommandLine();
