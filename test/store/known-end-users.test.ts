// Who is posted stays known to the writer until the room is needed, and is posted at an even pace: counted, not timed.

import assert from 'node:assert/strict';
import { StatementSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { endUserId } from '../../bench/workload.ts';
import { LedgerClock } from '../../src/store/sqlite/ledger-clock.ts';
import { openLedgerFile } from '../../src/store/sqlite/ledger-file.ts';
import { POSTING_LIMITS, type PostingLimits } from '../../src/store/sqlite/unposted.ts';
import { Writer } from '../../src/store/sqlite/writer.ts';
import { Random } from '../load/random.ts';
import { crashed } from './outside.ts';
import { EndUser, NOON, temporaryFile } from './temporary-ledger.ts';

function writerOf(t: TestContext, limits: PostingLimits, file = temporaryFile()): Writer {
  openLedgerFile(file, false).close();
  const writer = new Writer(file, new LedgerClock(() => NOON), { limits });
  t.after(() => writer.close());
  return writer;
}

function people(count: number): EndUser[] {
  return Array.from({ length: count }, (_, index) => new EndUser(1, index));
}

test('an end user who was posted is not loaded again until others need its room', (t) => {
  const writer = writerOf(t, { usersMax: 4, cyclesMax: 100, tailMax: 1_000, ofUserMax: 64 });
  const [ada, ...others] = people(6) as [EndUser, ...EndUser[]];
  writer.write([ada, ...others].map((person) => person.add(100)));
  let loads = 0;
  const { all } = StatementSync.prototype;
  t.mock.method(StatementSync.prototype, 'all', function (this: StatementSync, ...parameters: Parameters<typeof all>) {
    loads += 1;
    return all.apply(this, parameters);
  });
  const loadsOf = (person: EndUser) => {
    const before = loads;
    writer.write([person.subtract(1)]);
    return loads - before;
  };
  assert.equal(loadsOf(ada), 1);
  assert.equal(loadsOf(ada), 0, 'she waits to be posted');
  writer.tick();
  assert.equal(writer.tick().length, 1, 'and is posted when nobody writes');
  assert.equal(loadsOf(ada), 0, 'posted, she is still known');
  writer.tick();
  writer.tick();
  for (const person of others) assert.equal(loadsOf(person), 1);
  assert.equal(loadsOf(ada), 1, 'her room was needed');
});

test('who is found in the journal at a start, and posted before anybody asks, has what it had', (t) => {
  const file = temporaryFile();
  const [ada, bob] = people(2) as [EndUser, EndUser];
  const writer = writerOf(t, POSTING_LIMITS, file);
  writer.write([ada.add(10), bob.add(20)]);
  writer.write([ada.subtract(1)]);
  const again = writerOf(t, POSTING_LIMITS, crashed(file));
  again.tick();
  assert.equal(again.tick().length, 2);
  const { outcomes } = again.write([ada.subtract(10), bob.subtract(20), ada.subtract(9)]);
  assert.deepEqual(
    outcomes.map((outcome) => outcome?.refused),
    ['InsufficientFunds', null, null],
  );
});

test('batches post at an even pace: none has much more to do than another', (t) => {
  const [batch, tailMax, users] = [8, 600, 400];
  const writer = writerOf(t, { usersMax: 1_000, cyclesMax: 10_000, tailMax, ofUserMax: 64 });
  const random = new Random(2);
  const common = { account: 1, actor: 'key:1' } as const;
  for (let number = 0; number < users; number++)
    writer.write([{ ...common, kind: 'add', endUser: endUserId(number), amount: 10_000, validityDays: 31 }]);
  const posted: number[] = [];
  for (let number = 0; number < 1_000; number++) {
    const some = Array.from({ length: batch }, () => endUserId(random.below(users)));
    const written = writer.write(some.map((endUser) => ({ ...common, kind: 'subtract', endUser, amount: 1 })));
    posted.push(written.posted.length);
  }
  // Over ten times the length of the tail, each third of it posts about as many as it is long.
  const stretch = tailMax / batch / 3;
  const counts: number[] = [];
  for (let first = 3 * stretch; first + stretch <= posted.length; first += stretch)
    counts.push(posted.slice(first, first + stretch).reduce((sum, each) => sum + each, 0));
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  assert(least > 0 && most < 2 * least, `${least} to ${most} were posted in each ${stretch} batches`);
  assert(Math.max(...posted) <= 2 * batch, `${Math.max(...posted)} were posted beside one batch`);
});
