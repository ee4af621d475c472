// Reads a V8 CPU profile as a tree of function calls with their times.

import { readFileSync } from 'node:fs';

export interface Frame {
  readonly name: string;
  /** For example `ledger/draw.ts:10`; empty for code that is not JavaScript. */
  readonly place: string;
  /** In microseconds. `self` excludes the time in callees, and `total` includes it. */
  self: number;
  total: number;
  readonly children: Frame[];
}

interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
  readonly startTime: number;
}

/** A time span in microseconds, on the same clock as `process.hrtime`. */
export interface Stretch {
  readonly from: number;
  readonly until: number;
}

const IDLE = '(idle)';

export function readProfile(file: string, { from, until }: Stretch): Frame {
  const { nodes, samples, timeDeltas, startTime } = JSON.parse(readFileSync(file, 'utf8')) as Profile;
  const frames = new Map<number, Frame>();
  for (const { id, callFrame } of nodes) {
    const { functionName, url, lineNumber } = callFrame;
    const path = pathOf(url);
    const place = path === '' ? '' : `${path}:${lineNumber + 1}`;
    frames.set(id, { name: functionName || '(anonymous)', place, self: 0, total: 0, children: [] });
  }
  const at = (id: number) => frames.get(id) as Frame;
  for (const { id, children = [] } of nodes) at(id).children.push(...children.map(at));
  let now = startTime;
  samples.forEach((id, index) => {
    const delta = timeDeltas[index] ?? 0;
    now += delta;
    if (now >= from && now <= until && at(id).name !== IDLE) at(id).self += delta;
  });
  const root = at(nodes[0]?.id as number);
  addUp(root);
  return root;
}

function pathOf(url: string): string {
  const parts = url.split('/');
  const source = parts.lastIndexOf('src');
  return parts.slice(source === -1 ? -2 : source + 1).join('/');
}

export interface FunctionTime {
  readonly name: string;
  readonly place: string;
  readonly micros: number;
}

export function selfTimes(root: Frame): FunctionTime[] {
  const sums = new Map<string, FunctionTime>();
  const visit = ({ name, place, self, children }: Frame): void => {
    const key = `${name} ${place}`;
    sums.set(key, { name, place, micros: (sums.get(key)?.micros ?? 0) + self });
    children.forEach(visit);
  };
  visit(root);
  return [...sums.values()].toSorted((a, b) => b.micros - a.micros);
}

/** A recursive call's time is already part of the outer call's total, so it is not added again. */
export function totalTimes(root: Frame): FunctionTime[] {
  const sums = new Map<string, FunctionTime>();
  const visit = ({ name, place, total, children }: Frame, above: ReadonlySet<string>): void => {
    const key = `${name} ${place}`;
    if (!above.has(key)) sums.set(key, { name, place, micros: (sums.get(key)?.micros ?? 0) + total });
    const from = new Set(above).add(key);
    for (const child of children) visit(child, from);
  };
  visit(root, new Set());
  return [...sums.values()].toSorted((a, b) => b.micros - a.micros);
}

function addUp(frame: Frame): number {
  frame.total = frame.self;
  for (const child of frame.children) frame.total += addUp(child);
  return frame.total;
}
