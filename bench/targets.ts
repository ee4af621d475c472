// The targets of Scrip, each with the figure that was measured for it and whether it is met.

import { type Figure, type Results, type Row, ratioOf } from './results.ts';
import { figure, type Table } from './tables.ts';
import * as workloads from './workload.ts';

interface Target {
  readonly what: string;
  readonly wanted: number;
  readonly atMost: boolean;
  readonly unit: string;
  /** Null where it was not measured. */
  readonly measured: (results: Results) => number | null;
}

const ECHO = 'Fastify echo';
const SQLITE = 'Scrip on SQLite';
const POSTGRES = 'Scrip on PostgreSQL';
const BY_HAND = 'hand-written on PostgreSQL';

const SUBTRACT = workloads.SUBTRACT_MEDIUM.name;
const ADD = workloads.ADD_MEDIUM.name;
const BALANCE = workloads.BALANCE_MEDIUM.name;

const atLeast = (what: string, wanted: number, measured: Target['measured'], unit = ''): Target => ({
  what,
  wanted,
  atMost: false,
  unit,
  measured,
});
const atMost = (what: string, wanted: number, measured: Target['measured'], unit = ''): Target => ({
  what,
  wanted,
  atMost: true,
  unit,
  measured,
});

export const TARGETS: readonly Target[] = [
  ...[64, 256].flatMap((connections) => [
    atLeast(
      `/subtract for a minute at ${connections} connections, of the echo's throughput`,
      0.6,
      ofEcho(`sustained-${connections}`, SUBTRACT, 'rate', connections),
    ),
    atMost(
      `/subtract at ${connections} connections, of the echo's CPU`,
      1.7,
      ofEcho(`sustained-${connections}`, SUBTRACT, 'cpuMicros', connections),
    ),
    atLeast(
      `/add at ${connections} connections, of the echo's throughput`,
      0.6,
      ofEcho('calls', ADD, 'rate', connections),
    ),
    atMost(
      `/add at ${connections} connections, of the echo's CPU`,
      1.7,
      ofEcho('calls', ADD, 'cpuMicros', connections),
    ),
    atLeast(
      `balances at ${connections} connections, of the echo's`,
      0.8,
      ofEcho('calls', BALANCE, 'rate', connections),
    ),
  ]),
  atMost('/subtract for a minute at 64 connections, p99', 15, p99Of('sustained-64', SUBTRACT), 'ms'),
  atMost('/add at 64 connections, p99', 15, p99Of('calls', ADD), 'ms'),
  atLeast(
    'one hot user, of the throughput over 10,000',
    1,
    between('shapes', workloads.HOT_USER, workloads.SUBTRACT_SMALL, 'rate'),
  ),
  atLeast('PostgreSQL, of the hand-written service, 64 connections', 6, (results) => {
    const rows = results.parts['peers-64']?.rows ?? [];
    return ratio(find(rows, SUBTRACT, POSTGRES), find(rows, SUBTRACT, BY_HAND), 'rate');
  }),
  atMost(
    'a subtraction at 1,000,000 users, of the CPU at 10,000',
    1.3,
    between('users', workloads.SUBTRACT_LARGE, workloads.SUBTRACT_SMALL, 'cpuMicros'),
  ),
  atMost(
    'a balance at 1,000,000 users, of the CPU at 10,000',
    1.3,
    between('users', workloads.BALANCE_LARGE, workloads.BALANCE_SMALL, 'cpuMicros'),
  ),
  atMost(
    'a subtraction with 1,000 open cycles, of the CPU with one',
    2,
    between('shapes', workloads.SUBTRACT_THOUSAND_CYCLES, workloads.SUBTRACT_ONE_CYCLE, 'cpuMicros'),
  ),
  atMost(
    'a subtraction with 1,000,000 past transactions, of the CPU with one',
    1.1,
    between('shapes', workloads.SUBTRACT_LONG_HISTORY, workloads.HOT_USER, 'cpuMicros'),
  ),
  atMost(
    'the first page of 1,000,000 transactions, of the CPU with 100',
    1.1,
    between('shapes', workloads.PAGE_LONG_HISTORY, workloads.PAGE_SHORT_HISTORY, 'cpuMicros'),
  ),
  atMost(
    'a balance with 10 cycles, of the CPU with one',
    2,
    between('shapes', workloads.BALANCE_TEN_CYCLES, workloads.BALANCE_ONE_CYCLE, 'cpuMicros'),
  ),
  atLeast('renewals', 30_000, figureOf('renewals', 'renewals entered'), 'a second'),
  atMost("the foreground's p99 beside the renewals, of the one alone", 2, (results) => {
    const beside = figureOf('renewals', 'subtractions beside the renewals, p99')(results);
    const alone = figureOf('renewals', 'subtractions alone, p99')(results);
    return beside === null || alone === null ? null : beside / alone;
  }),
  atMost('users whose renewal waits that are answered wrongly', 0, figureOf('renewals', 'of these answered wrongly')),
  atMost('on disk for a subtraction', 250, figureOf('disk', 'SQLite, a subtraction, kept'), 'bytes'),
  atMost(
    'on disk for a subtraction with a key',
    250,
    figureOf('disk', 'SQLite, a subtraction with a key, kept'),
    'bytes',
  ),
  atMost('on disk for an addition', 250, figureOf('disk', 'SQLite, an addition, kept'), 'bytes'),
  atMost('resident with a million users, under load', 300, residentUnderLoad, 'MiB'),
  atMost('up with a million users', 1, figureOf('large-ledger', 'from start to the first subtraction'), 's'),
];

/** @param which those that were not measured are left out, or said to be so */
export function targetTable(results: Results, which: 'all' | 'measured ones' = 'all'): Table {
  const lines = TARGETS.map(({ what, wanted, atMost, unit, measured }) => {
    const value = measured(results);
    const isMet = value !== null && (atMost ? value <= wanted : value >= wanted);
    const bound = `${atMost ? 'at most' : 'at least'} ${figure(wanted)} ${unit}`.trim();
    return [
      what,
      bound,
      value === null ? '' : figure(value),
      value === null ? 'not measured' : isMet ? 'met' : 'missed',
    ];
  });
  const shown = which === 'all' ? lines : lines.filter(([, , value]) => value !== '');
  return { title: 'Targets', head: ['target', 'wanted', 'measured', ''], lines: shown };
}

function find(rows: readonly Row[], workload: string, subject: string, connections?: number): Row | undefined {
  return rows.find(
    (row) =>
      row.workload === workload &&
      row.subject === subject &&
      (connections === undefined || row.connections === connections),
  );
}

function ratio(a: Row | undefined, b: Row | undefined, of: 'rate' | 'cpuMicros'): number | null {
  return a === undefined || b === undefined ? null : ratioOf(a, b, of);
}

function ofEcho(part: string, workload: string, of: 'rate' | 'cpuMicros', connections: number): Target['measured'] {
  return ({ parts }) => {
    const rows = parts[part]?.rows ?? [];
    return ratio(find(rows, workload, SQLITE, connections), find(rows, workload, ECHO, connections), of);
  };
}

function between(
  part: string,
  of: workloads.Workload,
  base: workloads.Workload,
  what: 'rate' | 'cpuMicros',
): Target['measured'] {
  return ({ parts }) => {
    const rows = parts[part]?.rows ?? [];
    return ratio(find(rows, of.name, SQLITE), find(rows, base.name, SQLITE), what);
  };
}

function p99Of(part: string, workload: string): Target['measured'] {
  return ({ parts }) => find(parts[part]?.rows ?? [], workload, SQLITE, 64)?.p99 ?? null;
}

function figureOf(part: string, name: string): Target['measured'] {
  return ({ parts }) => parts[part]?.figures.find((each: Figure) => each.name === name)?.value ?? null;
}

function residentUnderLoad({ parts }: Results): number | null {
  const figures = parts['large-ledger']?.figures ?? [];
  return figures.find(({ name }) => name.startsWith('resident after'))?.value ?? null;
}
