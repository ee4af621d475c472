// Tests that listed transactions keep their order if cycles renew during writes. The control is a server that shows
// renewals too early.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createKey, serve } from '../cli/scrip-command.ts';
import { control, effort } from '../effort.ts';
import { Random } from '../load/random.ts';
import { setClock } from '../soak/movable-clock.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';
import { changed, type Lists, listAcrossRenewals } from './lists-across-renewals.ts';

const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);
const JUMPS = Number(process.env.JUMPS ?? effort(30, 80));
const JUMPS_TO_CATCH = 1_000;
const TEST_MS_MAX = 120_000;

async function run(t: TestContext, preloads: readonly string[], jumps: number): Promise<Lists> {
  const file = temporaryFile();
  const secret = await createKey(file);
  const clockFile = `${file}.clock`;
  setClock(clockFile, 0);
  const imports = ['../soak/movable-clock.ts', ...preloads].map((name) => join(import.meta.dirname, name));
  const { url } = await serve(t, file, [], {
    CLOCK_FILE: clockFile,
    LOG_LEVEL: 'error',
    NODE_OPTIONS: imports.map((name) => `--import=${name}`).join(' '),
  });
  const isFaultEnough = preloads.length > 0;
  const seen = await listAcrossRenewals({ url, secret, clockFile }, new Random(SEED), { jumps, isFaultEnough });
  t.diagnostic(`SEED=${SEED} JUMPS=${jumps}: ${seen.lists} lists during ${seen.writes} writes`);
  return seen;
}

test('a listed transaction keeps its position while cycles renew during writes', {
  timeout: TEST_MS_MAX,
}, async (t) => {
  const { faults, lists } = await run(t, [], JUMPS);
  assert.deepEqual(faults, []);
  assert(lists > JUMPS, 'enough lists were compared');
});

control(
  'control: the list test catches a server whose reads show renewals without waiting for running writes',
  {
    timeout: TEST_MS_MAX,
  },
  async (t) => {
    const { faults } = await run(t, ['impatient-server.ts'], JUMPS_TO_CATCH);
    assert.match(faults[0] ?? 'nothing', /listed/);
  },
);

test('the comparison of two successive lists finds any difference in the range that both lists cover', () => {
  assert.equal(changed([], ['b', 'a']), null);
  assert.equal(changed(['b', 'a'], ['c', 'b', 'a']), null);
  assert.equal(changed(['b', 'a'], ['d', 'c', 'b']), null, 'the later list may omit old transactions');
  assert.match(changed(['c', 'a'], ['d', 'c', 'b', 'a']) ?? '', /^b is listed where a was$/);
  assert.match(changed(['c', 'a'], ['d', 'a']) ?? '', /^c is no longer listed$/);
});
