// `npm run event-storm`: moves every end user across a threshold within a minute, and measures delivery times and write
// speed. With `-- --closed-loop`, the command compares the speed of `/subtract` with and without a webhook endpoint.

import { parseArgs } from 'node:util';
import { closedLoop } from '../../bench/closed-loop.ts';
import { openLoopFrom } from '../../bench/open-loop.ts';
import { costsOf } from '../../bench/process-costs.ts';
import { median } from '../../bench/results.ts';
import type { Subject } from '../../bench/subjects.ts';
import { CREDITS, CROWD_SMALL, endUserId, SUBTRACT_SMALL } from '../../bench/workload.ts';
import { arrivalProblems, readLog } from './expected-events.ts';
import { delivered, derived, EachUser, type MeasuredSubjects, startSubjects, watchLag } from './measured-subjects.ts';

const OPEN_CONNECTIONS = 64;
const CLOSED_CONNECTIONS = 64;
const REFILL_RATE = 2_000;
const WARM_UP_USERS = 5_000;
const SHOWN = 10;

const { values } = parseArgs({
  options: {
    users: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '60' },
    rounds: { type: 'string', default: '4' },
    'closed-loop': { type: 'boolean', default: false },
  },
});
const [users, seconds, rounds] = [Number(values.users), Number(values.seconds), Number(values.rounds)];

interface Round {
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
  readonly cpuMicros: number;
  readonly failures: number;
}

interface Pair {
  readonly watched: Round;
  readonly plain: Round;
}

if (values['closed-loop']) await compareClosedLoops();
else await storm();

async function storm(): Promise<void> {
  const group = { first: 0, users, cycles: 1, transactions: 1 };
  const subjects = await startSubjects(group, { thresholds: [{ credits: CREDITS }], types: ['balance.low'] });
  const pairs: Pair[] = [];
  try {
    await warmUp(subjects.watched);
    await warmUp(subjects.plain);
    for (let round = 0; round < rounds; round++)
      pairs.push(
        await inTurn(
          round,
          () => stormOn(subjects.watched, subjects, round),
          () => stormOn(subjects.plain, null, round),
        ),
      );
    await checkArrivals(subjects);
    printRatios(pairs);
  } finally {
    await subjects.end();
  }
}

async function warmUp(subject: Subject): Promise<void> {
  const load = {
    rate: REFILL_RATE,
    seconds: Math.min(users, WARM_UP_USERS) / REFILL_RATE,
    connections: OPEN_CONNECTIONS,
  };
  await openLoopFrom(subject, new EachUser('/add'), load);
  await openLoopFrom(subject, new EachUser('/subtract'), load);
}

async function inTurn(round: number, onWatched: () => Promise<Round>, onPlain: () => Promise<Round>): Promise<Pair> {
  if (round % 2 === 0) return { watched: await onWatched(), plain: await onPlain() };
  const plain = await onPlain();
  return { watched: await onWatched(), plain };
}

async function stormOn(subject: Subject, watching: MeasuredSubjects | null, round: number): Promise<Round> {
  if (round > 0) {
    const refill = { rate: REFILL_RATE, seconds: users / REFILL_RATE, connections: OPEN_CONNECTIONS };
    await openLoopFrom(subject, new EachUser('/add'), refill);
  }
  await derived(subject);
  const from = watching?.receiver.read().length ?? 0;
  const lag = watchLag(subject);
  const measured = await measuredRound(subject, () =>
    openLoopFrom(subject, new EachUser('/subtract'), { rate: users / seconds, seconds, connections: OPEN_CONNECTIONS }),
  );
  const ended = performance.now();
  await (watching === null ? derived(subject) : delivered(subject));
  const name = watching === null ? 'without threshold and endpoint' : 'with threshold and endpoint';
  say(`${name}: ${textOf(measured)}; derivation lag at most ${ms(1_000 * (await lag.stop()))}`);
  if (watching !== null) {
    const delays = watching.receiver
      .read()
      .slice(from)
      .map(delayOf)
      .toSorted((a, b) => a - b);
    const at = (share: number) => ms(delays[Math.min(delays.length - 1, Math.floor(delays.length * share))] ?? 0);
    const settled = ms(performance.now() - ended);
    say(
      `        ${delays.length} events arrived ${at(0.5)} (median), ${at(0.99)} (p99), ${at(1)} (max) after they happened; all ${settled} after the load`,
    );
  }
  return measured;
}

async function checkArrivals({ watched, receiver }: MeasuredSubjects): Promise<void> {
  const log = (await readLog(watched.url, watched.secret)).filter(({ type }) => type === 'balance.low');
  const problems = arrivalProblems(log, receiver.read());
  const counts = new Map<string, number>();
  for (const { data } of log) {
    counts.set(data.end_user_id, (counts.get(data.end_user_id) ?? 0) + 1);
    if (data.balance !== CREDITS - 1) problems.push(`an event has the balance ${data.balance}`);
  }
  for (let user = 0; user < users; user++) {
    const count = counts.get(endUserId(user)) ?? 0;
    if (count !== rounds) problems.push(`${endUserId(user)} has ${count} events instead of ${rounds}`);
  }
  const again = receiver.read().length - log.length;
  say(`${problems.length === 0 ? 'ok' : 'NOT OK'}  ${log.length} events, ${again} delivered again`);
  for (const sentence of problems.slice(0, SHOWN)) say(`        ${sentence}`);
  if (problems.length > 0) process.exitCode = 1;
}

async function compareClosedLoops(): Promise<void> {
  const subjects = await startSubjects(CROWD_SMALL, { thresholds: [], types: [] });
  const load = { connections: CLOSED_CONNECTIONS, seconds };
  const pairs: Pair[] = [];
  const measure = async (subject: Subject, name: string): Promise<Round> => {
    const round = await measuredRound(subject, () => closedLoop(subject, SUBTRACT_SMALL, load));
    const ended = performance.now();
    await (subject === subjects.watched ? delivered(subject) : derived(subject));
    say(`${name}: ${textOf(round)}; settled ${ms(performance.now() - ended)} after the load`);
    return round;
  };
  try {
    await delivered(subjects.watched);
    await derived(subjects.plain);
    await measure(subjects.watched, 'warm-up, with an endpoint');
    await measure(subjects.plain, 'warm-up, without an endpoint');
    for (let round = 0; round < rounds; round++)
      pairs.push(
        await inTurn(
          round,
          () => measure(subjects.watched, 'with an endpoint'),
          () => measure(subjects.plain, 'without an endpoint'),
        ),
      );
    printRatios(pairs);
  } finally {
    await subjects.end();
  }
}

async function measuredRound(subject: Subject, load: () => ReturnType<typeof closedLoop>): Promise<Round> {
  const before = costsOf(subject.pids).cpuMicros;
  const { requests, seconds: took, p50, p99, failures } = await load();
  const cpuMicros = (costsOf(subject.pids).cpuMicros - before) / Math.max(1, requests);
  if (failures > 0) process.exitCode = 1;
  return { rate: requests / took, p50, p99, cpuMicros, failures };
}

function delayOf({ at, body }: { readonly at: number; readonly body: string }): number {
  return at - Date.parse((JSON.parse(body) as { timestamp: string }).timestamp);
}

function printRatios(pairs: readonly Pair[]): void {
  const ratio = (pick: (round: Round) => number) =>
    median(pairs.map(({ watched, plain }) => pick(watched) / pick(plain))).toFixed(3);
  const [rate, p99, cpu] = [
    ratio((round) => round.rate),
    ratio((round) => round.p99),
    ratio((round) => round.cpuMicros),
  ];
  say(
    `ratios with/without endpoint, median of ${pairs.length}: requests/s ${rate}, p99 ${p99}, CPU per request ${cpu}`,
  );
}

function textOf({ rate, p50, p99, cpuMicros, failures }: Round): string {
  return `${Math.round(rate)} requests/s, p50 ${ms(p50)}, p99 ${ms(p99)}, ${Math.round(cpuMicros)} µs of CPU each, ${failures} failures`;
}

function ms(value: number): string {
  return value < 100 ? `${value.toFixed(1)} ms` : `${Math.round(value)} ms`;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
