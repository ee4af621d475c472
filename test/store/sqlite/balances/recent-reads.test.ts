// Tests that reads are correct although a ledger file caches the end users that were read last.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DAY_MS } from '../../../../src/ledger/instant.ts';
import { Random } from '../../../load/random.ts';
import { EndUser, problemsOf, temporaryFile } from '../../temporary-ledger.ts';
import { crashed, openInPlace, SMALL } from '../sqlite-ledger.ts';

const people = Array.from({ length: 4 }, (_, index) => new EndUser(1 + (index % 2), index));

for (const [limits, options] of [
  ['default', {}],
  ['small', SMALL],
] as const)
  test(`with ${limits} writer limits, a repeated read equals the first read of a new process`, async (t) => {
    const random = new Random(7);
    const file = temporaryFile();
    const ledger = await openInPlace(t, file, options);
    for (let step = 0; step < 150; step++) {
      const user = random.pick(people);
      const commands = [user.add(1 + random.below(9), 1 + random.below(5)), user.subtract(2), user.hold(1, 3_600)];
      if (step % 9 === 0) commands.push(user.startCycle(5, 1 + random.below(3), 'replace'));
      if (random.chance(0.7)) await ledger.write([random.pick(commands)]);
      if (random.chance(0.3)) ledger.wall += random.below(DAY_MS);
      const fresh = await openInPlace(t, crashed(file), { ...options, wall: ledger.wall });
      for (const each of people)
        for (let reads = 0; reads < 2; reads++)
          assert.deepEqual(await ledger.load(each.key), await fresh.load(each.key), `step ${step}`);
      await fresh.close();
    }
    assert.deepEqual(problemsOf(await ledger.audit()), []);
  });
