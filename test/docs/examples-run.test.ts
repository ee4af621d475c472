// Runs the API examples of the documents, in order, against a running server. Each example must print the output in the
// document; times, IDs and keys may differ.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { AMOUNT_NEGATIVE, errorCodeOf, PROBLEMS, type ProblemCode } from '../../src/http/problems.ts';
import { type Scrip, startScrip } from '../http/running-service.ts';
import { type Example, examplesIn, masked, REPOSITORY, textOf } from './documents.ts';

/** This command installs packages and starts a server on a fixed port. */
const NOT_RUN = 'npm ci && npm start\n';

const IDS: readonly (readonly [pattern: RegExp, mask: string])[] = [
  [/("(?:transaction_id|hold_id|cycle_id|reference)":")[^"]+/g, '$1<id>'],
  [/("request_id":")[^"]+/g, '$1<id>'],
  [/("next_cursor":")[^"]+/g, '$1<cursor>'],
  [/"evt_[0-9a-f]{32}"/g, '"<event>"'],
];

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scrip-docs-'));
  // Some examples run programs in the `client` folder.
  for (const name of ['client', 'node_modules']) await symlink(join(REPOSITORY, name), join(folder, name));
  await writeFile(join(folder, '.curlrc'), 'silent\nwrite-out = "%{stderr}%{http_code}"\n');
});
after(() => rm(folder, { recursive: true, force: true }));

function normalized(text: string): string {
  return masked(JSON.stringify(JSON.parse(text)), IDS);
}

async function assertRunsAsShown({ command, shown, document }: Example, scrip: Scrip): Promise<void> {
  const keys = { SCRIP_URL: scrip.url, SCRIP_KEY: scrip.writeKey };
  const env = { ...process.env, ...keys, CURL_HOME: folder, npm_config_loglevel: 'silent' };
  const options = { cwd: folder, env, timeout: 30_000 };
  const run = () => promisify(execFile)('bash', ['-euo', 'pipefail', '-c', command], options);
  let { stdout, stderr } = await run();
  // Events appear shortly after the requests that cause them.
  for (
    let tries = 40;
    tries > 0 && command.includes('/get-events') && normalized(stdout) !== normalized(shown);
    tries--
  ) {
    await sleep(250);
    ({ stdout, stderr } = await run());
  }
  if (!command.includes('curl')) return assert.equal(stdout, shown, `${document}: ${command}`);
  assert.equal(normalized(stdout), normalized(shown), `${document}: ${command}`);
  const { status } = JSON.parse(shown) as { status: unknown };
  assert.equal(
    stderr.slice(-3),
    typeof status === 'number' ? String(status) : '200',
    `${command} returned the wrong status`,
  );
}

for (const [document, leastCount] of [
  ['README.md', 6],
  ['docs/api.md', 16],
  ['docs/recipes.md', 1],
  ['docs/other-languages.md', 1],
] as const) {
  test(`the examples in ${document} return the responses that the document shows`, async () => {
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

test('docs/api.md lists exactly the errors that Scrip defines, with their statuses', () => {
  const rows = textOf('docs/api.md').matchAll(/^\| `(\w+)` +\| (\d{3}) \|/gm);
  const listed = [...rows].map(([, error, status]) => [error, Number(status)]);
  const defined = Object.entries(PROBLEMS).map(([error, { status }]) => [error, status]);
  assert.deepEqual(listed.toSorted(), defined.toSorted());
});

test('docs/api.md lists every error_code that is not simply the name of the error in upper snake case', () => {
  const capitals = (error: string) => error.replaceAll(/\B[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
  const differing = Object.keys(PROBLEMS).filter((error) => errorCodeOf(error as ProblemCode) !== capitals(error));
  assert(differing.length > 0);
  const text = textOf('docs/api.md').replaceAll(/\s+/g, ' ');
  for (const error of differing)
    assert(text.includes(`\`${errorCodeOf(error as ProblemCode)}\` for \`${error}\``), error);
  assert(text.includes(`\`${AMOUNT_NEGATIVE}\` for an \`InvalidField\``));
});
