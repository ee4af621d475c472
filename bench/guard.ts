// Compares a quick run with the baseline. Both contain ratios, such as Scrip's throughput divided by the echo server's.
// Worse ratios never fail the run, since shared machines are noisy.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ECHO, isQuiet, type PartResult, type Row, ratioOf } from './results.ts';
import { asText } from './tables.ts';

interface Ratio {
  readonly name: string;
  readonly value: number;
  readonly isBetter: 'higher' | 'lower';
}

interface Kept {
  readonly measuredAt: string;
  readonly commit: string;
  readonly ratios: readonly Ratio[];
}

const BASELINE = join(import.meta.dirname, 'baseline.json');
/** On a busy machine, the ratios of quick runs of the same commit differ by up to 15%. */
const WORSE_BY = 0.15;

const SQLITE = 'Scrip on SQLite';

export function printGuard(result: PartResult, { keep }: { keep: boolean }): void {
  const ratios = ratiosOf(result.rows);
  const kept = existsSync(BASELINE) ? (JSON.parse(readFileSync(BASELINE, 'utf8')) as Kept) : null;
  const lines = ratios.map((ratio) => lineOf(ratio, kept?.ratios.find(({ name }) => name === ratio.name) ?? null));
  const since = kept === null ? 'there is no baseline' : `baseline from ${kept.commit}`;
  print(asText({ title: `Ratios within this run; ${since}`, head: ['ratio', 'now', 'baseline', 'change', ''], lines }));
  const failures = result.rows.reduce((sum, row) => sum + row.failures, 0);
  if (failures > 0) print(`\n!!!!!!!!  ${failures} requests did not get a 200 response.`);
  const worse = lines.filter(([, , , , verdict]) => verdict !== '').length;
  if (worse > 0) print(`\n!!!!!!!!  ${worse} of ${lines.length} ratios are worse by more than ${WORSE_BY * 100}%.`);
  if (!keep) return;
  if (!isQuiet(result)) {
    print('\nThe baseline was not changed, because the machine was busy with other work.');
    return;
  }
  const { measuredAt, commit } = result;
  writeFileSync(BASELINE, `${JSON.stringify({ measuredAt, commit, ratios } satisfies Kept, null, 2)}\n`);
  print('\nStored these ratios as the baseline in bench/baseline.json.');
}

export function ratiosOf(rows: readonly Row[]): Ratio[] {
  const row = (workload: string, subject: string) => {
    const found = rows.find((each) => each.workload.startsWith(workload) && each.subject === subject);
    if (found === undefined) throw new Error(`${workload} was not measured on ${subject}`);
    return found;
  };
  const echo = row('subtract, 10,000', ECHO);
  const subtract = row('subtract, 10,000', SQLITE);
  const keyed = row('subtract, with', SQLITE);
  const postgres = row('subtract, 10,000', 'Scrip on PostgreSQL');
  const byHand = row('subtract, 10,000', 'hand-written on PostgreSQL');
  const ratio = (name: string, a: Row, b: Row, of: 'rate' | 'cpuMicros'): Ratio => ({
    name,
    value: Math.round(1_000 * ratioOf(a, b, of)) / 1_000,
    isBetter: of === 'rate' ? 'higher' : 'lower',
  });
  return [
    ratio('SQLite, /subtract: throughput vs. echo', subtract, echo, 'rate'),
    ratio('SQLite, /subtract: CPU vs. echo', subtract, echo, 'cpuMicros'),
    ratio('SQLite, /add: throughput vs. echo', row('add', SQLITE), echo, 'rate'),
    ratio('SQLite, balances: throughput vs. echo', row('balance', SQLITE), echo, 'rate'),
    ratio('SQLite, /subtract with a key: CPU vs. without a key', keyed, subtract, 'cpuMicros'),
    ratio('PostgreSQL, /subtract: throughput vs. hand-written service', postgres, byHand, 'rate'),
    ratio('PostgreSQL, /subtract: CPU vs. hand-written service', postgres, byHand, 'cpuMicros'),
  ];
}

function lineOf({ name, value, isBetter }: Ratio, kept: Ratio | null): string[] {
  if (kept === null) return [name, value.toFixed(2), '', '', ''];
  const change = value / kept.value - 1;
  const isWorse = isBetter === 'higher' ? change < -WORSE_BY : change > WORSE_BY;
  const percent = `${change < 0 ? '' : '+'}${Math.round(100 * change)}%`;
  return [name, value.toFixed(2), kept.value.toFixed(2), percent, isWorse ? '<<<<<<<<  worse' : ''];
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
