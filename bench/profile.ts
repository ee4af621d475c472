// Runs V8's profiler in every thread of a server under load. Prints where each thread spends its time, and writes flame
// graphs to bench/results.
//
//   npm run profile -- [--on sqlite|postgres|echo] [--load subtract|add|balance|mix|keyed]
//                      [--connections C] [--seconds S]

import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { closedLoop } from './closed-loop.ts';
import { type Frame, type FunctionTime, readProfile, selfTimes, totalTimes } from './cpu-profile.ts';
import { flameGraph } from './flame-graph.ts';
import { costsOf, threadCosts } from './process-costs.ts';
import { type Subject, Subjects } from './subjects.ts';
import { asText } from './tables.ts';
import * as workloads from './workload.ts';

const RESULTS = join(import.meta.dirname, 'results');
const WARM_UP_SECONDS = 2;
const FUNCTIONS_SHOWN = 25;
/** Longer names are cut off, because V8 reports regular expressions as functions with long names. */
const NAME_MAX = 60;
const OURS = /^(?:ledger|accounts|batching|store|http|tracing|events)\//;
const GROUP = workloads.CROWD_MEDIUM;
const LOADS: Readonly<Record<string, workloads.Workload>> = {
  subtract: workloads.SUBTRACT_MEDIUM,
  add: workloads.ADD_MEDIUM,
  balance: workloads.BALANCE_MEDIUM,
  keyed: { ...workloads.SUBTRACT_MEDIUM, name: workloads.SUBTRACT_KEYED.name, keyed: true },
  mix: { ...workloads.MIX, group: GROUP },
};
const MICROS = 1_000_000;

const { values } = parseArgs({
  options: {
    on: { type: 'string', default: 'sqlite' },
    load: { type: 'string', default: 'subtract' },
    connections: { type: 'string', default: '64' },
    seconds: { type: 'string', default: '10' },
  },
});
const load = LOADS[values.load];
if (load === undefined) throw new Error(`--load must be one of ${Object.keys(LOADS).join(', ')}`);
const subjects = new Subjects();
try {
  await profile(await startedWith(['--cpu-prof', `--cpu-prof-dir=${subjects.folder}`]), load);
} finally {
  await subjects.endAll();
}

async function startedWith(flags: readonly string[]): Promise<Subject> {
  if (values.on === 'postgres') return subjects.scripOnPostgres([GROUP], flags);
  if (values.on === 'echo') return subjects.echo(flags);
  const { file, secret } = await subjects.seed('profiled', [GROUP]);
  return subjects.scripOnSqlite(file, secret, flags);
}

async function profile(subject: Subject, workload: workloads.Workload): Promise<void> {
  const [connections, seconds] = [Number(values.connections), Number(values.seconds)];
  const pid = subject.pids[0] as number;
  await closedLoop(subject, workload, { connections, seconds: WARM_UP_SECONDS });
  const [before, threadsBefore] = [costsOf(subject.pids), threadCosts(pid)];
  const from = monotonicMicros();
  const { requests, p99 } = await closedLoop(subject, workload, { connections, seconds });
  const stretch = { from, until: monotonicMicros() };
  const [after, threadsAfter] = [costsOf(subject.pids), threadCosts(pid)];
  await subjects.end(subject);
  const all = (after.cpuMicros - before.cpuMicros) / requests;
  print(`${workload.name} on ${subject.name}: ${Math.round(requests / seconds)} requests/s, p99 ${p99.toFixed(1)} ms,`);
  print(`${all.toFixed(1)} µs of CPU per request, in all processes together, including the profiler`);
  const lines = [...threadsAfter]
    .map(([name, micros]) => [name, ((micros - (threadsBefore.get(name) ?? 0)) / requests).toFixed(2)])
    .toSorted((a, b) => Number(b[1]) - Number(a[1]));
  print(asText({ title: 'CPU by thread name', head: ['thread', 'µs per request'], lines }));
  mkdirSync(RESULTS, { recursive: true });
  for (const file of readdirSync(subjects.folder).filter((name) => name.endsWith('.cpuprofile'))) {
    // File names have the form CPU.<day>.<time>.<process>.<thread>.<number>.cpuprofile.
    const thread = Number(file.split('.')[4]);
    const name = thread === 0 ? 'main' : `thread-${thread}`;
    show(name, readProfile(join(subjects.folder, file), stretch), requests);
  }
}

function monotonicMicros(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}

function show(thread: string, root: Frame, requests: number): void {
  const busy = `${thread}: busy for ${(root.total / MICROS).toFixed(1)} s, ${(root.total / requests).toFixed(1)} µs per request`;
  const linesOf = (times: readonly FunctionTime[]) =>
    times
      .slice(0, FUNCTIONS_SHOWN)
      .map(({ name, place, micros }) => [
        (micros / requests).toFixed(2),
        `${((100 * micros) / root.total).toFixed(1)}%`,
        name.slice(0, NAME_MAX),
        place,
      ]);
  const head = ['µs per request', 'share', 'function', 'location'];
  print(asText({ title: `${busy}; functions without their callees`, head, lines: linesOf(selfTimes(root)) }));
  const ours = totalTimes(root).filter(({ place }) => OURS.test(place));
  print(asText({ title: `${thread}: Scrip's functions with their callees`, head, lines: linesOf(ours) }));
  const path = join(RESULTS, `flame-${values.on}-${values.load}-${thread}.svg`);
  writeFileSync(path, flameGraph(root, { title: busy, requests }));
  print(`The flame graph is in ${path}`);
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
