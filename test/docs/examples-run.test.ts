// The examples of README.md, docs/api.md and docs/recipes.md give the responses that the documents show: each shell block is
// run in order against a running Scrip, and the output is compared except for times, ids and keys.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { PROBLEMS } from '../../src/http/problems.ts';
import { type Scrip, startScrip } from '../http/running-service.ts';
import { type Example, examplesIn, masked, REPOSITORY, textOf } from './documents.ts';

/** A command that the tests cannot run: it installs, and then serves on the port of the example. */
const NOT_RUN = 'npm ci && npm start\n';

const IDS: readonly (readonly [pattern: RegExp, mask: string])[] = [
  [/("transaction_id":")[^"]+/g, '$1<id>'],
  [/("request_id":")[^"]+/g, '$1<id>'],
  [/("next_cursor":")[^"]+/g, '$1<cursor>'],
];

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scrip-docs-'));
  // The programs of the client are run as in a clone.
  for (const name of ['client', 'node_modules']) await symlink(join(REPOSITORY, name), join(folder, name));
  // To standard error, so that standard output is the response alone.
  await writeFile(join(folder, '.curlrc'), 'silent\nwrite-out = "%{stderr}%{http_code}"\n');
});
after(() => rm(folder, { recursive: true, force: true }));

/** Normalized JSON: without layout, members in their order. */
function normalized(text: string): string {
  return masked(JSON.stringify(JSON.parse(text)), IDS);
}

async function assertRunsAsShown({ command, shown, document }: Example, scrip: Scrip): Promise<void> {
  const keys = { SCRIP_URL: scrip.url, SCRIP_KEY: scrip.writeKey };
  const env = { ...process.env, ...keys, CURL_HOME: folder, npm_config_loglevel: 'silent' };
  const options = { cwd: folder, env, timeout: 30_000 };
  const { stdout, stderr } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', command], options);
  if (!command.includes('curl')) return assert.equal(stdout, shown, `${document}: ${command}`);
  assert.equal(normalized(stdout), normalized(shown), `${document}: ${command}`);
  const { status } = JSON.parse(shown) as { status: unknown };
  assert.equal(stderr.slice(-3), typeof status === 'number' ? String(status) : '200', `the status of ${command}`);
}

for (const [document, leastCount] of [
  ['README.md', 6],
  ['docs/api.md', 16],
  ['docs/recipes.md', 1],
] as const) {
  test(`the examples of ${document} give the responses that it shows`, async () => {
    const scrip = await startScrip();
    try {
      const examples = examplesIn(document).filter(({ command }) => command !== NOT_RUN);
      assert(examples.length >= leastCount, `${examples.length} examples`);
      for (const example of examples) await assertRunsAsShown(example, scrip);
    } finally {
      await scrip.stop();
    }
  });
}

test('docs/api.md lists every error with its status, and no other', () => {
  const rows = textOf('docs/api.md').matchAll(/^\| `(\w+)` +\| (\d{3}) \|/gm);
  const listed = [...rows].map(([, error, status]) => [error, Number(status)]);
  const defined = Object.entries(PROBLEMS).map(([error, { status }]) => [error, status]);
  assert.deepEqual(listed.toSorted(), defined.toSorted());
});
