// Tests that the README stays short.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { textOf } from './documents.ts';

const README = textOf('README.md');

test('the README has fewer than 200 lines', () => {
  assert(README.trimEnd().split('\n').length < 200);
});

test('the README begins with two sentences about what Scrip is', () => {
  const [, introduction = ''] = README.split('\n\n');
  assert.match(introduction, /^Scrip is a /);
  assert.equal(introduction.match(/[.!?](?=\s|$)/g)?.length, 2, introduction);
});
