// The deterministic simulation from the command line:
//
//   npm run simulate -- [--seed N] [--seeds COUNT] [--operations COUNT] [--threads COUNT]
//   npm run simulate -- --seed N --trace                     one seed, with every line of its trace
//   npm run simulate -- --seed N --control 'NAME'            one seed, on a store that is broken on purpose
//
// With `--seed` but without `--seeds`, runs one seed. Otherwise, runs `--seeds` seeds (by default 200), then the stores
// that are broken on purpose. Exits with code 1 if a seed fails, a broken store is not caught, or a request is never
// finished.

import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { withProgress } from '../../src/cli/output.ts';
import { CONTROLS, type Control } from './controls.ts';
import { FAULTS } from './faults.ts';
import { type Caught, CONTROL_OPERATIONS, CONTROL_SEEDS_MAX, SeedRunner } from './seed-runner.ts';
import type { Report, Task } from './seed-worker.ts';
import { commandFor, failureText, Tally } from './tally.ts';

/** Small, because the other threads are idle while one thread runs the last task. */
const SEEDS_A_TASK = 2;
const SEED_SPAN = 2 ** 31;

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    operations: { type: 'string', default: '1000' },
    threads: { type: 'string', default: String(availableParallelism()) },
    control: { type: 'string' },
    trace: { type: 'boolean', default: false },
  },
});
const operations = numberOf('operations', values.operations);
const first = values.seed === undefined ? Math.floor(Math.random() * SEED_SPAN) : numberOf('seed', values.seed);
const isOne = values.seeds === undefined && values.seed !== undefined;
if (values.control !== undefined && !isOne) throw new Error('--control needs --seed, without --seeds');
process.exitCode = isOne
  ? await runOne(first)
  : await runMany(numberOf('seeds', values.seeds ?? '200'), numberOf('threads', values.threads));

async function runOne(seed: number): Promise<number> {
  const control = (values.control ?? null) as Control | null;
  if (control !== null && !CONTROLS.includes(control)) throw new Error(`the controls are: ${CONTROLS.join(', ')}`);
  const runner = await SeedRunner.build();
  const onTrace = values.trace ? say : null;
  const result = await runner.run({ seed, operations, control, onTrace });
  await runner.close();
  const tally = new Tally();
  tally.add(result);
  if (result.violation !== null) say(failureText(result, commandFor({ seed, operations, control })));
  else say(`seed ${seed}: ${figuresOf(tally)}`);
  return result.violation === null ? 0 : 1;
}

async function runMany(count: number, threads: number): Promise<number> {
  if (threads < 1) throw new Error('--threads must be at least 1');
  const tasks: Task[] = [];
  for (let from = first; from < first + count; from += SEEDS_A_TASK) {
    const length = Math.min(SEEDS_A_TASK, first + count - from);
    tasks.push({ kind: 'seeds', seeds: Array.from({ length }, (_, index) => from + index), operations });
  }
  say(`${count} seeds, starting with ${first}, of ${operations} operations each, on ${threads} threads`);
  const workers = Array.from(
    { length: threads },
    () =>
      new Worker(new URL('./seed-worker.ts', import.meta.url), { resourceLimits: { maxYoungGenerationSizeMb: 128 } }),
  );
  const tally = new Tally();
  let inFlight = 0;
  const started = performance.now();
  const used = process.cpuUsage();
  await withProgress((show) =>
    hand(workers, tasks, (report) => {
      if (report.kind !== 'seeds') return;
      for (const result of report.results) {
        tally.add(result);
        const { seed, violation } = result;
        if (violation !== null) say(failureText(result, commandFor({ seed, operations, control: null })));
      }
      inFlight = Math.max(inFlight, report.inFlight);
      show({ step: 'simulating', done: tally.seeds, total: count, unit: 'seeds' });
    }),
  );
  const minutes = (performance.now() - started) / 60_000;
  const { user, system } = process.cpuUsage(used);
  const processorMs = (user + system) / 1_000;
  const caught: Caught[] = [];
  const controls = CONTROLS.map((control): Task => ({ kind: 'control', control, from: first }));
  await hand(workers, controls, (report) => {
    if (report.kind === 'control') caught.push(report.caught);
  });
  await Promise.all(workers.map((worker) => worker.terminate()));
  return tell(tally, { minutes, processorMs, inFlight, caught });
}

async function hand(workers: readonly Worker[], tasks: readonly Task[], take: (report: Report) => void): Promise<void> {
  const waiting = tasks.slice();
  const work = (worker: Worker) =>
    new Promise<void>((resolve, reject) => {
      const next = () => {
        const task = waiting.shift();
        if (task !== undefined) return worker.postMessage(task);
        worker.off('message', onReport).off('error', reject);
        return resolve();
      };
      const onReport = (report: Report) => {
        take(report);
        next();
      };
      worker.on('message', onReport).on('error', reject);
      next();
    });
  await Promise.all(workers.map(work));
}

function tell(
  tally: Tally,
  {
    minutes,
    processorMs,
    inFlight,
    caught,
  }: { minutes: number; processorMs: number; inFlight: number; caught: readonly Caught[] },
): number {
  say(
    `${figuresOf(tally)}\n${Math.round(tally.seeds / minutes)} seeds a minute, ${Math.round(processorMs / tally.seeds)} ms of CPU time a seed\n`,
  );
  say('faults:');
  for (const fault of FAULTS) say(`${String(tally.faults.get(fault) ?? 0).padStart(10)}  ${fault}`);
  say('decided operations, and renewals and changes of plan by case:');
  for (const [outcome, count] of [...tally.outcomes].sort()) say(`${String(count).padStart(10)}  ${outcome}`);
  say(`stores broken on purpose, to be caught within ${CONTROL_SEEDS_MAX} seeds of ${CONTROL_OPERATIONS} operations:`);
  for (const { control, result, seeds } of caught) {
    say(result === null ? `  NOT CAUGHT  ${control}` : `  caught on try ${String(seeds).padStart(2)}  ${control}`);
  }
  if (inFlight > 0) say(`${inFlight} requests were never finished`);
  say(`${tally.failures.length} of ${tally.seeds} seeds failed`);
  const isGood = tally.failures.length === 0 && inFlight === 0 && caught.every(({ result }) => result !== null);
  return isGood ? 0 : 1;
}

function figuresOf(tally: Tally): string {
  const mean = (tally.faultCount / tally.seeds).toFixed(1);
  const days = Math.round(tally.days);
  return `${tally.operations} operations by ${tally.requests} requests, ${days} days, ${tally.faultCount} faults (${mean} a seed), trace ${tally.traceHash}`;
}

function numberOf(name: string, text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 0) throw new Error(`--${name} must be a whole number`);
  return number;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
