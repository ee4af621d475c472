// Tests the `serve --processes` command, which runs several processes on one port and one database.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { copyFile, rename } from 'node:fs/promises';
import { get } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { openTools } from '../../../../src/open-tools.ts';
import { Running } from '../../../cli/scrip-command.ts';
import { temporaryFolder } from '../../temporary-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';
import { databaseAt } from '../scrip-on-postgres.ts';

const CLI = join(import.meta.dirname, '../../../../src/main.ts');
const SECRET = /scrip_write_\w+/;
const ANSWER_MS = 5_000;
const TEST_MS = 60_000;

let server: PostgresServer;
const running: ChildProcess[] = [];
before(async () => {
  server = await PostgresServer.start();
});
after(async () => {
  for (const process of running) process.kill('SIGKILL');
  await server.remove();
});

interface Started {
  readonly first: ChildProcess;
  readonly url: string;
  readonly secret: string;
  readonly log: () => string;
}

async function start(node = process.execPath): Promise<Started> {
  const env = { ...process.env, DATABASE_URL: await server.createDatabase(), PORT: '0' };
  const first = spawn(node, [CLI, 'serve', '--processes', '2', '--first-key'], { env });
  running.push(first);
  let [out, log] = ['', ''];
  first.stdout.on('data', (chunk) => {
    out += chunk;
  });
  first.stderr.on('data', (chunk) => {
    log += chunk;
  });
  while (!out.includes('curl'))
    await Promise.race([once(first.stdout, 'data'), once(first, 'exit').then(() => assert.fail(log))]);
  const [url] = /http:\/\/[\d.:]+/.exec(out) ?? [];
  const [secret] = SECRET.exec(out) ?? [];
  assert(url !== undefined && secret !== undefined, out);
  return { first, url, secret, log: () => log };
}

async function stop({ first }: Started): Promise<number | null> {
  const ended = once(first, 'exit');
  first.kill('SIGTERM');
  const [code] = await ended;
  return code;
}

async function post({ url, secret }: Started, path: string, body: unknown): Promise<number> {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
  // A killed process may never respond.
  const signal = AbortSignal.timeout(ANSWER_MS);
  const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body), signal });
  await response.arrayBuffer();
  return response.status;
}

/** The request ID in the response contains the process ID. */
async function answeringProcess({ url }: Started): Promise<string> {
  const [response] = await once(get(`${url}/nothing`, { agent: false, timeout: ANSWER_MS }), 'response');
  const { request_id: id } = JSON.parse((await response.toArray()).join(''));
  return id.split('-')[1];
}

async function untilTwoAnswer(started: Started): Promise<void> {
  for (;;) {
    const answering = await Promise.all(Array.from({ length: 20 }, () => answeringProcess(started)));
    if (new Set(answering).size === 2) return;
    await sleep(500);
  }
}

test('two processes that serve one port accept exactly 100 of 300 subtractions of 1 from a balance of 100', {
  timeout: TEST_MS,
}, async () => {
  const started = await start();
  const user = crypto.randomUUID();
  assert.equal(await post(started, '/add', { end_user_id: user, amount: 100 }), 200);
  const spend = () => post(started, '/subtract', { end_user_id: user, amount: 1 });
  const statuses = await Promise.all(Array.from({ length: 300 }, spend));
  assert.equal(statuses.filter((status) => status === 200).length, 100);
  assert.equal(statuses.filter((status) => status === 402).length, 200);
  const answering = await Promise.all(Array.from({ length: 20 }, () => answeringProcess(started)));
  assert.equal(new Set(answering).size, 2, 'both processes answer');
  assert.equal(await stop(started), 0);
});

test('if one of several processes of `serve --processes` is killed, it is replaced, and no acknowledged write is lost', {
  timeout: TEST_MS,
}, async () => {
  const started = await start();
  const user = crypto.randomUUID();
  const pids = [...started.log().matchAll(/"pid":(\d+)/g)].map(([, pid]) => Number(pid));
  let added = 0;
  let unanswered = 0;
  let isOver = false;
  const adding = (async () => {
    while (!isOver) {
      const status = await post(started, '/add', { end_user_id: user, amount: 1 }).catch(() => null);
      if (status === 200) added += 1;
      else unanswered += 1;
    }
  })();
  for (let tries = 0; added === 0; tries++) {
    assert(tries < 1_000, 'no addition succeeds');
    await sleep(10);
  }
  process.kill(pids[0] as number, 'SIGKILL');
  const addedBefore = added;
  await sleep(3_000);
  isOver = true;
  await adding;
  assert.match(started.log(), /exited; starting a replacement/);
  assert(added > addedBefore, 'additions succeed after the kill');
  await untilTwoAnswer(started);
  const balance = await fetch(`${started.url}/get-active-balance?end_user_id=${user}`, {
    headers: { authorization: `Bearer ${started.secret}` },
  });
  const { active_balance: stored } = (await balance.json()) as { active_balance: number };
  assert(
    stored >= added && stored <= added + unanswered,
    `${added} additions were acknowledged, ${unanswered} were not, and ${stored} are stored`,
  );
  assert.equal(await stop(started), 0);
});

test('if a process of `serve --processes` cannot be replaced at first, Scrip tries again every second', {
  timeout: TEST_MS,
}, async () => {
  const node = join(temporaryFolder(), 'node');
  await copyFile(process.execPath, node, constants.COPYFILE_FICLONE);
  const started = await start(node);
  const [pid] = [...started.log().matchAll(/"pid":(\d+)/g)].map(([, pid]) => Number(pid));
  await rename(node, `${node}-away`);
  process.kill(pid as number, 'SIGKILL');
  while (!started.log().includes('could not be started')) await sleep(100);
  await rename(`${node}-away`, node);
  await untilTwoAnswer(started);
  assert.equal(await stop(started), 0);
});

test('`serve --processes` refuses a ledger file', async () => {
  const env = { ...process.env, DATABASE_URL: 'file:/tmp/never-made/scrip.db', PORT: '0' };
  const refused = spawn(process.execPath, [CLI, 'serve', '--processes', '2'], { env });
  const [chunk] = await once(refused.stderr, 'data');
  assert.match(String(chunk), /^--processes requires PostgreSQL: .*\n$/);
  const [code] = refused.exitCode === null ? await once(refused, 'exit') : [refused.exitCode];
  assert.equal(code, 1);
});

test('if `serve --processes` cannot listen, it prints the reason once and exits with code 1', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  t.after(() => other.close());
  await once(other, 'listening');
  const { port } = other.address() as { port: number };
  const DATABASE_URL = await server.createDatabase();
  const environments = [{ PORT: `${port}` }, { PORT: '0', METRICS_PORT: `${port}` }, { PORT: '0', HOST: '192.0.2.1' }];
  for (const environment of environments) {
    const refused = new Running(['serve', '--processes', '2'], { DATABASE_URL, LOG_LEVEL: 'silent', ...environment });
    t.after(() => refused.kill('SIGKILL'));
    const { code, stdout, stderr } = await refused.ended;
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(
      stderr,
      /^(Address already in use|Cannot listen on this address) [^\n]*\nFailed to start 2 processes; see the error above\.\n$/,
    );
  }
});

test('if `serve --processes` gets a SIGTERM while its processes are starting, it stops them and exits with code 0', async (t) => {
  const url = await server.createDatabase();
  const { tools } = await openTools(databaseAt(url));
  await tools.close();
  const locking = new pg.Client({ connectionString: url });
  await locking.connect();
  t.after(() => locking.end());
  // Each process reads the clock before it listens, so this lock delays the start of all processes.
  await locking.query('BEGIN; LOCK TABLE scrip.clock');
  const starting = new Running(['serve', '--processes', '2'], { DATABASE_URL: url, PORT: '0' });
  t.after(() => starting.kill('SIGKILL'));
  const waiting = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'`;
  while ((await server.query(waiting)).rowCount === 0) await sleep(20);
  starting.kill('SIGTERM');
  assert.deepEqual(await starting.ended, { code: 0, stdout: '', stderr: '' });
});
