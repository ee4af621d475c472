// `npm run failing-disk -- --times 12 --seed 1` tests a server under load while its disk is slow or fails. As a
// control, the test must also detect a writer that treats a failed COMMIT as a success. Needs Linux and strace (Debian:
// `apt-get install strace`).

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type BreakDisk, FailingServer, type Failure, type Seen, summaryOf } from './failing-server.ts';
import { randomFrom } from './randomness.ts';

const LASTS_MS = 250;
const KILLED_EVERY = 4;
const SHOWN = 5;

/** A failing disk violates no invariant, so the server must not return `Internal`. */
const HONEST = new Set([
  '200',
  'InsufficientFunds',
  'CycleNotFound',
  'HoldNotFound',
  'RefundTooLarge',
  'OutcomeUnknown',
  'StoreUnavailable',
  'Overloaded',
]);

interface Fault {
  readonly name: string;
  readonly inject: string;
}

const FSYNC_EIO: Fault = { name: 'fsync returns EIO', inject: 'fsync,fdatasync:error=EIO' };
const WRITE_EIO: Fault = { name: 'a write returns EIO', inject: 'pwrite64:error=EIO' };
const WRITE_ENOSPC: Fault = { name: 'a write returns ENOSPC', inject: 'pwrite64:error=ENOSPC' };
const FAULTS: readonly Fault[] = [FSYNC_EIO, WRITE_EIO, WRITE_ENOSPC];

const { times, seed } = parseArgs({
  options: {
    times: { type: 'string', default: '12' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
}).values;

if (spawnSync('strace', ['--version']).status !== 0) {
  say('strace is not installed, so disk errors cannot be injected. On Debian: apt-get install strace.');
  process.exit(2);
}
const started = performance.now();
say(`seed ${seed}; repeat with: npm run failing-disk -- --times ${times} --seed ${seed}`);
let hasFailed = false;
/** How many system calls strace has made fail or delayed. */
let injected = 0;
for (const fault of FAULTS) {
  const once = Array.from({ length: Number(times) }, (_, index) => failureOf(fault, `${index + 1}`, false));
  const often = [failureOf(fault, '1+7', false), failureOf(fault, '1+', true), failureOf(fault, '5+', true)];
  await examine(fault.name, [...once, ...often]);
}
await examine('fsync takes 300 ms', [
  failureOf({ name: 'slow', inject: 'fsync,fdatasync:delay_enter=300ms' }, '1+', false, 2_000),
]);
await examine('a write takes 20 ms', [
  failureOf({ name: 'slow', inject: 'pwrite64:delay_enter=20ms' }, '1+', false, 2_000),
]);
await examineControl();
say(`${Math.round((performance.now() - started) / 1_000)} s`);
process.exit(hasFailed ? 1 : 0);

/**
 * @param when as in strace: `3+` is the third call and all later calls, `1+7` the first call and every seventh call
 * after it
 */
function failureOf({ name, inject }: Fault, when: string, mustFail: boolean, lastsMs = LASTS_MS): Failure {
  return { name: `${name}, ${when}`, breakDisk: injecting(`${inject}:when=${when}`), lastsMs, mustFail };
}

function injecting(inject: string): BreakDisk {
  return async ({ pid }) => {
    const calls = inject.split(':')[0];
    const folder = mkdtempSync(join(tmpdir(), 'scrip-strace-'));
    const trace = join(folder, 'trace');
    const args = ['-f', '-o', trace, '-e', `trace=${calls}`, '-e', `inject=${inject}`, '-p', String(pid)];
    const strace = spawn('strace', args, { stdio: ['ignore', 'ignore', 'pipe'] });
    await attached(strace);
    return async () => {
      strace.kill('SIGINT');
      if (strace.exitCode === null && strace.signalCode === null) await once(strace, 'exit');
      injected += readFileSync(trace, 'utf8').match(/\((?:INJECTED|DELAYED)\b/g)?.length ?? 0;
      rmSync(folder, { recursive: true });
    };
  };
}

async function attached(strace: ChildProcess): Promise<void> {
  let text = '';
  for await (const chunk of strace.stderr?.iterator({ destroyOnReturn: false }) ?? []) {
    text += chunk;
    if (text.includes('attached')) break;
  }
  if (!text.includes('attached')) throw new Error(`strace is not attached: ${text}`);
  strace.stderr?.resume();
}

async function withServer<Result>(weakness: 'deaf' | null, use: (server: FailingServer) => Promise<Result>) {
  const folder = mkdtempSync(join(tmpdir(), 'scrip-failing-'));
  const server = new FailingServer(join(folder, 'scrip.db'), randomFrom(Number(seed)), weakness);
  try {
    await server.start();
    return await use(server);
  } finally {
    await server.end('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}

async function examine(name: string, failures: readonly Failure[]): Promise<void> {
  injected = 0;
  const seen = await withServer(null, async (server) => {
    const all: Seen[] = [];
    for (const [index, failure] of failures.entries()) {
      const isLast = index === failures.length - 1;
      const restart = isLast ? 'SIGTERM' : index % KILLED_EVERY === KILLED_EVERY - 1 ? 'SIGKILL' : null;
      all.push(await server.under(failure, restart));
    }
    return all;
  });
  const total = sumOf(seen);
  const wrong = seen.flatMap((one, index) => faultsOf(one).map((sentence) => `${failures[index]?.name}: ${sentence}`));
  if (injected === 0) wrong.push('no system call failed or was delayed');
  hasFailed ||= wrong.length > 0;
  say(
    `${wrong.length === 0 ? 'ok' : 'NOT OK'}  ${name}, ${failures.length} times: ${injected} system calls; ${summaryOf(total)}`,
  );
  for (const sentence of wrong.slice(0, SHOWN)) say(`        ${sentence}`);
}

/** The faulty writer is caught if acknowledged writes are lost, or if the writer stops because a posting is missing. */
async function examineControl(): Promise<void> {
  const failure = failureOf(WRITE_EIO, '1+7', false, 1_000);
  const seen = await withServer('deaf', (server) => server.under(failure, null)).catch((error) => {
    if (/^writes work again/.test(error.message)) return null;
    throw error;
  });
  const isCaught = seen === null || seen.lost > 0;
  hasFailed ||= !isCaught;
  const summary = seen === null ? 'the server stopped writing' : summaryOf(seen);
  say(`${isCaught ? 'ok' : 'NOT OK'}  control: a failed COMMIT is treated as a success: ${summary}`);
}

function faultsOf({ answers, lost, wrong }: Seen): string[] {
  const dishonest = [...answers.keys()].filter((name) => !HONEST.has(name));
  return [
    ...(lost > 0 ? [`${lost} acknowledged writes are lost`] : []),
    ...dishonest.map((name) => `${answers.get(name)} responses were ${name}`),
    ...wrong,
  ];
}

function sumOf(seen: readonly Seen[]): Seen {
  const answers = new Map<string, number>();
  for (const one of seen) for (const [name, count] of one.answers) answers.set(name, (answers.get(name) ?? 0) + count);
  const sum = (value: (one: Seen) => number) => seen.reduce((total, one) => total + value(one), 0);
  return {
    answers,
    notReady: sum(({ notReady }) => notReady),
    reads: sum(({ reads }) => reads),
    lost: sum(({ lost }) => lost),
    wrong: seen.flatMap(({ wrong }) => wrong),
    backMs: Math.max(...seen.map(({ backMs }) => backMs)),
  };
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
