// Loads several subjects in alternating rounds, so that other load on the machine affects all subjects alike, and
// computes the median of the rounds.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Answered, closedLoop } from './closed-loop.ts';
import { openLoop } from './open-loop.ts';
import { costsOf } from './process-costs.ts';
import { median, type Row } from './results.ts';
import type { Subject } from './subjects.ts';
import type { Workload } from './workload.ts';

export interface Contest {
  readonly subject: Subject;
  readonly workload: Workload;
}

export interface Rounds {
  readonly connections: number;
  readonly rounds: number;
  readonly seconds: number;
  /** Seconds of load on each subject before the first round; 0 for no warm-up. */
  readonly warmUp: number;
}

interface Round extends Answered {
  readonly cpuMicros: number;
  readonly residentMib: number;
}

const MIB = 2 ** 20;

const run = promisify(execFile);

export async function inTurn(contests: readonly Contest[], settings: Rounds): Promise<Row[]> {
  const { connections, seconds, warmUp } = settings;
  for (const { subject, workload } of contests)
    if (warmUp > 0) await closedLoop(subject, workload, { connections, seconds: warmUp });
  const rounds = await eachInTurn(contests, settings.rounds, ({ subject, workload }) =>
    measured(subject, () => closedLoop(subject, workload, { connections, seconds })),
  );
  return contests.map((contest, index) => rowOf(contest, 'closed', connections, rounds[index] as Round[]));
}

export async function inTurnAtRate(
  contests: readonly Contest[],
  { connections, rounds: count, seconds, rate }: Omit<Rounds, 'warmUp'> & { readonly rate: number },
): Promise<Row[]> {
  const rounds = await eachInTurn(contests, count, ({ subject, workload }) =>
    measured(subject, () => openLoop(subject, workload, { connections, seconds, rate })),
  );
  return contests.map((contest, index) => ({
    ...rowOf(contest, 'open', connections, rounds[index] as Round[]),
    rate,
  }));
}

async function eachInTurn(
  contests: readonly Contest[],
  count: number,
  run: (contest: Contest) => Promise<Round>,
): Promise<Round[][]> {
  const rounds: Round[][] = contests.map(() => []);
  for (let round = 0; round < count; round++)
    for (const [index, contest] of contests.entries()) rounds[index]?.push(await run(contest));
  return rounds;
}

async function measured({ pids }: Subject, load: () => Promise<Answered>): Promise<Round> {
  await writeBack();
  const before = costsOf(pids);
  const answered = await load();
  const after = costsOf(pids);
  return {
    ...answered,
    cpuMicros: (after.cpuMicros - before.cpuMicros) / Math.max(1, answered.requests),
    residentMib: after.residentBytes / MIB,
  };
}

/** Flushes the previous subject's writes to disk now, so that they do not slow down the next subject. */
async function writeBack(): Promise<void> {
  await run('sync').catch(() => {});
}

function rowOf({ subject, workload }: Contest, loop: Row['loop'], connections: number, rounds: readonly Round[]): Row {
  const of = (pick: (round: Round) => number) => rounded(median(rounds.map(pick)));
  return {
    workload: workload.name,
    subject: subject.name,
    loop,
    connections,
    rounds: rounds.length,
    rate: of(({ requests, seconds }) => requests / seconds),
    cpuMicros: of(({ cpuMicros }) => cpuMicros),
    p50: of(({ p50 }) => p50),
    p99: of(({ p99 }) => p99),
    p999: of(({ p999 }) => p999),
    residentMib: of(({ residentMib }) => residentMib),
    failures: rounds.reduce((sum, { failures }) => sum + failures, 0),
    eachRound: rounds.map(({ requests, seconds, cpuMicros, p99 }) => ({
      rate: rounded(requests / seconds),
      cpuMicros: rounded(cpuMicros),
      p99: rounded(p99),
    })),
  };
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
