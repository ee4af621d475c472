// Starts Scrip and the systems that the benchmarks compare it to. Each system is a server in its own process, with its
// own data in a temporary folder.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { databaseOf, type PostgresDatabase } from '../src/config.ts';
import { openTools } from '../src/open-tools.ts';
import { freePort, PostgresServer } from '../test/store/postgres/postgres-server.ts';
import { auditOf, problemsOf } from '../test/store/temporary-ledger.ts';
import { RedisConnection } from './redis-connection.ts';
import { type Seeded, seedLedger } from './seed.ts';
import { CREDITS, endUserId, type Group } from './workload.ts';

export type SubjectName =
  | 'node:http echo'
  | 'Fastify echo'
  | 'Scrip on SQLite'
  | 'Scrip on PostgreSQL'
  | 'hand-written on PostgreSQL'
  | 'Redis, appendfsync everysec'
  | 'Redis, appendfsync always';

export interface Subject {
  readonly name: SubjectName;
  readonly url: string;
  readonly secret: string;
  /** The costs of a subject are those of these processes and all their descendants. */
  readonly pids: readonly number[];
}

const NO_SECRET = 'none';
const ENDED_WITHIN_MS = 10_000;
/**
 * PostgreSQL's default for `shared_buffers` is 128 MB. With 256 MB, PostgreSQL's cache is at least as large as the
 * cache of Scrip on SQLite.
 */
const POSTGRES = { fsync: 'on', synchronous_commit: 'on', shared_buffers: '256MB' };
const PIPELINED = 1_000;

export class Subjects {
  readonly folder = mkdtempSync(join(tmpdir(), 'scrip-bench-'));
  readonly #servers: ChildProcess[] = [];
  #postgres: PostgresServer | null = null;

  get postgres(): PostgresServer {
    if (this.#postgres === null) throw new Error('PostgreSQL was not started');
    return this.#postgres;
  }

  async plainEcho(): Promise<Subject> {
    return this.#serve('node:http echo', 'plain-echo-server.ts', NO_SECRET);
  }

  async echo(flags: readonly string[] = []): Promise<Subject> {
    return this.#serve('Fastify echo', 'echo-server.ts', NO_SECRET, { flags });
  }

  async scripOnSqlite(file: string, secret: string, flags: readonly string[] = []): Promise<Subject> {
    const settings = { DATABASE_URL: `file:${file}` };
    return this.#serve('Scrip on SQLite', '../src/main.ts', secret, { settings, commands: ['serve'], flags });
  }

  async seed(name: string, groups: readonly Group[], dueAt?: number): Promise<Seeded & { readonly file: string }> {
    const file = join(this.folder, `${name}.db`);
    return { file, ...(await seedLedger({ kind: 'file', path: file }, groups, dueAt)) };
  }

  async scripOnPostgres(groups: readonly Group[], flags: readonly string[] = []): Promise<Subject> {
    const seeded = await this.seedPostgres(groups);
    const subject = await this.processOnPostgres(seeded, flags);
    return { ...subject, pids: [...subject.pids, this.#postmaster()] };
  }

  async seedPostgres(groups: readonly Group[], dueAt?: number): Promise<Seeded & { readonly url: string }> {
    const url = await (await this.#runningPostgres()).createDatabase();
    const database = databaseOf({ ...process.env, DATABASE_URL: url }) as PostgresDatabase;
    const seeded = await seedLedger(database, groups, dueAt);
    await this.#analyze(url);
    return { url, ...seeded };
  }

  /** Starts a Scrip process on a database that several processes may share. */
  async processOnPostgres(
    { url, secret }: { readonly url: string; readonly secret: string },
    flags: readonly string[] = [],
  ): Promise<Subject> {
    const options = { settings: { DATABASE_URL: url }, commands: ['serve'], flags };
    return this.#serve('Scrip on PostgreSQL', '../src/main.ts', secret, options);
  }

  async handWritten(group: Group): Promise<Subject> {
    const url = await (await this.#runningPostgres()).createDatabase();
    const name = 'hand-written on PostgreSQL';
    const settings = { DATABASE_URL: url, SECRET: NO_SECRET };
    const subject = await this.#serve(name, 'hand-written-service.ts', NO_SECRET, { settings });
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    for (const ids of idsOf(group)) {
      await client.query(
        `INSERT INTO credit_lots (end_user_id, amount, remaining, expires_at)
         SELECT id, ${CREDITS}, ${CREDITS}, now() + interval '31 days' FROM unnest($1::uuid[]) AS id`,
        [ids],
      );
    }
    await client.end();
    await this.#analyze(url);
    return { ...subject, pids: [...subject.pids, this.#postmaster()] };
  }

  async redis(appendfsync: 'always' | 'everysec', group: Group): Promise<Subject | null> {
    if (!hasRedis()) return null;
    const port = await freePort();
    const folder = mkdtempSync(join(this.folder, 'redis-'));
    const durability = ['--appendonly', 'yes', '--appendfsync', appendfsync, '--save', ''];
    const server = spawn('redis-server', ['--port', String(port), '--dir', folder, ...durability], { stdio: 'ignore' });
    this.#servers.push(server);
    const redis = await connected(port);
    for (const ids of idsOf(group)) await Promise.all(ids.map((id) => redis.send('SET', id, CREDITS)));
    redis.close();
    const settings = { REDIS_PORT: String(port), SECRET: NO_SECRET };
    const subject = await this.#serve(`Redis, appendfsync ${appendfsync}`, 'redis-service.ts', NO_SECRET, { settings });
    return { ...subject, pids: [...subject.pids, server.pid as number] };
  }

  async end({ pids: [pid] }: Subject): Promise<void> {
    const server = this.#servers.find((each) => each.pid === pid);
    if (server) await ended(server);
  }

  async endAll(): Promise<void> {
    for (const server of this.#servers.splice(0).reverse()) await ended(server);
    await this.#postgres?.remove();
    this.#postgres = null;
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #serve(
    name: SubjectName,
    script: string,
    secret: string,
    { settings = {}, commands = [], flags = [] }: Partial<ServerOptions> = {},
  ): Promise<Subject> {
    const { PATH = '', TMPDIR = '' } = process.env;
    const env = { PATH, TMPDIR, LOG_LEVEL: 'warn', ...laneSettings(), ...settings, PORT: '0' };
    const path = join(import.meta.dirname, script);
    const server = spawn(process.execPath, [...flags, path, ...commands], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#servers.push(server);
    const failed = once(server, 'exit').then(() => Promise.reject(new Error(`${name} did not start`)));
    failed.catch(() => {});
    const [line] = (await Promise.race([once(server.stdout, 'data'), failed])) as [Buffer];
    server.stdout.resume();
    const [url] = /http:\/\/[\d.:]+/.exec(line.toString()) ?? [];
    if (url === undefined) throw new Error(`${name} did not print the address on which it listens`);
    return { name, url, secret, pids: [server.pid as number] };
  }

  async #runningPostgres(): Promise<PostgresServer> {
    this.#postgres ??= await PostgresServer.start(POSTGRES);
    return this.#postgres;
  }

  #postmaster(): number {
    const [pid] = readFileSync(join(this.postgres.data, 'postmaster.pid'), 'utf8').split('\n');
    return Number(pid);
  }

  /** Without statistics, PostgreSQL plans queries as if the tables were almost empty. */
  async #analyze(url: string): Promise<void> {
    await this.postgres.query('VACUUM ANALYZE', new URL(url).pathname.slice(1));
  }
}

interface ServerOptions {
  readonly settings: Readonly<Record<string, string>>;
  readonly commands: readonly string[];
  readonly flags: readonly string[];
}

export async function assertWhole(file: string): Promise<void> {
  const { tools } = await openTools({ kind: 'file', path: file }, { create: false });
  const problems = problemsOf(await auditOf(tools).finally(() => tools.close()));
  if (problems.length > 0) throw new Error(`the ledger violates invariants after the load: ${problems.join('; ')}`);
}

export function hasRedis(): boolean {
  try {
    execFileSync('redis-server', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

function laneSettings(): Record<string, string> {
  const { DATABASE_LANES } = process.env;
  return DATABASE_LANES === undefined ? {} : { DATABASE_LANES };
}

function* idsOf({ first, users }: Group): Generator<string[]> {
  for (let at = 0; at < users; at += PIPELINED)
    yield Array.from({ length: Math.min(PIPELINED, users - at) }, (_, index) => endUserId(first + at + index));
}

async function ended(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const gone = once(server, 'exit');
  server.kill('SIGTERM');
  const late = setTimeout(() => server.kill('SIGKILL'), ENDED_WITHIN_MS);
  await gone;
  clearTimeout(late);
}

async function connected(port: number): Promise<RedisConnection> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await RedisConnection.to(port);
    } catch (error) {
      if (attempt === 100) throw error;
      await sleep(50);
    }
  }
}
