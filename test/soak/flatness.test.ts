// Tests `judgeFlatness` with series of known shapes and random noise.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '../load/random.ts';
import { type Flatness, judgeFlatness, type Reading } from './flatness.ts';

const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);
const MEMORY = { share: 0.05, least: 8 };
const EVERY_SECONDS = 5;
const MINUTES = 20;
const SERIES = 300;

type Shape = (secondsOfLife: number, noise: () => number) => number;

function measured(shape: Shape, random: Random, lifeMinutes = MINUTES): Flatness {
  // The noise is between -1 and 1, and approximately normally distributed.
  const noise = () => (2 * (random.next() + random.next() + random.next())) / 3 - 1;
  const readings: Reading[] = [];
  for (let seconds = 0; seconds < MINUTES * 60; seconds += EVERY_SECONDS) {
    const life = Math.floor(seconds / (lifeMinutes * 60));
    readings.push({ life, seconds, value: shape(seconds - life * lifeMinutes * 60, noise) });
  }
  return judgeFlatness(readings, MEMORY);
}

const FLAT: Record<string, Shape> = {
  'noise around a level': (_, noise) => 150 + 15 * noise(),
  'a cache that fills up': (seconds, noise) => 100 + 60 * Math.min(1, seconds / 300) + 10 * noise(),
  'a heap with garbage collections': (seconds, noise) => 120 + (seconds % 47) + 5 * noise(),
  'a log that is truncated repeatedly': (seconds) => Math.min(32, (seconds * 0.7) % 40),
  'a server whose memory shrinks': (seconds, noise) => 200 - 0.05 * seconds + 5 * noise(),
  'a rise below the bound': (seconds, noise) => 150 + 0.004 * seconds + noise(),
  'a constant level with one outlier': (seconds, noise) => (seconds > 1_000 && seconds < 1_030 ? 900 : 150) + noise(),
  'a constant': () => 23,
};

const RISING: Record<string, Shape> = {
  'a leak of 2 MiB a minute': (seconds, noise) => 150 + seconds / 30 + 15 * noise(),
  'a leak in a server whose cache fills up': (seconds, noise) =>
    100 + 60 * Math.min(1, seconds / 300) + seconds / 30 + noise(),
  'a leak in a heap with garbage collections': (seconds, noise) => 120 + (seconds % 47) + seconds / 20 + 5 * noise(),
  'a leak in steps': (seconds) => 150 + 12 * Math.floor(seconds / 120),
};

for (const [name, shape] of Object.entries(FLAT)) {
  test(`the soak test accepts this series as flat: ${name}`, () => {
    const random = new Random(SEED);
    const wrong = Array.from({ length: SERIES }, () => measured(shape, random)).filter(({ isFlat }) => !isFlat);
    assert(wrong.length <= SERIES / 100, `SEED=${SEED}: ${wrong.length} of ${SERIES}, ${JSON.stringify(wrong[0])}`);
  });
}

for (const [name, shape] of Object.entries(RISING)) {
  test(`the soak test does not accept this series as flat: ${name}`, () => {
    const random = new Random(SEED);
    const wrong = Array.from({ length: SERIES }, () => measured(shape, random)).filter(({ isFlat }) => isFlat);
    assert.equal(wrong.length, 0, `SEED=${SEED}: ${JSON.stringify(wrong[0])}`);
  });
}

test('the soak test finds a leak even if the server is killed every four minutes, which frees the leaked memory', () => {
  const leak: Shape = (seconds, noise) => 150 + seconds / 6 + 5 * noise();
  const found = measured(leak, new Random(SEED), 4);
  assert.equal(found.isFlat, false, JSON.stringify(found));
  assert(Math.abs(found.slopePerHour - 600) < 100, `the slope is 600 an hour, but ${found.slopePerHour} was found`);
});

test('the soak test fails if no process ran long enough to be judged', () => {
  assert.throws(() => judgeFlatness([{ life: 0, seconds: 1, value: 1 }], MEMORY), /long enough/);
});
