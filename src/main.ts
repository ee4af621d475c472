#!/usr/bin/env node
// What the package starts: the command line, where Node is new enough for it. An older one would fail at the first module
// that it does not know, with a stack that says nothing of why.
//
// Most of a start is the compiling of some hundred modules. What comes of it is kept beside the program, where only those
// can write who could change the program itself; anywhere else, as in a temporary folder that others share, it would be a
// way to make Scrip run their code. Where that place cannot be written to, a start takes half as long again.

import module from 'node:module';
import { join } from 'node:path';

/** As `engines` in package.json says. */
const NODE_MIN = [24, 7] as const;

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < NODE_MIN[0] || (major === NODE_MIN[0] && minor < NODE_MIN[1])) {
  process.stderr.write(`Scrip needs Node ${NODE_MIN.join('.')} or later; this is ${process.version}.\n`);
  process.exit(1);
}
module.enableCompileCache(join(import.meta.dirname, '..', 'node_modules', '.cache', 'scrip'));
await import('./cli.ts');
