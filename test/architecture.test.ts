// The house: which floor each folder is on, that imports only go down, and that nothing has a name that says nothing.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '..');
const SOURCE = join(ROOT, 'src');
const WRITTEN_BY_HAND = ['src', 'test', 'bench', 'packaging', 'client/src', 'client/examples'].map(
  (folder) => `${folder}/**/*.ts`,
);
const IS_GENERATED = /(?:^|\/)generated\.ts$/;
const LINES_MAX = 400;

/** A file may import from its own folder, from those within it, and from lower floors. The first row that fits a path counts. */
const FLOORS: readonly (readonly [path: RegExp, floor: number])[] = [
  [/^ledger\//, 0],
  [/^accounts\//, 0],
  [/^store\/[^/]+\.ts$/, 1],
  [/^store\//, 2],
  [/^tracing\//, 1],
  [/^batching\//, 2],
  [/^http\//, 3],
  [/^console\/(figures|layout|ghtml\.d)\.ts$/, 1],
  [/^console\/assets\//, 1],
  [/^console\/charts\//, 2],
  [/^console\/pages\//, 3],
  [/^console\//, 4],
  [/^config\.ts$/, 4],
  [/^app\.ts$/, 5],
  [/^processes\.ts$/, 5],
  [/^(progress-line|output)\.ts$/, 5],
  [/^safekeeping-commands\.ts$/, 6],
  [/^proof-commands\.ts$/, 6],
  [/^cli\.ts$/, 7],
  [/^main\.ts$/, 8],
];

/** What the rules may not reach: no I/O, no clock, no randomness, nothing asynchronous. */
const IMPURE =
  /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bperformance\.|\bsetTimeout\b|\bsetInterval\b|\bawait\b|\basync\b|\bprocess\./;
const PURE_MODULES = new Set(['node:assert/strict', 'node:crypto', 'node:zlib']);

const VAGUE = /^(utils?|helpers?|common|manager|service|core|lib|misc|shared|index)$|\d$/;

interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly imports: readonly string[];
}

const files: SourceFile[] = globSync('**/*.ts', { cwd: SOURCE })
  .filter((path) => !path.endsWith('.test.ts'))
  .map((path) => {
    const text = readFileSync(join(SOURCE, path), 'utf8');
    const imports = [...text.matchAll(/(?:from|import\(|new URL\()\s*'([^']+)'/g)].map(
      ([, specifier]) => specifier as string,
    );
    return { path, text, imports };
  });

/** The files of this project that a file imports, types included. */
function importedBy({ path, imports }: SourceFile): string[] {
  return imports
    .filter((name) => name.startsWith('.'))
    .map((name) => relative(SOURCE, join(SOURCE, dirname(path), name)));
}

function floorOf(path: string): number {
  const row = FLOORS.find(([pattern]) => pattern.test(path));
  assert(row, `${path} is on no floor: give its folder a row in FLOORS`);
  return row[1];
}

test('imports go to the same folder or to a lower floor', () => {
  for (const file of files) {
    for (const imported of importedBy(file)) {
      const folder = dirname(file.path);
      const isWithin = folder !== '.' && imported.startsWith(`${folder}/`);
      assert(isWithin || floorOf(imported) < floorOf(file.path), `${file.path} imports ${imported}`);
    }
  }
});

test('no file imports itself by way of others, types included', () => {
  const graph = new Map(files.map((file) => [file.path, importedBy(file)]));
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): void => {
    assert(!trail.includes(path), `a cycle: ${[...trail, path].join(' → ')}`);
    if (done.has(path)) return;
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
});

test('the rules reach no clock, no randomness, no I/O and nothing asynchronous', () => {
  for (const { path, text, imports } of files.filter(({ path }) => floorOf(path) === 0)) {
    const code = text.replaceAll(/\/\/.*|\/\*[\s\S]*?\*\//g, '');
    assert.doesNotMatch(code, IMPURE, `${path} is not pure`);
    const foreign = imports.filter((name) => !name.startsWith('.') && !PURE_MODULES.has(name));
    assert.deepEqual(foreign, [], `${path} imports what is not pure`);
  }
});

test('only app.ts names a real store', () => {
  for (const file of files.filter(({ path }) => !path.startsWith('store/') && path !== 'app.ts')) {
    assert.deepEqual(
      importedBy(file).filter((path) => /^store\/.+\//.test(path)),
      [],
      `${file.path} names a store`,
    );
  }
});

test('names say what is there', () => {
  for (const { path } of files) {
    for (const part of path.replace(/\.ts$/, '').split('/'))
      assert.doesNotMatch(part, VAGUE, `${path} has a name that says nothing`);
  }
});

test('files begin with a comment that says their job, and stay within a length that can be read, tests as well', () => {
  const paths = globSync(WRITTEN_BY_HAND, { cwd: ROOT }).filter((path) => !IS_GENERATED.test(path));
  assert(paths.length > files.length, 'the tests are among them');
  for (const path of paths) {
    const text = readFileSync(join(ROOT, path), 'utf8');
    assert.match(text.replace(/^#!.*\n/, ''), /^\/\/ /, `${path} does not say what it is for`);
    assert(text.trimEnd().split('\n').length <= LINES_MAX, `${path} has more than ${LINES_MAX} lines`);
  }
});
