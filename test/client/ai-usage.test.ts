// Tests that the ai-usage.ts example charges for an answer. If the program is killed during the answer, its next run
// charges for the part that the user received, unless the hold has lapsed.

import assert from 'node:assert/strict';
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Readable } from 'node:stream';
import { after, before, type TestContext, test } from 'node:test';
import { MovableClock, type Scrip, startScrip } from '../http/running-service.ts';
import { CLIENT } from './client-package.ts';

const PROGRAM = join(CLIENT, 'examples/ai-usage.ts');

const ANSWER =
  'You ask: Why is the sky blue? Air scatters blue light more than red, so that it reaches you from everywhere. ';
const LINES = [
  ANSWER,
  'The answer cost 42 credits; 58 held credits were returned.',
  'An answer can cost 100 credits, but only 88 are left.',
  '88 credits are left.',
];

const clock = new MovableClock('2026-11-20T08:00:00.123Z');
let scrip: Scrip;
before(async () => {
  scrip = await startScrip({ clock });
});
after(async () => {
  await scrip.assertConsistent();
  await scrip.stop();
});

async function newJobs(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'scrip-jobs-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return join(folder, 'jobs.db');
}

function start(jobs: string): ChildProcessByStdio<null, Readable, null> {
  const env = { ...process.env, SCRIP_URL: scrip.url, SCRIP_KEY: scrip.writeKey, JOBS: jobs };
  const args = ['--conditions=scrip-source', '--no-warnings', PROGRAM];
  return spawn(process.execPath, args, { cwd: CLIENT, env, stdio: ['ignore', 'pipe', 'inherit'], timeout: 60_000 });
}

async function run(jobs: string): Promise<string[]> {
  const program = start(jobs);
  const [output, [code]] = await Promise.all([text(program.stdout), once(program, 'exit')]);
  assert.equal(code, 0, output);
  return output.trimEnd().split('\n');
}

async function text(stream: Readable): Promise<string> {
  let whole = '';
  for await (const chunk of stream) whole += chunk;
  return whole;
}

async function killInTheMiddle(jobs: string): Promise<string> {
  const program = start(jobs);
  let seen = '';
  for await (const chunk of program.stdout) {
    seen += chunk;
    if (seen.split(' ').length > 8) program.kill('SIGKILL');
  }
  assert(seen.length < ANSWER.length, `the program ended before it was killed: ${seen}`);
  return seen;
}

interface Job {
  readonly hold_id: string;
  readonly user: string;
  readonly tokens: number;
}

function jobsIn(path: string): readonly Job[] {
  const db = new DatabaseSync(path);
  const jobs = db.prepare('SELECT * FROM jobs').all() as unknown as Job[];
  db.close();
  return jobs;
}

async function stateOf({ user }: Job): Promise<readonly [balance: number, held: number | undefined]> {
  const { active_balance, held } = await scrip.balance(user);
  return [active_balance, held];
}

test('the ai-usage.ts example captures the cost of the answer, and prints the expected lines', async (t) => {
  const jobs = await newJobs(t);
  assert.deepEqual(await run(jobs), LINES);
  assert.deepEqual(jobsIn(jobs), [], 'no job is left');
});

test('if the ai-usage.ts example is killed during an answer, its next run captures the cost of the part that the user received', async (t) => {
  const jobs = await newJobs(t);
  const seen = await killInTheMiddle(jobs);
  const [job = assert.fail('no job'), ...others] = jobsIn(jobs);
  assert.equal(others.length, 0);
  const words = seen.trim().split(' ').length;
  assert(job.tokens === words || job.tokens === words - 1, `${job.tokens} of ${words} printed tokens are counted`);
  assert.deepEqual(await stateOf(job), [30, 100], 'the hold is open');
  const cost = 2 * job.tokens;
  const [first, ...lines] = await run(jobs);
  assert.equal(first, `An interrupted answer of ${job.tokens} tokens cost ${cost} credits.`);
  assert.deepEqual(lines, LINES);
  assert.deepEqual(await stateOf(job), [130 - cost, undefined]);
  assert.deepEqual(jobsIn(jobs), []);
});

test('if the hold of an interrupted answer lapses before the ai-usage.ts example runs again, the answer costs nothing', async (t) => {
  const jobs = await newJobs(t);
  await killInTheMiddle(jobs);
  const [job = assert.fail('no job')] = jobsIn(jobs);
  clock.advance(3_600_000);
  assert.deepEqual(await stateOf(job), [130, undefined]);
  assert.deepEqual(await run(jobs), LINES);
  assert.deepEqual(await stateOf(job), [130, undefined]);
  assert.deepEqual(jobsIn(jobs), []);
});
