// Tests that the background jobs, which run once a second, write nothing to the file of an idle ledger.

import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { DAY_MS } from '../../../../src/ledger/instant.ts';
import { openLedgerFile } from '../../../../src/store/sqlite/file/ledger-file.ts';
import { LedgerClock } from '../../../../src/store/sqlite/writer/ledger-clock.ts';
import { Writer } from '../../../../src/store/sqlite/writer/writer.ts';
import { EndUser, keyed, NOON, temporaryFile } from '../../temporary-ledger.ts';

const RETENTION = { grantsMs: 30 * DAY_MS, othersMs: DAY_MS };

function idleWriter(t: TestContext) {
  const file = temporaryFile();
  openLedgerFile(file, false).close();
  const time = { now: NOON };
  const writer = new Writer(file, new LedgerClock(() => time.now));
  t.after(() => writer.close());
  const users = Array.from({ length: 20 }, (_, index) => new EndUser(1, index));
  writer.write(users.flatMap((user) => [keyed(user.add(5), 'a', '1'), keyed(user.subtract(1), 's', '1')]));
  const second = () => {
    time.now += 1_000;
    writer.tick();
    writer.deleteExpiredRecords(RETENTION);
    writer.updateTotals();
  };
  const isWritten = () => {
    const before = writtenAt(file);
    second();
    return writtenAt(file) !== before;
  };
  return { time, writer, users, isWritten };
}

function writtenAt(file: string): bigint {
  return statSync(`${file}-wal`, { bigint: true }).mtimeNs;
}

test('background jobs stop writing to an idle ledger when no balance is pending', (t) => {
  const { isWritten } = idleWriter(t);
  const seconds = Array.from({ length: 20 }, isWritten);
  assert(seconds[0], 'pending balances are flushed');
  assert.deepEqual(seconds.slice(10), Array(10).fill(false));
});

test('when idempotency records in an idle ledger expire, background jobs write to the file only once', (t) => {
  const { time, isWritten } = idleWriter(t);
  for (let seconds = 0; seconds < 10; seconds++) isWritten();
  for (const days of [1, 30]) {
    time.now = NOON + days * DAY_MS;
    assert(isWritten(), `records expire after ${days} days`);
    assert.deepEqual(Array.from({ length: 5 }, isWritten), Array(5).fill(false));
  }
});

test('the first write after an idle period has the current time', (t) => {
  const { time, writer, users, isWritten } = idleWriter(t);
  for (let seconds = 0; seconds < 10; seconds++) isWritten();
  const [user] = users as [EndUser];
  const { outcomes } = writer.write([user.startCycle(3, 1)]);
  assert(outcomes[0]?.refused === null && outcomes[0].cycle);
  assert.equal(outcomes[0].cycle.start, time.now);
});
