// Tests that the figures in the handwritten table of docs/benchmarks.md match docs/benchmarks.json.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { textOf } from './documents.ts';

interface Row {
  readonly subject: string;
  readonly rate: number;
  readonly cpuMicros: number;
  readonly p99: number;
}

const figure = (text: string): number => Number(text.replaceAll(/[^\d.]/g, ''));

test('the table at the top of docs/benchmarks.md shows the figures from docs/benchmarks.json', () => {
  const { parts } = JSON.parse(textOf('docs/benchmarks.json')) as { parts: Record<string, { rows: Row[] }> };
  const measured = new Map((parts['peers-64']?.rows ?? []).map((row) => [row.subject, row]));
  const [top = ''] = textOf('docs/benchmarks.md').split('\n![');
  const rows = top.split('\n').filter((line) => /^\| .*\| [\d.]+ µs +\|/.test(line));
  assert.equal(rows.length, measured.size - 1, 'the table has all systems except the echo on node:http');
  for (const row of rows) {
    const [subject = '', cpu = '', rate = '', p99 = ''] = row
      .split('|')
      .slice(1)
      .map((cell) => cell.trim());
    const published = measured.get(subject) ?? assert.fail(`${subject} is not in docs/benchmarks.json`);
    const expected = [published.cpuMicros.toFixed(1), Math.round(published.rate), published.p99.toFixed(1)].map(Number);
    assert.deepEqual([figure(cpu), figure(rate), figure(p99)], expected, subject);
  }
});
