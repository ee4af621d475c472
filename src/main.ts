#!/usr/bin/env node
// Entry point of the package. On a version of Node.js that is too old, Scrip would fail with a misleading stack trace,
// so this file checks the version before it imports the rest of Scrip.
//
// Compiled code is cached in the package's folder, not in a shared temporary folder, where other users could plant code
// that Scrip would run. Without the cache, Scrip takes 50% longer to start.

import module from 'node:module';
import { join } from 'node:path';

/** The same version as `engines` in package.json. */
const NODE_MIN = [24, 7] as const;

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < NODE_MIN[0] || (major === NODE_MIN[0] && minor < NODE_MIN[1])) {
  process.stderr.write(
    `Scrip requires Node.js ${NODE_MIN.join('.')} or later, but this is Node.js ${process.version}.\n`,
  );
  process.exit(1);
}
// If Scrip is process 1 of a container, Linux ignores a signal that has no handler. Commands such as `serve` add their
// own handlers later.
if (process.pid === 1) {
  for (const [signal, code] of [['SIGINT', 130] as const, ['SIGTERM', 143] as const])
    process.on(signal, () => process.listenerCount(signal) === 1 && process.exit(code));
}
module.enableCompileCache(join(import.meta.dirname, '..', 'node_modules', '.cache', 'scrip'));
const { runCommandLine } = await import('./cli/program.ts');
await runCommandLine();
