// Tests how often jobs look for work while their process writes nothing, and after a batch.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { IntervalJob } from './interval-job.ts';
import { QuietPauses } from './quiet-pauses.ts';

const PAUSE_MS = 5_000;

function pausesOn(t: TestContext) {
  const world = { now: 100_000, batches: 0 };
  t.mock.method(performance, 'now', () => world.now);
  return Object.assign(world, { pauses: new QuietPauses(PAUSE_MS, () => world.batches) });
}

test('while a process writes nothing, its jobs wait for the whole pause before they look for work again', (t) => {
  const world = pausesOn(t);
  assert(!world.pauses.isDue(world.now - PAUSE_MS + 1));
  assert(world.pauses.isDue(world.now - PAUSE_MS));
});

test('for three seconds after a batch, jobs look for work at their usual interval', (t) => {
  const world = pausesOn(t);
  const looked = world.now;
  world.batches = 1;
  assert(world.pauses.isDue(looked));
  world.now += 3_000;
  assert(world.pauses.isDue(looked));
  world.now += 1;
  assert(!world.pauses.isDue(looked));
});

test('if the pause is 0, jobs always look for work at their usual interval', (t) => {
  const world = pausesOn(t);
  assert(new QuietPauses(0, () => 0).isDue(world.now));
});

test('a job runs only at the ticks at which it is due', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  let runs = 0;
  const world = { isDue: false };
  const job = new IntervalJob(
    async () => {
      runs += 1;
    },
    (error) => assert.fail(String(error)),
  );
  job.start({ isDue: () => world.isDue } as unknown as QuietPauses);
  t.mock.timers.tick(1_000);
  assert.equal(runs, 0);
  world.isDue = true;
  t.mock.timers.tick(1_000);
  assert.equal(runs, 1);
  await job.stop();
});
