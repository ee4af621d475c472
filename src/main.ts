#!/usr/bin/env node
// What the package starts: the command line, where Node is new enough for it. An older one would fail at the first module
// that it does not know, with a stack that says nothing of why.

/** As `engines` in package.json says. */
const NODE_MIN = [24, 7] as const;

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < NODE_MIN[0] || (major === NODE_MIN[0] && minor < NODE_MIN[1])) {
  process.stderr.write(`Scrip needs Node ${NODE_MIN.join('.')} or later; this is ${process.version}.\n`);
  process.exit(1);
}
await import('./cli.ts');
