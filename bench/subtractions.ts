// The load of the benchmarks: subtractions of one credit over many end users, who hold enough for all of them. Each
// connection takes end users at random: were all to go through one list, they would go in step, and ask for the same
// end user at the same time.

import autocannon from 'autocannon';

export const END_USERS = 10_000;
const CREDITS = 1_000_000_000;
/** Requests that one connection goes round in. */
const REQUESTS = 200;
const FUNDED_AT_ONCE = 64;

export interface Service {
  readonly name: string;
  readonly url: string;
  readonly secret: string;
}

export interface Run {
  readonly connections: number;
  readonly rounds: number;
  readonly seconds: number;
}

/** From the command line: CONNECTIONS ROUNDS SECONDS. */
export function runOf([connections = 64, rounds = 3, seconds = 5]: readonly number[]): Run {
  return { connections, rounds, seconds };
}

export function newEndUsers(): readonly string[] {
  return Array.from({ length: END_USERS }, () => crypto.randomUUID());
}

export async function fund({ url, secret }: Service, endUsers: readonly string[]): Promise<void> {
  for (let at = 0; at < endUsers.length; at += FUNDED_AT_ONCE) {
    await Promise.all(
      endUsers.slice(at, at + FUNDED_AT_ONCE).map(async (endUser) => {
        const { path, ...request } = requestOf('/add', secret, endUser, CREDITS);
        const response = await fetch(url + path, request);
        if (response.status !== 200) throw new Error(await response.text());
        await response.arrayBuffer();
      }),
    );
  }
}

/** Loads both in turn, and prints how their rates compare, round by round and in the median. */
export async function compare(base: Service, other: Service, endUsers: readonly string[], run: Run): Promise<void> {
  const ratios: number[] = [];
  for (let round = 1; round <= run.rounds; round++) {
    const first = await load(base, endUsers, run);
    const second = await load(other, endUsers, run);
    const ratio = second.requests.average / first.requests.average;
    ratios.push(ratio);
    print(`round ${round}: ${lineOf(base, first)}; ${lineOf(other, second)}; ratio ${ratio.toFixed(2)}`);
  }
  const median = ratios.toSorted((a, b) => a - b)[Math.floor(ratios.length / 2)] as number;
  print(`median ratio ${median.toFixed(2)} at ${run.connections} connections over ${endUsers.length} end users`);
}

function load({ url, secret }: Service, endUsers: readonly string[], run: Run): Promise<autocannon.Result> {
  const anyone = () => endUsers[Math.floor(Math.random() * endUsers.length)] as string;
  const requests = () => Array.from({ length: REQUESTS }, () => requestOf('/subtract', secret, anyone(), 1));
  const setupClient = (client: autocannon.Client) => client.setRequests(requests());
  return autocannon({ url, connections: run.connections, duration: run.seconds, setupClient });
}

function lineOf({ name }: Service, { requests, latency, non2xx, errors }: autocannon.Result): string {
  return `${name} ${Math.round(requests.average)}/s, p99 ${latency.p99} ms, not answered 200: ${non2xx + errors}`;
}

function requestOf(path: string, secret: string, endUser: string, amount: number) {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${secret}` };
  return { method: 'POST' as const, path, headers, body: JSON.stringify({ end_user_id: endUser, amount }) };
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
