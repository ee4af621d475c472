// Tests two stores behind PgBouncer while connections are terminated and PgBouncer is killed. PgBouncer must be
// installed, so `npm test` does not include this test: run `npm run pgbouncer -- [SECONDS]`.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { TestLedger } from '../../test-ledger.ts';
import { History, startLoad } from '../acknowledged-history.ts';
import { pluggedDatabase } from '../postgres-ledger.ts';
import { freePort, PostgresServer } from '../postgres-server.ts';

const SECONDS = Number(process.argv[2] ?? 15);
/** Fewer connections than two stores would open without a pooler. */
const CONNECTIONS = 6;
const PAUSE_MS = 300;
/** Longer than Scrip waits for a response on a lost connection. */
const CALM_MS = 10_000;

/** The first PgBouncer version that supports prepared statements in transaction mode. */
const PREPARED_SINCE = [1, 21] as const;

const version = versionOf();
if (version === null) {
  print('This test needs PgBouncer. Install it with `apt-get install pgbouncer` or `brew install pgbouncer`.');
  process.exit(1);
}
const isPrepared = version[0] > PREPARED_SINCE[0] || (version[0] === 1 && version[1] >= PREPARED_SINCE[1]);
print(
  `PgBouncer ${version.join('.')}, prepared statements: ${isPrepared ? 'yes' : 'no, this version does not support them'}`,
);

const folder = mkdtempSync(join(tmpdir(), 'scrip-pgbouncer-'));
const server = await PostgresServer.start({ fsync: 'off' });
const port = await freePort();
let bouncer: ChildProcess | null = null;
try {
  const direct = await server.createDatabase();
  bouncer = await startBouncer();
  const url = Object.assign(new URL(direct), { port: String(port) }).href;
  const open = () =>
    TestLedger.open(async () => pluggedDatabase(url, { citus: false, lanes: 2, prepared: isPrepared }));
  const ledgers = [await open(), await open()] as const;
  const histories = [new History(1), new History(2)] as const;
  const loads = [startLoad(ledgers[0].store, histories[0]), startLoad(ledgers[1].store, histories[1])] as const;
  const kills = await disturb(new URL(direct).pathname.slice(1));
  await Promise.all(loads.map((load) => load.acknowledged(100, CALM_MS)));
  await Promise.all(loads.map((load) => load.stop()));
  const faults: string[] = [];
  await ledgers[0].consumeFeed();
  for (const [index, history] of histories.entries()) {
    print(`store ${index + 1}: ${history.summary}`);
    faults.push(...(await history.faultsOf(ledgers[index as 0 | 1].store, direct)));
  }
  await Promise.all(ledgers.map((ledger) => ledger.close()));
  print(`${kills} connections terminated, PgBouncer killed once, ${faults.length} faults`);
  for (const fault of faults) print(fault);
  process.exitCode = faults.length === 0 ? 0 : 1;
} finally {
  await stopBouncer();
  await server.remove();
  rmSync(folder, { recursive: true });
}

async function disturb(database: string): Promise<number> {
  const victim = `SELECT pid FROM pg_stat_activity WHERE datname = '${database}' ORDER BY state = 'active' DESC, random() LIMIT 1`;
  const ends = performance.now() + SECONDS * 1_000;
  const half = performance.now() + SECONDS * 500;
  let kills = 0;
  let isRestarted = false;
  while (performance.now() < ends) {
    await sleep(PAUSE_MS);
    const { rows } = await server.query(`SELECT pg_terminate_backend(pid) FROM (${victim}) AS victim`, 'postgres');
    kills += rows.length;
    if (isRestarted || performance.now() < half) continue;
    isRestarted = true;
    await stopBouncer();
    bouncer = await startBouncer();
  }
  if (kills === 0 || !isRestarted) throw new Error('no connection was terminated, or PgBouncer was not killed');
  return kills;
}

async function startBouncer(): Promise<ChildProcess> {
  const settings = join(folder, 'pgbouncer.ini');
  const lines = [
    '[databases]',
    `* = host=127.0.0.1 port=${server.port} user=postgres`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = any',
    'pool_mode = transaction',
    `default_pool_size = ${CONNECTIONS}`,
    ...(isPrepared ? ['max_prepared_statements = 100'] : []),
    'server_login_retry = 1',
    'log_connections = 0',
    'log_disconnections = 0',
  ];
  writeFileSync(settings, `${lines.join('\n')}\n`);
  chmodSync(folder, 0o755);
  const asOther = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const started = spawn('pgbouncer', ['-q', ...asOther, settings], { stdio: ['ignore', 'ignore', 'inherit'] });
  for (let attempt = 0; attempt < 100; attempt++) {
    if (started.exitCode !== null) throw new Error('PgBouncer does not start');
    if (await answers()) return started;
    await sleep(50);
  }
  throw new Error('PgBouncer does not listen');
}

async function stopBouncer(): Promise<void> {
  if (bouncer === null || bouncer.exitCode !== null || bouncer.signalCode !== null) return;
  bouncer.kill('SIGKILL');
  await once(bouncer, 'exit');
}

function answers(): Promise<boolean> {
  const line = connect(port, '127.0.0.1');
  return new Promise((resolve) => {
    line.on('connect', () => resolve(true)).on('error', () => resolve(false));
  }).finally(() => line.destroy()) as Promise<boolean>;
}

function versionOf(): readonly [number, number] | null {
  try {
    const [, major, minor] = /PgBouncer (\d+)\.(\d+)/.exec(execFileSync('pgbouncer', ['--version']).toString()) ?? [];
    return [Number(major), Number(minor)];
  } catch {
    return null;
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
