// Tests a store against the reference model. The environment variables `SEED` and `RUNS` select the random histories.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { control, IS_LONG } from '../effort.ts';
import { type History, histories } from './histories.ts';
import type { ModelUser } from './model-types.ts';
import { BEGIN, type ComparedStore, SideBySide, USERS } from './side-by-side.ts';
import { sights } from './sights.ts';
import { Stack } from './stack.ts';

const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
/**
 * With at least this many histories, the test checks that their mean length is at least `COMMANDS_MEAN_MIN`, and that
 * every case of `sights.ts` occurs. The lengths have a mean of 100 and a standard deviation of 58, so in about one of
 * 100,000 runs of the test, the mean of 150 lengths is below 80 by chance.
 */
export const RUNS_JUDGED = 150;
/** Short histories find hardly any bugs; with fast-check's default `size`, the mean length would be 5. */
const COMMANDS_MEAN_MIN = 80;
const SHRINK_MS_MAX = 60_000;

const SECOND = 1_000;
const DAY = 86_400 * SECOND;
const LAST_INSTANT = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

const ONE_DAY = { validityDays: 1, validityMonths: null };

export interface ModelledStore extends ComparedStore {
  readonly file: string;
  readonly runs: number;
  readonly runMsMax: number;
  /** Cases of `sights.ts` that cannot occur with this store. */
  readonly unseen?: readonly string[];
}

export function modelTests(name: string, store: ModelledStore): void {
  test(`a ledger on ${name} has the same outcomes as the reference model`, (t) => runHistories(t, store));

  test(`expired credits on ${name} stay expired if the clock jumps back during a restart, even if the store has accepted no write since they expired`, async () => {
    const both = await SideBySide.open(store);
    const [user] = USERS as [ModelUser];
    try {
      await both.decide([[0, { kind: 'add', amount: 5, ...ONE_DAY, note: null }, null]]);
      both.setWall(BEGIN + DAY);
      await both.decide([[0, { kind: 'subtract', amount: 5, note: null }, null]]);
      both.setWall(BEGIN);
      await both.real.restart();
      both.model.lookAtClock();
      await both.compareBalance(user);
      await both.decide([[0, { kind: 'subtract', amount: 5, note: null }, null]]);
    } finally {
      await both.real.close();
    }
  });

  test(`a ledger on ${name} and the reference model agree on the last monthly periods of the year 9999`, async () => {
    const both = await SideBySide.open(store);
    const [user] = USERS as [ModelUser];
    const month = { validityDays: null, validityMonths: 1, rolloverMax: 3, note: null };
    const start = { kind: 'start-cycle', amount: 5, ...month, onActive: 'at_period_end' } as const;
    try {
      both.setWall(Date.UTC(9999, 9, 31, 12));
      await both.decide([
        [0, start, null],
        [0, { kind: 'subtract', amount: 1, note: null }, null],
      ]);
      both.setWall(Date.UTC(9999, 10, 30, 12));
      await both.compareBalance(user);
      await both.decide([[0, { ...start, amount: 7 }, null]]);
      both.setWall(Date.UTC(9999, 11, 31, 12));
      await both.comparePreview(user, start);
      // The cycle ends at the last instant of the year 9999, so no plan can follow.
      await both.decide([
        [0, start, null],
        [0, { ...start, onActive: 'replace' }, null],
        [0, { kind: 'stop-cycle', note: null }, null],
      ]);
      await both.compareAll();
    } finally {
      await both.real.close();
    }
  });

  test(`a ledger on ${name} accepts writes if the machine's clock is past the year 9999`, {
    timeout: 20 * SECOND,
  }, async () => {
    const stack = await Stack.open(store.newLedger, LAST_INSTANT - DAY);
    const [user] = USERS as [ModelUser];
    const request = { ...user, actor: 'key:1' };
    try {
      await stack.run([{ ...request, kind: 'start-cycle', amount: 5, ...ONE_DAY, rolloverMax: 0, onActive: 'refuse' }]);
      stack.ledger.wall = LAST_INSTANT + DAY;
      const [added] = await stack.run([{ ...request, kind: 'add', amount: 3, ...ONE_DAY }]);
      assert.equal(added?.refused, null);
      assert.deepEqual(await stack.ledger.due(1), []);
    } finally {
      await stack.close();
    }
  });
}

const CONTROL_RUNS_MAX = 300;

export function modelControl(fault: string, store: ComparedStore): void {
  control(`control: the random histories catch a store that ${fault}`, async (t) => {
    let runs = 0;
    const history = fc.asyncProperty(histories, async (steps) => {
      runs += 1;
      await compareHistory(store, steps);
    });
    const { failed, errorInstance } = await fc.check(history, {
      seed: SEED,
      numRuns: CONTROL_RUNS_MAX,
      endOnFailure: true,
    });
    assert(failed, `not caught in ${runs} histories; the seed is ${SEED}`);
    const [why] = String((errorInstance as Error)?.message).split('\n');
    t.diagnostic(`caught by history ${runs} with the seed ${SEED}: ${why}`);
  });
}

async function compareHistory(store: ComparedStore, steps: History): Promise<number> {
  const both = await SideBySide.open(store);
  try {
    await fc.asyncModelRun(() => ({ model: both.model, real: both }), steps);
    await both.compareAll();
  } finally {
    await both.real.close();
  }
  return both.steps;
}

async function runHistories(t: TestContext, store: ModelledStore): Promise<void> {
  const runs = Number(process.env.RUNS ?? store.runs);
  const lengths: number[] = [];
  const history = fc.asyncProperty(histories, async (steps) => {
    lengths.push(await compareHistory(store, steps));
  });
  const started = performance.now();
  const interruptAfterTimeLimit = SHRINK_MS_MAX + store.runMsMax * runs;
  const details = await fc.check(history, { seed: SEED, numRuns: runs, interruptAfterTimeLimit });
  const repeat = `${IS_LONG ? 'TESTS=long ' : ''}SEED=${SEED} RUNS=${runs} npx node --test ${store.file}`;
  if (details.failed) {
    const report = fc.defaultReportMessage(details);
    throw new Error(`repeat it with: ${repeat}\n${report}`, { cause: details.errorInstance });
  }
  assert(!details.interrupted, `timed out after ${lengths.length} of ${runs} runs`);
  const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
  const seconds = (performance.now() - started) / SECOND;
  t.diagnostic(`${runs} runs of ${mean.toFixed(1)} commands on average in ${seconds.toFixed(1)} s; ${repeat}`);
  for (const [sight, count] of sights) t.diagnostic(`${count} × ${sight}`);
  if (runs < RUNS_JUDGED) return;
  assert(mean >= COMMANDS_MEAN_MIN, `a run has ${mean} commands on average; repeat it with: ${repeat}`);
  for (const [sight, count] of sights)
    assert(count > 0 || store.unseen?.includes(sight), `this case did not occur: ${sight}; repeat it with: ${repeat}`);
}
