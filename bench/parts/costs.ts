// Measures the costs from which docs/capacity.md is computed: the CPU time of a subtraction, of its background work, and
// of a balance read. On PostgreSQL, the CPU time of Scrip and of PostgreSQL are measured separately.

import { setTimeout as sleep } from 'node:timers/promises';
import { closedLoop } from '../closed-loop.ts';
import { untilIdle } from '../in-turn.ts';
import { costsOf, threadCosts } from '../process-costs.ts';
import { type Figure, median } from '../results.ts';
import type { Subject } from '../subjects.ts';
import { BALANCE_MEDIUM, CROWD_MEDIUM, SUBTRACT_MEDIUM, type Workload } from '../workload.ts';
import type { Part } from './part.ts';

const CONNECTIONS = 64;
const ROUNDS_MAX = 3;
const WARM_UP_SECONDS = 8;
const LOADED_SECONDS = 4;
/** An idle server also uses some CPU, which does not count as background work. */
const IDLE_SECONDS = 5;

/** Microseconds of CPU time. */
interface Cpu {
  readonly main: number;
  readonly scrip: number;
  readonly database: number;
}

export const costs: Part = {
  name: 'costs',
  title: 'CPU of a subtraction, of its background work, and of a balance read',
  async run(subjects, { rounds, connections }) {
    const load = { connections: connections ?? CONNECTIONS, rounds: Math.min(ROUNDS_MAX, rounds) };
    const { file, secret } = await subjects.seed('medium', [CROWD_MEDIUM]);
    const onSqlite = await subjects.scripOnSqlite(file, secret);
    const figures = await costsWith('SQLite', onSqlite, load);
    await subjects.end(onSqlite);
    figures.push(...(await costsWith('PostgreSQL', await subjects.scripOnPostgres([CROWD_MEDIUM]), load)));
    return { rows: [], figures };
  },
};

async function costsWith(
  store: string,
  subject: Subject,
  { connections, rounds }: { readonly connections: number; readonly rounds: number },
): Promise<Figure[]> {
  await closedLoop(subject, SUBTRACT_MEDIUM, { connections, seconds: WARM_UP_SECONDS });
  await closedLoop(subject, BALANCE_MEDIUM, { connections, seconds: LOADED_SECONDS });
  await untilIdle(subject, IDLE_SECONDS);
  const idle = await cpuDuring(subject, () => sleep(IDLE_SECONDS * 1_000));
  const subtractions: Cpu[] = [];
  const background: Cpu[] = [];
  const balances: Cpu[] = [];
  for (let round = 0; round < rounds; round++) {
    const loaded = await perRequest(subject, SUBTRACT_MEDIUM, connections);
    subtractions.push(loaded.cpu);
    const started = performance.now();
    const after = await cpuDuring(subject, () => untilIdle(subject, IDLE_SECONDS));
    const idleShare = (performance.now() - started) / (IDLE_SECONDS * 1_000);
    background.push(eachOf((name) => (after[name] - idleShare * idle[name]) / loaded.requests));
    balances.push((await perRequest(subject, BALANCE_MEDIUM, connections)).cpu);
  }
  const measured = {
    'a subtraction': subtractions,
    'background work for a subtraction': background,
    'a balance read': balances,
  };
  return Object.entries(measured).flatMap(([what, all]) => figuresOf(`${store}, ${what}`, all));
}

async function perRequest(subject: Subject, workload: Workload, connections: number) {
  let requests = 0;
  const total = await cpuDuring(subject, async () => {
    ({ requests } = await closedLoop(subject, workload, { connections, seconds: LOADED_SECONDS }));
  });
  return { requests, cpu: eachOf((name) => total[name] / requests) };
}

async function cpuDuring(subject: Subject, work: () => Promise<unknown>): Promise<Cpu> {
  const before = cpuOf(subject);
  await work();
  const after = cpuOf(subject);
  return eachOf((name) => after[name] - before[name]);
}

function cpuOf({ pids: [scrip, ...database] }: Subject): Cpu {
  return {
    main: threadCosts(scrip as number).get('node-MainThread') ?? 0,
    scrip: costsOf([scrip as number]).cpuMicros,
    database: costsOf(database).cpuMicros,
  };
}

function eachOf(value: (name: keyof Cpu) => number): Cpu {
  return { main: value('main'), scrip: value('scrip'), database: value('database') };
}

function figuresOf(name: string, all: readonly Cpu[]): Figure[] {
  const [main, scrip, database] = (['main', 'scrip', 'database'] as const).map((of) =>
    median(all.map((cpu) => cpu[of])),
  ) as [number, number, number];
  const figures = [
    { name: `${name}, Scrip`, value: scrip, unit: 'µs' },
    { name: `${name}, Scrip's main thread`, value: main, unit: 'µs' },
  ];
  return database > 0 ? [...figures, { name: `${name}, PostgreSQL`, value: database, unit: 'µs' }] : figures;
}
