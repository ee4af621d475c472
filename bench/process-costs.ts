// Reads the costs of processes and their descendants from Linux's /proc: the CPU time, the memory, and the bytes
// written. Without /proc, all costs are 0.

import { readdirSync, readFileSync } from 'node:fs';

/** A tick is 10 ms on every Linux system that Node supports. */
const TICK_MICROS = 10_000;
const KIB = 1_024;

export interface Costs {
  readonly cpuMicros: number;
  readonly residentBytes: number;
  readonly writtenBytes: number;
}

export function costsOf(roots: readonly number[]): Costs {
  const total = { cpuMicros: 0, residentBytes: 0, writtenBytes: 0 };
  for (const pid of treeOf(roots)) {
    total.cpuMicros += cpuMicrosOf(`/proc/${pid}/stat`, true);
    total.residentBytes += KIB * residentKib(pid);
    total.writtenBytes += field(`/proc/${pid}/io`, /^write_bytes: (\d+)/m);
  }
  return total;
}

export function threadCosts(pid: number): Map<string, number> {
  const costs = new Map<string, number>();
  for (const thread of listed(`/proc/${pid}/task`)) {
    const name = read(`/proc/${pid}/task/${thread}/comm`).trim();
    costs.set(name, (costs.get(name) ?? 0) + cpuMicrosOf(`/proc/${pid}/task/${thread}/stat`, false));
  }
  return costs;
}

/** The proportional set size (Pss) splits shared memory, such as PostgreSQL's buffers, among the processes using it. */
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

/** @param withEnded whether to include child processes that have ended, such as PostgreSQL's autovacuum workers */
function cpuMicrosOf(stat: string, withEnded: boolean): number {
  const ticks = fieldsBehindName(stat).slice(11, withEnded ? 15 : 13);
  return ticks.reduce((sum, each) => sum + Number(each), 0) * TICK_MICROS;
}

/** In a `stat` file, the process name is in parentheses, and can itself contain spaces and parentheses. */
function fieldsBehindName(stat: string): readonly string[] {
  const text = read(stat);
  return text.slice(text.lastIndexOf(') ') + 2).split(' ');
}

function field(path: string, pattern: RegExp): number {
  return Number(pattern.exec(read(path))?.[1] ?? 0);
}

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
