// Records the histories of concurrent clients on a real service, and checks whether the histories are linearizable. On
// PostgreSQL, random processes and database connections are killed.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../load/random.ts';
import { auditProblems, newKey, ServerProcess } from '../load/server-process.ts';
import type { PostgresServer } from '../store/postgres/postgres-server.ts';
import { RecordedClients } from './recorded-clients.ts';
import { startServers } from './servers.ts';

export interface Size {
  readonly endUsers: number;
  readonly clients: number;
  readonly calls: number;
}

/** About three concurrent calls per end user. A higher number would mainly slow down the linearizability check. */
export const SIZE: Size = { endUsers: 4, clients: 12, calls: 40 };

export interface Findings {
  readonly faults: readonly string[];
  readonly histories: number;
  readonly unchecked: number;
  readonly operations: number;
  readonly unknown: number;
  readonly repeated: number;
  readonly processesKilled: number;
  readonly connectionsKilled: number;
}

export async function recordOnSqlite(seed: number, rounds: number, size: Size = SIZE): Promise<Findings> {
  const folder = await mkdtemp(join(tmpdir(), 'scrip-races-'));
  const url = `file:${join(folder, 'ledger.db')}`;
  const key = await newKey(url);
  const server = await ServerProcess.start(url);
  try {
    let nextSeed = seed;
    const found = await rounded(rounds, () => recordOnce(nextSeed++, size, key, () => [server.port]));
    await server.end();
    return {
      ...found,
      faults: [...found.faults, ...(await auditProblems(url))],
      processesKilled: 0,
      connectionsKilled: 0,
    };
  } finally {
    await server.end('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  }
}

const PROCESSES = 3;
const ENVIRONMENT = { DATABASE_ACCEPT_UNSAFE: 'yes' };
const FAULT_PAUSE_MS_MAX = 120;
/**
 * One in this many faults kills a process, and each of the others kills a database connection. Processes are killed
 * less often, because a process takes half a second to restart.
 */
const PROCESS_KILLED_ONE_IN = 4;

export async function recordOnPostgres(
  postgres: PostgresServer,
  seed: number,
  rounds: number,
  size: Size = SIZE,
): Promise<Findings> {
  const url = await postgres.createDatabase();
  const key = await newKey(url);
  const servers = await startServers(PROCESSES, url, ENVIRONMENT);
  const faults = new Faults(postgres, url, servers, new Random(seed));
  try {
    faults.begin();
    let nextSeed = seed;
    const ports = () => servers.map(({ port }) => port);
    const found = await rounded(rounds, () => recordOnce(nextSeed++, size, key, ports));
    await faults.end();
    await Promise.all(servers.map((server) => server.end()));
    const { processesKilled, connectionsKilled } = faults;
    return { ...found, faults: [...found.faults, ...(await auditProblems(url))], processesKilled, connectionsKilled };
  } finally {
    await faults.end().finally(() => Promise.all(servers.map((server) => server.end('SIGKILL'))));
  }
}

async function recordOnce(
  seed: number,
  size: Size,
  key: string,
  ports: () => readonly number[],
): Promise<RecordedClients> {
  const clients = new RecordedClients({ ...size, key, ports, random: new Random(seed) });
  await clients.record();
  return clients;
}

type Recorded = Omit<Findings, 'processesKilled' | 'connectionsKilled'>;

async function rounded(rounds: number, record: () => Promise<RecordedClients>): Promise<Recorded> {
  const faults: string[] = [];
  let [histories, unchecked, operations, unknown, repeated] = [0, 0, 0, 0, 0];
  for (let round = 0; round < rounds; round++) {
    const clients = await record();
    const checked = clients.check();
    faults.push(...checked.faults);
    unchecked += checked.unchecked;
    histories += clients.histories.size;
    operations += clients.operations;
    unknown += clients.unknown;
    repeated += clients.repeated;
  }
  return { faults, histories, unchecked, operations, unknown, repeated };
}

class Faults {
  processesKilled = 0;
  connectionsKilled = 0;
  readonly #postgres: PostgresServer;
  readonly #url: string;
  readonly #servers: ServerProcess[];
  readonly #random: Random;
  #isOver = false;
  #working: Promise<void> = Promise.resolve();

  constructor(postgres: PostgresServer, url: string, servers: ServerProcess[], random: Random) {
    this.#postgres = postgres;
    this.#url = url;
    this.#servers = servers;
    this.#random = random;
  }

  begin(): void {
    this.#working = this.#work();
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#working;
  }

  async #work(): Promise<void> {
    for (let fault = 0; !this.#isOver; fault++) {
      await sleep(this.#random.below(FAULT_PAUSE_MS_MAX));
      if (fault % PROCESS_KILLED_ONE_IN === 0) await this.#killProcess();
      else await this.#killConnection();
    }
  }

  async #killProcess(): Promise<void> {
    const index = this.#random.below(this.#servers.length);
    await this.#servers[index]?.end('SIGKILL');
    this.processesKilled += 1;
    this.#servers[index] = await ServerProcess.start(this.#url, ENVIRONMENT);
  }

  async #killConnection(): Promise<void> {
    const database = new URL(this.#url).pathname.slice(1);
    const { rows } = await this.#postgres.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE application_name = 'scrip' AND datname = '${database}' AND pid <> pg_backend_pid()
       ORDER BY state = 'active' DESC, random() LIMIT 1`,
    );
    this.connectionsKilled += rows.length;
  }
}
