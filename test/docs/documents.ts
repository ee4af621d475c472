// Lists the documents and their shell examples.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const REPOSITORY = join(import.meta.dirname, '../..');

export function textOf(path: string): string {
  return readFileSync(join(REPOSITORY, path), 'utf8');
}

export function documents(): string[] {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', '--', '*.md'];
  return execFileSync('git', args, { cwd: REPOSITORY, encoding: 'utf8' }).trimEnd().split('\n').toSorted();
}

export interface Example {
  readonly document: string;
  readonly command: string;
  readonly shown: string;
}

export function examplesIn(document: string): Example[] {
  const blocks = textOf(document).matchAll(/^```sh\n([\s\S]*?)^```\n(?:```(?:json)?\n([\s\S]*?)^```\n)?/gm);
  return [...blocks].map(([, command = '', shown = '']) => ({ document, command, shown }));
}

const VOLATILE: readonly (readonly [pattern: RegExp, mask: string])[] = [
  [/scrip_(write|read)_[0-9A-Za-z_]+/g, '<key>'],
  [/\d{4}-\d\d-\d\dT[\d:.]+/g, '<instant>'],
];

export function masked(text: string, further: readonly (readonly [pattern: RegExp, mask: string])[]): string {
  return [...VOLATILE, ...further].reduce((rest, [pattern, mask]) => rest.replaceAll(pattern, mask), text);
}
