// Tests the TypeScript blocks in the documents: each block under docs is a complete program that must print the output
// below the block.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { startScrip } from '../http/running-service.ts';
import { documents, REPOSITORY, textOf } from './documents.ts';

interface Block {
  readonly document: string;
  readonly code: string;
  readonly shown: string;
}

function blocksIn(document: string): Block[] {
  const blocks = textOf(document).matchAll(/^```ts\n([\s\S]*?)^```\n(?:```\n([\s\S]*?)^```\n)?/gm);
  return [...blocks].map(([, code = '', shown = '']) => ({ document, code, shown }));
}

test('each TypeScript block in the README is part of an example program of the client', () => {
  const examples = globSync('client/examples/*.ts', { cwd: REPOSITORY }).map(textOf);
  const blocks = blocksIn('README.md');
  assert(blocks.length >= 3, `${blocks.length} blocks`);
  for (const { code } of blocks)
    assert(
      examples.some((example) => example.includes(code)),
      code,
    );
});

test('each TypeScript block in the documentation prints the output shown below it', async () => {
  const blocks = documents()
    .filter((path) => path.startsWith('docs/'))
    .flatMap(blocksIn);
  assert(blocks.length >= 3, `${blocks.length} blocks`);
  const folder = await mkdtemp(join(tmpdir(), 'scrip-code-'));
  const real = await startScrip();
  const forTests = await startScrip({ testClock: true });
  try {
    await mkdir(join(folder, 'node_modules'));
    await symlink(join(REPOSITORY, 'client'), join(folder, 'node_modules/scrip-client'));
    for (const [index, { document, code, shown }] of blocks.entries()) {
      const file = join(folder, `block-${index}.mts`);
      await writeFile(file, code);
      const scrip = code.includes('testClock') ? forTests : real;
      const env = { ...process.env, SCRIP_URL: scrip.url, SCRIP_KEY: scrip.writeKey };
      const { stdout } = await promisify(execFile)(process.execPath, ['--conditions=scrip-source', file], { env });
      assert.equal(stdout, shown, document);
    }
  } finally {
    await real.stop();
    await forTests.stop();
    await rm(folder, { recursive: true, force: true });
  }
});
