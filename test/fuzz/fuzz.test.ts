// A short run of the fuzzer: never a 5xx, never a 200 for an invalid request, no credits moved by a refused one, and no
// connection without an answer; and servers that do these things are caught. `npm run fuzz` runs longer.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startScrip } from '../http/running-service.ts';
import { ACCOUNT, targetAt } from './fuzz-target.ts';
import { fuzz } from './fuzzing.ts';
import { type Fault, loosenedFront } from './loosened-front.ts';

const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);
const TEST_MS_MAX = 120_000;

test(`2,000 hostile requests do no harm (npm run fuzz -- --seed ${SEED} --requests 2000)`, {
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
  // One in four hundred is answered 402: in two thousand, now and then none.
  for (const status of [200, 303, 400, 401, 404, 405, 415, 422])
    assert((statuses.get(status) ?? 0) > 0, `some are answered ${status}`);
  assert.deepEqual(Object.keys(Object.prototype), [], 'nothing was added to all objects');
  await scrip.assertConsistent();
});

/** The finding for each control. */
const CAUGHT: readonly (readonly [Fault, RegExp])[] = [
  ['coerces', /^a 200, and it is not valid/],
  ['changes', /^nothing was taken, and it changed/],
  ['falls silent', /^no answer, and the connection stays open/],
  ['fails', /^a 500/],
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
