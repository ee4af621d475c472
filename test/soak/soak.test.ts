// Runs a soak test for a few seconds, with a kill, clock jumps and backups. As a control, a leaking server must fail
// the soak test. `npm run soak` runs a longer soak test.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { control, effort } from '../effort.ts';
import { judged, sayings } from './judged-soak.ts';
import { canMeasure } from './readings.ts';
import { plotOf } from './soak-plot.ts';
import { type SoakPlan, soak } from './soaking.ts';

const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);

const PLAN: SoakPlan = {
  seed: SEED,
  seconds: effort(4, 10),
  rate: 150,
  kills: 1,
  readEverySeconds: effort(0.2, 0.25),
  jumpEverySeconds: effort(0.5, 1),
  backupEverySeconds: effort(2.5, 4),
  isLeaking: false,
};

const options = { skip: canMeasure() ? false : 'memory and open files of a process can be read only on Linux' };

test(
  'despite a kill, clock jumps and backups, a server under load loses no acknowledged write and leaks no file descriptors',
  options,
  async (t) => {
    const run = await soak(PLAN);
    const verdict = judged(run);
    for (const line of [`SEED=${SEED}`, ...sayings(run, verdict)]) t.diagnostic(line);
    assert.deepEqual(run.wrong, []);
    assert.equal(run.lost + run.lostInBackup, 0);
    assert(
      run.acknowledged > 100 && run.checkedInBackup > 0 && run.days > 1,
      'the run had enough writes, backups and clock jumps',
    );
    assert.deepEqual(new Set(run.events.map(({ kind }) => kind)), new Set(['kill', 'jump', 'backup']));
    assert(verdict.series.descriptors.isFlat, JSON.stringify(verdict.series.descriptors));
    assert.equal(
      plotOf(run, verdict.series).match(/<polyline/g)?.length,
      10,
      'the plot has five series, each with a line for both processes',
    );
  },
);

control('control: the soak test detects a server that leaks memory and file descriptors', options, async (t) => {
  const run = await soak({ ...PLAN, kills: 0, backupEverySeconds: Number.POSITIVE_INFINITY, isLeaking: true });
  const verdict = judged(run);
  for (const line of [`SEED=${SEED}`, ...sayings(run, verdict)]) t.diagnostic(line);
  assert.equal(verdict.series.memory.isFlat, false);
  assert.equal(verdict.series.descriptors.isFlat, false);
});
