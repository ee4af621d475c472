// The job that updates summaries: it continues while there is more to do, pauses between steps, and stops at once.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { summariesJob } from './summaries.ts';

const STEP_MS = 10;

/** @param steps how many steps the keeper needs to catch up; each takes `STEP_MS` */
function keeperOf(steps: number) {
  const keeper = {
    taken: 0,
    async catchUp() {
      await sleep(STEP_MS);
      keeper.taken += 1;
      return keeper.taken < steps;
    },
  };
  return keeper;
}

test('the summaries job takes all steps in one round, and pauses between two steps for several times the duration of a step', async () => {
  const keeper = keeperOf(4);
  const began = performance.now();
  await summariesJob(keeper, (error) => assert.fail(String(error))).tick();
  assert.equal(keeper.taken, 4);
  assert(performance.now() - began >= 4 * STEP_MS + 3 * 4 * (STEP_MS - 1));
});

test('a summaries job that is stopped during a pause ends at once', async () => {
  const keeper = keeperOf(Number.POSITIVE_INFINITY);
  const job = summariesJob(keeper, (error) => assert.fail(String(error)));
  const round = job.tick();
  await sleep(2 * STEP_MS);
  await job.stop();
  await round;
  const { taken } = keeper;
  await sleep(10 * STEP_MS);
  assert.equal(keeper.taken, taken);
});
