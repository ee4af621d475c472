// How much of a Fastify echo's throughput `/subtract` holds, with every answer on stable storage: both under the same
// load, in turn, in one run. `npm run bench -- [CONNECTIONS] [ROUNDS] [SECONDS]`

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import autocannon from 'autocannon';
import { createApiKey, openBeside } from '../src/app.ts';

const END_USERS = 10_000;
const CREDITS = 1_000_000_000;
const [connections = 64, rounds = 3, seconds = 5] = process.argv.slice(2).map(Number);

const folder = mkdtempSync(join(tmpdir(), 'scrip-bench-'));
const database = { kind: 'file', path: join(folder, 'scrip.db') } as const;
const secret = await makeKey();
const endUsers = Array.from({ length: END_USERS }, () => crypto.randomUUID());
const servers: ChildProcess[] = [];
try {
  const echo = await start('echo-server.ts', []);
  const scrip = await start('../src/cli.ts', ['serve']);
  await fund(scrip);
  await compare(echo, scrip);
} finally {
  for (const server of servers) server.kill('SIGTERM');
  await Promise.all(servers.map((server) => server.exitCode ?? once(server, 'exit')));
}
await verify();
rmSync(folder, { recursive: true });

async function compare(echo: string, scrip: string): Promise<void> {
  const ratios: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    const limit = await load(echo);
    const held = await load(scrip);
    const ratio = held.requests.average / limit.requests.average;
    ratios.push(ratio);
    const rates = `echo ${Math.round(limit.requests.average)}/s, /subtract ${Math.round(held.requests.average)}/s`;
    const wrong = held.non2xx + held.errors;
    print(
      `round ${round}: ${rates}, ratio ${ratio.toFixed(2)}, p99 ${held.latency.p99} ms, not answered 200: ${wrong}`,
    );
  }
  const median = ratios.toSorted((a, b) => a - b)[Math.floor(ratios.length / 2)] as number;
  print(`median ratio ${median.toFixed(2)} at ${connections} connections over ${END_USERS} end users`);
}

async function makeKey(): Promise<string> {
  const store = openBeside(database, { create: true });
  const made = await createApiKey(store, { accountName: 'bench', scope: 'write' });
  await store.close();
  return made;
}

/** @returns the address that the server prints when it is up */
async function start(script: string, commands: readonly string[]): Promise<string> {
  const env = { ...process.env, DATABASE_URL: `file:${database.path}`, PORT: '0' };
  const path = join(import.meta.dirname, script);
  const server = spawn(process.execPath, [path, ...commands], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  servers.push(server);
  const [line] = (await once(server.stdout, 'data')) as [Buffer];
  const [address] = /http:\/\/[\d.:]+/.exec(line.toString()) ?? [];
  if (address === undefined) throw new Error(`${script} did not start`);
  return address;
}

function requestOf(path: string, endUser: string, amount: number) {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${secret}` };
  return { method: 'POST' as const, path, headers, body: JSON.stringify({ end_user_id: endUser, amount }) };
}

async function fund(url: string): Promise<void> {
  for (let at = 0; at < END_USERS; at += connections) {
    await Promise.all(
      endUsers.slice(at, at + connections).map(async (endUser) => {
        const { path, ...request } = requestOf('/add', endUser, CREDITS);
        const response = await fetch(url + path, request);
        if (response.status !== 200) throw new Error(await response.text());
        await response.arrayBuffer();
      }),
    );
  }
}

function load(url: string): Promise<autocannon.Result> {
  const requests = endUsers.map((endUser) => requestOf('/subtract', endUser, 1));
  return autocannon({ url, connections, duration: seconds, requests });
}

/** A rate counts only if the ledger is whole after it. */
async function verify(): Promise<void> {
  const store = openBeside(database, { create: true });
  let findings = 0;
  const report = await store.audit(() => {
    findings += 1;
  });
  await store.close();
  print(
    `verified: ${report.postings} postings of ${report.endUsers} end users, ${findings + report.store.length} findings`,
  );
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
