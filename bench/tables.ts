// Formats results as tables: plain text for a terminal, Markdown for the documentation.

import type { Part } from './parts/part.ts';
import { ECHO, type PartResult, type Row, ratioOf } from './results.ts';

export interface Table {
  readonly title: string;
  readonly head: readonly string[];
  readonly lines: readonly (readonly string[])[];
}

export function tablesOf({ title }: Pick<Part, 'title'>, { rows, figures }: PartResult): Table[] {
  const closed = rows.filter(({ loop }) => loop === 'closed');
  const open = rows.filter(({ loop }) => loop === 'open');
  const tables: Table[] = [];
  if (closed.length > 0) tables.push(closedTable(title, closed));
  if (open.length > 0) tables.push(openTable(title, open));
  if (figures.length > 0) {
    const lines = figures.map(({ name, value, unit }) => [name, `${figure(value)} ${unit}`.trim()]);
    tables.push({ title, head: ['', 'measured'], lines });
  }
  return tables;
}

function closedTable(title: string, rows: readonly Row[]): Table {
  const head = ['load', 'subject', 'connections', 'CPU µs', 'vs. echo', 'requests/s', 'vs. echo', 'p50 ms', 'p99 ms'];
  const lines = rows.map((row) => [
    row.workload,
    row.subject,
    String(row.connections),
    row.cpuMicros.toFixed(1),
    ofEcho(row, rows, 'cpuMicros'),
    figure(Math.round(row.rate)),
    ofEcho(row, rows, 'rate'),
    row.p50.toFixed(1),
    row.p99.toFixed(1),
    row.p999.toFixed(1),
    String(Math.round(row.residentMib)),
    String(row.failures),
    row.dropped === 0 ? String(row.rounds) : `${row.rounds} of ${row.rounds + row.dropped}`,
  ]);
  return { title, head: [...head, 'p99.9 ms', 'MiB', 'failed', 'blocks'], lines };
}

function openTable(title: string, rows: readonly Row[]): Table {
  const head = ['requests/s', 'subject', 'p50 ms', 'p99 ms', 'p99.9 ms', 'CPU µs', 'failed'];
  const lines = rows.map(({ rate, subject, p50, p99, p999, cpuMicros, failures }) => [
    figure(rate),
    subject,
    p50.toFixed(1),
    p99.toFixed(1),
    p999.toFixed(1),
    cpuMicros.toFixed(1),
    String(failures),
  ]);
  return { title, head, lines };
}

function ofEcho(row: Row, rows: readonly Row[], of: 'rate' | 'cpuMicros'): string {
  const echo = rows.find(
    ({ subject, workload, connections }) =>
      subject === ECHO && workload === row.workload && connections === row.connections,
  );
  return echo === undefined || echo === row ? '' : ratioOf(row, echo, of).toFixed(2);
}

/** Rounds numbers below 100 to three significant digits, and larger numbers to whole numbers. */
export function figure(value: number): string {
  if (value === 0) return '0';
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toLocaleString('en', { maximumFractionDigits: digits });
}

export function asText({ title, head, lines }: Table): string {
  const all = [head, ...lines];
  const widths = head.map((_, column) => Math.max(...all.map((line) => (line[column] ?? '').length)));
  const isText = head.map((_, column) => lines.some((line) => !/^[-\d.,]*$/.test(line[column] ?? '')));
  const text = all.map((line) =>
    line
      .map((cell, column) => (isText[column] ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
  return ['', title, ...text].join('\n');
}

export function asMarkdown({ head, lines }: Table): string {
  const isText = head.map((_, column) => lines.some((line) => !/^[-\d.,]*$/.test(line[column] ?? '')));
  const rule = head.map((_, column) => (isText[column] ? '---' : '--:'));
  return [head, rule, ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
