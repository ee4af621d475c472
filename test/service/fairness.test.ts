// Tests fairness between an account that floods a real server and an account that sends a few requests at a time. The
// test prints response times but does not check them, because they depend on the machine.

import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { newKey, ServerProcess } from '../load/server-process.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';

const CONNECTIONS = Number(process.env.QUIET_CONNECTIONS ?? 4);
const MEASURED_MS = Number(process.env.FAIRNESS_MS ?? 1_000);
const FLOOD_CONNECTIONS = process.env.FLOOD_CONNECTIONS ?? '300';
const FLOOD_PIPELINED = process.env.FLOOD_PIPELINED ?? '100';

async function startServer(t: TestContext): Promise<{ url: string; keys: readonly string[] }> {
  const databaseUrl = `file:${temporaryFile()}`;
  const keys = [await newKey(databaseUrl, 'Loud'), await newKey(databaseUrl, 'Quiet')];
  const server = await ServerProcess.start(databaseUrl);
  t.after(() => server.end('SIGKILL'));
  return { url: server.url, keys };
}

function add(agent: Agent, url: string, key: string): Promise<{ status: number; ms: number }> {
  const started = performance.now();
  const body = JSON.stringify({ end_user_id: randomUUID(), amount: 1 });
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  };
  return new Promise((resolve, reject) => {
    const outgoing = request(`${url}/add`, { agent, method: 'POST', headers }, (incoming) => {
      incoming.resume();
      incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, ms: performance.now() - started }));
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

async function measure(agent: Agent, url: string, key: string): Promise<{ times: number[]; statuses: number[] }> {
  const times: number[] = [];
  const statuses = new Set<number>();
  const until = performance.now() + MEASURED_MS;
  const one = async () => {
    while (performance.now() < until) {
      const { status, ms } = await add(agent, url, key);
      times.push(ms);
      statuses.add(status);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, one));
  return { times: times.sort((a, b) => a - b), statuses: [...statuses] };
}

function summary(times: readonly number[]): string {
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))]?.toFixed(1);
  return `${times.length} requests, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`;
}

async function startFlood(t: TestContext, url: string, key: string): Promise<ChildProcess> {
  const flood = fork(join(import.meta.dirname, 'flood.ts'), [
    new URL(url).port,
    key,
    FLOOD_CONNECTIONS,
    FLOOD_PIPELINED,
  ]);
  t.after(() => flood.kill('SIGKILL'));
  await once(flood, 'message');
  return flood;
}

test('while one account floods the server, all requests of another account succeed', async (t) => {
  const { url, keys } = await startServer(t);
  const [loud = '', quiet = ''] = keys;
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  t.after(() => agent.destroy());
  await measure(agent, url, quiet);
  const alone = await measure(agent, url, quiet);
  const elsewhere = await startServer(t);
  const otherAgent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  t.after(() => otherAgent.destroy());
  await measure(otherAgent, elsewhere.url, elsewhere.keys[1] ?? '');
  const flood = await startFlood(t, url, loud);
  const apart = await measure(otherAgent, elsewhere.url, elsewhere.keys[1] ?? '');
  const beside = await measure(agent, url, quiet);
  const counted = once(flood, 'message');
  flood.send('stop');
  const [counts] = (await counted) as [Record<string, number>];
  t.diagnostic(`alone: ${summary(alone.times)}`);
  t.diagnostic(`on another server, while the flood keeps the machine busy: ${summary(apart.times)}`);
  t.diagnostic(`during the flood: ${summary(beside.times)}`);
  t.diagnostic(`the flood: ${JSON.stringify(counts)}`);
  assert(beside.times.length > 0);
  assert.deepEqual([...alone.statuses, ...beside.statuses], [200, 200], 'no request of the other account is refused');
});
