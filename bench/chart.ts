// Draws an SVG chart that compares how much CPU time Scrip and other systems use per request. The chart is readable on
// light and dark pages.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Results, Row } from './results.ts';

const WIDTH = 720;
const LABEL_WIDTH = 218;
const VALUE_WIDTH = 130;
const BAR_HEIGHT = 20;
const LINE_HEIGHT = 30;
const TOP = 58;
const BOTTOM = 40;
const PART = 'peers-64';
const STYLE = `
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .title { font-weight: 600; font-size: 15px } .note { font-size: 11px; fill: #59636e }
    .bar { fill: #9aa4b2 } .scrip { fill: #2563eb }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 } .note { fill: #9198a1 } .bar { fill: #6b7685 } .scrip { fill: #60a5fa }
    }`;

export function writeChart(results: Results, file: string): void {
  const svg = chartOf(results);
  if (svg === null) return;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, svg);
}

export function chartOf({ parts, machine }: Results): string | null {
  const part = parts[PART];
  if (part === undefined) return null;
  const rows = part.rows.toSorted((a, b) => a.cpuMicros - b.cpuMicros);
  const most = Math.max(...rows.map(({ cpuMicros }) => cpuMicros));
  const height = TOP + rows.length * LINE_HEIGHT + BOTTOM;
  const bars = rows.map((row, index) => barOf(row, TOP + index * LINE_HEIGHT, most)).join('\n');
  const day = part.measuredAt.slice(0, 10);
  const note = `${machine.cores} cores shared with the load generator (${machine.generator}), medians of ${rows[0]?.rounds ?? 0} alternating blocks; ${day}, ${part.commit}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${labelOf(rows)}">
  <style>${STYLE}
  </style>
  <text class="title" x="0" y="20">CPU time per subtraction, in microseconds (less is better)</text>
  <text class="note" x="0" y="40">One subtraction per request, 100,000 end users, 64 connections, all processes of the system; in parentheses, throughput</text>
${bars}
  <text class="note" x="0" y="${height - 12}">${escaped(note)}</text>
</svg>
`;
}

function barOf({ subject, rate, cpuMicros }: Row, y: number, most: number): string {
  const width = Math.max(1, (cpuMicros / most) * (WIDTH - LABEL_WIDTH - VALUE_WIDTH));
  const kind = subject.startsWith('Scrip') ? 'scrip' : 'bar';
  const value = `${cpuMicros.toFixed(1)} µs (${Math.round(rate).toLocaleString('en')}/s)`;
  const middle = y + BAR_HEIGHT / 2 + 5;
  return [
    `  <text x="${LABEL_WIDTH - 10}" y="${middle}" text-anchor="end">${escaped(subject)}</text>`,
    `  <rect class="${kind}" x="${LABEL_WIDTH}" y="${y}" width="${width.toFixed(1)}" height="${BAR_HEIGHT}" rx="3"/>`,
    `  <text x="${(LABEL_WIDTH + width + 8).toFixed(1)}" y="${middle}">${value}</text>`,
  ].join('\n');
}

function labelOf(rows: readonly Row[]): string {
  return escaped(rows.map(({ subject, cpuMicros }) => `${subject}: ${cpuMicros.toFixed(1)} microseconds`).join('; '));
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
