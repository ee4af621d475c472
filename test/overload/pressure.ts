// Overloads a server and measures its goodput, the latency of its 503 responses, its memory and its recovery.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { AnswerReader } from '../load/answer-reader.ts';
import type { ServerProcess } from '../load/server-process.ts';
import { Generator, percentile } from './open-loop.ts';

const END_USERS = 500;
const CREDITS = 1_000_000_000;

export interface Loaded {
  readonly server: ServerProcess;
  readonly key: string;
  readonly endUsers: readonly string[];
}

export function requestOf(key: string, path: string, fields: unknown): string {
  const body = JSON.stringify(fields);
  return `POST ${path} HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

export function readOf(key: string, path: string, endUser: string): string {
  return `GET ${path}?end_user_id=${endUser} HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${key}\r\n\r\n`;
}

export async function fund(server: ServerProcess, key: string): Promise<Loaded> {
  const endUsers = Array.from({ length: END_USERS }, () => crypto.randomUUID());
  const { answers } = await sendAll(
    server,
    endUsers.map((end_user_id) => requestOf(key, '/add', { end_user_id, amount: CREDITS })),
  );
  if (answers.get(200) !== END_USERS) throw new Error('adding credits to the end users failed');
  return { server, key, endUsers };
}

/** A server processes the requests of a socket one at a time, so a batch contains at most one request per socket. */
const SOCKETS = 250;

export async function sendAll(
  server: ServerProcess,
  requests: readonly string[],
  sockets = Math.min(SOCKETS, requests.length),
): Promise<{ answers: Map<number, number>; memoryMib: number }> {
  const answers = new Map<number, number>();
  const memory = watchMemory(server);
  const each = Math.ceil(requests.length / sockets);
  const parts = Array.from({ length: sockets }, (_, index) => requests.slice(index * each, (index + 1) * each));
  await Promise.all(parts.map((part) => pipelined(server, part, answers)));
  return { answers, memoryMib: memory().most };
}

async function pipelined(
  server: ServerProcess,
  requests: readonly string[],
  answers: Map<number, number>,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let missing = requests.length;
  if (missing === 0) return;
  const socket = connect(server.port, '127.0.0.1');
  const reader = new AnswerReader(({ status }) => {
    answers.set(status, (answers.get(status) ?? 0) + 1);
    missing -= 1;
    if (missing === 0) resolve();
  });
  socket.on('data', (chunk: Buffer) => reader.push(chunk));
  socket.on('error', reject);
  socket.on('close', () => reject(new Error(`${missing} responses are missing`)));
  socket.write(requests.join(''));
  await promise;
  socket.removeAllListeners().destroy();
}

export function generatorFor({ server, key, endUsers }: Loaded, connectionsMax: number): Generator {
  const requests = endUsers.map((end_user_id) => requestOf(key, '/subtract', { end_user_id, amount: 1 }));
  let next = 0;
  const request = () => requests[next++ % requests.length] as string;
  return new Generator({ port: server.port, request }, connectionsMax);
}

const MEMORY_EVERY_MS = 100;

export function watchMemory(server: ServerProcess): () => { most: number; bySecond: number[] } {
  const samples = [server.memoryMib];
  const timer = setInterval(() => samples.push(server.memoryMib), MEMORY_EVERY_MS);
  return () => {
    clearInterval(timer);
    samples.push(server.memoryMib);
    const perSecond = 1_000 / MEMORY_EVERY_MS;
    return {
      most: Math.round(Math.max(...samples)),
      bySecond: samples.filter((_, index) => index % perSecond === 0).map(Math.round),
    };
  };
}

export interface UnderOverload {
  /** Subtractions per second before, during and after the overload. A closed loop measures `peak` and `afterwards`. */
  readonly peak: number;
  readonly goodput: number;
  readonly afterwards: number;
  readonly done200: number;
  /** Requests per second: planned (`meant`) and actually sent (`offered`). */
  readonly meant: number;
  readonly offered: number;
  readonly answers: Readonly<Record<string, number>>;
  /** Milliseconds until a 503 response: median, 99th percentile and maximum. */
  readonly turnedAway: readonly [half: number, most: number, all: number];
  readonly done: readonly [half: number, most: number, all: number];
  readonly memory: { readonly before: number; readonly most: number; readonly bySecond: readonly number[] };
  /** Milliseconds from the end of the load until a read takes less than 50 ms. */
  readonly recoveredMs: number;
}

export interface Overload {
  readonly times: number;
  readonly seconds: number;
  readonly connections: number;
  readonly connectionsMax: number;
}

export async function overload(
  loaded: Loaded,
  { times, seconds, connections, connectionsMax }: Overload,
): Promise<UnderOverload> {
  const closed = generatorFor(loaded, connections);
  const warm = await closed.closedLoop(connections, 1);
  const calm = await closed.closedLoop(connections, seconds);
  const peak = rateOf(calm.doneInTime, seconds);
  const before = Math.round(loaded.server.memoryMib);
  const memory = watchMemory(loaded.server);
  const open = generatorFor(loaded, connectionsMax);
  await open.connect(connectionsMax);
  const stormed = await open.openLoop(peak * times, seconds);
  const recoveredMs = await recovery(loaded);
  open.close();
  const { most, bySecond } = memory();
  const afterwards = await closed.closedLoop(connections, seconds);
  closed.close();
  const spread = (status: number) =>
    [0.5, 0.99, 1].map((share) => Math.round(percentile(stormed.latencies.get(status), share)));
  return {
    peak,
    goodput: rateOf(stormed.doneInTime, seconds),
    afterwards: rateOf(afterwards.doneInTime, seconds),
    done200: [warm, calm, stormed, afterwards].reduce((sum, { answers }) => sum + (answers.get(200) ?? 0), 0),
    meant: Math.round(peak * times),
    offered: rateOf(stormed.sent, seconds),
    answers: Object.fromEntries(stormed.answers),
    turnedAway: spread(503) as [number, number, number],
    done: spread(200) as [number, number, number],
    memory: { before, most, bySecond },
    recoveredMs,
  };
}

function rateOf(count: number | undefined, seconds: number): number {
  return Math.round((count ?? 0) / seconds);
}

const CALM_MS = 50;
const RECOVERY_MS_MAX = 30_000;

/** Reads do not depend on the writer, so reads show when the process itself has recovered. */
async function recovery({ server, key, endUsers }: Loaded): Promise<number> {
  const started = performance.now();
  while (performance.now() - started < RECOVERY_MS_MAX) {
    const asked = performance.now();
    const { answers } = await sendAll(server, [readOf(key, '/get-active-balance', endUsers[0] as string)]);
    if (answers.get(200) === 1 && performance.now() - asked < CALM_MS) break;
    await sleep(10);
  }
  return Math.round(performance.now() - started);
}

/** What is wrong under any overload. The criteria do not depend on the speed of the machine. */
export function faultsOf({ answers, peak, goodput, recoveredMs }: UnderOverload): string[] {
  const faults: string[] = [];
  const others = Object.keys(answers).filter((status) => status !== '200' && status !== '503');
  if (others.length > 0) faults.push(`some responses have the status ${others}`);
  if (goodput < GOODPUT_MIN * peak) faults.push(`the goodput is ${goodput} a second, and the peak was ${peak}`);
  if (recoveredMs >= RECOVERY_MS_MAX)
    faults.push(`reads still took more than ${CALM_MS} ms ${RECOVERY_MS_MAX} ms after the load`);
  return faults;
}

/** What is wrong if the store is so slow that the server has to refuse requests. */
export function refusalFaultsOf(found: UnderOverload, atOnceMax: number): string[] {
  const { answers, peak, turnedAway, done, offered } = found;
  const faults = faultsOf(found);
  if (!answers['503'])
    faults.push(`no request was refused, although ${offered} a second were sent and ${peak} are possible`);
  else if (turnedAway[0] > done[0])
    faults.push(`a refusal took ${turnedAway[0]} ms (median), and an accepted request ${done[0]} ms`);
  const longestMs = (1_000 * atOnceMax) / peak;
  if (done[2] > PATIENCE * longestMs)
    faults.push(
      `a request took ${done[2]} ms, although all requests in flight can be processed in ${Math.round(longestMs)} ms`,
    );
  return faults;
}

/** Some goodput is lost because the load generator uses the same processors as the server. */
const GOODPUT_MIN = 0.25;

/** A request may take up to `PATIENCE * longestMs`, because the load generator uses the same machine. */
const PATIENCE = 3;

export class Crowd {
  readonly sockets: Socket[] = [];
  closed = 0;
  #timer: NodeJS.Timeout | null = null;

  static async of(server: ServerProcess, count: number): Promise<Crowd> {
    const crowd = new Crowd();
    while (crowd.sockets.length < count) {
      const some = Array.from({ length: Math.min(500, count - crowd.sockets.length) }, async () => {
        const socket = connect(server.port, '127.0.0.1');
        // Without `resume`, the socket would not notice that the server has closed the connection.
        socket.on('error', () => {}).resume();
        await once(socket, 'connect');
        socket.on('close', () => {
          crowd.closed += 1;
        });
        crowd.sockets.push(socket);
      });
      await Promise.all(some);
    }
    return crowd;
  }

  every(milliseconds: number, act: (socket: Socket) => void): void {
    this.#timer = setInterval(() => {
      for (const socket of this.sockets) if (!socket.destroyed) act(socket);
    }, milliseconds);
  }

  leave(): void {
    if (this.#timer) clearInterval(this.#timer);
    for (const socket of this.sockets) socket.destroy();
  }
}

/** Returns response times in milliseconds, in ascending order. */
export async function othersWait({ server, key, endUsers }: Loaded, count: number): Promise<readonly number[]> {
  const request = requestOf(key, '/subtract', { end_user_id: endUsers[0], amount: 1 });
  const waits: number[] = [];
  for (let index = 0; index < count; index++) {
    const asked = performance.now();
    const { answers } = await sendAll(server, [request]);
    if (answers.get(200) !== 1) throw new Error(`a request during the load returned ${[...answers.keys()]}`);
    waits.push(performance.now() - asked);
  }
  return waits.toSorted((a, b) => a - b);
}
