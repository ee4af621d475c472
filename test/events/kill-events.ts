// `npm run kill-events -- --kills 100 --seed 1`: kills servers and the webhook receiver at random moments under load.
// With `--database postgres`, three servers share one PostgreSQL ledger.

import { parseArgs } from 'node:util';
import { randomFrom } from '../crash/randomness.ts';
import { PostgresServer } from '../store/postgres/postgres-server.ts';
import { type EventKills, type KillOptions, killEvents, summaryOf } from './killing-events.ts';
import type { Weakness } from './weakened-events.ts';

const CONTROL_KILLS = 12;
const SHOWN = 10;

const { kills, seed, database, retries } = parseArgs({
  options: {
    kills: { type: 'string', default: '100' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    database: { type: 'string', default: 'sqlite' },
    /** `shipped` selects Scrip's retry schedule; `short` retries within a second. */
    retries: { type: 'string', default: 'shipped' },
  },
}).values;

const SQLITE: KillOptions = {
  kills: Number(kills),
  loadMsMin: 0,
  loadMsMax: 3_000,
  databaseUrl: null,
  processes: 1,
  endpoints: 1,
  hasShortRetries: retries === 'short',
  weakness: null,
  // Scrip waits up to six minutes between the first and the second retry.
  settledWithinMs: retries === 'short' ? 120_000 : 900_000,
};

say(
  `seed ${seed} (decides what the clients send and when processes are killed; the amount of work before each kill depends on the machine)`,
);
let hasFailed = false;
if (database === 'postgres') {
  const server = await PostgresServer.start();
  try {
    const databaseUrl = await server.createDatabase();
    await examine('three processes on PostgreSQL', { ...SQLITE, databaseUrl, processes: 3, endpoints: 3 });
  } finally {
    await server.remove();
  }
} else {
  await examine('as shipped', SQLITE);
  await examineControl(
    'control: events are recorded as delivered before they are delivered',
    'early-position',
    /did not arrive/,
  );
  await examineControl(
    'control: postings are recorded as processed before their events are stored',
    'late-events',
    /the log has \d+ events of \S+ instead of/,
  );
}
process.exit(hasFailed ? 1 : 0);

async function examine(name: string, options: KillOptions): Promise<void> {
  report(name, await killEvents(options, randomFrom(Number(seed))), ({ problems }) => problems.length === 0);
}

/** @param symptom what must be among the problems */
async function examineControl(name: string, weakness: Weakness, symptom: RegExp): Promise<void> {
  const options = { ...SQLITE, kills: CONTROL_KILLS, hasShortRetries: true, weakness, settledWithinMs: 10_000 };
  report(name, await killEvents(options, randomFrom(Number(seed))), ({ problems }) =>
    symptom.test(problems.join('\n')),
  );
}

function report(name: string, found: EventKills, isRight: (found: EventKills) => boolean): void {
  hasFailed ||= !isRight(found);
  say(`${isRight(found) ? 'ok' : 'NOT OK'}  ${name}: ${summaryOf(found)}`);
  for (const sentence of found.problems.slice(0, isRight(found) ? 1 : SHOWN)) say(`        ${sentence}`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
