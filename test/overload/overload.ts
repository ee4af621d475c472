// `npm run overload -- [--seconds N] [--storms | --readers]`: measures servers under overload. By default, it runs
// all scenarios. With `--storms`, it runs only the scenarios with too many writes; with `--readers`, only those with
// clients that read long lists.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { SERVER_LIMITS } from '../../src/http/limits.ts';
import { auditProblems, newKey, ServerProcess } from '../load/server-process.ts';
import { besideReaders, READINGS } from './list-readers.ts';
import { percentile } from './open-loop.ts';
import {
  Crowd,
  faultsOf,
  fund,
  generatorFor,
  type Loaded,
  type Overload,
  othersWait,
  overload,
  readOf,
  refusalFaultsOf,
  requestOf,
  sendAll,
  type UnderOverload,
  watchMemory,
} from './pressure.ts';

const { values } = parseArgs({
  options: { seconds: { type: 'string' }, storms: { type: 'boolean' }, readers: { type: 'boolean' } },
});
const seconds = Number(values.seconds ?? 10);
const print = (line: string) => process.stdout.write(`${line}\n`);
const SLOW_SERVER = join(import.meta.dirname, 'slow-server.ts');
const REFUSING_SERVER = join(import.meta.dirname, 'refusing-server.ts');
/** This number of requests per second is more than any server on two cores can process. */
const GENERATOR_RATE = 180_000;
/** The server accepts more connections than the load generator opens, so that other clients can connect. */
const CONNECTIONS_MAX = 2_000;
const CONNECTIONS_SERVED = 3_100;
/** One account may use only half of `inFlightMax`, even if no other account sends requests. */
const AT_ONCE_MAX = SERVER_LIMITS.inFlightMax / 2;

async function withServer(script: string | null, work: (loaded: Loaded) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'scrip-overload-'));
  const url = `file:${join(folder, 'ledger.db')}`;
  const key = await newKey(url);
  const server = await ServerProcess.start(url, { MAX_CONNECTIONS: String(CONNECTIONS_SERVED) }, script);
  try {
    await work(await fund(server, key));
    await server.end();
    const findings = [...(await auditProblems(url)), server.complaints].filter((text) => text !== '');
    if (findings.length > 0) {
      print(findings.join('\n'));
      process.exitCode = 1;
    }
  } finally {
    await server.end('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  }
}

function report(
  name: string,
  { times, connections }: Pick<Overload, 'times' | 'connections'>,
  found: UnderOverload,
  looseFaults: readonly string[],
): void {
  const faults = [...looseFaults, ...strictFaultsOf(found)];
  const { peak, goodput, afterwards, meant, offered, answers, turnedAway, done, memory, recoveredMs } = found;
  const share = Math.round((100 * goodput) / peak);
  print(`${name}`);
  print(
    `  peak ${peak}/s with ${connections} connections in a closed loop; ${times} times that is ${meant}/s, offered ${offered}/s`,
  );
  print(`  goodput ${goodput}/s, ${share}% of the peak; responses ${JSON.stringify(answers)}`);
  print(`  503 after ${turnedAway.join(', ')} ms, 200 after ${done.join(', ')} ms (median, 99%, maximum)`);
  print(`  memory ${memory.before} MiB before, at most ${memory.most} MiB; each second ${memory.bySecond.join(' ')}`);
  print(`  recovered within ${recoveredMs} ms; afterwards ${afterwards}/s`);
  for (const fault of faults) print(`  FAILED: ${fault}`);
  if (faults.length > 0) process.exitCode = 1;
}

async function measureGenerator(): Promise<void> {
  const server = await ServerProcess.start('', {}, REFUSING_SERVER);
  try {
    const generator = generatorFor({ server, key: '', endUsers: [crypto.randomUUID()] }, CONNECTIONS_MAX);
    await generator.connect(CONNECTIONS_MAX);
    const { sent, latencies } = await generator.openLoop(GENERATOR_RATE, seconds);
    const spread = [0.5, 0.99, 1].map((share) => Math.round(percentile(latencies.get(503), share)));
    print('A server that refuses every request');
    print(`  planned ${GENERATOR_RATE}/s, offered ${Math.round(sent / seconds)}/s`);
    print(`  503 after ${spread.join(', ')} ms (median, 99%, maximum)`);
    generator.close();
  } finally {
    await server.end('SIGKILL');
  }
}

const RECOVERY_MS_MAX = 5_000;
const MEMORY_GROWTH_MIB_MAX = 256;

/** Stricter than the short form of the test, which runs beside other tests. */
function strictFaultsOf({ recoveredMs, memory }: UnderOverload): string[] {
  const faults: string[] = [];
  if (recoveredMs >= RECOVERY_MS_MAX) faults.push(`the recovery took ${recoveredMs} ms`);
  const growth = memory.most - memory.before;
  if (growth > MEMORY_GROWTH_MIB_MAX) faults.push(`the memory grew by ${growth} MiB`);
  return faults;
}

async function storms(): Promise<void> {
  await measureGenerator();
  await withServer(SLOW_SERVER, async (loaded) => {
    const load = { times: 10, seconds, connections: 1_024, connectionsMax: CONNECTIONS_MAX };
    const found = await overload(loaded, load);
    report('A disk on which each batch takes 250 ms', load, found, refusalFaultsOf(found, AT_ONCE_MAX));
  });
  for (const times of [2, 10]) {
    await withServer(null, async (loaded) => {
      const load = { times, seconds, connections: 64, connectionsMax: CONNECTIONS_MAX };
      const found = await overload(loaded, load);
      report(`A server limited by its processor, ${times} times its peak`, load, found, faultsOf(found));
    });
  }
}

async function clientsThatLeave(loaded: Loaded): Promise<void> {
  const { server, key } = loaded;
  const endUser = crypto.randomUUID();
  await sendAll(server, [requestOf(key, '/add', { end_user_id: endUser, amount: 10_000 })]);
  const crowd = await Crowd.of(server, CONNECTIONS_MAX);
  for (const socket of crowd.sockets) socket.write(requestOf(key, '/subtract', { end_user_id: endUser, amount: 1 }));
  await sleep(300);
  crowd.leave();
  const left = performance.now();
  let [before, now] = ['', 'x'];
  let tookMs = 0;
  while (now !== before) {
    tookMs = performance.now() - left;
    before = now;
    await sleep(600);
    const response = await fetch(`${server.url}/get-active-balance?end_user_id=${endUser}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    now = String(((await response.json()) as { active_balance: number }).active_balance);
  }
  print(
    `${CONNECTIONS_MAX} clients that disconnect after 300 ms: ${10_000 - Number(now)} of their requests are executed, the last within ${Math.round(tookMs)} ms`,
  );
}

const ON_ONE_SOCKET = 5_000;

async function sockets(loaded: Loaded): Promise<void> {
  const { server, key, endUsers } = loaded;
  const calm = await othersWait(loaded, 50);
  print(`Without load, other requests take ${waits(calm)}`);
  const many = Array.from({ length: ON_ONE_SOCKET }, (_, index) =>
    requestOf(key, '/subtract', { end_user_id: endUsers[index % endUsers.length], amount: 1 }),
  );
  const started = performance.now();
  const { answers, memoryMib } = await sendAll(server, many, 1);
  const tookMs = Math.round(performance.now() - started);
  print(
    `${ON_ONE_SOCKET} requests on one socket: ${JSON.stringify([...answers])} in ${tookMs} ms, memory at most ${memoryMib} MiB`,
  );

  let memory = watchMemory(server);
  let crowd = await Crowd.of(server, CONNECTIONS_MAX);
  for (const socket of crowd.sockets) socket.write(readOf(key, '/get-active-balance', endUsers[0] as string));
  print(
    `${CONNECTIONS_MAX} idle sockets: other requests take ${waits(await othersWait(loaded, 100))}, memory at most ${memory().most} MiB`,
  );
  crowd.leave();

  memory = watchMemory(server);
  crowd = await Crowd.of(server, CONNECTIONS_MAX);
  crowd.every(1_000, (socket) => socket.write('X'));
  for (const socket of crowd.sockets) socket.write('POST /add HTTP/1.1\r\nHost: scrip\r\nX-Slow: ');
  const others = await othersWait(loaded, 100);
  for (let waited = 0; crowd.closed < CONNECTIONS_MAX && waited < 40; waited++) await sleep(500);
  print(
    `${CONNECTIONS_MAX} sockets that send a byte of a header each second: other requests take ${waits(others)}, ${crowd.closed} sockets are closed after ${Math.round((performance.now() - started - tookMs) / 1_000)} s, memory at most ${memory().most} MiB`,
  );
  crowd.leave();
}

async function readers(loaded: Loaded): Promise<void> {
  print('Times: median, 99%, maximum');
  for await (const line of besideReaders(loaded, READINGS, seconds)) print(line);
  print(`After the readers have left, other requests take ${waits(await othersWait(loaded, 50))}`);
}

function waits(sorted: readonly number[]): string {
  return `${[0.5, 0.99].map((share) => percentile(sorted, share).toFixed(1)).join(' and at the 99th percentile ')} ms`;
}

const isAll = !values.storms && !values.readers;
if (isAll || values.storms) await storms();
if (isAll) await withServer(SLOW_SERVER, clientsThatLeave);
if (isAll) await withServer(null, sockets);
if (isAll || values.readers) await withServer(null, readers);
