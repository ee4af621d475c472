// What processes have cost so far, with all their threads and children, as Linux counts it under /proc. Without /proc,
// everything is 0 and the tables show no figure.

import { readdirSync, readFileSync } from 'node:fs';

/** Of the clock in which /proc counts: 100 a second on every Linux that Node runs on. */
const TICK_MICROS = 10_000;
const KIB = 1_024;

export interface Costs {
  readonly cpuMicros: number;
  readonly residentBytes: number;
  /** Bytes that were handed to the disk. */
  readonly writtenBytes: number;
}

/** Of these processes and all that descend from them. */
export function costsOf(roots: readonly number[]): Costs {
  const total = { cpuMicros: 0, residentBytes: 0, writtenBytes: 0 };
  for (const pid of treeOf(roots)) {
    total.cpuMicros += cpuMicrosOf(`/proc/${pid}/stat`);
    total.residentBytes += KIB * residentKib(pid);
    total.writtenBytes += field(`/proc/${pid}/io`, /^write_bytes: (\d+)/m);
  }
  return total;
}

/** CPU microseconds by thread, those of the same name together. */
export function threadCosts(pid: number): Map<string, number> {
  const costs = new Map<string, number>();
  for (const thread of listed(`/proc/${pid}/task`)) {
    const name = read(`/proc/${pid}/task/${thread}/comm`).trim();
    costs.set(name, (costs.get(name) ?? 0) + cpuMicrosOf(`/proc/${pid}/task/${thread}/stat`));
  }
  return costs;
}

/** Of memory that processes share, as those of PostgreSQL do, each one's part; all of it if the system does not say. */
function residentKib(pid: number): number {
  const shared = field(`/proc/${pid}/smaps_rollup`, /^Pss:\s+(\d+)/m);
  return shared > 0 ? shared : field(`/proc/${pid}/status`, /VmRSS:\s+(\d+)/);
}

function treeOf(roots: readonly number[]): number[] {
  const children = new Map<number, number[]>();
  for (const name of listed('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const parent = Number(fieldsBehindName(`/proc/${name}/stat`)[1]);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const tree = [...roots];
  for (const pid of tree) tree.push(...(children.get(pid) ?? []));
  return tree;
}

/** Threads that have ended still count in the process. */
function cpuMicrosOf(stat: string): number {
  const fields = fieldsBehindName(stat);
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * TICK_MICROS;
}

/** The name of a process is in brackets, and may have spaces and brackets in it. */
function fieldsBehindName(stat: string): readonly string[] {
  const text = read(stat);
  return text.slice(text.lastIndexOf(') ') + 2).split(' ');
}

function field(path: string, pattern: RegExp): number {
  return Number(pattern.exec(read(path))?.[1] ?? 0);
}

/** Empty for a process that has ended meanwhile. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function listed(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
