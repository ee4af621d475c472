// Tests the structure of the source code: layers, imports and file names.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '..', '..');
const SOURCE = join(ROOT, 'src');
const WRITTEN_BY_HAND = ['src', 'test', 'bench', 'lint', 'packaging', 'client/src', 'client/examples'].map(
  (folder) => `${folder}/**/*.ts`,
);
const IS_GENERATED = /(?:^|\/)generated\.ts$/;
const LINES_MAX = 400;

/** The layers, from lowest to highest. A path belongs to the first layer whose pattern matches. */
const LAYERS: readonly RegExp[] = [
  /^(ledger|accounts)\//,
  /^(store\/[^/]+\.ts$|tracing\/|console\/(assets\/|(figures|layout|ghtml\.d)\.ts$))/,
  /^store\/tools\//,
  /^(store\/(sqlite\/file|postgres\/pool)\/|batching\/|console\/(charts|identity)\/)/,
  /^(store\/(sqlite\/(journal|idempotency)|postgres\/rows)\/|events\/|console\/pages\/[^/]+\.ts$|http\/(limits|problems|problem-reply)\.ts$)/,
  /^(store\/(sqlite\/balances|postgres\/citus)\/|console\/(pages\/|[^/]+\.ts$)|http\/auth\/)/,
  /^(store\/(sqlite\/writer|postgres\/(idempotency|journal|schema))\/|http\/admission\/|console\/routes\/[^/]+\.ts$)/,
  /^(store\/(sqlite\/reads|postgres\/writer)\/|http\/(api|metrics)\/|console\/routes\/)/,
  /^store\/postgres\/reads\//,
  /^(store\/(sqlite|postgres)\/tools\/|http\/)/,
  /^(store\/|(config|version)\.ts$)/,
  /^(open-store|open-tools)\.ts$/,
  /^open-webhooks\.ts$/,
  /^service\.ts$/,
  /^cli\//,
  /^main\.ts$/,
];

const IMPURE =
  /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bperformance\.|\bsetTimeout\b|\bsetInterval\b|\bawait\b|\basync\b|\bprocess\./;
const PURE_MODULES = new Set(['node:assert/strict', 'node:crypto', 'node:zlib']);

/** Only these files choose between SQLite and PostgreSQL. */
const NAMES_STORES = new Set(['open-store.ts', 'open-tools.ts']);

const VAGUE = /^(utils?|helpers?|common|manager|core|lib|misc|shared|index)$|\d$/;

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

function importedBy({ path, imports }: SourceFile): string[] {
  return imports
    .filter((name) => name.startsWith('.'))
    .map((name) => relative(SOURCE, join(SOURCE, dirname(path), name)));
}

function layerOf(path: string): number {
  const layer = LAYERS.findIndex((pattern) => pattern.test(path));
  assert(layer >= 0, `${path} is in no layer; add its folder to LAYERS`);
  return layer;
}

test('every source file imports only from its own folder, its subfolders or a lower layer', () => {
  for (const file of files) {
    for (const imported of importedBy(file)) {
      const folder = dirname(file.path);
      const isWithin = folder !== '.' && imported.startsWith(`${folder}/`);
      assert(isWithin || layerOf(imported) < layerOf(file.path), `${file.path} imports ${imported}`);
    }
  }
});

test('the imports of source files, including type-only imports, form no cycle', () => {
  const graph = new Map(files.map((file) => [file.path, importedBy(file)]));
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): void => {
    assert(!trail.includes(path), `import cycle: ${[...trail, path].join(' → ')}`);
    if (done.has(path)) return;
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
});

test('the rules of the ledger use no I/O, clock, randomness or asynchronous code', () => {
  for (const { path, text, imports } of files.filter(({ path }) => layerOf(path) === 0)) {
    const code = text.replaceAll(/\/\/.*|\/\*[\s\S]*?\*\//g, '');
    assert.doesNotMatch(code, IMPURE, `${path} is not pure`);
    const foreign = imports.filter((name) => !name.startsWith('.') && !PURE_MODULES.has(name));
    assert.deepEqual(foreign, [], `${path} imports an impure module`);
  }
});

test('outside the stores, only open-store.ts and open-tools.ts import the SQLite or PostgreSQL store', () => {
  for (const file of files.filter(({ path }) => !path.startsWith('store/') && !NAMES_STORES.has(path))) {
    assert.deepEqual(
      importedBy(file).filter((path) => /^store\/(sqlite|postgres)\//.test(path)),
      [],
      `${file.path} imports a store`,
    );
  }
});

test('no source file or folder has a vague name', () => {
  for (const { path } of files) {
    for (const part of path.replace(/\.ts$/, '').split('/'))
      assert.doesNotMatch(part, VAGUE, `${path} has a vague name`);
  }
});

test('every hand-written TypeScript file, tests included, begins with a comment and has at most 400 lines', () => {
  const paths = globSync(WRITTEN_BY_HAND, { cwd: ROOT }).filter((path) => !IS_GENERATED.test(path));
  assert(paths.length > files.length, 'the tests are included');
  for (const path of paths) {
    const text = readFileSync(join(ROOT, path), 'utf8');
    assert.match(text.replace(/^#!.*\n/, ''), /^\/\/ /, `${path} does not begin with a comment`);
    assert(text.trimEnd().split('\n').length <= LINES_MAX, `${path} has more than ${LINES_MAX} lines`);
  }
});
