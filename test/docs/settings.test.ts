// Tests that the documentation has one row for each environment variable that Scrip reads. `scrip --help` must name the
// same variables, except those for tracing.

import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { test } from 'node:test';
import { SETTING_NAMES } from '../../src/config.ts';
import { scrip } from '../cli/scrip-command.ts';
import { REPOSITORY, textOf } from './documents.ts';

const TABLES = ['docs/settings.md', 'docs/operating/monitoring.md'];

const settings = [
  ...new Set([...textOf('src/config.ts').matchAll(/\benvironment\.([A-Z_]+)/g)].map(([, name]) => name)),
];
const isOfTracing = (name: string | undefined) => name?.startsWith('OTEL_');

test('each setting that Scrip reads has exactly one row in the tables of settings', () => {
  assert(settings.length > 25, `${settings.length} settings`);
  const rows = TABLES.flatMap((path) => textOf(path).split('\n')).filter((line) => /^\| `[A-Z]/.test(line));
  const named = rows.flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name));
  assert.deepEqual(named.toSorted(), settings.toSorted());
});

test('the list with which Scrip detects misspelled settings contains the name of every setting', () => {
  assert.deepEqual(SETTING_NAMES.toSorted(), settings.toSorted());
});

test('no source file reads an environment variable directly from process.env', () => {
  const readers = globSync('src/**/*.ts', { cwd: REPOSITORY }).filter((path) => /process\.env\.\w/.test(textOf(path)));
  assert.deepEqual(readers, []);
});

test('scrip --help names each setting except the tracing settings', async () => {
  const { stdout } = await scrip(['--help']);
  const missing = settings.filter((name) => !isOfTracing(name) && !stdout.includes(name as string));
  assert.deepEqual(missing, []);
});
