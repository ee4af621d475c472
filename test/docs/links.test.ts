// Tests that the links in the documents work, and that the documents name only source files and folders that exist.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';
import { documents, REPOSITORY, textOf } from './documents.ts';

/** Code may contain text that looks like a link. */
function withoutCode(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```$/gm, '').replaceAll(/`[^`\n]+`/g, (code) => code.replaceAll(/[[\]()]/g, ''));
}

/** Computes the anchors of headings in the same way as GitHub. */
function anchorsOf(path: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of textOf(path)
    .replaceAll(/^```[\s\S]*?^```$/gm, '')
    .matchAll(/^#{1,6} (.*)$/gm)) {
    const anchor = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-');
    let unique = anchor;
    for (let count = 1; anchors.has(unique); count++) unique = `${anchor}-${count}`;
    anchors.add(unique);
  }
  return anchors;
}

function faultOf(document: string, link: string): string | null {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? document : normalize(join(dirname(document), decodeURIComponent(path)));
  if (target.startsWith('..')) return 'points outside the repository';
  if (!existsSync(join(REPOSITORY, target))) return `${target} does not exist`;
  if (anchor === undefined) return null;
  return target.endsWith('.md') && anchorsOf(target).has(anchor) ? null : `${target} has no heading #${anchor}`;
}

test('every relative link and anchor in the documents works', () => {
  let checked = 0;
  const broken: string[] = [];
  for (const document of documents()) {
    for (const [, link = ''] of withoutCode(textOf(document)).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(link)) continue;
      checked += 1;
      const fault = faultOf(document, link);
      if (fault !== null) broken.push(`${document}: ${link}: ${fault}`);
    }
  }
  assert(checked > 100, `${checked} links`);
  assert.deepEqual(broken, []);
});

test('a link to a missing file, a missing heading or a path outside the repository is reported as broken', () => {
  assert.equal(faultOf('docs/README.md', 'concepts.md#time'), null);
  assert.match(faultOf('docs/README.md', 'no-such.md') ?? '', /does not exist/);
  assert.match(faultOf('docs/README.md', 'concepts.md#no-such') ?? '', /no heading/);
  assert.match(faultOf('docs/README.md', '../../x.md') ?? '', /outside the repository/);
});

/** Git ignores folders of generated files, so a fresh clone does not have them. */
function isOutput(path: string): boolean {
  return spawnSync('git', ['check-ignore', '--quiet', `${path}/`], { cwd: REPOSITORY }).status === 0;
}

test('the documents name only source files and folders that exist', () => {
  const folders = ['bench', 'client', 'docs', 'lint', 'src', 'test'];
  const existing = folders.flatMap((folder) =>
    readdirSync(join(REPOSITORY, folder), { recursive: true, encoding: 'utf8' }).map((path) => `/${folder}/${path}`),
  );
  const named = documents().flatMap((document) =>
    [...textOf(document).matchAll(/`((?:src|test|bench|lint)\/[\w./-]+|[\w./-]+\.ts)`/g)].map(
      ([, path = '']) => [document, path] as const,
    ),
  );
  const missing = named.filter(([, path]) => !existing.some((file) => file.endsWith(`/${path}`)) && !isOutput(path));
  assert(named.length > 50, `${named.length} names of files`);
  assert.deepEqual(missing, []);
});

test('every document under docs is linked from the index of the documentation or the index of the decisions', () => {
  const indexes = ['docs/README.md', 'docs/decisions/README.md'];
  const linked = indexes.flatMap((index) =>
    [...withoutCode(textOf(index)).matchAll(/\]\(([^)\s#]+\.md)[^)]*\)/g)].map(([, link = '']) =>
      normalize(join(dirname(index), link)),
    ),
  );
  const missing = documents().filter(
    (path) => path.startsWith('docs/') && ![...linked, 'docs/README.md'].includes(path),
  );
  assert.deepEqual(missing, []);
});
