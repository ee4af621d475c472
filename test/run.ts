// Runs all tests (`npm test`). The slowest files start first, so that no core is idle at the end. `npm test -- FILE...`
// runs only the given files.

import assert from 'node:assert/strict';
import { chmodSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { pathToFileURL } from 'node:url';
import { RUN_FOLDER_VARIABLE } from './run-folder.ts';

const ROOT = join(import.meta.dirname, '..');
const TESTS = ['test/**/*.test.ts', 'src/**/*.test.ts'];
const SECONDS_FILE = join(ROOT, 'node_modules/.cache/scrip/test-seconds.json');
/**
 * The number of test files that run at once: one for each of the two cores of a small machine, and one more, because a
 * test file sometimes waits without using a core.
 */
const FILES_AT_ONCE = 3;
/** The timeout of tests and suites that do not set their own. The slowest of these takes 74 s. */
const TEST_MS_MAX = 240_000;
const LONGEST = 20;

const lastSeconds = new Map<string, number>(
  existsSync(SECONDS_FILE) ? Object.entries(JSON.parse(readFileSync(SECONDS_FILE, 'utf8'))) : [],
);

function filesInOrder(): string[] {
  const all = TESTS.flatMap((pattern) => globSync(pattern, { cwd: ROOT }).sort());
  // A file without a recorded time starts first, because it may be slow.
  const seconds = (path: string) => lastSeconds.get(path) ?? Number.POSITIVE_INFINITY;
  return all.sort((a, b) => (seconds(a) === seconds(b) ? 0 : seconds(b) - seconds(a)));
}

const chosen = process.argv.slice(2);
for (const path of chosen) assert(existsSync(path), `${path} does not exist`);
const files = chosen.length > 0 ? chosen : filesInOrder();

const folder = mkdtempSync(join(tmpdir(), 'scrip-tests-'));
// PostgreSQL may run as another user and needs access to the folder.
chmodSync(folder, 0o755);
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const interruption = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interruption.abort());
process.env[RUN_FOLDER_VARIABLE] = folder;
process.env.NODE_COMPILE_CACHE ??= join(folder, 'compiled');

const took: [path: string, seconds: number][] = [];
process.exitCode = 1;
const limits = {
  concurrency: FILES_AT_ONCE,
  timeout: TEST_MS_MAX,
  execArgv: ['--import', pathToFileURL(join(import.meta.dirname, 'file-deadline.ts')).href],
};
run({ cwd: ROOT, files, ...limits, signal: interruption.signal })
  .on('test:summary', ({ file, success, duration_ms: ms }) => {
    if (file !== undefined) took.push([relative(ROOT, file), Math.round(ms / 1_000)]);
    else if (success) process.exitCode = 0;
  })
  .compose(new spec())
  .pipe(process.stdout);

process.once('exit', () => {
  const longest = took.sort(([, a], [, b]) => b - a).slice(0, LONGEST);
  process.stdout.write(`ℹ slowest files: ${longest.map(([path, seconds]) => `${path} ${seconds} s`).join(', ')}\n`);
  mkdirSync(dirname(SECONDS_FILE), { recursive: true });
  writeFileSync(SECONDS_FILE, JSON.stringify(Object.fromEntries([...lastSeconds, ...took])));
});
