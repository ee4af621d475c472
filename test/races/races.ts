// `npm run races -- [--rounds N] [--histories N] [--seed N]`: long tests for double spending and linearizability on
// both stores. First, the double-spending test must catch its control, a service without locks.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { auditProblems, newKey, ServerProcess } from '../load/server-process.ts';
import { PostgresServer } from '../store/postgres/postgres-server.ts';
import { ALL_RACES, type DoubleSpends, doubleSpends, FEW_SOCKETS, MANY_SOCKETS, Spenders } from './double-spend.ts';
import { type Findings, recordOnPostgres, recordOnSqlite, SIZE } from './linearizable.ts';

const { values } = parseArgs({
  options: { rounds: { type: 'string' }, histories: { type: 'string' }, seed: { type: 'string' } },
});
const rounds = Number(values.rounds ?? 100);
const historyRounds = Math.ceil(Number(values.histories ?? 200) / SIZE.endUsers);
const seed = Number(values.seed ?? Date.now() % 1_000_000);

const print = (line: string) => process.stdout.write(`${line}\n`);

async function spendOn(name: string, url: string, processes: number): Promise<DoubleSpends> {
  const key = await newKey(url);
  const servers = await Promise.all(Array.from({ length: processes }, () => ServerProcess.start(url)));
  try {
    const found = await spendAt(servers, key);
    print(lineOf(`double spend, ${name}`, found));
    await Promise.all(servers.map((server) => server.end()));
    return { ...found, faults: [...found.faults, ...(await auditProblems(url))] };
  } finally {
    await Promise.all(servers.map((server) => server.end('SIGKILL')));
  }
}

async function spendOnControl({ port }: ServerProcess): Promise<DoubleSpends> {
  const spender = await Spenders.open([port], MANY_SOCKETS, '');
  try {
    return await doubleSpends([spender], ALL_RACES.length);
  } finally {
    spender.close();
  }
}

async function spendAt(servers: readonly ServerProcess[], key: string): Promise<DoubleSpends> {
  const ports = servers.map(({ port }) => port);
  const spenders = [await Spenders.open(ports, FEW_SOCKETS, key), await Spenders.open(ports, MANY_SOCKETS, key)];
  const found = await doubleSpends(spenders, Math.ceil(rounds / spenders.length));
  for (const each of spenders) each.close();
  return found;
}

function lineOf(name: string, { rounds, requests, overGrants, faults }: DoubleSpends): string {
  return `${name}: ${rounds} rounds, ${requests} requests, ${overGrants} over-grants, ${faults.length} faults`;
}

function report(name: string, found: Findings): void {
  const { histories, unchecked, operations, unknown, repeated, processesKilled, connectionsKilled, faults } = found;
  print(
    `histories, ${name}: ${histories} with ${operations} operations in total, ${unknown} with unknown outcomes, ${repeated} retries, ${processesKilled} processes and ${connectionsKilled} connections killed, ${faults.length} not linearizable, ${unchecked} not checked`,
  );
  for (const fault of faults) print(`  ${fault}`);
  assert(unchecked * 20 <= histories, 'at most one in 20 histories is too long to check');
}

print(
  `seed ${seed}; repeat with: npm run races -- --rounds ${rounds} --histories ${historyRounds * SIZE.endUsers} --seed ${seed}`,
);
const folder = await mkdtemp(join(tmpdir(), 'scrip-races-'));
const postgres = await PostgresServer.start();
try {
  const control = await ServerProcess.start(
    await postgres.createDatabase(),
    {},
    join(import.meta.dirname, 'unlocked-service.ts'),
  );
  const broken = await spendOnControl(control).finally(() => control.end('SIGKILL'));
  print(lineOf('control without a lock', broken));
  assert(broken.overGrants > 0, 'the test found no double spending in the control');
  const spent = [
    await spendOn('SQLite', `file:${join(folder, 'ledger.db')}`, 1),
    await spendOn('PostgreSQL, three processes', await postgres.createDatabase(), 3),
  ];
  const onSqlite = await recordOnSqlite(seed, historyRounds);
  report('SQLite', onSqlite);
  const onPostgres = await recordOnPostgres(postgres, seed, historyRounds);
  report('PostgreSQL, three processes', onPostgres);
  assert.deepEqual(
    [...spent, onSqlite, onPostgres].flatMap(({ faults }) => faults),
    [],
  );
} finally {
  await postgres.remove();
  await rm(folder, { recursive: true, force: true });
}
