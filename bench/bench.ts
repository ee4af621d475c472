// Runs the benchmarks (`npm run bench`), prints the results as tables, and stores them in bench/results/latest.json.

import { join } from 'node:path';
import { writeChart } from './chart.ts';
import { printGuard } from './guard.ts';
import { type Options, optionsOf, USAGE } from './options.ts';
import { watchOthers } from './other-load.ts';
import { costs } from './parts/costs.ts';
import { growth } from './parts/growth.ts';
import { disk, largeLedger } from './parts/large-ledger.ts';
import { latency } from './parts/latency.ts';
import type { Part } from './parts/part.ts';
import { peers } from './parts/peers.ts';
import { quick } from './parts/quick.ts';
import { renewals, renewalsOnPostgres } from './parts/renewals.ts';
import { sqlite } from './parts/sqlite.ts';
import { publish } from './publish.ts';
import { isQuiet, keepPart, type PartResult, readResults, thisCommit } from './results.ts';
import { Subjects } from './subjects.ts';
import { asText, tablesOf } from './tables.ts';
import { targetTable } from './targets.ts';

const PARTS: readonly Part[] = [
  ...peers,
  ...sqlite,
  ...growth,
  latency,
  renewals,
  renewalsOnPostgres,
  largeLedger,
  disk,
  costs,
];

const LATEST = join(import.meta.dirname, 'results', 'latest.json');
const CHART = join(import.meta.dirname, 'results', 'chart.svg');

let options: Options | null = null;
try {
  options = optionsOf(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n\n${USAGE}`);
  process.exitCode = 2;
}
if (options?.chart) writeChart(readResults(LATEST), CHART);
else if (options?.publish) publish(readResults(LATEST));
else if (options?.quick) printGuard(await measure(quick, options), { keep: options.keep });
else if (options !== null) await measureAll(options);

async function measureAll(options: Options): Promise<void> {
  const { only } = options;
  const wanted = PARTS.filter(({ name }) => only.length === 0 || only.some((start) => name.startsWith(start)));
  if (wanted.length === 0) {
    process.stderr.write(
      `There is no part with this name. The parts are ${PARTS.map(({ name }) => name).join(', ')}.\n`,
    );
    process.exitCode = 2;
    return;
  }
  for (const part of wanted) {
    const result = await measure(part, options);
    const results = keepPart(LATEST, part.name, result);
    for (const table of tablesOf(part, result)) print(asText(table));
    writeChart(results, CHART);
  }
  print(asText(targetTable(readResults(LATEST), 'measured ones')));
  print(`The results are in ${LATEST}, and the chart is in ${CHART}.`);
}

async function measure(part: Part, options: Options): Promise<PartResult> {
  print(`\n${part.title}`);
  const started = performance.now();
  const otherLoad = watchOthers();
  const subjects = new Subjects();
  const measured = await part.run(subjects, options).finally(() => subjects.endAll());
  const tookSeconds = Math.round((performance.now() - started) / 1_000);
  const { othersCores, stolenCores } = otherLoad();
  print(`took ${tookSeconds} s; other processes used ${othersCores} cores, and steal time was ${stolenCores} cores`);
  const measuredAt = new Date().toISOString();
  const result = { measuredAt, commit: thisCommit(), tookSeconds, othersCores, stolenCores, ...measured };
  if (!isQuiet(result)) print('!!!!!!!!  The machine was busy with other work: measure this part again.');
  return result;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
