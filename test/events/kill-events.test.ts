// A short version of `npm run kill-events`, with a few kills instead of 100. As a control, the test runs a server that
// is broken on purpose.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomFrom } from '../crash/randomness.ts';
import { control, effort } from '../effort.ts';
import { type KillOptions, killEvents, summaryOf } from './killing-events.ts';

const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);

/** The number of kills is even, so that servers and receivers are killed equally often. */
const KILLS = effort(2, 4);

const OPTIONS: KillOptions = {
  kills: KILLS,
  // Scrip looks for new postings every half second. With this minimum, Scrip derives events at least once before each
  // kill.
  loadMsMin: 600,
  loadMsMax: 1_000,
  databaseUrl: null,
  processes: 1,
  endpoints: 1,
  hasShortRetries: true,
  weakness: null,
  settledWithinMs: 60_000,
};

test('if servers and receivers are killed, every event in the log is delivered, no other event is delivered, and the events of an end user arrive in order', async (t) => {
  const found = await killEvents(OPTIONS, randomFrom(SEED));
  t.diagnostic(`SEED=${SEED}: ${summaryOf(found)}`);
  assert.deepEqual(found.problems, []);
  assert(found.events > 25 * KILLS, 'there were events to lose');
});

control(
  'control: the kill test catches a server that records postings as processed before it stores their events',
  async (t) => {
    const options = { ...OPTIONS, weakness: 'late-events', settledWithinMs: 2_000 } as const;
    const found = await killEvents(options, randomFrom(SEED));
    t.diagnostic(`SEED=${SEED}: ${summaryOf(found)}`);
    assert.match(found.problems.join('\n'), /the log has \d+ events of \S+ instead of/);
  },
);
