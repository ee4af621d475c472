// The examples of README.md and docs/api.md do what they show: each shell block is run in order against a running Scrip,
// and what comes back is what stands below it, but for what differs from run to run, like times, ids and keys.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { PROBLEMS } from '../../src/http/problem.ts';
import { type Scrip, startScrip } from '../http/running-service.ts';
import { documentOf, errorsOf } from '../openapi/described-service.ts';

const REPOSITORY = join(import.meta.dirname, '../..');
const API = await readFile(join(REPOSITORY, 'docs/api.md'), 'utf8');
const README = await readFile(join(REPOSITORY, 'README.md'), 'utf8');

/** What a test of the documents cannot run, and why. */
const NOT_RUN: ReadonlyMap<string, string> = new Map([
  ['npm ci && npm start', 'it installs; the steps of a fresh clone are run where the whole project is checked'],
  ['password reset', 'it needs somebody who has signed up, and is run in test/console'],
  ['--to postgres://', 'it needs PostgreSQL, and is run in copy.test.ts'],
]);

/** What is not done beside a running server. */
const WHILE_STOPPED = 'scrip -- migrate';

/** Errors that no request brings about by itself, or only after half a minute. */
const NOT_AT_WILL = [
  'RequestTimeout',
  'TooManyRequests',
  'Internal',
  'Overloaded',
  'StoreUnavailable',
  'OutcomeUnknown',
];

interface Example {
  readonly command: string;
  /** What stands below it; empty when nothing does. */
  readonly shown: string;
}

function examplesIn(document: string): readonly Example[] {
  const blocks = document.matchAll(/^```sh\n([\s\S]*?)^```\n(?:```(?:json)?\n([\s\S]*?)^```\n)?/gm);
  return [...blocks].map(([, command = '', shown = '']) => ({ command, shown }));
}

let folder: string;
let scrip: Scrip;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scrip-docs-'));
  await mkdir(join(folder, 'data'));
  // The command line is run where the ledger is `data/scrip.db`, as it is for whoever reads the README.
  const command = `exec '${process.execPath}' '${join(REPOSITORY, 'src/cli.ts')}'`;
  await writeFile(join(folder, 'package.json'), JSON.stringify({ scripts: { scrip: command } }));
  // The programs of the client are run as in a clone.
  for (const name of ['client', 'node_modules']) await symlink(join(REPOSITORY, name), join(folder, name));
  // To standard error, so that standard output is the answer alone.
  await writeFile(join(folder, '.curlrc'), 'silent\nwrite-out = "%{stderr}%{http_code}"\n');
  scrip = await startScrip({ file: join(folder, 'data/scrip.db') });
});
after(async () => {
  await scrip.stop();
  await rm(folder, { recursive: true, force: true });
});

async function run(command: string): Promise<{ stdout: string; stderr: string }> {
  const keys = { SCRIP_URL: scrip.url, SCRIP_KEY: scrip.writeKey, SCRIP_READ_KEY: scrip.readKey };
  const env = { ...process.env, ...keys, CURL_HOME: folder, npm_config_loglevel: 'silent' };
  return promisify(execFile)('bash', ['-euo', 'pipefail', '-c', command], { cwd: folder, env, timeout: 30_000 });
}

const VOLATILE: readonly (readonly [pattern: RegExp, mask: string])[] = [
  [/scrip_(write|read)_[0-9A-Za-z_]+/g, '<key>'],
  [/\d{4}-\d\d-\d\dT[\d:.]+/g, '<instant>'],
  [/("transaction_id":")[^"]+/g, '$1<id>'],
  [/("request_id":")[^"]+/g, '$1<id>'],
  [/("next_cursor":")[^"]+/g, '$1<cursor>'],
];

function masked(text: string): string {
  return VOLATILE.reduce((rest, [pattern, mask]) => rest.replaceAll(pattern, mask), text);
}

/** JSON without its layout, and with its members in the order in which they stand. */
function answer(text: string): string {
  return masked(JSON.stringify(JSON.parse(text)));
}

async function assertDoesAsShown({ command, shown }: Example): Promise<void> {
  const { stdout, stderr } = await run(command);
  if (!command.includes('curl')) {
    // Programs say what they said; the columns of a table are as wide as what is in them.
    if (command.includes('client/examples/')) return assert.equal(stdout, shown, command);
    const firstLine = (text: string) => masked(text).split('\n')[0]?.replaceAll(/ +/g, ' ');
    if (shown !== '') assert.equal(firstLine(stdout), firstLine(shown), command);
    return;
  }
  assert.equal(answer(stdout), answer(shown), command);
  const { status } = JSON.parse(shown) as { status: unknown };
  assert.equal(stderr.slice(-3), typeof status === 'number' ? String(status) : '200', `the status of ${command}`);
}

describe('the examples', () => {
  test('those of docs/api.md answer what it shows', async () => {
    const examples = examplesIn(API);
    assert(examples.length >= 23, `${examples.length} examples`);
    for (const example of examples) await assertDoesAsShown(example);
  });

  test('those of README.md answer what it shows', async () => {
    await scrip.stop();
    await rm(join(folder, 'data'), { recursive: true });
    await mkdir(join(folder, 'data'));
    scrip = await startScrip({ file: join(folder, 'data/scrip.db') });
    const examples = examplesIn(README);
    const passedOver = new Set<string>();
    for (const example of examples) {
      const reason = [...NOT_RUN.keys()].find((part) => example.command.includes(part));
      if (reason !== undefined) passedOver.add(reason);
      else {
        if (example.command.includes(WHILE_STOPPED)) await scrip.stop();
        await assertDoesAsShown(example);
      }
    }
    assert(examples.length - passedOver.size >= 11, 'most are run');
    assert.deepEqual([...passedOver], [...NOT_RUN.keys()], 'what is passed over is in the README, in this order');
  });
});

test('docs/api.md has each error, with its status and with an answer of its shape', async () => {
  const described = await startScrip();
  const examples = errorsOf(await documentOf(described));
  await described.stop();
  for (const [error, { status, title }] of Object.entries(PROBLEMS)) {
    const [section = ''] = API.split(`\n### ${error}\n`)[1]?.split('\n### ') ?? [];
    assert(section.startsWith(`\nStatus ${status}. `), `${error} has a section that begins with its status`);
    const [, shown = ''] = /```json\n([\s\S]*?)```/.exec(section) ?? assert.fail(`${error} is shown`);
    const problem = JSON.parse(shown) as Record<string, unknown>;
    assert.deepEqual([problem.error, problem.status, problem.title], [error, status, title]);
    assert.equal(section.includes('```sh'), !NOT_AT_WILL.includes(error), `${error} is shown by a request`);
    const example = examples.get(error) as Record<string, unknown> | undefined;
    if (example)
      assert.deepEqual(Object.keys(problem), Object.keys(example), `${error} has the members it is described with`);
    if (NOT_AT_WILL.includes(error)) assert.deepEqual(problem, example, `${error} is what the OpenAPI document shows`);
  }
});
