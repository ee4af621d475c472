// Every setting that Scrip reads has one row in one table, and every row is a setting that it reads; the help of the
// command line names them too.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { scrip } from '../store/scrip-command.ts';

const REPOSITORY = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(REPOSITORY, path), 'utf8');

/** The tables of settings: those of tracing have one of their own. */
const TABLES = ['README.md', 'docs/operating/monitoring.md'];

const settings = [...new Set([...read('src/config.ts').matchAll(/\benvironment\.([A-Z_]+)/g)].map(([, name]) => name))];
const isOfTracing = (name: string | undefined) => name?.startsWith('OTEL_');

test('each setting has one row', () => {
  assert(settings.length > 25, `${settings.length} settings`);
  const rows = TABLES.flatMap((path) => read(path).split('\n')).filter((line) => /^\| `[A-Z]/.test(line));
  const named = rows.flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name));
  assert.deepEqual(named.toSorted(), settings.toSorted());
});

test('nothing but the configuration reads the environment', () => {
  const readers = globSync('src/**/*.ts', { cwd: REPOSITORY }).filter((path) => /process\.env\.\w/.test(read(path)));
  assert.deepEqual(readers, []);
});

test('the help of the command line names those that are not of tracing', async () => {
  const { stdout } = await scrip(['--help']);
  const missing = settings.filter((name) => !isOfTracing(name) && !stdout.includes(name as string));
  assert.deepEqual(missing, []);
});
