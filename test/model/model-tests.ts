// The model-based test of a store, with the rest of the real stack above it. `SEED` and `RUNS` choose the histories; a
// failure prints the command that repeats it.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import type { NewLedger } from '../store/test-ledger.ts';
import { histories } from './histories.ts';
import type { ModelUser } from './reference-model.ts';
import { BEGIN, SideBySide, sights, USERS } from './side-by-side.ts';
import { Stack } from './stack.ts';

const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
/** So many that the mean length of a run, 100 with a deviation of 58, is below 80 once in 100,000 times. */
export const RUNS_JUDGED = 150;
/** With shorter histories a random test tests next to nothing; at the default size of fast-check the mean is 5. */
const COMMANDS_MEAN_MIN = 80;
/** For shrinking a failure, in addition to all runs. */
const SHRINK_MS_MAX = 60_000;

const SECOND = 1_000;
const DAY = 86_400 * SECOND;
const LAST_INSTANT = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

export interface ModelledStore {
  /** Repeats the test: `npx node --test` and this file. */
  readonly file: string;
  /** The number of histories, unless `RUNS` says. */
  readonly runs: number;
  readonly runMsMax: number;
  readonly newLedger: NewLedger;
  /** Cases that its histories cannot contain. */
  readonly unseen?: readonly string[];
}

/** @param name of the store */
export function modelTests(name: string, store: ModelledStore): void {
  test(`A ledger on ${name} does what the reference model does`, (t) => runHistories(t, store));

  test(`Expired credits on ${name} do not come back when the clock jumps back over a restart, even when all since was refused`, async () => {
    const both = await SideBySide.open(store.newLedger);
    const [user] = USERS as [ModelUser];
    try {
      await both.decide([[0, { kind: 'add', amount: 5, validityDays: 1 }, null]]);
      both.setWall(BEGIN + DAY);
      await both.decide([[0, { kind: 'subtract', amount: 5 }, null]]);
      both.setWall(BEGIN);
      await both.real.restart();
      both.model.lookAtClock();
      await both.compareBalance(user);
      await both.decide([[0, { kind: 'subtract', amount: 5 }, null]]);
    } finally {
      await both.real.close();
    }
  });

  test(`A machine whose clock is past the year 9999 does not stop a ledger on ${name}`, {
    timeout: 20 * SECOND,
  }, async () => {
    const stack = await Stack.open(store.newLedger, LAST_INSTANT - DAY);
    const [user] = USERS as [ModelUser];
    const request = { ...user, actor: 'key:1' };
    try {
      await stack.run([{ ...request, kind: 'start-cycle', amount: 5, validityDays: 1, onActive: 'refuse' }]);
      stack.ledger.wall = LAST_INSTANT + DAY;
      const [added] = await stack.run([{ ...request, kind: 'add', amount: 3, validityDays: 1 }]);
      assert.equal(added?.refused, null);
      assert.deepEqual(await stack.ledger.due(1), []);
    } finally {
      await stack.close();
    }
  });
}

async function runHistories(t: TestContext, store: ModelledStore): Promise<void> {
  const runs = Number(process.env.RUNS ?? store.runs);
  const lengths: number[] = [];
  const history = fc.asyncProperty(histories, async (steps) => {
    const both = await SideBySide.open(store.newLedger);
    try {
      await fc.asyncModelRun(() => ({ model: both.model, real: both }), steps);
      await both.compareAll();
    } finally {
      await both.real.close();
    }
    lengths.push(both.steps);
  });
  const started = performance.now();
  const interruptAfterTimeLimit = SHRINK_MS_MAX + store.runMsMax * runs;
  const details = await fc.check(history, { seed: SEED, numRuns: runs, interruptAfterTimeLimit });
  const repeat = `SEED=${SEED} RUNS=${runs} npx node --test ${store.file}`;
  if (details.failed) {
    const report = fc.defaultReportMessage(details);
    throw new Error(`repeat it with: ${repeat}\n${report}`, { cause: details.errorInstance });
  }
  assert(!details.interrupted, `stopped after ${lengths.length} of ${runs} runs, for want of time`);
  const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
  const seconds = (performance.now() - started) / SECOND;
  t.diagnostic(`${runs} runs of ${mean.toFixed(1)} commands on average in ${seconds.toFixed(1)} s; ${repeat}`);
  for (const [sight, count] of sights) t.diagnostic(`${count} × ${sight}`);
  // Fewer runs scatter too much to be judged together.
  if (runs < RUNS_JUDGED) return;
  assert(mean >= COMMANDS_MEAN_MIN, `a run has ${mean} commands on average; repeat it with: ${repeat}`);
  for (const [sight, count] of sights)
    assert(count > 0 || store.unseen?.includes(sight), `no history saw this: ${sight}; repeat it with: ${repeat}`);
}
