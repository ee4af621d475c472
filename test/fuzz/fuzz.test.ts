// A short run of the fuzzer: no 5xx, no 200 for an invalid request, no credits moved by a refused request, and no
// connection left without a response. The controls are servers with these faults. `npm run fuzz` runs longer.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startScrip } from '../http/running-service.ts';
import { ACCOUNT, targetAt } from './fuzz-target.ts';
import { fuzz } from './fuzzing.ts';
import { type Fault, loosenedFront } from './loosened-front.ts';

const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);
const TEST_MS_MAX = 120_000;

test(`2,000 hostile requests get the right responses and move only the right credits (npm run fuzz -- --seed ${SEED} --requests 2000)`, {
  timeout: TEST_MS_MAX,
}, async (t) => {
  const scrip = await startScrip();
  t.after(() => scrip.stop());
  const target = await targetAt(scrip.url, () => scrip.createKey(ACCOUNT, 'write'));
  const { faults, requests, statuses } = await fuzz(target, SEED, 2_000);
  assert.deepEqual(
    faults.map(({ what, bytes }) => `${what}: ${JSON.stringify(bytes.toString('latin1'))}`),
    [],
  );
  assert(requests >= 2_000);
  // One request in four hundred gets 402, so a run of two thousand requests may have none.
  for (const status of [200, 303, 400, 401, 404, 405, 415, 422])
    assert((statuses.get(status) ?? 0) > 0, `no response had the status ${status}`);
  assert.deepEqual(Object.keys(Object.prototype), [], 'no request adds a property to Object.prototype');
  await scrip.assertConsistent();
});

/** The finding that each control must cause. */
const CAUGHT: readonly (readonly [Fault, RegExp])[] = [
  ['coerces', /^status 200 for an invalid request/],
  ['changes', /^the balance changed without an accepted write/],
  ['falls silent', /^no response, and the connection stays open/],
  ['fails', /^status 500/],
];

for (const [fault, what] of CAUGHT) {
  test(`control: the fuzzer catches a server that ${fault}`, { timeout: TEST_MS_MAX }, async (t) => {
    const scrip = await startScrip();
    t.after(() => scrip.stop());
    const target = await targetAt(scrip.url, () => scrip.createKey(ACCOUNT, 'write'));
    const front = await loosenedFront(scrip, fault);
    t.after(() => front.close());
    const { faults } = await fuzz({ ...target, port: front.port }, SEED, 400);
    assert(
      faults.some((found) => what.test(found.what)),
      faults.map((found) => found.what).join('\n'),
    );
  });
}
