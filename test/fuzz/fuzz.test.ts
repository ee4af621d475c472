// Runs the fuzzer for a short time, and tests that the fuzzer catches servers that are broken on purpose.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { effort } from '../effort.ts';
import { type Scrip, startScrip } from '../http/running-service.ts';
import { ACCOUNT, targetAt } from './fuzz-target.ts';
import { type Fault as Finding, fuzz, type Target } from './fuzzing.ts';
import { type Fault, loosenedFront } from './loosened-front.ts';

const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);
const TEST_MS_MAX = 120_000;
const REQUESTS = effort(600, 2_000);

let scrip: Scrip;
let target: Target;
before(async () => {
  scrip = await startScrip();
  target = await targetAt(scrip.url, () => scrip.createKey(ACCOUNT, 'write'));
});
after(() => scrip.stop());

test(`hostile requests get correct responses, and only accepted requests change credits (npm run fuzz -- --seed ${SEED} --requests ${REQUESTS})`, {
  timeout: TEST_MS_MAX,
}, async () => {
  const { faults, requests, statuses } = await fuzz(target, SEED, REQUESTS);
  assert.deepEqual(
    faults.map(({ what, bytes }) => `${what}: ${JSON.stringify(bytes.toString('latin1'))}`),
    [],
  );
  assert(requests >= REQUESTS);
  // Only one in four hundred requests gets status 402, so this run may have no such response.
  for (const status of [200, 303, 400, 401, 404, 405, 415, 422])
    assert((statuses.get(status) ?? 0) > 0, `no response had the status ${status}`);
  assert.deepEqual(Object.keys(Object.prototype), [], 'no request adds a property to Object.prototype');
  await scrip.assertConsistent();
});

const CAUGHT: readonly (readonly [fault: Fault, description: string, finding: RegExp])[] = [
  ['coerces', 'converts invalid values', /^status 200 for an invalid request/],
  ['changes', 'executes a subtraction and then refuses it', /^the balance changed without an accepted write/],
  ['falls silent', 'does not respond to invalid JSON', /^no response, and the connection stays open/],
  ['fails', 'responds to invalid JSON with a 500', /^status 500/],
];

for (const [fault, description, finding] of CAUGHT) {
  test(`control: the fuzzer catches a server that ${description}`, { timeout: TEST_MS_MAX }, async (t) => {
    const front = await loosenedFront(scrip, fault);
    t.after(() => front.close());
    const isCaught = (faults: readonly Finding[]) => faults.some(({ what }) => finding.test(what));
    const { faults } = await fuzz({ ...target, port: front.port }, SEED, 400, isCaught);
    assert(isCaught(faults), faults.map((found) => found.what).join('\n'));
  });
}
