// Runs short simulations of the product, and of stores that are broken on purpose. The seeds are fixed, so that runs
// can be compared. To run other seeds, set `SEED` (the first seed) and `SEEDS` (the number of seeds).

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { effort } from '../effort.ts';
import { RULE_FAULTS } from '../model/rule-faults.ts';
import { CONTROLS } from './controls.ts';
import { CONTROL_OPERATIONS } from './seed-runner.ts';
import { SeedThread } from './seed-thread.ts';
import { commandFor, failureText, Tally } from './tally.ts';
import type { SeedResult } from './world.ts';

const SEED = Number(process.env.SEED ?? 20_261_121);
const SEEDS = Number(process.env.SEEDS ?? effort(5, 20));
const OPERATIONS = 500;
const FAULTS_MEAN_MIN = 10;
/** With fewer seeds, the mean number of faults per seed varies too much to be checked. */
const SEEDS_JUDGED = 8;
/**
 * `npm test` skips the stores that violate a ledger invariant on purpose: `rules.test.ts` tests that the model catches
 * them.
 */
const CAUGHT = effort(
  CONTROLS.filter((control) => !RULE_FAULTS.some((fault) => fault === control)),
  CONTROLS,
);

let thread: SeedThread;
before(() => {
  thread = new SeedThread();
});
after(() => thread.close());

test('in a simulation, every response matches the reference model, even with faults, stalls, crashes and clock jumps', async (t) => {
  const tally = new Tally();
  const seeds = Array.from({ length: SEEDS }, (_, index) => SEED + index);
  const { results, inFlight } = await thread.run(seeds, OPERATIONS);
  for (const result of results) {
    tally.add(result);
    const repeat = commandFor({ seed: result.seed, operations: OPERATIONS, control: null });
    assert.equal(result.violation, null, failureText(result, repeat));
    assert.equal(result.operations, OPERATIONS);
  }
  const mean = tally.faultCount / tally.seeds;
  t.diagnostic(
    `${SEEDS} seeds, starting with ${SEED}: ${tally.operations} operations, ${mean.toFixed(1)} faults a seed`,
  );
  if (SEEDS >= SEEDS_JUDGED) assert(mean >= FAULTS_MEAN_MIN, `${mean} faults a seed are too few`);
  assert.equal(inFlight, 0, 'all requests are finished');
});

test('a simulation with the same seed gives the same trace in any process, regardless of which seeds ran before', async () => {
  const { results } = await thread.run([7, 8, 7], 300);
  const [first, other, second] = results as [SeedResult, SeedResult, SeedResult];
  assert.equal(second.traceHash, first.traceHash);
  assert.notEqual(other.traceHash, first.traceHash);
  const tally = new Tally();
  tally.add(first);
  const { stdout, status } = simulate('--seed', '7', '--operations', '300');
  assert.equal(status, 0);
  assert.match(stdout, new RegExp(`trace ${tally.traceHash}`));
});

for (const control of CAUGHT) {
  test(`control: the simulation catches a store that ${control}`, async (t) => {
    const { result, seeds } = await thread.catch(control, SEED);
    assert(result !== null, `not caught in ${seeds} seeds, starting with ${SEED}`);
    t.diagnostic(`caught on try ${seeds}: ${result.violation?.slice(0, 200)}`);
  });
}

test('the report of a failed simulation shows the command that repeats the seed', async () => {
  const control = 'returns outcomes in the wrong order';
  const { result } = await thread.catch(control, SEED);
  assert(result !== null);
  const { seed } = result;
  const { stdout, status } = simulate(
    ...['--seed', String(seed), '--operations', String(CONTROL_OPERATIONS), '--control', control],
  );
  assert.equal(status, 1);
  assert(stdout.includes(commandFor({ seed, operations: CONTROL_OPERATIONS, control })), stdout);
  assert.match(stdout, /VIOLATION/);
});

function simulate(...args: string[]) {
  const file = join(import.meta.dirname, 'simulate.ts');
  return spawnSync(process.execPath, [file, ...args], { encoding: 'utf8', timeout: 60_000 });
}
