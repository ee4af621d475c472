// Runs all tests: `npm test`, or some of them: `npm test -- FILE...`. Those that take longest begin first, so that no core
// stands idle at the end, and the files share a folder for what is the same for all of them.

import assert from 'node:assert/strict';
import { chmodSync, existsSync, globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { pathToFileURL } from 'node:url';
import { RUN_FOLDER_VARIABLE } from './run-folder.ts';

const ROOT = join(import.meta.dirname, '..');
const TESTS = ['src/**/*.test.ts', 'test/**/*.test.ts'];
/** One more than the cores of a small machine: most files wait now and then. */
const FILES_AT_ONCE = 3;
/** For a test or a group of them that says nothing else; the longest takes 74 s. */
const TEST_MS_MAX = 240_000;
/** How many files are named at the end, with their time. */
const LONGEST = 20;

/** The longest first; those that mostly wait among those that mostly compute. */
const FIRST: readonly string[] = [
  'test/crash/kill.test.ts',
  'test/postgres/postgres.contract.test.ts',
  'test/crash/full-disk.test.ts',
  'test/postgres/citus.test.ts',
  'test/postgres/standby-away.test.ts',
  'test/model/model.test.ts',
  'test/copy.test.ts',
  'test/browser/console.test.ts',
  'test/postgres/half-open.test.ts',
  'test/overload/overload.test.ts',
  'test/races/races.test.ts',
  'test/postgres/pooler.test.ts',
  'test/same-key.test.ts',
  'test/backup.test.ts',
  'test/postgres/audit.test.ts',
  'test/simulation/simulation.test.ts',
  'test/console/look.test.ts',
  'test/interrupted-copy.test.ts',
  'test/http/transaction-stream.test.ts',
  'test/postgres/network.test.ts',
  'test/package.test.ts',
  'test/console/sign-up.test.ts',
  'test/console/sign-in.test.ts',
  'test/postgres/failover.test.ts',
  'test/cli.test.ts',
  'test/export.test.ts',
  'test/fuzz/fuzz.test.ts',
];

function filesInOrder(): string[] {
  const all = globSync(TESTS, { cwd: ROOT }).sort();
  for (const path of FIRST) assert(all.includes(path), `${path} is to begin early, and is not there`);
  return [...FIRST, ...all.filter((path) => !FIRST.includes(path))];
}

const chosen = process.argv.slice(2);
for (const path of chosen) assert(existsSync(path), `${path} is not there`);
const files = chosen.length > 0 ? chosen : filesInOrder();

const folder = mkdtempSync(join(tmpdir(), 'scrip-tests-'));
// PostgreSQL may run as somebody else.
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
  process.stdout.write(`ℹ longest: ${longest.map(([path, seconds]) => `${path} ${seconds} s`).join(', ')}\n`);
});
