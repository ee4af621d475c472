// The results of the benchmarks, stored as JSON. A run replaces only the results of the parts that it measures.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { arch, cpus, platform, release, totalmem } from 'node:os';
import { dirname } from 'node:path';
import { GENERATOR } from './closed-loop.ts';

export const ECHO = 'Fastify echo';

/** Medians over the rounds that were not dropped, unless a field says otherwise. */
export interface Row {
  readonly workload: string;
  readonly subject: string;
  readonly loop: 'closed' | 'open';
  readonly connections: number;
  /** The number of rounds that were not dropped. */
  readonly rounds: number;
  /** The number of rounds that were dropped because the echo server was unusually slow or fast. */
  readonly dropped: number;
  /** Responses per second; in an open loop, the requested rate. */
  readonly rate: number;
  /** CPU time per request, summed over all threads and processes of the subject. */
  readonly cpuMicros: number;
  /** Latency percentiles in milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly residentMib: number;
  /** Failed requests, summed over the rounds that were not dropped. */
  readonly failures: number;
  readonly eachRound: readonly { readonly rate: number; readonly cpuMicros: number; readonly p99: number }[];
}

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
}

export interface PartResult {
  readonly measuredAt: string;
  readonly commit: string;
  readonly tookSeconds: number;
  /** The average number of cores that other processes used; absent if it was not measured. */
  readonly othersCores?: number;
  readonly stolenCores?: number;
  readonly rows: readonly Row[];
  readonly figures: readonly Figure[];
}

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly system: string;
  readonly node: string;
  readonly generator: string;
}

export interface Results {
  readonly machine: Machine;
  readonly parts: Readonly<Record<string, PartResult>>;
}

export function thisMachine(): Machine {
  return {
    processor: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release()} ${arch()}`,
    node: process.version,
    generator: GENERATOR,
  };
}

export function thisCommit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8' }).trim();
  try {
    const isChanged = git('status', '--porcelain', '--', '../src', '../bench') !== '';
    return git('rev-parse', '--short=10', 'HEAD') + (isChanged ? '+' : '');
  } catch {
    return 'unknown';
  }
}

export function readResults(file: string): Results {
  if (!existsSync(file)) return { machine: thisMachine(), parts: {} };
  return JSON.parse(readFileSync(file, 'utf8')) as Results;
}

export function keepPart(file: string, name: string, part: PartResult): Results {
  const { parts } = readResults(file);
  const results: Results = { machine: thisMachine(), parts: { ...parts, [name]: part } };
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`);
  return results;
}

const OTHER_CORES_MAX = 0.2;

export function isQuiet({ othersCores = 0, stolenCores = 0 }: PartResult): boolean {
  return othersCores + stolenCores <= OTHER_CORES_MAX;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  if (sorted.length % 2 === 1) return sorted[middle] as number;
  return ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

/**
 * Divides `a` by `b` round by round, because other load on the machine affects both alike within a round. Returns the
 * median of the ratios.
 */
export function ratioOf(a: Row, b: Row, of: 'rate' | 'cpuMicros' | 'p99'): number {
  return median(a.eachRound.map((round, index) => round[of] / (b.eachRound[index]?.[of] ?? Number.NaN)));
}
