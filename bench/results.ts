// The results of a run, as stored in JSON. A run of one part replaces that part alone, so that a long run can be made
// in pieces; each piece says when it was made, and from which commit.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { arch, cpus, platform, release, totalmem } from 'node:os';
import { dirname } from 'node:path';
import { GENERATOR } from './closed-loop.ts';

/** Medians over the rounds of one load on one subject. */
export interface Row {
  readonly workload: string;
  readonly subject: string;
  readonly loop: 'closed' | 'open';
  readonly connections: number;
  readonly rounds: number;
  /** Responses a second; in an open loop, the requested rate. */
  readonly rate: number;
  /** Of all threads and processes of the subject, for each request. */
  readonly cpuMicros: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly residentMib: number;
  /** In all rounds together. */
  readonly failures: number;
  /** Rate and CPU for each round, so that ratios can be taken within a round. */
  readonly eachRound: readonly { readonly rate: number; readonly cpuMicros: number; readonly p99: number }[];
}

/** A figure that is not a load: seconds, bytes, renewals a second. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
}

export interface PartResult {
  readonly measuredAt: string;
  readonly commit: string;
  readonly tookSeconds: number;
  /** Other load of the machine; absent if it was not measured. */
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

/** With a `+` when files differ from it. */
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

/** Cores that other processes may use before a figure says more about them than about the subject. */
const OTHERS_MAX = 0.2;

export function isQuiet({ othersCores = 0, stolenCores = 0 }: PartResult): boolean {
  return othersCores + stolenCores <= OTHERS_MAX;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  if (sorted.length % 2 === 1) return sorted[middle] as number;
  return ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

/** The median of the ratios of `a` to `b` in each round: other work of the machine affects both. */
export function ratioOf(a: Row, b: Row, of: 'rate' | 'cpuMicros' | 'p99'): number {
  return median(a.eachRound.map((round, index) => round[of] / (b.eachRound[index]?.[of] ?? Number.NaN)));
}
