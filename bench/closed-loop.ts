// Generates load in a closed loop: each connection sends its next request as soon as the previous response has arrived.
// The generator is wrk if it is installed, otherwise autocannon.

import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import autocannon from 'autocannon';
import { PAGE_LIMIT, RequestSource, type Workload } from './workload.ts';

export interface Target {
  readonly url: string;
  readonly secret: string;
}

export interface Answered {
  readonly requests: number;
  readonly seconds: number;
  /** Latency percentiles in milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  /** Requests that did not get a 200 response. */
  readonly failures: number;
}

export interface LoopSettings {
  readonly connections: number;
  readonly seconds: number;
}

/** On each connection, autocannon repeats a sequence of this many requests. */
const REQUESTS_IN_TURN = 500;

const run = promisify(execFile);
const wrk = onPath('wrk');

export const GENERATOR = wrk === null ? 'autocannon' : 'wrk';

export function closedLoop(target: Target, workload: Workload, settings: LoopSettings): Promise<Answered> {
  return wrk === null ? byAutocannon(target, workload, settings) : byWrk(wrk, target, workload, settings);
}

async function byWrk(
  program: string,
  { url, secret }: Target,
  { group, users = group.users, shares, keyed = false }: Workload,
  { connections, seconds }: LoopSettings,
): Promise<Answered> {
  const { add = 0, subtract = 0, balance = 0, 'first-page': page = 0 } = shares;
  const script = join(import.meta.dirname, 'load.lua');
  const seed = Math.floor(Math.random() * 2 ** 31);
  const load = [group.first, users, [add, subtract, balance, page].join(','), keyed ? 1 : 0, secret, PAGE_LIMIT, seed];
  const flags = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', script, url, '--'];
  const { stdout } = await run(program, [...flags, ...load.map(String)]);
  const [, measured] = /^measured (.*)$/m.exec(stdout) ?? [];
  if (measured === undefined) throw new Error(`wrk did not measure anything: ${stdout}`);
  return JSON.parse(measured) as Answered;
}

async function byAutocannon(
  { url, secret }: Target,
  workload: Workload,
  { connections, seconds }: LoopSettings,
): Promise<Answered> {
  const source = new RequestSource(workload, Math.random);
  const setupClient = (client: autocannon.Client) =>
    client.setRequests(
      Array.from({ length: REQUESTS_IN_TURN }, () => {
        const { method, path, body, idempotencyKey } = source.next();
        const headers: Record<string, string> = { authorization: `Bearer ${secret}` };
        if (body !== null) headers['content-type'] = 'application/json';
        if (idempotencyKey !== null) headers['idempotency-key'] = idempotencyKey;
        return { method, path, headers, ...(body !== null && { body }) };
      }),
    );
  const result = await autocannon({ url, connections, duration: seconds, setupClient });
  const { p50, p99, p99_9: p999 } = result.latency;
  const failures = result.non2xx + result.errors;
  return { requests: result['2xx'], seconds: result.duration, p50, p99, p999, failures };
}

function onPath(program: string): string | null {
  const found = (process.env.PATH ?? '')
    .split(delimiter)
    .map((folder) => join(folder, program))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
  return found ?? null;
}
