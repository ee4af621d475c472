// Tests that a ledger file keeps the instant to which a test clock was moved.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { DAY_MS } from '../../../../src/ledger/instant.ts';
import { openLedgerFile } from '../../../../src/store/sqlite/file/ledger-file.ts';
import { LedgerClock } from '../../../../src/store/sqlite/writer/ledger-clock.ts';
import { Writer } from '../../../../src/store/sqlite/writer/writer.ts';
import { EndUser, temporaryFile } from '../../temporary-ledger.ts';

function savedAt(file: string): number {
  using db = new DatabaseSync(file, { readOnly: true });
  return Number(db.prepare('SELECT at FROM clock').get()?.at);
}

test('after a test clock is moved, updating the totals does not set the saved clock back', (t) => {
  const file = temporaryFile();
  openLedgerFile(file, true).close();
  const writer = new Writer(file, new LedgerClock(Date.now, { isTest: true }));
  t.after(() => writer.close());
  writer.write([new EndUser(1, 1).add(1)]);
  const before = savedAt(file);
  const moved = writer.moveClock({ days: 90 });
  assert.equal(moved, before + 90 * DAY_MS);
  assert.equal(savedAt(file), moved);
  writer.updateTotals();
  assert.equal(savedAt(file), moved);
});
