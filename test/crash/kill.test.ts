// Kills a server under load several times. The test must also catch writers that are broken on purpose.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { control, effort } from '../effort.ts';
import { type Kills, killRepeatedly, summaryOf } from './killing.ts';
import { randomFrom } from './randomness.ts';

const KILLS_MIN = effort(2, 20);
/** About half of the kills hit the server between a commit and its response; the test needs at least one such kill. */
const KILLS_MAX = 20;
const CONTROL_KILLS_MAX = 40;
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);

test('a killed server loses no acknowledged write and stores each batch completely or not at all, and replays the stored outcomes when requests are repeated with their idempotency keys', async (t) => {
  const isEnough = ({ kills, betweenCommitAndAnswer }: Kills) => kills >= KILLS_MIN && betweenCommitAndAnswer > 0;
  const found = await killRepeatedly(KILLS_MAX, randomFrom(SEED), null, isEnough);
  t.diagnostic(`SEED=${SEED}: ${summaryOf(found)}`);
  assert.deepEqual(found.wrong, []);
  assert.equal(found.lost, 0);
  assert.equal(found.halfBatches, 0);
  assert(
    found.acknowledged > found.kills && found.betweenCommitAndAnswer > 0,
    'some kills hit the server between a commit and its response',
  );
});

control('control: the kill test catches a writer that responds before it commits', async (t) => {
  const isCaught = ({ lost, wrong }: Kills) => lost > 0 || wrong.length > 0;
  const found = await killRepeatedly(CONTROL_KILLS_MAX, randomFrom(SEED), 'late', isCaught);
  t.diagnostic(summaryOf(found));
  assert(isCaught(found));
});

control('control: the kill test catches a writer that commits each half of a batch separately', async (t) => {
  const found = await killRepeatedly(
    CONTROL_KILLS_MAX,
    randomFrom(SEED),
    'halves',
    ({ halfBatches }) => halfBatches > 0,
  );
  t.diagnostic(summaryOf(found));
  assert(found.halfBatches > 0);
});
