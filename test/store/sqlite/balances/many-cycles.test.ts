// Tests end users with so many cycles that a reader caches their state.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DAY_MS } from '../../../../src/ledger/instant.ts';
import { MANY_CYCLES } from '../../../../src/store/sqlite/balances/end-user-reader.ts';
import { PostingReader } from '../../../../src/store/sqlite/journal/posting-reader.ts';
import { Random } from '../../../load/random.ts';
import { assertManyCyclesRight } from '../../contract/many-cycles.ts';
import { balanceOf, EndUser, problemsOf, temporaryFile } from '../../temporary-ledger.ts';
import { TestLedger } from '../../test-ledger.ts';
import { crashed, inPlace, openFor, openInPlace, SMALL } from '../sqlite-ledger.ts';

const ada = new EndUser(1, 1);
const bob = new EndUser(1, 2);

test('an end user with 10,000 cycles spends the oldest cycle first, and the pages of its transactions are correct', async (t) => {
  const ledger = await TestLedger.open(inPlace());
  t.after(() => ledger.close());
  await assertManyCyclesRight(ledger, 10_000);
});

for (const [limits, options] of [
  ['default', {}],
  ['small', SMALL],
] as const)
  test(`with ${limits} writer limits, the state that a reader has cached equals the state that a new reader loads`, async (t) => {
    const random = new Random(41);
    const file = temporaryFile();
    const ledger = await openInPlace(t, file, options);
    const add = () => ada.add(1 + random.below(9), 1 + random.below(60));
    await ledger.write(Array.from({ length: MANY_CYCLES + 50 }, add));
    let most = 0;
    for (let step = 0; step < 40; step++) {
      const commands = Array.from({ length: random.below(20) }, () => random.pick([add(), ada.subtract(5)]));
      if (step % 15 === 7) commands.push(ada.startCycle(3, 2, 'replace'));
      await ledger.write([...commands, bob.add(1)]);
      if (step % 4 === 0) ledger.wall += random.below(3 * DAY_MS);
      const kept = await ledger.load(ada.key);
      most = Math.max(most, kept.state.cycles.length);
      const fresh = await openInPlace(t, crashed(file), { wall: ledger.wall });
      assert.deepEqual(kept, await fresh.load(ada.key));
      const page = await ledger.transactions(ada.key, { limit: 5 });
      assert.deepEqual(page, await fresh.transactions(ada.key, { limit: 5 }));
      await fresh.close();
    }
    assert(most > MANY_CYCLES);
    ledger.wall += 50 * DAY_MS;
    assert((await ledger.load(ada.key)).state.cycles.length < MANY_CYCLES, 'most cycles have ended');
    assert.deepEqual(problemsOf(await ledger.audit()), []);
  });

test('a cached state to which many postings would have to be applied is read from the file instead', async (t) => {
  const ledger = await openInPlace(t, temporaryFile());
  for (let added = 0; added < 300; added += 100) await ledger.write(Array.from({ length: 100 }, () => ada.add(1_000)));
  const before = await balanceOf(ledger, ada);
  for (let spent = 0; spent < 2_000; spent += 100)
    await ledger.write(Array.from({ length: 100 }, () => ada.subtract(1)));
  let read = 0;
  const { backwards } = PostingReader.prototype;
  t.mock.method(
    PostingReader.prototype,
    'backwards',
    function* (this: PostingReader, ...given: Parameters<typeof backwards>) {
      for (const each of backwards.apply(this, given)) {
        read += 1;
        yield each;
      }
    },
  );
  assert.equal(await balanceOf(ledger, ada), before - 2_000);
  assert(read < 1_000, `${read} postings were read`);
});

test('balances of several end users with many cycles are correct after concurrent reads and writes', async (t) => {
  const ledger = await openFor(t, temporaryFile());
  const users = Array.from({ length: 6 }, (_, index) => new EndUser(1, index));
  for (const user of users) await ledger.write(Array.from({ length: 400 }, () => user.add(2)));
  for (let round = 1; round <= 20; round++) {
    const writes = users.map((user) => ledger.write([user.subtract(3)]));
    await Promise.all(users.map((user) => balanceOf(ledger, user)));
    await Promise.all(writes);
    for (const user of users) assert.equal(await balanceOf(ledger, user), 800 - 3 * round);
  }
});
