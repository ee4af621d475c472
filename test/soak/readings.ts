// Measures a running server: memory, file descriptors, the size of the write-ahead log, and latencies.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import type { Allowance, Reading } from './flatness.ts';

export const SERIES = {
  memory: { title: 'Memory', unit: 'MiB', allowance: { share: 0.05, least: 8 } },
  descriptors: { title: 'File descriptors', unit: '', allowance: { share: 0.05, least: 3 } },
  log: { title: 'Write-ahead log', unit: 'MiB', allowance: { share: 0.1, least: 4 } },
  median: { title: 'Latency, median', unit: 'ms', allowance: { share: 0.25, least: 0.5 } },
  slowest: { title: 'Latency, 99th percentile', unit: 'ms', allowance: { share: 0.5, least: 5 } },
} satisfies Record<string, { title: string; unit: string; allowance: Allowance }>;

export type SeriesName = keyof typeof SERIES;

export type Readings = Record<SeriesName, Reading[]>;

/** With fewer responses, a 99th percentile would be meaningless. */
const ANSWERS_MIN = 20;

export function canMeasure(): boolean {
  return process.platform === 'linux';
}

export function noReadings(): Readings {
  return { memory: [], descriptors: [], log: [], median: [], slowest: [] };
}

export function read(
  { pid, file, life, seconds }: { pid: number; file: string; life: number; seconds: number },
  latencies: readonly number[],
  into: Readings,
): void {
  const add = (name: SeriesName, value: number) => void into[name].push({ life, seconds, value });
  add('memory', memoryMib(pid));
  add('descriptors', readdirSync(`/proc/${pid}/fd`).length);
  add('log', (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) / 2 ** 20);
  if (latencies.length < ANSWERS_MIN) return;
  const at = (share: number) => latencies[Math.floor(latencies.length * share)] as number;
  add('median', at(0.5));
  add('slowest', at(0.99));
}

function memoryMib(pid: number): number {
  const [, kib] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) / 1_024;
}
