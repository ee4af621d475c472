// Writes the latest results into the documentation: the tables between the marker comments in docs/benchmarks.md, the
// chart, and the raw results in docs/benchmarks.json.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeChart } from './chart.ts';
import { isQuiet, type Results } from './results.ts';
import { asMarkdown, tablesOf } from './tables.ts';
import { targetTable } from './targets.ts';

const DOCS = join(import.meta.dirname, '..', 'docs');
const PAGE = join(DOCS, 'benchmarks.md');

const MARK = /<!-- (machine|targets|part [\w-]+) -->[\s\S]*?<!-- end -->/g;

export function publish(results: Results): void {
  const busy = Object.entries(results.parts).filter(([, part]) => !isQuiet(part));
  for (const [name] of busy) process.stderr.write(`!!!!!!!!  ${name} was measured on a busy machine\n`);
  const page = readFileSync(PAGE, 'utf8').replaceAll(
    MARK,
    (_, mark: string) => `<!-- ${mark} -->\n${textFor(mark, results)}\n<!-- end -->`,
  );
  writeFileSync(PAGE, page);
  writeFileSync(join(DOCS, 'benchmarks.json'), `${JSON.stringify(results, null, 2)}\n`);
  writeChart(results, join(DOCS, 'benchmarks.svg'));
}

function textFor(mark: string, results: Results): string {
  if (mark === 'machine') return machineText(results);
  if (mark === 'targets') return asMarkdown(targetTable(results));
  const name = mark.slice('part '.length);
  const part = results.parts[name];
  if (part === undefined) return 'Not measured yet.';
  const tables = tablesOf({ title: name }, part).map(asMarkdown);
  const when = `${part.measuredAt.slice(0, 16).replace('T', ' ')} UTC`;
  const { othersCores, stolenCores } = part;
  const others =
    othersCores === undefined
      ? ''
      : `; other processes used ${othersCores} cores, and steal time was ${stolenCores} cores`;
  return [...tables, `_\`npm run bench -- --only ${name}\`, ${when}, commit ${part.commit}${others}._`].join('\n\n');
}

function machineText({ machine, parts }: Results): string {
  const { processor, cores, memoryGib, system, node, generator } = machine;
  const days = [...new Set(Object.values(parts).map(({ measuredAt }) => measuredAt.slice(0, 10)))].sort();
  return `${processor} with ${cores} cores, ${memoryGib} GiB of memory, ${system}, Node ${node}, load from ${generator} on the same cores; measured on ${days.join(', ')}.`;
}
