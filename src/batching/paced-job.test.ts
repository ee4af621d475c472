// Tests how long a paced job pauses between its steps, and how it measures its delay.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { PacedJob, pauseFor } from './paced-job.ts';

const STEP_MS = 10;

function workOf(steps: number) {
  const work = {
    taken: 0,
    async step() {
      await sleep(STEP_MS);
      work.taken += 1;
      return work.taken < steps;
    },
  };
  return work;
}

const IDLE = { isBusy: () => false };

const unexpected = (error: unknown) => assert.fail(String(error));

test('a paced job takes all its steps in one run, and each pause between two steps is several times as long as a step', async () => {
  const work = workOf(4);
  const began = performance.now();
  await new PacedJob(work.step, unexpected, IDLE).tick();
  assert.equal(work.taken, 4);
  assert(performance.now() - began >= 4 * STEP_MS + 3 * 4 * (STEP_MS - 1));
});

test('a paced job that is stopped during a pause ends immediately', async () => {
  const work = workOf(Number.POSITIVE_INFINITY);
  const job = new PacedJob(work.step, unexpected, IDLE);
  const run = job.tick();
  await sleep(2 * STEP_MS);
  await job.stop();
  await run;
  const { taken } = work;
  await sleep(10 * STEP_MS);
  assert.equal(work.taken, taken);
});

test('a paced job measures the time since it last had nothing to do', async () => {
  const work = workOf(3);
  const job = new PacedJob(work.step, unexpected, IDLE);
  await sleep(5 * STEP_MS);
  assert(job.lateMs() >= 4 * STEP_MS, 'the job has not looked for work yet');
  await job.tick();
  assert(job.lateMs() < 5 * STEP_MS, 'the last step found nothing more to do');
});

test('while another process does the work, a paced job counts as late', async () => {
  let isElsewhere = true;
  const job = new PacedJob(async () => (isElsewhere ? null : false), unexpected, IDLE);
  await sleep(5 * STEP_MS);
  await job.tick();
  const before = job.lateMs();
  assert(before >= 4 * STEP_MS, 'it is unknown whether work is left');
  isElsewhere = false;
  await job.tick();
  assert(job.lateMs() < before);
});

test('a paced job takes its next step soon after the process is no longer busy', async () => {
  const work = workOf(2);
  let isBusy = true;
  const job = new PacedJob(work.step, unexpected, { isBusy: () => isBusy });
  const began = performance.now();
  const run = job.tick();
  await sleep(5 * STEP_MS);
  assert.equal(work.taken, 1, 'the pause lasts 99 times as long as the step');
  isBusy = false;
  await run;
  assert.equal(work.taken, 2);
  assert(performance.now() - began < 99 * STEP_MS);
});

for (const [lateMs, idle, busy] of [
  [0, 4, 99],
  [999, 4, 99],
  [1_000, 3, 99],
  [9_999, 3, 99],
  [10_000, 2, 99],
  [29_999, 2, 99],
  [30_000, 1, 19],
  [300_000, 1, 9],
  [1_800_000, 1, 4],
  [86_400_000, 1, 4],
] as const)
  test(`a paced job that is ${lateMs} ms late pauses for ${idle} times as long as its last step took, or ${busy} times as long while the process is busy`, () => {
    assert.equal(pauseFor(lateMs, false), idle);
    assert.equal(pauseFor(lateMs, true), busy);
  });
