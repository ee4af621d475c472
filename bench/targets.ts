// Scrip's performance targets, and whether the results meet them.

import { ECHO, type Figure, type Results, type Row, ratioOf } from './results.ts';
import { figure, type Table } from './tables.ts';
import * as workloads from './workload.ts';

interface Target {
  readonly what: string;
  readonly wanted: number;
  readonly atMost: boolean;
  readonly unit: string;
  readonly measured: (results: Results) => number | null;
}

const SQLITE = 'Scrip on SQLite';
const POSTGRES = 'Scrip on PostgreSQL';
const BY_HAND = 'hand-written on PostgreSQL';

const SUBTRACT = workloads.SUBTRACT_MEDIUM.name;
const ADD = workloads.ADD_MEDIUM.name;
const BALANCE = workloads.BALANCE_MEDIUM.name;
const REPEATED = workloads.BALANCE_REPEATED.name;

/** For each number of connections, TigerBeetle's throughput behind a Fastify route, divided by the echo server's. */
const TIGERBEETLE = { 64: 0.59, 256: 0.83 };

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
  ...([64, 256] as const).flatMap((connections) => {
    const at = `at ${connections} connections`;
    return [
      atMost(`/subtract ${at}: CPU vs. echo`, 1.7, ofEcho(SUBTRACT, 'cpuMicros', connections)),
      atMost(`/add ${at}: CPU vs. echo`, 2, ofEcho(ADD, 'cpuMicros', connections)),
      atLeast(`/subtract ${at}: throughput vs. echo`, TIGERBEETLE[connections], ofEcho(SUBTRACT, 'rate', connections)),
      atLeast(`/add ${at}: throughput vs. echo`, 0.6, ofEcho(ADD, 'rate', connections)),
      atLeast(`balances ${at}: throughput vs. echo`, 0.85, ofEcho(BALANCE, 'rate', connections)),
      atLeast(`repeated balances ${at}: throughput vs. echo`, 0.85, ofEcho(REPEATED, 'rate', connections)),
      atMost(`/subtract ${at}, first five seconds: CPU vs. warm process`, 1.5, ofFirstSeconds(SUBTRACT, connections)),
      atMost(`/add ${at}, first five seconds: CPU vs. warm process`, 1.5, ofFirstSeconds(ADD, connections)),
    ];
  }),
  atMost('/subtract at 64 connections: p99', 15, p99Of(SUBTRACT), 'ms'),
  atMost('/add at 64 connections: p99', 15, p99Of(ADD), 'ms'),
  atLeast(
    'all subtractions from one user: throughput vs. 10,000 users',
    1,
    between('shapes', workloads.HOT_USER, workloads.SUBTRACT_SMALL, 'rate'),
  ),
  atLeast('PostgreSQL at 64 connections: throughput vs. hand-written service', 6, ofHandWritten(64)),
  atLeast('PostgreSQL at 256 connections: throughput vs. hand-written service', 8, ofHandWritten(256)),
  atMost(
    'a subtraction with 1,000,000 users: CPU vs. 10,000 users',
    1.3,
    between('users', workloads.SUBTRACT_LARGE, workloads.SUBTRACT_SMALL, 'cpuMicros'),
  ),
  atMost(
    'a balance with 1,000,000 users: CPU vs. 10,000 users',
    1.3,
    between('users', workloads.BALANCE_LARGE, workloads.BALANCE_SMALL, 'cpuMicros'),
  ),
  atMost(
    'a subtraction with 1,000 open cycles: CPU vs. one cycle',
    2,
    between('shapes', workloads.SUBTRACT_THOUSAND_CYCLES, workloads.SUBTRACT_ONE_CYCLE, 'cpuMicros'),
  ),
  atMost(
    'all subtractions from one user that starts with 1,000,000 transactions: CPU vs. one that starts with 2',
    1.1,
    between('shapes', workloads.SUBTRACT_LONG_HISTORY, workloads.HOT_USER, 'cpuMicros'),
  ),
  atMost(
    'the first page of 1,000,000 transactions: CPU vs. 100 transactions',
    1.1,
    between('shapes', workloads.PAGE_LONG_HISTORY, workloads.PAGE_SHORT_HISTORY, 'cpuMicros'),
  ),
  atMost(
    'a balance with 10 cycles: CPU vs. one cycle',
    2,
    between('shapes', workloads.BALANCE_TEN_CYCLES, workloads.BALANCE_ONE_CYCLE, 'cpuMicros'),
  ),
  atLeast('renewals stored', 30_000, figureOf('renewals', 'renewals stored'), 'per second'),
  atLeast(
    'renewals stored on PostgreSQL with three processes',
    20_000,
    figureOf('renewals-postgres', 'renewals stored'),
    'per second',
  ),
  atMost('p99 of subtractions: during renewals vs. without renewals', 2, (results) => {
    const beside = figureOf('renewals', 'subtractions during the renewals, p99')(results);
    const alone = figureOf('renewals', 'subtractions without renewals, p99')(results);
    return beside === null || alone === null ? null : beside / alone;
  }),
  atMost('wrong balances before a renewal is stored', 0, figureOf('renewals', 'wrong balances among them')),
  atMost('disk space for a subtraction', 250, figureOf('disk', 'SQLite, a subtraction, kept'), 'bytes'),
  atMost(
    'disk space for a subtraction with a key',
    250,
    figureOf('disk', 'SQLite, a subtraction with a key, kept'),
    'bytes',
  ),
  atMost('disk space for an addition', 250, figureOf('disk', 'SQLite, an addition, kept'), 'bytes'),
  atMost('resident memory with a million users, under load', 300, residentUnderLoad, 'MiB'),
  atMost('start-up time with a million users', 1, figureOf('large-ledger', 'from start to the first subtraction'), 's'),
];

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

function ofEcho(workload: string, of: 'rate' | 'cpuMicros', connections: number): Target['measured'] {
  return ({ parts }) => {
    const rows = parts[`settled-${connections}`]?.rows ?? [];
    return ratio(find(rows, workload, SQLITE), find(rows, workload, ECHO), of);
  };
}

/**
 * The first seconds and the warm process are measured in different rounds, so the result is a ratio of medians, not a
 * median of ratios.
 */
function ofFirstSeconds(workload: string, connections: number): Target['measured'] {
  return ({ parts }) => {
    const first = find(parts['first-seconds']?.rows ?? [], workload, SQLITE, connections);
    const settled = find(parts[`settled-${connections}`]?.rows ?? [], workload, SQLITE);
    return first === undefined || settled === undefined ? null : first.cpuMicros / settled.cpuMicros;
  };
}

function ofHandWritten(connections: number): Target['measured'] {
  return ({ parts }) => {
    const rows = parts[`peers-${connections}`]?.rows ?? [];
    return ratio(find(rows, SUBTRACT, POSTGRES), find(rows, SUBTRACT, BY_HAND), 'rate');
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

function p99Of(workload: string): Target['measured'] {
  return ({ parts }) => find(parts['settled-64']?.rows ?? [], workload, SQLITE)?.p99 ?? null;
}

function figureOf(part: string, name: string): Target['measured'] {
  return ({ parts }) => parts[part]?.figures.find((each: Figure) => each.name === name)?.value ?? null;
}

function residentUnderLoad({ parts }: Results): number | null {
  const figures = parts['large-ledger']?.figures ?? [];
  return figures.find(({ name }) => name.startsWith('resident memory after'))?.value ?? null;
}
