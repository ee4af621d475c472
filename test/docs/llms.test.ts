// Tests that the documentation for language models is complete and matches the documents.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { LLMS_FILES, llmsFull, llmsIndex } from '../../packaging/llms.ts';
import { documents, REPOSITORY, textOf } from './documents.ts';

const FOR_DEVELOPERS = /^(ARCHITECTURE|CONTRIBUTING|CHANGELOG)\.md$|^docs\/(decisions|internals)\/|^docs\/README\.md$/;

for (const [path, text] of LLMS_FILES)
  test(`${path} is up to date (if not, run npm run llms)`, () => {
    assert(textOf(path) === text(), `${path} is not up to date; run npm run llms`);
  });

test('the documentation for language models contains every document for users and operators of Scrip', () => {
  const full = llmsFull();
  const missing = documents()
    .filter((path) => !FOR_DEVELOPERS.test(path))
    .filter((path) => !full.includes(`<!-- ${path} -->\n\n# `));
  assert.deepEqual(missing, []);
  assert(!full.includes('<!-- docs/decisions/'), 'the full text leaves out the decisions');
});

test('the index for language models has a title, a summary and sections whose links work', () => {
  const index = llmsIndex();
  assert.match(index, /^# Scrip\n\n> \S/);
  const headings = [...index.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
  assert.deepEqual(headings, ['Using Scrip', 'Running Scrip', 'Evaluating Scrip', 'Optional']);
  const links = [...index.matchAll(/\]\(([^)#]+)/g)].map(([, link]) => link as string);
  assert(links.length > 20, `${links.length} links`);
  for (const link of links) assert(existsSync(join(REPOSITORY, 'docs', link)), link);
});

test('every relative link in the full text for language models points to a file in the repository', () => {
  const text = llmsFull().replaceAll(/^```[\s\S]*?^```$/gm, '');
  const links = [...text.matchAll(/\]\((?![a-z]+:)([^)#\s]+)/g)].map(([, link]) => link as string);
  assert(links.length > 100, `${links.length} links`);
  for (const link of new Set(links)) assert(existsSync(join(REPOSITORY, link)), link);
});
