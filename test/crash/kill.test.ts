// A server that is killed under load, 20 times; `npm run kill` does it 200 times. What it promises is only worth
// something if a writer that breaks the promise is noticed by the same test.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Kills, killRepeatedly, summaryOf } from './killing.ts';
import { randomFrom } from './randomness.ts';

const KILLS = 20;
/** A control ends as soon as it is caught. */
const CONTROL_KILLS_MAX = 20;
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);

test('a kill loses nothing that was answered, leaves no half batch, and a key tells what became of it', async (t) => {
  const found = await killRepeatedly(KILLS, randomFrom(SEED), null);
  t.diagnostic(`SEED=${SEED}: ${summaryOf(found)}`);
  assert.deepEqual(found.wrong, []);
  assert.equal(found.lost, 0);
  assert.equal(found.halfBatches, 0);
  assert(found.acknowledged > KILLS && found.betweenCommitAndAnswer > 0, 'kills came while something was going on');
});

test('control: a writer that answers before it commits is caught', async (t) => {
  const isCaught = ({ lost, wrong }: Kills) => lost > 0 || wrong.length > 0;
  const found = await killRepeatedly(CONTROL_KILLS_MAX, randomFrom(SEED), 'late', isCaught);
  t.diagnostic(summaryOf(found));
  assert(isCaught(found));
});

test('control: a writer that commits half a batch at a time is caught', async (t) => {
  const found = await killRepeatedly(
    CONTROL_KILLS_MAX,
    randomFrom(SEED),
    'halves',
    ({ halfBatches }) => halfBatches > 0,
  );
  t.diagnostic(summaryOf(found));
  assert(found.halfBatches > 0);
});
