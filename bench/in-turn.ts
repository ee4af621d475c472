// Measures several subjects: Scrip and the systems that it is compared with. The subjects are put under load in
// alternating short blocks, so that other load on the machine affects all subjects alike. A round is one block of each
// subject. The results are medians over the rounds that were not dropped. Only one subject at a time gets requests.
// The other subjects keep running, except in `fromStart`.
//
//   warm-up of each subject ──▶ blocks in turn ──▶ rounds with an unusually slow or fast echo are dropped ──▶ medians

import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type Answered, closedLoop } from './closed-loop.ts';
import { openLoop } from './open-loop.ts';
import { costsOf } from './process-costs.ts';
import { ECHO, median, type Row } from './results.ts';
import type { Subject } from './subjects.ts';
import type { Workload } from './workload.ts';

export interface Contest {
  readonly subject: Subject;
  readonly workload: Workload;
}

export interface Blocks {
  readonly connections: number;
  readonly rounds: number;
  readonly seconds: number;
}

/**
 * A warm-up ends when at least `requestsMin` requests have been answered and the CPU time per request has stopped
 * falling, or after `secondsMax` seconds if that is earlier.
 */
export interface WarmUp {
  readonly requestsMin: number;
  readonly secondsMax: number;
}

interface Round extends Answered {
  readonly cpuMicros: number;
  readonly residentMib: number;
}

const MIB = 2 ** 20;

/** A round is dropped if the echo server's CPU time or throughput differs from its median by more than this share. */
const ECHO_OFF_MAX = 0.1;

/** The CPU time per request counts as falling only if it falls by more than this share. */
const FALLING_BY = 0.02;
const BLOCKS_NOT_FALLING = 3;

const IDLE_WITHIN_S = 120;
/** A subject is idle if it uses less CPU time per second than this. */
const IDLE_MICROS = 50_000;

const run = promisify(execFile);

export async function inTurn(
  contests: readonly Contest[],
  { warmUp, ...blocks }: Blocks & { readonly warmUp: WarmUp | null },
): Promise<Row[]> {
  if (warmUp !== null)
    for (const [index, contest] of contests.entries()) {
      await settle(contest, blocks, warmUp);
      if (contests[index + 1]?.subject !== contest.subject) await untilIdle(contest.subject);
    }
  const all = await eachInTurn(contests, blocks.rounds, (contest) => block(contest, blocks));
  const echo = all[contests.findIndex(({ subject }) => subject.name === ECHO)] ?? [];
  const steady = steadyRounds(echo);
  if (steady === null && echo.length > 0)
    process.stderr.write('The speed of the echo varied too much, so no round was dropped.\n');
  return contests.map((contest, index) => {
    const rounds = all[index] as Round[];
    const kept = rounds.filter((_, round) => steady?.has(round) ?? true);
    return { ...rowOf(contest, 'closed', blocks.connections, kept), dropped: rounds.length - kept.length };
  });
}

/**
 * Waits until the background jobs of a subject have caught up.
 *
 * @param idleSeconds for how long the subject must be idle: the jobs pause for a second or two after a load
 */
export async function untilIdle({ pids }: Subject, idleSeconds = 1): Promise<void> {
  let idle = 0;
  for (let seconds = 0; seconds < IDLE_WITHIN_S && idle < idleSeconds; seconds++) {
    const before = costsOf(pids).cpuMicros;
    await sleep(1_000);
    idle = costsOf(pids).cpuMicros - before < IDLE_MICROS ? idle + 1 : 0;
  }
}

/**
 * Warms up with several blocks, not just one: at the end of the first block, connections close while requests are in
 * flight, which makes V8 discard optimized code.
 */
async function settle(contest: Contest, blocks: Blocks, { requestsMin, secondsMax }: WarmUp): Promise<void> {
  let requests = 0;
  let lowest = Number.POSITIVE_INFINITY;
  let notFalling = 0;
  for (let seconds = 0; seconds < secondsMax; seconds += blocks.seconds) {
    const round = await block(contest, blocks);
    requests += round.requests;
    notFalling = round.cpuMicros < (1 - FALLING_BY) * lowest ? 0 : notFalling + 1;
    lowest = Math.min(lowest, round.cpuMicros);
    if (requests >= requestsMin && notFalling >= BLOCKS_NOT_FALLING) return;
  }
}

/**
 * Returns the rounds in which the echo server's CPU time and throughput were near their medians. If at most half of the
 * rounds qualify, the medians are unreliable, and the function returns null.
 */
function steadyRounds(echo: readonly Round[]): ReadonlySet<number> | null {
  const usual = { cpu: median(echo.map(({ cpuMicros }) => cpuMicros)), rate: median(echo.map(rateOf)) };
  const isOff = (value: number, median: number) => Math.abs(value / median - 1) > ECHO_OFF_MAX;
  const steady = new Set<number>();
  for (const [round, measured] of echo.entries())
    if (!isOff(measured.cpuMicros, usual.cpu) && !isOff(rateOf(measured), usual.rate)) steady.add(round);
  return 2 * steady.size > echo.length ? steady : null;
}

export interface FreshContest {
  readonly workload: Workload;
  readonly start: () => Promise<Subject>;
}

/** Starts a new process for each block. The start-up time is not measured. */
export async function fromStart(
  contests: readonly FreshContest[],
  blocks: Blocks,
  end: (subject: Subject) => Promise<void>,
): Promise<Row[]> {
  const started: Contest[] = [];
  const all = await eachInTurn(contests, blocks.rounds, async ({ workload, start }, index) => {
    const contest = { workload, subject: await start() };
    started[index] = contest;
    const round = await block(contest, blocks);
    await end(contest.subject);
    return round;
  });
  return started.map((contest, index) => rowOf(contest, 'closed', blocks.connections, all[index] as Round[]));
}

export async function inTurnAtRate(
  contests: readonly Contest[],
  { connections, rounds, seconds, rate }: Blocks & { readonly rate: number },
): Promise<Row[]> {
  const all = await eachInTurn(contests, rounds, ({ subject, workload }) =>
    measured(subject, () => openLoop(subject, workload, { connections, seconds, rate })),
  );
  return contests.map((contest, index) => ({
    ...rowOf(contest, 'open', connections, all[index] as Round[]),
    rate,
  }));
}

async function eachInTurn<Each>(
  contests: readonly Each[],
  count: number,
  run: (contest: Each, index: number) => Promise<Round>,
): Promise<Round[][]> {
  const rounds: Round[][] = contests.map(() => []);
  for (let round = 0; round < count; round++)
    for (const [index, contest] of contests.entries()) rounds[index]?.push(await run(contest, index));
  return rounds;
}

function block({ subject, workload }: Contest, { connections, seconds }: Blocks): Promise<Round> {
  return measured(subject, () => closedLoop(subject, workload, { connections, seconds }));
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

/** Waits until all data is on disk, because unfinished writes of one subject would slow down the next subject. */
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
    dropped: 0,
    rate: of(rateOf),
    cpuMicros: of(({ cpuMicros }) => cpuMicros),
    p50: of(({ p50 }) => p50),
    p99: of(({ p99 }) => p99),
    p999: of(({ p999 }) => p999),
    residentMib: of(({ residentMib }) => residentMib),
    failures: rounds.reduce((sum, { failures }) => sum + failures, 0),
    eachRound: rounds.map((round) => ({
      rate: rounded(rateOf(round)),
      cpuMicros: rounded(round.cpuMicros),
      p99: rounded(round.p99),
    })),
  };
}

function rateOf({ requests, seconds }: Answered): number {
  return requests / seconds;
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
