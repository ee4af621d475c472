// Measures how fast Scrip stores many renewals that are due at the same instant. On SQLite, a million renewals are due
// while Scrip also handles subtractions, and the benchmark checks the balances of end users whose renewals are not
// stored yet. On PostgreSQL, several processes store 300,000 renewals and handle no requests.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Answered, closedLoop } from '../closed-loop.ts';
import { openLoop } from '../open-loop.ts';
import type { Figure } from '../results.ts';
import type { Subject } from '../subjects.ts';
import { CREDITS, CROWD_SMALL, endUserId, type Group, RENEWING, SUBTRACT_SMALL } from '../workload.ts';
import type { Part } from './part.ts';

const RATE = 5_000;
/** Enough connections that requests queue in the server, not in the load generator. */
const CONNECTIONS = 256;
const ALONE_SECONDS = 8;
const BESIDE_SECONDS = 10;
/** An estimate. If seeding takes less time, the benchmark waits. */
const SEEDING_SECONDS = 45;
const READY_SECONDS = 2 * ALONE_SECONDS;
const PROBE_MS = 100;
const PATIENCE_MS = 120_000;

const PROCESSES = 3;
const RENEWING_ON_POSTGRES: Group = { ...RENEWING, users: 300_000 };
const SEEDING_POSTGRES_SECONDS = 150;

export const renewals: Part = {
  name: 'renewals',
  title: `${RENEWING.users.toLocaleString('en')} renewals due at once, with ${RATE.toLocaleString('en')} subtractions per second`,
  async run(subjects) {
    const dueAt = Math.ceil((Date.now() + (SEEDING_SECONDS + READY_SECONDS) * 1_000) / 1_000) * 1_000;
    const { file, secret } = await subjects.seed('renewing', [CROWD_SMALL, RENEWING], dueAt);
    const subject = await subjects.scripOnSqlite(file, secret);
    await closedLoop(subject, SUBTRACT_SMALL, { connections: CONNECTIONS, seconds: 2 });
    const load = { rate: RATE, connections: CONNECTIONS };
    const isEarly = dueAt - Date.now() > (ALONE_SECONDS + 1) * 1_000;
    const alone = isEarly ? await openLoop(subject, SUBTRACT_SMALL, { ...load, seconds: ALONE_SECONDS }) : null;
    await sleep(Math.max(0, dueAt - Date.now()));
    const storm = watchStorm(subject, dueAt);
    const beside = await openLoop(subject, SUBTRACT_SMALL, { ...load, seconds: BESIDE_SECONDS });
    const { seconds, probes, wrong } = await storm;
    // If there was no time before `dueAt` to measure the latency without renewals, measure it now.
    const quiet = alone ?? (await openLoop(subject, SUBTRACT_SMALL, { ...load, seconds: ALONE_SECONDS }));
    const figures: Figure[] = [
      { name: 'renewals stored', value: RENEWING.users / seconds, unit: 'per second' },
      { name: 'time until all were stored', value: seconds, unit: 's' },
      ...latencies('without renewals', quiet),
      ...latencies('during the renewals', beside),
      { name: 'balances read before the renewal was stored', value: probes, unit: '' },
      { name: 'wrong balances among them', value: wrong, unit: '' },
    ];
    await subjects.end(subject);
    return { rows: [], figures };
  },
};

export const renewalsOnPostgres: Part = {
  name: 'renewals-postgres',
  title: `${RENEWING_ON_POSTGRES.users.toLocaleString('en')} renewals due at once on PostgreSQL, with ${PROCESSES} processes and no requests`,
  async run(subjects) {
    const dueAt = Date.now() + SEEDING_POSTGRES_SECONDS * 1_000;
    const seeded = await subjects.seedPostgres([RENEWING_ON_POSTGRES], dueAt);
    const processes: Subject[] = [];
    for (let started = 0; started < PROCESSES; started++) processes.push(await subjects.processOnPostgres(seeded));
    if (Date.now() > dueAt) throw new Error('the renewals were due before all processes had started');
    await sleep(dueAt - Date.now());
    const seconds = await untilRenewed(processes, RENEWING_ON_POSTGRES.users, dueAt);
    const figures: Figure[] = [
      { name: 'renewals stored', value: RENEWING_ON_POSTGRES.users / seconds, unit: 'per second' },
      { name: 'time until all were stored', value: seconds, unit: 's' },
    ];
    return { rows: [], figures };
  },
};

/** @returns the seconds from `dueAt` until the processes together had stored all renewals */
async function untilRenewed(processes: readonly Subject[], users: number, dueAt: number): Promise<number> {
  for (;;) {
    const counts = await Promise.all(processes.map(renewedCount));
    const renewed = counts.reduce((sum, count) => sum + count, 0);
    const seconds = (Date.now() - dueAt) / 1_000;
    if (renewed >= users) return seconds;
    if (seconds * 1_000 > PATIENCE_MS) throw new Error(`only ${renewed} renewals were stored in ${seconds} s`);
    await sleep(PROBE_MS);
  }
}

function latencies(when: string, { p50, p99, p999, failures }: Answered): Figure[] {
  return [
    { name: `subtractions ${when}, p50`, value: p50, unit: 'ms' },
    { name: `subtractions ${when}, p99`, value: p99, unit: 'ms' },
    { name: `subtractions ${when}, p99.9`, value: p999, unit: 'ms' },
    { name: `subtractions ${when}, failed`, value: failures, unit: '' },
  ];
}

/**
 * Checks balances until all renewals are stored. Reads the balances of the end users with the highest IDs, because
 * their renewals are stored last: if renewals are due at the same instant, Scrip stores them in the order of end user
 * IDs.
 */
async function watchStorm(subject: Subject, dueAt: number) {
  const last = lastEndUsers();
  const deadline = Date.now() + PATIENCE_MS;
  let [probes, wrong] = [0, 0];
  for (;;) {
    const isRight = await isRenewed(subject, last[probes % last.length] as string, dueAt);
    const renewed = await renewedCount(subject);
    const seconds = (Date.now() - dueAt) / 1_000;
    if (renewed >= RENEWING.users) return { seconds, probes, wrong };
    if (Date.now() > deadline) throw new Error(`only ${renewed} renewals were stored in ${seconds} s`);
    if (renewed < RENEWING.users - last.length) {
      probes += 1;
      if (!isRight) wrong += 1;
    }
    await sleep(PROBE_MS);
  }
}

function lastEndUsers(): readonly string[] {
  const ids = Array.from({ length: RENEWING.users }, (_, index) => endUserId(RENEWING.first + index));
  return ids.toSorted().slice(-500);
}

async function isRenewed({ url, secret }: Subject, endUser: string, dueAt: number): Promise<boolean> {
  const headers = { authorization: `Bearer ${secret}` };
  const response = await fetch(`${url}/get-active-balance?end_user_id=${endUser}`, { headers });
  const { active_balance: balance, active_balance_by_cycle: cycles } = (await response.json()) as {
    active_balance: number;
    active_balance_by_cycle: { cycle_start: string }[];
  };
  return balance === CREDITS && cycles.length === 1 && Date.parse(cycles[0]?.cycle_start ?? '') === dueAt;
}

async function renewedCount({ url }: Subject): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^scrip_renewed_end_users_total (\S+)/m.exec(text)?.[1] ?? 0);
}
