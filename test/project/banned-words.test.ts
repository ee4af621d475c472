// Tests the check for banned words, `npm run lint:words`.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { bannedWordsIn, EXCEPTIONS } from '../../lint/banned-words.ts';
import { temporaryFolder } from '../store/temporary-ledger.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const SCRIPT = join(ROOT, 'lint', 'banned-words.ts');

const FOUND: readonly (readonly [text: string, lines: readonly number[]])[] = [
  ['// Whoever reads it\n', [1]],
  ['const a = 1;\nclass NobodyReads {}\n', [2]],
  ["throw new Error('somebody else has it');", [1]],
  ['the end users whose turn it is', [1]],
  ['// the end users whose\n// turn it is', [1]],
  ['/**\n * The client is\n * told of it.\n */', [2]],
  ['It is computed anew.', [1]],
  ['What befell a write. What befalls it.', [1, 1]],
  ['It lets go of the lock.\n\nWhat waits is bounded; who waits is answered.\n', [1, 3, 3]],
  ['A slip,\nlandmarks and unposted balances.', [1, 2, 2]],
];

for (const [text, lines] of FOUND) {
  test(`the check for banned words finds ${JSON.stringify(text)}`, () =>
    assert.deepEqual(
      bannedWordsIn('docs/a.md', text).map(({ line }) => line),
      lines,
    ));
}

for (const text of ['manewer', 'this told', 'outlets gone', 'what the queue waits for', 'whose\n\nturn()']) {
  test(`the check for banned words accepts ${JSON.stringify(text)}`, () =>
    assert.deepEqual(bannedWordsIn('docs/a.md', text), []));
}

test('each exception to the banned words has a reason and is still needed', () => {
  for (const { path, contains, reason } of EXCEPTIONS) {
    assert(reason.length > 0, path);
    assert(existsSync(join(ROOT, path)), `${path} exists`);
    const text = readFileSync(join(ROOT, path), 'utf8');
    assert(contains === undefined || text.includes(contains), `${path} contains ${contains}`);
    assert(bannedWordsIn('elsewhere.ts', contains ?? text).length > 0, `${path} does not need the exception`);
  }
});

test('the check for banned words prints the file, the line and a hint for each finding in tracked files, and exits with code 1', () => {
  const cwd = temporaryFolder();
  const check = (...args: string[]) => spawnSync(process.execPath, [SCRIPT, ...args], { cwd, encoding: 'utf8' });
  execFileSync('git', ['init', '--quiet'], { cwd });
  writeFileSync(join(cwd, 'good.md'), 'Any client can read it.\n');
  writeFileSync(join(cwd, 'bad.md'), 'It is computed\nanew.\n');
  writeFileSync(join(cwd, 'untracked.md'), 'anew\n');
  writeFileSync(join(cwd, 'package-lock.json'), '{"anew": 1}\n');
  execFileSync('git', ['add', 'good.md', 'bad.md', 'package-lock.json'], { cwd });
  const { status, stdout, stderr } = check();
  assert.deepEqual([status, stderr], [1, '']);
  assert.match(stdout, /^bad\.md:2: "anew": .+\n1 banned words found; .+\n$/);
  assert.deepEqual([check('good.md').status, check('good.md').stdout], [0, '']);
});

test('the check for banned words reads code, documents, configuration files, Dockerfiles and scripts of the CI, but no other files', () => {
  const cwd = temporaryFolder();
  const checked = ['.ci/run', 'Dockerfile', 'a.css', 'a.js', 'a.json', 'a.md', 'a.service', 'a.ts', 'a.yaml', 'a.yml'];
  execFileSync('git', ['init', '--quiet'], { cwd });
  mkdirSync(join(cwd, '.ci'));
  for (const name of [...checked, 'a.svg', 'a.txt']) writeFileSync(join(cwd, name), 'anew\n');
  execFileSync('git', ['add', '.'], { cwd });
  const { stdout } = spawnSync(process.execPath, [SCRIPT], { cwd, encoding: 'utf8' });
  assert.deepEqual(
    [...stdout.matchAll(/^(.+):1: "anew"/gm)].map(([, name]) => name),
    checked,
  );
});
